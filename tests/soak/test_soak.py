"""Many watchers for long, cut off at random, while others write, misbehave and vanish: nothing is lost or kept.

`TABMUX_SOAK_SECONDS` and `TABMUX_SOAK_WATCHERS` make it longer; `make soak` does.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tabmux.v1.tab_pb2 import Tab
from tabmux.view import resource_of

from tests.cdp.browsers import fresh_profile
from tests.e2e.serving import Server, serving
from tests.soak.following import Follower, Lines, Manner, followed
from tests.soak.misuse import pinging, take_all_places, vanish
from tests.soak.writing import Writers

SECONDS: Final = float(os.environ.get("TABMUX_SOAK_SECONDS", "3"))
WATCHERS: Final = int(os.environ.get("TABMUX_SOAK_WATCHERS", "20"))
SEED: Final = int(os.environ.get("TABMUX_SOAK_SEED") or os.urandom(4).hex(), 16)

_LONG_SECONDS: Final = 300
_CUTS_PER_SECOND: Final = 10
_WHOLE_LINES: Final = 0.05
_MIB: Final = 1024 * 1024
_MOST_GROWTH: Final = 96 * _MIB

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(300 + 3 * SECONDS)]


async def test_soak() -> None:
    """Every watcher's view equals the store in the end, and memory is flat (W2 to W7, WAT-04 to WAT-07).

    Beside them one principal asks for far more watches than it may have, a watch is opened and never read, a client
    pings every 10 s, and in the long run a program with open watches is stopped.
    """
    print(f"TABMUX_SOAK_SEED={SEED:x}")  # noqa: T201 - how to repeat it
    chance = Random(SEED)
    long = SECONDS >= _LONG_SECONDS
    with fresh_profile() as directory:
        (directory / "tabmuxd.toml").write_text(f"max_watch_count = {WATCHERS + 256}\n")
        async with serving(directory, 0) as server:
            lines = Lines(server, [f"watcher-{number % 10}" for number in range(20)])
            morning = asyncio.Event()
            sleepers = [Follower(Lines(server, ["sleeper"]), 0, chance, morning, Manner.SLEEPS) for _ in range(3)]
            dawdlers = [Follower(lines, number, chance, morning, Manner.DAWDLES) for number in range(WATCHERS // 10)]
            quick = [Follower(lines, number, chance, morning) for number in range(len(dawdlers), WATCHERS)]
            awake = [*dawdlers, *quick]
            writers = Writers(server, chance)
            memory: list[int] = []
            async with pinging(server), followed([*awake, *sleepers]), asyncio.TaskGroup() as tasks:
                beside = [
                    tasks.create_task(_cut(lines, awake, chance)),
                    tasks.create_task(_measure(server, memory)),
                ]
                misuse = [tasks.create_task(take_all_places(server, 10_000 if long else 200))]
                if long:
                    misuse.append(tasks.create_task(vanish(server)))
                await writers.write(SECONDS)
                await asyncio.gather(*misuse)
                for task in beside:
                    task.cancel()
                morning.set()
                await _equal(server, [*awake, *sleepers])
    cut_count = sum(follower.cut_count for follower in awake)
    told = [round(size / _MIB, 1) for size in memory[:: max(1, len(memory) // 20)]]
    print(f"{writers.change_count} changes, {cut_count} cuts, memory in MiB {told}")  # noqa: T201 - what the run was like
    assert cut_count > SECONDS
    if long:
        assert all(sleeper.stall_count for sleeper in sleepers)
        half = len(memory) // 2
        assert max(memory[half:]) < 1.1 * max(memory[half // 2 : half])
    assert max(memory) - memory[0] < _MOST_GROWTH


async def _cut(lines: Lines, followers: Sequence[Follower], chance: Random) -> None:
    """Cut one call after another, and sometimes a connection with all of its calls."""
    while True:
        await asyncio.sleep(1 / _CUTS_PER_SECOND)  # the rate is what is asked for
        if chance.random() < _WHOLE_LINES:
            await lines.cut(chance.randrange(len(followers)))
        else:
            chance.choice(followers).cut()


async def _measure(server: Server, sizes: list[int]) -> None:
    """Note the memory of the server each half second, in bytes."""
    while True:
        sizes.append(_own_bytes(server.pid))
        await asyncio.sleep(0.5)


def _own_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


async def _equal(server: Server, followers: Sequence[Follower]) -> None:
    """Each view holds what a list of the store has, at the same revisions, and a new snapshot shows."""
    while True:
        existing, progress = await server.watch_since(None)
        for follower in followers:
            await follower.passed(progress.revision)
        listed = await server.list_tabs()
        if {follower.revision for follower in followers} == {progress.revision}:
            break  # else something has changed in between
    shown = {resource.name: resource.revision for event in existing if (resource := resource_of(event))}
    kept = [{name: each.revision for name, each in follower.view.resources.items()} for follower in followers]
    assert kept == [shown] * len(followers)
    tabs = {tab.name: (tab.revision, dict(tab.labels), tab.state) for tab in listed}
    for follower in followers:
        assert {
            name: (each.revision, dict(each.labels), each.state)
            for name, each in follower.view.resources.items()
            if isinstance(each, Tab)
        } == tabs
