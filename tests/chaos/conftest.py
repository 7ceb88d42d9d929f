"""What all rounds share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite(
    *(f"tests.chaos.{name}" for name in ("browsers", "clients", "operations", "rounds", "verdict"))
)

from tests.cdp.browsers import fresh_profile  # noqa: E402 - after the line above, or it comes too late
from tests.e2e.pages import Pages, running_pages  # noqa: E402 - as above
from tests.e2e.serving import PlaygroundProcess, running_playground  # noqa: E402 - as above


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    """Pages to open."""
    with running_pages() as pages:
        yield pages


@pytest.fixture(scope="module")
def playground() -> Iterator[PlaygroundProcess]:
    """Chat pages that outlive every server."""
    with fresh_profile() as directory, running_playground(directory) as process:
        yield process
