"""A tab that Chrome discards while its page answers: the answer goes on elsewhere, and is observed to its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from tabmux.v1.session_pb2 import Turn

from tests.cdp.browsers import RunningChromium
from tests.e2e.discarding import DISCARD, discarding_chromium
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.serving import Server
from tests.e2e.test_conversations import talk
from tests.e2e.test_entering import unique
from tests.hostile.cases import LONG
from tests.hostile.descriptors import describe
from tests.hostile.script import answer, grow, show
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.long,
    pytest.mark.timeout(120),
]

_HELD: Final = 60.0


@pytest.fixture(scope="module")
def chromium() -> Iterator[RunningChromium]:
    """Somebody's browser, which discards the conversations of the hostile page."""
    with discarding_chromium("/v/plain/c/") as running:
        yield running


@pytest.fixture(scope="module")
def server_settings(chromium: RunningChromium) -> str:
    """Attached to it."""
    return f'[browsers.main]\naddress = "{chromium.uri}"\n'


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """The hostile page as it is."""

    def write(directory: Path) -> None:
        describe(directory, site, provider="plain")

    return write


@pytest_asyncio.fixture(loop_scope="module")
async def person(chromium: RunningChromium) -> AsyncIterator[Person]:
    """The one whose browser it is."""
    async with person_at(chromium.profile) as person:
        yield person


async def test_discarded_in_mid_answer(server: Server, site: Site, person: Person, pages: Pages) -> None:
    """The tab is the same, a generation on, and its turn ends with the whole answer, sent once (FIN-19, O-114)."""
    one = await talk(server, "plain")
    held = answer(grow(LONG[:300], 0.3), show(_HELD), grow(LONG, 0.5), show(0, stop=0, done=True))
    turn = await one.ask(prompt := site.answer(unique(), held))
    await one.text(turn)
    name = (await one.session()).tab
    await person.open(pages.at(DISCARD))
    await server.tabs_when(lambda tabs: [tab.generation for tab in tabs if tab.name == name] == [2])
    site.go_on(prompt)
    end = await one.end(turn)

    assert (end.state, end.answer_markdown, end.error.reason) == (Turn.STATE_SUCCEEDED, LONG, "")
    assert len(site.received(prompt)) == 1
    assert (await one.session()).tab == name
