"""Pages of resources."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from tabmuxd.events import Changes, Log
from tabmuxd.resources.event import Resource
from tabmuxd.resources.orders import TabFilter
from tabmuxd.resources.session import SessionState, TurnState
from tabmuxd.resources.tab import TabOrigin, TabState

from tests.events.steps import Clock, know_browser
from tests.store.samples import MAIN, lease, session, tab, turn

R = TypeVar("R", bound=Resource)
AHEAD = 10


@pytest.fixture
async def log(directory: Path) -> AsyncIterator[Log]:
    """A log with tabs 1 to 9, of which some differ, sessions 1 to 5, two leases, and turns of session 1."""
    async with Log(directory / "s", clock=Clock()) as log:
        await log.change(know_browser)
        await log.change(fill)
        yield log


def fill(changes: Changes) -> None:
    """Record everything that the lists below are of."""
    for number in range(9, 0, -1):
        changes.record(replace(tab(number), labels={"n": str(number % 2), "all": "1"}, group="g" if number < 4 else ""))
    changes.record(replace(changes.tabs()[0], state=TabState.CLOSED))
    changes.record(replace(changes.tabs()[0], origin=TabOrigin.ADOPTED, state=TabState.READY))
    changes.record(replace(tab(20), name=f"browsers/other/tabs/{20:010d}"))
    for number in range(1, 6):
        changes.record(replace(session(number), provider="grok" if number % 2 else "gemini", labels={"n": str(number)}))
    changes.record(replace(changes.sessions()[0], state=SessionState.RETIRED, retire_time=changes.now))
    mine = changes.sessions()[0]
    for number in (3, 1, 2):
        ended = TurnState.SUCCEEDED if number < 3 else TurnState.PENDING
        changes.record(replace(turn(number, mine), state=ended, prompt="p", answer_markdown="# A"))
    for number in (1, 2, 3):
        held = changes.record(lease(number, tab(number), 1))
        if number == 1:
            changes.record(replace(held, end_time=changes.now))


async def pages(read: Callable[[int], Awaitable[list[tuple[int, R]]]]) -> list[str]:
    """Ids of all pages, one after the other; each page goes on behind the last one."""
    found: list[tuple[int, R]] = []
    while page := await read(found[-1][0] if found else 0):
        found += page
    assert [created for created, _ in found] == sorted({created for created, _ in found})
    return [resource.name.rpartition("/")[2].lstrip("0") for _, resource in found]


async def tabs(log: Log, count: int = 2, **wanted: object) -> list[str]:
    """Ids of the tabs that match."""
    return await pages(lambda after: log.list_tabs(TabFilter(**wanted), after=after, count=count))  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [1, 2, 100])
async def test_pages_of_tabs(log: Log, count: int) -> None:
    """Pages come in order of creation, whatever was changed since, complete and without doubles (STO-08)."""
    assert await tabs(log, count) == ["8", "7", "6", "5", "4", "3", "2", "1", "20"]


async def test_tab_filters(log: Log) -> None:
    """Each filter keeps what matches; without states all but the closed, and a page may end in mid-list."""
    assert await tabs(log, browser="browsers/other") == ["20"]
    assert await tabs(log, browser="browsers/-", states=frozenset({TabState.CLOSED})) == ["9"]
    assert await tabs(log, states=frozenset({TabState.CLOSED, TabState.READY})) == ["9", "8"]
    assert await tabs(log, states=frozenset({TabState.READY})) == ["8"]
    assert await tabs(log, origins=frozenset({TabOrigin.ADOPTED})) == ["8"]
    assert await tabs(log, groups=frozenset({"g", "h"})) == ["3", "2", "1"]
    assert await tabs(log, labels={"n": "0", "all": "1"}) == ["8", "6", "4", "2"]
    assert await tabs(log, labels={"n": "0", "none": ""}) == []
    assert await log.list_tabs(TabFilter(), after=0, count=0) == []


async def test_other_lists(log: Log) -> None:
    """Browsers, leases that are held, sessions and turns are listed alike."""
    assert await pages(lambda after: log.list_browsers(after=after, count=1)) == ["main"]
    assert await pages(lambda after: log.list_leases(after=after, count=1)) == ["2", "3"]
    assert await pages(lambda after: log.list_leases(tab=tab(3).name, after=after, count=1)) == ["3"]
    assert await pages(lambda after: log.list_sessions(after=after, count=2)) == ["2", "3", "4", "5"]
    retired = frozenset({SessionState.RETIRED})
    assert await pages(lambda after: log.list_sessions(states=retired, after=after, count=2)) == ["1"]
    everything = retired | {SessionState.ACTIVE}
    assert await pages(
        lambda after: log.list_sessions(states=everything, providers={"grok"}, after=after, count=2)
    ) == ["1", "3", "5"]
    assert await pages(lambda after: log.list_sessions(labels={"n": "4"}, after=after, count=2)) == ["4"]
    assert await pages(lambda after: log.list_turns(session(2).name, after=after, count=2)) == ["3", "1", "2"]
    assert await pages(lambda after: log.list_turns(session(1).name, after=after, count=2)) == []
    assert MAIN.name in log.live.browsers


async def test_turns_are_listed_without_answers(log: Log) -> None:
    """A list of turns reads neither prompts nor answers; the turn itself has both."""
    listed = [found for _, found in await log.list_turns(session(2).name, after=0, count=AHEAD)]
    whole = [await log.get_turn(found.name) for found in listed]
    assert [(found.prompt, found.answer_markdown) for found in listed] == [("", "")] * 3
    assert whole == [replace(found, prompt="p", answer_markdown="# A") for found in listed]
