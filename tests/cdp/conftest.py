"""A Chromium of its own for each test that asks for one; mark such tests `chromium`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cdp.browsers import RunningChromium, fresh_profile, running_chromium


@pytest.fixture
def profile() -> Iterator[Path]:
    """An empty directory with a short name."""
    with fresh_profile() as directory:
        yield directory


@pytest.fixture
def chromium(profile: Path) -> Iterator[RunningChromium]:
    """A headless Chromium without pages: pid, profile and socket address."""
    with running_chromium(profile) as running:
        yield running


@pytest.fixture
def chromium_uri(chromium: RunningChromium) -> str:
    """The socket address of a headless Chromium without pages."""
    return chromium.uri
