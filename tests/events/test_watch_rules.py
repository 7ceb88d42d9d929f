"""Random histories, watched by clients that come, go and are cut off: W1 to W12 hold for each of them."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tabmuxd.events import Log, ReplyLimits, Start, WatchFilter, session_filter, tab_filter
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import EventKind
from tabmuxd.store import Entry

from tests.events.checkers import check, w9_idle
from tests.events.recording import INTERVAL, Call, Watcher, read_all
from tests.events.steps import Clock, know_browser, step
from tests.store.samples import session, tab

SCHEDULES = int(os.environ.get("TABMUX_SCHEDULES", "30"))
"""How many random schedules are played; `make soak` plays 2,000."""

FILTERS: tuple[WatchFilter, ...] = (
    tab_filter(),
    tab_filter(parent="browsers/main", kinds=[EventKind.CREATED, EventKind.ENDED]),
    tab_filter(tabs=[tab(1).name, f"browsers/-/tabs/{2:010d}"]),
    tab_filter(parent="browsers/other"),
    session_filter(),
    session_filter(with_tabs=True),
    session_filter(sessions=[session(1).name], with_tabs=True),
)

NUMBERS = st.integers(0, 2)
ACTIONS = st.one_of(
    st.tuples(st.just("write"), st.lists(st.tuples(st.integers(0, 10), NUMBERS), min_size=1, max_size=6)),
    st.tuples(st.just("open"), st.tuples(st.sampled_from(Start), st.sampled_from(FILTERS), st.integers(1, 3))),
    st.tuples(st.just("read"), st.tuples(st.integers(0, 7), st.integers(1, 4))),
    st.tuples(st.just("cut"), st.integers(0, 7)),
    st.tuples(
        st.just("race"),
        st.tuples(
            st.lists(st.tuples(st.integers(0, 10), NUMBERS), min_size=1, max_size=6),
            st.lists(st.integers(0, 7), min_size=1, max_size=4, unique=True),
        ),
    ),
    st.tuples(st.just("compact"), st.integers(0, 5)),
    st.tuples(st.just("restart"), st.none()),
)


@dataclass(slots=True)
class Client:
    """One client: its open call, and all calls that were cut off."""

    wanted: WatchFilter
    limits: ReplyLimits
    watcher: Watcher
    past: list[Call] = field(default_factory=list)


class World:
    """A log, its whole truth, and the clients that watch it."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.log = self._log(path)
        self.truth: list[Entry] = []
        self.clients: list[Client] = []
        self._path = path

    def _log(self, path: Path) -> Log:
        return Log(path, clock=self.clock, tail_count=3)

    async def write(self, steps: list[tuple[int, int]]) -> None:
        await asyncio.gather(*(self.log.change(step(kind, number)) for kind, number in steps))
        self.truth += await read_all(self.log, self.truth[-1].revision if self.truth else 0)

    async def open(self, chosen: tuple[Start, WatchFilter, int]) -> None:
        start, wanted, count = chosen
        limits = ReplyLimits(event_count=count, size_bytes=count * 150)
        self.clients.append(Client(wanted, limits, Watcher(self.log, start, wanted, limits=limits)))

    async def read(self, chosen: tuple[int, int]) -> None:
        number, count = chosen
        if self.clients:
            client = self.clients[number % len(self.clients)]
            for _ in range(count):
                await self._read(client)

    async def cut(self, number: int) -> None:
        if self.clients:
            await self._resume(self.clients[number % len(self.clients)])

    async def race(self, chosen: tuple[list[tuple[int, int]], list[int]]) -> None:
        """Clients read while others write."""
        steps, numbers = chosen
        readers = {number % len(self.clients) for number in numbers} if self.clients else set()
        await asyncio.gather(self.write(steps), *(self.read((number, 3)) for number in readers))

    async def compact(self, count: int) -> None:
        self.clock.advance(timedelta(days=2))
        before = self.log.compact_revision
        deleted = await self.log.compact(age=timedelta(hours=1), count=count)
        assert deleted == self.log.compact_revision - before == max(0, self.log.progress.revision - count - before)

    async def restart(self, _: None) -> None:
        for client in self.clients:
            await client.watcher.close()
        before = (self.log.live, self.log.progress, self.log.compact_revision)
        await self.log.__aexit__(None, None, None)
        self.log = self._log(self._path)
        await self.log.__aenter__()
        assert (self.log.live, self.log.progress, self.log.compact_revision) == before
        for client in self.clients:
            await self._resume(client)

    async def finish(self) -> None:
        for client in self.clients:
            while not client.watcher.call.replies or self._behind(client):
                await self._read(client)
            await client.watcher.close()
            for call in [*client.past, client.watcher.call]:
                check(call, self.truth)
                w9_idle(call, INTERVAL)

    def _behind(self, client: Client) -> bool:
        return client.watcher.call.replies[-1].progress.revision < self.log.progress.revision

    async def _read(self, client: Client) -> None:
        try:
            await client.watcher.read()
        except Refused as refused:
            place = client.watcher.call.place
            overtaken = place is None or place.revision < self.log.compact_revision
            if refused.reason is not Reason.REVISION_COMPACTED or not overtaken:
                raise
            client.past.append(client.watcher.call)
            client.watcher = Watcher(self.log, Start.SNAPSHOT, client.wanted, limits=client.limits)

    async def _resume(self, client: Client) -> None:
        await client.watcher.close()
        place = client.watcher.call.place
        client.past.append(client.watcher.call)
        start = client.watcher.call.start if place is None else place
        client.watcher = Watcher(self.log, start, client.wanted, limits=client.limits)


@pytest.mark.timeout(90 + SCHEDULES)
@settings(max_examples=SCHEDULES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTIONS, max_size=30))
def test_rules_hold_in_every_history(actions: list[tuple[str, object]]) -> None:
    """Whatever is written, compacted, cut off and restarted, each call keeps W1 to W12 (WAT-01, WAT-02, WAT-03)."""

    async def run(path: Path) -> None:
        world = World(path)
        async with world.log:
            await world.log.change(know_browser)
            world.truth += await read_all(world.log, 0)
            try:
                for name, argument in actions:
                    await getattr(world, name)(argument)
                await world.finish()
            finally:
                await world.log.__aexit__(None, None, None)

    with tempfile.TemporaryDirectory(prefix="tm") as directory:
        asyncio.run(run(Path(directory) / "s"))
