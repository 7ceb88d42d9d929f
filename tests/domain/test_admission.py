"""Who waits for room, and what that costs everybody else, over a real log and a browser that opens nothing."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserOptions, BrowserState, Ownership
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.orders import OpenedTab, TabOrder
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs.admission import Admission
from tabmuxd.tabs.clearing import Clearing
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.room import MAX_WAITING
from tabmuxd.tasks import Tasks

from tests.domain.values import NOW, TAB, ready_tab

LIMIT = 20.0
WAITING = TabOrder(browser="browsers/main", room_timeout=timedelta(minutes=5))


@dataclass
class FullBrowser:
    """A browser with room for one tab."""

    name: str = "browsers/main"
    targets: object | None = "there"
    options: BrowserOptions = field(
        default=BrowserOptions("browsers/main", Ownership.LAUNCHED, BrowserLimits(max_tab_count=1)),
    )

    def connected(self) -> object:
        return self.targets


@dataclass
class World:
    """Who asks for tabs, of which there is one, and how often the store was asked for one."""

    log: Log
    tasks: Tasks
    admission: Admission
    asked: list[int]

    def ask(self, order: TabOrder = WAITING, *, keep: bool = True) -> asyncio.Task[OpenedTab]:
        """Ask for a tab."""
        return asyncio.ensure_future(self.admission.admit("local/a", order, lambda _changes, tab: tab, keep=keep))

    async def until(self, reached: Callable[[], bool]) -> None:
        """Return once it is so, looked at after each turn of the store."""
        async with asyncio.timeout(LIMIT):
            while not reached():
                await self.log.change(lambda _changes: None)

    async def until_waiting(self, count: int) -> None:
        """Return once so many stand in line."""
        await self.until(lambda: f"waiting={count} " in repr(self.admission))

    async def change(self, **fields: object) -> None:
        """Something happens to the tab that there is."""
        await self.log.change(lambda changes: _change(changes, fields))


def _change(changes: Changes, fields: dict[str, object]) -> Tab:
    known = changes.tab(TAB)
    assert known is not None
    return changes.record(replace(known, **fields))  # type: ignore[arg-type]


@pytest.fixture
async def world() -> AsyncGenerator[World]:
    """A browser that is full, with a pinned tab of `local/a`."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    asked: list[int] = []

    def random(size: int) -> bytes:
        asked.append(size)
        return bytes([len(asked) & 31]) * size

    async with Log(directory / "t.sqlite3", clock=lambda: NOW) as log, Tasks() as tasks:
        hosts = Hosts([cast("BrowserHost", FullBrowser())])
        lines = Lines()
        admission = Admission(hosts, log, tasks, random, lines, Clearing(hosts, log, lines, lambda: NOW))
        await log.change(
            lambda changes: changes.record(Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED))
        )
        await log.change(lambda changes: changes.record(replace(ready_tab(), pinned=True)))
        yield World(log, tasks, admission, asked)
    shutil.rmtree(directory)


async def test_line_is_bounded(world: World) -> None:
    """As many wait as may, the next is TAB_CAPACITY at once, and all leave the line when cancelled (O-43).

    Turns wait besides.
    """
    before = asyncio.all_tasks()
    waiting = [world.ask() for _ in range(MAX_WAITING)]
    await world.until_waiting(MAX_WAITING)

    async with asyncio.timeout(LIMIT):
        with pytest.raises(Refused) as refused:
            await world.ask()
    of_turn = world.ask(keep=False)
    await world.until_waiting(MAX_WAITING + 1)
    for call in (*waiting, of_turn):
        call.cancel()
    await asyncio.wait([*waiting, of_turn])

    assert refused.value.reason.value == "TAB_CAPACITY"
    assert (repr(world.tasks), asyncio.all_tasks() - before) == ("<Tasks running=0>", set())
    assert list(world.log.live.tabs) == [TAB]


async def test_waiting_asks_nothing(world: World) -> None:
    """Who waits looks at what is published, and asks the store once there may be room (O-43)."""
    waiting = [world.ask() for _ in range(3)]
    await world.until_waiting(3)
    asked = len(world.asked)

    for number in range(5):
        await world.change(title=str(number))
    await asyncio.wait(waiting, timeout=1.2)
    assert len(world.asked) == asked
    await world.change(pooled=True, owner="", pinned=False)
    await world.until(lambda: len(world.asked) > asked)
    for call in waiting:
        call.cancel()
    await asyncio.wait(waiting)


async def test_cancelled_before_the_store_was_asked(world: World) -> None:
    """Who goes away before there is a row leaves none: no tab is opened for nobody (O-43, O-155)."""
    held, go_on = threading.Event(), threading.Event()

    def hold(changes: Changes) -> None:
        del changes
        held.set()
        go_on.wait(LIMIT)

    holding = asyncio.ensure_future(world.log.change(hold))
    await asyncio.to_thread(held.wait, LIMIT)
    freed = asyncio.ensure_future(world.change(pooled=True, owner="", pinned=False, group="g"))
    asked = len(world.asked)
    call = world.ask(replace(WAITING, group="g", from_pool=True, request_id="r"))
    while len(world.asked) == asked:
        await asyncio.to_thread(int)  # the store is held up
    call.cancel()
    await asyncio.wait({call})
    go_on.set()
    await asyncio.gather(holding, freed)
    await world.until(lambda: repr(world.tasks) == "<Tasks running=0>")

    assert [(tab.name, tab.pooled) for tab in world.log.live.tabs.values()] == [(TAB, True)]


@dataclass
class Turnstile:
    """What else somebody needs: there, or not; and whether it is held."""

    there: bool = True
    held: bool = True

    @property
    def refused(self) -> Refused:
        return refuse(Reason.TURN_CAPACITY, "shut", provider="p", limit=1)

    def enter(self) -> bool:
        self.held = self.there
        return self.held

    def step_aside(self) -> None:
        self.held = False


async def test_gate(world: World) -> None:
    """While there is no room nothing else is held, and room goes to those behind while the gate is shut (O-43, O-141).

    Whose time is over then is told of the gate, not of room.
    """
    gate = Turnstile()
    order = replace(WAITING, room_timeout=timedelta(seconds=3))
    first = asyncio.ensure_future(
        world.admission.admit("local/a", order, lambda _changes, tab: tab, keep=False, gate=gate)
    )
    await world.until_waiting(1)
    assert not gate.held
    gate.there = False
    behind = world.ask(replace(WAITING, from_pool=True))
    await world.until_waiting(2)

    await world.change(state=TabState.CLOSED)
    async with asyncio.timeout(LIMIT):
        with pytest.raises(AttributeError):
            await behind  # it got the room; this browser opens nothing
        (opening,) = world.log.live.tabs.values()
        await world.log.change(lambda changes: changes.record(replace(opening, state=TabState.CLOSED)))
        with pytest.raises(Refused) as refused:
            await first
    assert (opening.state, refused.value.reason) == (TabState.OPENING, Reason.TURN_CAPACITY)
