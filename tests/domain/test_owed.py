from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserState, Ownership
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import endings, faults, owed_rules
from tabmuxd.tabs.addresses import marker_address
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.owed import OwedCloses
from tabmuxd.tabs.owed_rules import OwedClose
from tabmuxd.tasks import Tasks

from tests.cdp.browsers import fresh_profile
from tests.domain.values import NOW, TAB, ready_tab

_SECOND = timedelta(seconds=1)
_OURS = replace(ready_tab(), target_id="T", browser_generation=2, close_owed=CloseCause.CLIENT)
_CLOSE = OwedClose(TAB, "T", 2, CloseCause.CLIENT, NOW)


# Rules


def test_pauses() -> None:
    """A close that failed is tried again after 1, 2, 5, 15 and 60 s, and then every 5 min (O-127)."""
    pauses = [owed_rules.pause_after(failures).total_seconds() for failures in range(1, 9)]
    assert pauses == [1, 2, 5, 15, 60, 300, 300, 300]


@pytest.mark.parametrize(
    ("changed", "owed"),
    [
        ({}, True),
        ({"state": TabState.CRASHED}, True),
        ({"pinned": True}, True),
        ({"origin": TabOrigin.ADOPTED}, True),
        ({"state": TabState.CLOSED}, False),
        ({"target_id": "U"}, False),
        ({"last_active_time": NOW + _SECOND}, False),
        ({"lease": "leases/new"}, False),
        ({"close_owed": CloseCause.NONE}, False),
        ({"close_owed": CloseCause.IDLE}, False),
    ],
)
def test_still_owed(changed: dict[str, object], *, owed: bool) -> None:
    """What a client asked for is done unless the tab has closed, has another target, or somebody came back (O-126)."""
    assert owed_rules.is_still_owed(_CLOSE, replace(_OURS, **changed), 2) == owed  # type: ignore[arg-type]  # of a table


@pytest.mark.parametrize(
    "changed", [{"pinned": True}, {"lease": "leases/old"}, {"origin": TabOrigin.ADOPTED}, {"last_active_time": NOW}]
)
def test_unasked(changed: dict[str, object]) -> None:
    """What the service decided by itself is judged again: never one pinned, held or adopted (O-13, O-34, O-126)."""
    tab = replace(_OURS, close_owed=CloseCause.IDLE, **changed)  # type: ignore[arg-type]  # of a table
    close = replace(_CLOSE, cause=CloseCause.IDLE, lease="leases/old")
    assert owed_rules.is_still_owed(close, tab, 2) == ("last_active_time" in changed)


def test_older_generation() -> None:
    """A close owed to an older browser process is owed no more, though the id occurs again (O-124)."""
    assert owed_rules.is_still_owed(_CLOSE, _OURS, 2)
    assert not owed_rules.is_still_owed(_CLOSE, _OURS, 3)
    assert not owed_rules.is_still_owed(_CLOSE, None, 2)


_MARKED = replace(_OURS, state=TabState.CLOSED, target_id="", browser_generation=0, marker="f" * 32)


def _page(target_id: str = "T", uri: str = "https://a/", opener_id: str = "") -> TargetInfo:
    return TargetInfo(target_id, "page", "", uri, opener_id, attached=False)


@pytest.mark.parametrize(
    ("tab", "page", "orphan"),
    [
        (replace(_OURS, state=TabState.CLOSED), _page(), True),
        (replace(_OURS, state=TabState.LOST), _page(), True),
        (replace(_OURS, state=TabState.READY), _page(), False),
        (replace(_OURS, state=TabState.OPENING), _page(), False),
        (replace(_OURS, state=TabState.CRASHED), _page(), False),
        (replace(_OURS, state=TabState.RECOVERING), _page(), False),
        (replace(_OURS, state=TabState.CLOSED), _page("U"), False),
        (replace(_OURS, state=TabState.CLOSED, browser_generation=1), _page(), False),
        (replace(_OURS, state=TabState.CLOSED, origin=TabOrigin.ADOPTED), _page(), False),
        (_MARKED, _page(uri=marker_address(TAB, "f" * 32)), True),
        (_MARKED, _page(uri=marker_address(TAB, "e" * 32)), False),
        (_MARKED, _page(uri=marker_address(TAB, "f" * 32), opener_id="O"), False),
        (replace(_MARKED, marker=""), _page(uri=marker_address(TAB, "")), False),
        (replace(_MARKED, state=TabState.OPENING), _page(uri=marker_address(TAB, "f" * 32)), False),
        (replace(_OURS, marker="f" * 32), _page(uri=marker_address(TAB, "f" * 32)), False),
        (replace(_OURS, marker="f" * 32), _page("U", uri=marker_address(TAB, "f" * 32)), True),
    ],
)
def test_orphans(tab: Tab, page: TargetInfo, *, orphan: bool) -> None:
    """A target is closed only by proof, and only if its tab does not live: address, title and age are none (O-123)."""
    assert owed_rules.is_orphan(tab, page, 2) == orphan


# Attempts


@dataclass
class _Host:
    """A browser in which the first `failing` closes fail."""

    log: Log
    name: str = "browsers/main"
    failing: int = 0
    targets: object | None = field(default_factory=object)
    attempts: list[str] = field(default_factory=list)
    close_failed: object = None

    opening: set[str] = field(default_factory=set)

    def is_at_work_on(self, tab: str) -> bool:
        return tab in self.opening

    async def close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        self._attempt(tab.name)
        return await self.log.change(lambda changes: endings.close(changes, tab, cause, why, lambda *_: None))

    async def close_target(self, target_id: str) -> None:
        self._attempt(target_id)

    def _attempt(self, what: str) -> None:
        self.attempts.append(what)
        if len(self.attempts) <= self.failing:
            raise faults.close_owed(self.name, what)


@dataclass
class _World:
    """Closes that are owed in one browser, over a real log; time does not pass, but is written down."""

    log: Log
    host: _Host
    lines: Lines
    tasks: Tasks
    pauses: list[float]
    owed: OwedCloses
    resting: asyncio.Event

    async def settled(self) -> None:
        """Return once nothing is owed any more."""
        async with asyncio.timeout(20):
            await asyncio.gather(*self.tasks._running)
        assert self.owed.statistics().owed_count == 0

    async def paused(self, count: int) -> None:
        """Return once it was paused so often."""
        async with asyncio.timeout(20):
            while len(self.pauses) < count:
                self.resting.clear()
                await self.resting.wait()

    async def now(self) -> Tab:
        tab = await self.log.get_tab(TAB)
        assert tab is not None
        return tab


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own."""
    with fresh_profile() as directory:
        yield directory


@pytest.fixture
async def world(directory: Path) -> AsyncIterator[_World]:
    """One browser of generation 2 with one tab of ours, whose close is owed."""
    async with Log(directory / "store.db", clock=lambda: NOW) as log, Tasks() as tasks:
        browser = Browser("browsers/main", BrowserState.ACTIVE, Ownership.ATTACHED, generation=2)
        await log.change(lambda changes: changes.record(browser))
        await log.change(lambda changes: changes.record(_OURS))
        host, lines = _Host(log), Lines()
        hosts = Hosts([cast("BrowserHost", host)])
        pauses: list[float] = []
        resting = asyncio.Event()

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            resting.set()

        owed = OwedCloses(hosts, log, lines, tasks, lambda: NOW, sleep=sleep)
        yield _World(log, host, lines, tasks, pauses, owed, resting)


async def test_done(world: _World) -> None:
    """An owed close is tried until it is done, and its first cause is recorded (O-37, O-127)."""
    world.host.failing = 2
    world.owed.owe(_CLOSE)
    world.owed.owe(replace(_CLOSE, cause=CloseCause.IDLE))
    await world.settled()
    tab = await world.now()
    assert (tab.state, tab.close_cause, tab.close_owed) == (TabState.CLOSED, CloseCause.CLIENT, CloseCause.NONE)
    assert (world.host.attempts, world.pauses) == ([TAB] * 3, [1, 2, 5])
    assert (world.owed.statistics().attempt_count, world.owed.statistics().done_count) == (3, 1)


async def test_given_up(world: _World) -> None:
    """After 24 h of attempts it is given up, and the tab stays; a later failure is owed anew (O-127)."""
    world.host.failing = 1_000
    world.owed.owe(_CLOSE)
    await world.settled()
    tab = await world.now()
    assert (tab.state, tab.close_owed) == (TabState.READY, CloseCause.NONE)
    assert sum(world.pauses) - 300 < 86_400 <= sum(world.pauses)
    assert world.owed.statistics().given_up_count == 1
    assert world.owed.knows(TAB)
    attempts = len(world.host.attempts)
    world.owed.owe(_CLOSE)
    assert (world.owed.statistics().owed_count, len(world.host.attempts)) == (0, attempts)


async def test_came_back(world: _World) -> None:
    """If somebody used the tab meanwhile, it is not closed, and the close is forgotten (O-126)."""
    world.owed.owe(replace(_CLOSE, since=NOW - _SECOND))
    await world.settled()
    tab = await world.now()
    assert (tab.state, tab.close_owed, world.host.attempts) == (TabState.READY, CloseCause.NONE, [])


async def test_at_work(world: _World) -> None:
    """While a call is at work on the tab it is not closed (O-126)."""
    async with world.lines.turn(TAB):
        world.owed.owe(_CLOSE)
        await world.paused(4)
        assert world.host.attempts == []
    await world.settled()
    assert world.host.attempts == [TAB]


async def test_at_work_in_vain(world: _World) -> None:
    """A call that waits for a page which nobody opens any more does not hold the close up (O-58, O-127)."""
    opening = replace(_OURS, state=TabState.OPENING, target_id="", browser_generation=0)
    await world.log.change(lambda changes: changes.record(opening))
    world.host.opening.add(TAB)
    async with world.lines.turn(TAB):
        world.owed.owe(replace(_CLOSE, target_id="", generation=0))
        await world.paused(2)
        assert world.host.attempts == []
        world.host.opening.clear()
        await world.settled()
    assert (world.host.attempts, (await world.now()).state) == ([TAB], TabState.CLOSED)


async def test_browser_away(world: _World) -> None:
    """While the browser is away nothing is tried; it is right after the next connect, over a restart too (O-127)."""
    world.host.targets = None
    world.owed.owe(_CLOSE)
    await world.paused(1)
    await world.log.change(lambda changes: changes.browsers())
    assert world.host.attempts == []
    world.host.targets = object()
    world.owed.connected(cast("BrowserHost", world.host))
    await world.settled()
    assert (world.host.attempts, world.pauses) == ([TAB], [1])


async def test_after_restart(world: _World) -> None:
    """A close that was owed when the server ended is done at the first connect (O-127)."""
    world.owed.connected(cast("BrowserHost", world.host))
    await world.settled()
    assert (world.host.attempts, world.pauses) == ([TAB], [])


@pytest.mark.parametrize(("generation", "attempts"), [(2, ["T"]), (1, [])])
async def test_orphan(world: _World, generation: int, attempts: list[str]) -> None:
    """A target that outlived its tab is closed later too, but not in another browser process (O-124, O-128)."""
    close = OwedClose(TAB, "T", generation, CloseCause.NONE, NOW)
    world.owed.owe(close)
    await world.settled()
    assert world.host.attempts == attempts
    assert (await world.now()).state is TabState.READY
