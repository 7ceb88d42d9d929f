"""Titles and addresses of tabs: what is recorded in the end is what was seen last."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events import Log
from tabmuxd.events.changes import Changes
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import Tab
from tabmuxd.tabs.noting import Notes
from tabmuxd.tasks import Tasks

from tests.domain.values import ready_tab
from tests.events.steps import Clock

LIMIT = 20
TARGET = "T" * 32
TAB = replace(ready_tab(), target_id=TARGET, revision=0)


@pytest_asyncio.fixture
async def log(directory: Path) -> AsyncIterator[Log]:
    """A log with one READY tab."""
    async with Log(directory / "log.sqlite3", clock=Clock()) as log:
        await log.change(lambda changes: changes.record(TAB, ChangeCause.CLIENT))
        yield log


def info(uri: str) -> TargetInfo:
    """What the browser says of the tab's target at this address."""
    return TargetInfo(TARGET, "page", TAB.title, uri, "", attached=True)


async def turns_of_the_loop() -> None:
    """Let everything that is due run, until it waits for something else."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_stopped(log: Log) -> None:
    """Nothing is looked up or written down once the notes have stopped: what served them is going."""
    looked: list[str] = []

    def looking(tab: Tab) -> TargetInfo:
        looked.append(tab.name)
        return info("https://b.example/")

    async with Tasks() as tasks:
        notes = Notes(log, tasks, looking)
        notes.note(TAB.name)
        notes.stop()
        notes.note(TAB.name)
        await turns_of_the_loop()
    assert looked == []


@pytest.mark.parametrize("seen", ["https://a.example/1", TAB.uri])
async def test_newest_stays(log: Log, seen: str) -> None:
    """What is seen after a step counts, though the step is written down later: even if it is as it was (O-60, O-84)."""
    released = threading.Event()

    def hold_up(_changes: Changes) -> None:
        assert released.wait(LIMIT)

    def step(changes: Changes) -> Tab:
        tab = changes.tab(TAB.name)
        assert tab is not None
        return changes.record(replace(tab, uri="https://b.example/", title="b"), ChangeCause.CLIENT)

    last = info(seen)
    async with Tasks() as tasks:
        notes = Notes(log, tasks, lambda _tab: last)
        held_up, stepped = tasks.spawn(log.change(hold_up), "hold up"), tasks.spawn(log.change(step), "step")
        await turns_of_the_loop()
        notes.note(TAB.name)
        await turns_of_the_loop()
        released.set()
        await asyncio.gather(held_up, stepped)
        await log.change(lambda _changes: None)  # behind all that stands in line
    found = await log.get_tab(TAB.name)
    assert found is not None
    assert found.uri == seen
