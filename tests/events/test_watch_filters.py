"""What a watch shows: filters, snapshots of one session, own writes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

from tabmux.v1 import tab_service_pb2
from tabmuxd.events import Changes, LoopTimer, Start, WatchFilter, session_filter, tab_filter, watch
from tabmuxd.events.bell import Bell
from tabmuxd.resources.event import EventKind

from tests.events.recording import JumpingTimer, Watcher
from tests.events.small_log import open_tab, opened
from tests.store.samples import MAIN, lease, session, tab


async def test_filters(directory: Path) -> None:
    """Each filter sends its own: kinds, one browser, some tabs with their leases, sessions with their tabs (W8)."""
    async with opened(directory) as log:
        start = log.progress
        first, second = tab(1).name, tab(2).name

        def record(changes: Changes) -> None:
            one, two = changes.record(tab(1)), changes.record(tab(2))  # 2, 3
            mine, other = changes.record(session(1)), changes.record(session(2))  # 4, 5
            one = changes.record(replace(one, session=mine.name))  # 6
            two = changes.record(replace(two, session=other.name))  # 7
            held = changes.record(lease(1, one, 1))  # 8
            changes.record(lease(2, two, 1))  # 9
            changes.record(replace(one, session=""))  # 10
            changes.record(replace(held, end_time=changes.now))  # 11
            changes.record(replace(MAIN, generation=2))  # 12

        await log.change(record)

        async def sent(wanted: WatchFilter) -> list[int]:
            watcher = Watcher(log, start, wanted)
            await watcher.catch_up()
            await watcher.close()
            return [shown.revision for shown in watcher.call.events]

        assert await sent(tab_filter()) == [2, 3, 6, 7, 8, 9, 10, 11, 12]
        assert await sent(tab_filter(parent="browsers/-")) == [2, 3, 6, 7, 8, 9, 10, 11, 12]
        assert await sent(tab_filter(parent="browsers/main")) == [2, 3, 6, 7, 8, 9, 10, 11, 12]
        assert await sent(tab_filter(parent="browsers/other")) == []
        assert await sent(tab_filter(tabs=[first])) == [2, 6, 8, 10, 11]
        assert await sent(tab_filter(tabs=[f"browsers/-/tabs/{2:010d}"])) == [3, 7, 9]
        assert await sent(tab_filter(parent="browsers/other", tabs=[second])) == []
        assert await sent(tab_filter(kinds=[EventKind.ENDED, EventKind.CREATED])) == [2, 3, 8, 9, 11]
        assert await sent(session_filter()) == [4, 5]
        assert await sent(session_filter(sessions=[session(1).name])) == [4]
        assert await sent(session_filter(with_tabs=True)) == list(range(2, 13))
        assert await sent(session_filter(sessions=[session(1).name], with_tabs=True)) == [4, 6, 8, 10, 11]


async def test_snapshot_of_one_session(directory: Path) -> None:
    """A snapshot of some sessions has the tabs that serve them, and the leases of those or taken for them (W7, W8)."""
    async with opened(directory) as log:

        def record(changes: Changes) -> None:
            mine = changes.record(session(1))  # 2
            changes.record(session(2))  # 3
            one = changes.record(replace(tab(1), session=mine.name))  # 4
            two = changes.record(tab(2))  # 5
            changes.record(lease(1, one, 1))  # 6
            changes.record(replace(lease(2, two, 1), session=mine.name))  # 7
            changes.record(tab(3))  # 8

        await log.change(record)
        watcher = Watcher(log, Start.SNAPSHOT, session_filter(sessions=[session(1).name], with_tabs=True))
        await watcher.catch_up()
        await watcher.close()
    assert [shown.revision for shown in watcher.call.existing] == [2, 4, 6, 7]


async def test_bytes_are_those_of_both_services(directory: Path) -> None:
    """The bytes are whole replies of `WatchTabs` too, exactly as protobuf writes them."""
    async with opened(directory) as log:
        watcher = watch(log, Start.SNAPSHOT, tab_filter(), timer=JumpingTimer())
        for _ in range(2):
            body = await anext(watcher)
            message = tab_service_pb2.WatchTabsResponse.FromString(body)
            assert message.SerializeToString(deterministic=True) == body
        await watcher.aclose()


async def test_own_writes(directory: Path) -> None:
    """A watch that has passed the revision of an answer has shown it (W11)."""
    async with opened(directory) as log:
        watcher = Watcher(log, Start.NOW, tab_filter())
        await watcher.read()
        written = await open_tab(log, 1)
        assert log.progress.revision >= written.revision
        await watcher.catch_up()
        await watcher.close()
    assert [(shown.name, shown.resource_revision) for shown in watcher.call.events] == [(written.name, 2)]


async def test_nothing_left_waiting(directory: Path) -> None:
    """A watch that is closed while it waits leaves no task behind."""
    tasks_before = asyncio.all_tasks()

    class Waiting(LoopTimer):
        reached = asyncio.Event()

        def wait(self, bell: Bell, until: float) -> asyncio.Future[bool]:
            self.reached.set()
            return super().wait(bell, until)

    async with opened(directory) as log:
        timer = Waiting()
        stream = watch(log, Start.NOW, tab_filter(), timer=timer)
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await timer.reached.wait()
        waiting.cancel()
        await asyncio.wait([waiting])
        await stream.aclose()
    assert asyncio.all_tasks() == tasks_before
