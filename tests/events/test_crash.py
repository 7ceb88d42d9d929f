"""The process is killed in mid-write; what was answered is there, whole."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tabmuxd.events import Log
from tabmuxd.resources.event import EventKind
from tabmuxd.store import Entry, ResourceKind

from tests.events.checkers import name_of
from tests.events.recording import read_all
from tests.events.steps import Clock

LIMIT = 25


async def crashed(path: Path, seed: int, *, answers: int = 0, point: tuple[str, int] | None = None) -> int:
    """The last revision that a process told before it killed itself at `point`, or was killed after so many answers."""
    arguments = [str(path), str(seed), *(() if point is None else (point[0], str(point[1])))]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.events.crashing", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    last, count = 0, 0
    try:
        async with asyncio.timeout(LIMIT):
            while line := await process.stdout.readline():
                last, count = max(last, int(line)), count + 1
                if point is None and count == answers:
                    process.kill()
            assert await process.wait() == -9
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return last


async def verify(path: Path, answered: int) -> None:
    """The head is at least what was answered, revisions have no gap, and every resource is as its last event says."""
    async with Log(path, clock=Clock()) as log:
        truth = await read_all(log, 0)
        assert [entry.revision for entry in truth] == list(range(1, log.progress.revision + 1))
        assert log.progress.revision >= answered
        newest = {name_of(entry): entry for entry in truth}
        for name, entry in newest.items():
            assert await revision_of(log, name, entry) == entry.revision
        alive = sorted(name for name, entry in newest.items() if entry.kind is not EventKind.ENDED)
        assert sorted(resource.name for resource in log.live.resources()) == alive


async def revision_of(log: Log, name: str, entry: Entry) -> int:
    """The revision of a resource as it is stored."""
    get = {
        ResourceKind.BROWSER: log.get_browser,
        ResourceKind.TAB: log.get_tab,
        ResourceKind.LEASE: log.get_lease,
        ResourceKind.SESSION: log.get_session,
        ResourceKind.TURN: log.get_turn,
    }[entry.resource_kind]
    found = await get(name)
    assert found is not None
    return found.revision


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 13), marks=pytest.mark.long)], ids=len)
async def test_killed_in_mid_write(directory: Path, seeds: range) -> None:
    """Killed several times in a row at any moment, the store holds the last commit, whole (STO-05, W6)."""
    for seed in seeds:
        answered = await crashed(directory / "s", seed, answers=5 + 17 * seed)
        await verify(directory / "s", answered)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("point", ["before", "after"])
async def test_killed_at_a_commit(directory: Path, point: str) -> None:
    """Killed right before a commit nothing of it is there; right after it, all of it (STO-05)."""
    for number in (1, 2, 5):
        answered = await crashed(directory / "s", number, point=(point, number))
        if number == 1:
            async with Log(directory / "s", clock=Clock()) as log:
                assert log.progress.revision == (0 if point == "before" else 1)
        await verify(directory / "s", answered)
