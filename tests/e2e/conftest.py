"""What modules share: pages, one server or browser for all tests of a module, and a person in it."""

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.tab_service_pb2 import WatchTabsRequest

from tests.cdp.browsers import RunningChromium, fresh_profile, running_chromium
from tests.e2e.displays import running_display
from tests.e2e.driving import clear_browser, close_all
from tests.e2e.killing import Mortal
from tests.e2e.pages import Pages, running_pages
from tests.e2e.person import Person, person_at
from tests.e2e.relay import Relay, relaying
from tests.e2e.serving import PlaygroundProcess, Server, running_playground, serving
from tests.e2e.watching import Watching, watching
from tests.hostile.site import Site, running_site


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


@pytest.fixture(scope="module")
def pages() -> Iterator[Pages]:
    """Pages to open."""
    with running_pages() as pages:
        yield pages


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """The hostile chat page."""
    with running_site() as site:
        yield site


# Over a server. A module uses `closed_afterwards`, and says in `server_settings` what is special.


@pytest.fixture(scope="module")
def server_settings() -> str:
    """TOML of the module's server."""
    return ""


@pytest.fixture(scope="module")
def describe_providers() -> Callable[[Path], None]:
    """Writes descriptors into the state directory of the module's server."""
    return lambda _directory: None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(
    playground: PlaygroundProcess, server_settings: str, describe_providers: Callable[[Path], None]
) -> AsyncIterator[Server]:
    """One server for this module."""
    with fresh_profile() as directory:
        (directory / "tabmuxd.toml").write_text(server_settings)
        describe_providers(directory)
        async with serving(directory, playground.port) as server:
            yield server


@pytest_asyncio.fixture(loop_scope="module")
async def person(server: Server) -> AsyncIterator[Person]:
    """Somebody else in the server's browser."""
    async with person_at(server.state_directory / "browsers" / "main") as person:
        yield person


@pytest_asyncio.fixture(loop_scope="module")
async def watch(server: Server) -> AsyncIterator[Watching]:
    """All changes of tabs from now on."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=Duration(seconds=1)))) as watch:
        yield watch


@pytest_asyncio.fixture(loop_scope="module")
async def closed_afterwards(server: Server) -> AsyncIterator[None]:
    """No tab is left behind by a test."""
    yield
    await close_all(server)


# Over somebody's browser: a module has its own `person` in it. A relay may be between it and a server.


@pytest.fixture(scope="module")
def chromium() -> Iterator[RunningChromium]:
    """Somebody's browser, one for this module."""
    with fresh_profile() as profile, running_chromium(profile) as chromium:
        yield chromium


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def relay(chromium: RunningChromium) -> AsyncIterator[Relay]:
    """What is between it and the server."""
    async with relaying(chromium.uri) as relay:
        yield relay


@pytest_asyncio.fixture(loop_scope="module")
async def cleared_afterwards(server: Server, person: Person, relay: Relay) -> AsyncIterator[None]:
    """Neither a tab nor a page is left behind by a test, nor a command that was sent."""
    yield
    await clear_browser(server, person)
    relay.commands.clear()


# Servers that are killed


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
    async with person_at(_mortal.state_directory / "browsers" / "main") as person:
        await clear_browser(_mortal, person)
