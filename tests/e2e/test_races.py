"""Calls that are cancelled, and tabs that close, come back and are handed over, each at the worst moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.lease import LeaseTerms
from tabmuxd.resources.orders import LeaseOrder, TabOrder, TabsOrder
from tabmuxd.resources.tab import CloseCause, LoadMilestone, Strategy, Tab, TabState
from tabmuxd.tabs.page import Page

from tests.cdp.browsers import RunningChromium, fresh_profile
from tests.e2e.in_process import PERSON, World, world_at
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.serving import LIMIT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(90)]


@pytest_asyncio.fixture(loop_scope="module")
async def person(chromium: RunningChromium) -> AsyncIterator[Person]:
    """Somebody else in that Chromium."""
    async with person_at(chromium.profile) as person:
        yield person


@pytest_asyncio.fixture(loop_scope="module")
async def world(chromium: RunningChromium, person: Person) -> AsyncIterator[World]:
    """Tabs over that Chromium; afterwards every page left is one that a live tab has."""
    with fresh_profile() as directory:
        async with world_at(Path(directory), chromium.uri, limits=BrowserLimits(max_tab_count=3)) as world:
            yield world
            left = {tab.target_id for tab in world.log.live.tabs.values() if tab.state is not TabState.LOST}
            assert set(await person.pages()) == left
            for target_id in left:
                await person.close(target_id)


class Gate:
    """Holds whoever comes by until it is opened."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def passed(self) -> None:
        """Wait here."""
        self.reached.set()
        async with asyncio.timeout(2 * LIMIT):
            await self.opened.wait()


def held_up(world: World, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate behind which it is told that a target is gone, once it is."""
    gate, close_target = Gate(), world.host._closing.close_target

    async def closing(target_id: str) -> None:
        await close_target(target_id)
        if not gate.opened.is_set() and not gate.reached.is_set():
            await gate.passed()

    monkeypatch.setattr(world.host._closing, "close_target", closing)
    return gate


async def reason(work: Any) -> str:  # noqa: ANN401 - an awaitable of anything
    """The reason that this is refused with."""
    with pytest.raises(Refused) as refused:
        await work
    return refused.value.reason.value


def opening(**fields: Any) -> TabOrder:  # noqa: ANN401 - fields of the order
    """An order that is answered with the first document."""
    return TabOrder(until=LoadMilestone.COMMITTED, **fields)


async def test_comes_back_while_it_closes(world: World, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tab that gets another target while it is closed is closed with that one too (O-57, O-58)."""
    tab = await world.open(pages.at("/page"))
    gate = held_up(world, monkeypatch)
    closing = asyncio.ensure_future(world.tabs.close(PERSON, tab.name, lease="", force=True))
    await gate.reached.wait()
    recovered = await world.tabs.recovery.recover(tab.name, by_client=True)
    gate.opened.set()
    closed = await closing
    assert (recovered.strategy, closed.state, world.host.pages) == (Strategy.REOPENED, TabState.CLOSED, {})


@pytest.mark.parametrize("how", ["one", "many", "idle"])
async def test_cancelled_while_it_closes(world: World, pages: Pages, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is cancelled while a tab closes holds it to the end: nobody gets a lease on a tab that goes (O-37, O-126)."""
    tab = await world.open(pages.at("/page"))
    gate = held_up(world, monkeypatch)
    match how:
        case "one":
            work: Any = world.tabs.close(PERSON, tab.name, lease="", force=False)
        case "many":
            work = world.tabs.close_many(PERSON, TabsOrder())
        case _:
            world.clock.pass_by(timedelta(hours=1))
            work = world.tabs.clearing.tidy()
    closing = asyncio.ensure_future(work)
    await gate.reached.wait()
    closing.cancel()
    leasing = asyncio.ensure_future(world.tabs.leases.acquire(PERSON, LeaseOrder(tab.name, LeaseTerms())))
    await asyncio.wait({leasing}, timeout=0.5)
    gate.opened.set()
    await asyncio.wait({closing})
    assert (await reason(leasing), closing.cancelled()) == ("TAB_CLOSED", True)
    assert dict(world.log.live.leases) == {}


async def test_repeated(world: World) -> None:
    """A CreateTab that is repeated once its tab is there raises nothing: another may hold it by now (O-10, O-27)."""
    order = opening(request_id="r", activate=True)
    first = (await world.tabs.create(PERSON, order)).tab
    second = (await world.tabs.create(PERSON, opening(activate=True))).tab
    again = await world.tabs.create(PERSON, order)
    assert (first.front, second.front) == (True, True)
    assert [again.tab.name, world.tab(first.name).front, world.tab(second.name).front] == [first.name, False, True]


# Hand-over


async def pooled(world: World, pages: Pages) -> Tab:
    """A tab that waits in the pool of the group `g`."""
    tab = (await world.tabs.create(PERSON, opening(uri=pages.at("/page"), group="g"))).tab
    given = await world.tabs.close(PERSON, tab.name, lease="", force=False, pool=True)
    assert given.pooled
    return given


def held_up_at(method: str, word: str, monkeypatch: pytest.MonkeyPatch) -> Gate:
    """A gate before the first command to a page with this method, and this word in its parameters."""
    gate, call = Gate(), Page.call

    async def calling(page: Page, name: str, params: Any = None, *, timeout: float = LIMIT) -> dict[str, Any]:  # noqa: ANN401 - JSON
        if name == method and word in str(params) and not gate.reached.is_set():
            await gate.passed()
        return await call(page, name, params, timeout=timeout)

    monkeypatch.setattr(Page, "call", calling)
    return gate


MOMENTS = [
    ("Page.getFrameTree", ""),
    ("Page.navigate", "about:blank"),
    ("Runtime.evaluate", ""),
    ("Page.navigate", "mine"),
]


@pytest.mark.parametrize(("method", "word"), MOMENTS)
async def test_closed_while_handed_over(
    world: World, pages: Pages, method: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tab that its new owner closes while it is handed over is TAB_CLOSED, and no other is opened for it (O-38)."""
    tab = await pooled(world, pages)
    gate = held_up_at(method, word, monkeypatch)
    order = opening(uri=pages.at("/page?title=mine"), group="g", from_pool=True)
    creating = asyncio.ensure_future(world.tabs.create(PERSON, order))
    await gate.reached.wait()
    closed = await world.tabs.close(PERSON, tab.name, lease="", force=True)
    gate.opened.set()
    assert (await reason(creating), closed.close_cause) == ("TAB_CLOSED", CloseCause.CLIENT)
    assert dict(world.log.live.tabs) == {}


@pytest.mark.parametrize(("method", "word"), MOMENTS)
async def test_gone_while_handed_over(  # noqa: PLR0917 - fixtures
    world: World, pages: Pages, person: Person, method: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tab whose page goes while it is handed over is refused or replaced by another one (O-46)."""
    tab = await pooled(world, pages)
    gate = held_up_at(method, word, monkeypatch)
    order = opening(uri=pages.at("/page?title=mine"), group="g", from_pool=True, request_id="r")
    creating = [asyncio.ensure_future(world.tabs.create(PERSON, order)) for _ in range(2)]
    await gate.reached.wait()
    await person.close(tab.target_id)
    await world.until(lambda: tab.name not in world.log.live.tabs)
    gate.opened.set()
    if word == "mine":
        assert [await reason(each) for each in creating] == ["TAB_CLOSED"] * 2
    else:
        first, second = await asyncio.gather(*creating)
        assert (first.tab, first.from_pool) == (second.tab, False)
        assert list(world.log.live.tabs) == [first.tab.name]


@pytest.mark.parametrize(("method", "word"), MOMENTS)
@pytest.mark.parametrize("keep", [True, False])
async def test_cancelled_while_handed_over(
    world: World, pages: Pages, method: str, word: str, *, keep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hand-over whose caller is gone is carried out, one for a turn is undone (O-45, O-155)."""
    tab = await pooled(world, pages)
    gate = held_up_at(method, word, monkeypatch)
    order = opening(uri=pages.at("/page?title=mine"), group="g", from_pool=True)
    work = world.tabs.create(PERSON, order) if keep else world.tabs.open_for("local", order, lambda _, tab: tab)
    creating = asyncio.ensure_future(work)
    await gate.reached.wait()
    creating.cancel()
    gate.opened.set()
    await asyncio.wait({creating})
    if keep:
        ready = await world.until_state(tab.name, TabState.READY)
        assert (ready.owner, ready.pooled, ready.left_at) == ("local", False, "")
    else:
        await world.until(lambda: tab.name not in world.log.live.tabs)
