"""A running server with its browser, and the chat pages of a module."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from tabmux.v1.tab_service_pb2 import CloseTabRequest

from tests.cdp.browsers import fresh_profile
from tests.e2e.displays import running_display
from tests.e2e.killing import Mortal
from tests.e2e.person import person_at
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server, running_playground, serving


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def _mortal(playground: PlaygroundProcess) -> AsyncIterator[Mortal]:
    with fresh_profile() as directory:
        mortal = Mortal(directory, playground.port)
        try:
            yield mortal
        finally:
            await mortal.close()


@pytest_asyncio.fixture(loop_scope="module")
async def mortal(_mortal: Mortal) -> AsyncIterator[Mortal]:
    """A server to kill; its browser serves the whole module, and shows no page yet."""
    await _mortal.revive()
    yield _mortal
    await _mortal.revive()
    for tab in await _mortal.list_tabs():
        await _mortal.tabs.CloseTab(CloseTabRequest(name=tab.name, force=True), timeout=LIMIT)
    async with person_at(_mortal.state_directory / "browsers" / "main") as person:
        for target_id in await person.pages():
            await person.close(target_id)
    await _mortal.browser_when(lambda browser: browser.tab_counts.foreign_count == 0)
