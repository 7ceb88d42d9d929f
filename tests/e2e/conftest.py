"""A running server with its browser, and the chat pages of a module."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.cdp.browsers import fresh_profile
from tests.e2e.displays import running_display
from tests.e2e.serving import PlaygroundProcess, Server, running_playground, serving


@pytest.fixture(scope="module")
def playground() -> Iterator[PlaygroundProcess]:
    """Chat pages that outlive every server of the module; prompts of other tests are in them too."""
    with fresh_profile() as directory, running_playground(directory) as process:
        yield process


@pytest.fixture(scope="session")
def display() -> Iterator[str]:
    """A screen for windows, one for all tests of this process that need any."""
    with running_display() as name:
        yield name


@pytest.fixture
def state_directory() -> Iterator[Path]:
    """An empty state directory with a short name."""
    with fresh_profile() as directory:
        yield directory


@pytest.fixture
async def server(state_directory: Path, playground: PlaygroundProcess) -> AsyncIterator[Server]:
    """A server that serves, with a browser of its own connected; both are gone afterwards."""
    async with serving(state_directory, playground.port) as running:
        yield running
