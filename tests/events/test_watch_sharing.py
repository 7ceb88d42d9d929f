"""What watches share: finished replies, and reading the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tabmuxd.events import ReplyLimits, Start, tab_filter, watch
from tabmuxd.events.shared import Shared, Step, Steps
from tabmuxd.store import Reader

from tests.events.recording import JumpingTimer, Watcher
from tests.events.small_log import LIMIT, open_tab, opened, rename, shape


async def test_replies_are_shared(directory: Path) -> None:
    """Watches at one place with one filter send the very same bytes, made once (section 4.4)."""
    async with opened(directory) as log:
        streams = [watch(log, Start.NOW, tab_filter(), timer=JumpingTimer()) for _ in range(20)]
        for stream in streams:
            await anext(stream)
        await open_tab(log, 1)
        bodies = [await anext(stream) for stream in streams]
        for stream in streams:
            await stream.aclose()
        assert len({id(body) for body in bodies}) == 1
        assert log.statistics().shared_reply_count == 1


async def test_stored_replies_are_read_once(directory: Path) -> None:
    """Watches that come back to one old place together read the store once, for several replies (section 4.4)."""
    async with opened(directory, tail_count=1) as log:
        place = log.progress
        for number in range(1, 9):
            await open_tab(log, number)
        limits = ReplyLimits(event_count=4, size_bytes=10_000)
        watchers = [Watcher(log, place, tab_filter(), limits=limits) for _ in range(20)]
        for watcher in watchers:
            await watcher.read()
        reads: list[object] = []
        reading = log.reading

        def counted(work: Callable[[Reader], Steps]) -> asyncio.Future[Steps]:
            reads.append(work)
            return reading(work)

        log.reading = counted  # type: ignore[assignment,method-assign]
        await asyncio.gather(*(watcher.read() for watcher in watchers))
        await asyncio.gather(*(watcher.catch_up() for watcher in watchers))
        for watcher in watchers:
            await watcher.close()
        assert len(reads) == 1
        assert log.shared.reading == {}
    assert {len(watcher.call.events) for watcher in watchers} == {8}


async def test_cancelled_reader_takes_no_other_along(directory: Path) -> None:
    """A watch that is cut off while the store is read for it leaves the others their reply (WAT-07)."""
    async with opened(directory, tail_count=1) as log:
        place = log.progress
        for number in range(1, 5):
            await open_tab(log, number)
        watchers = [Watcher(log, place, tab_filter()) for _ in range(2)]
        for watcher in watchers:
            await watcher.read()
        reading = [asyncio.ensure_future(watcher.read()) for watcher in watchers]
        await asyncio.sleep(0)
        reading[0].cancel()
        async with asyncio.timeout(LIMIT):
            reply = await reading[1]
        assert (reading[0].cancelled(), [shown.revision for shown in reply.events]) == (True, [2])
        for watcher in watchers:
            await watcher.close()


def test_shared_replies_are_bounded() -> None:
    """Finished replies are kept up to a number of bytes; the oldest go."""
    shared = Shared(size_bytes=3_000, existing_count=2)
    lane = shared.lane(tab_filter(), ReplyLimits())
    assert shared.lane(tab_filter(), ReplyLimits()) is lane
    steps = [(Step(bytes(800), number + 1),) for number in range(5)]
    for number, each in [*enumerate(steps), *enumerate(steps[-1:], 4)]:
        shared.keep((lane, number), each)
    assert [shared.steps((lane, number)) for number in range(5)] == [None, None, *steps[2:]]
    shared.keep((lane, 9), (Step(bytes(4_000), 10), Step(bytes(5_000), 11)))
    assert len(shared) == 0


async def test_large_events(directory: Path) -> None:
    """An event larger than the limit of a reply is sent alone, and limits cut the rest (section 4.4)."""
    async with opened(directory, tail_count=5) as log:
        start = log.progress
        await open_tab(log, 1)
        for size in (5_000, 10, 10, 5_000, 10):
            await rename(log, 1, "x" * size)
        for _ in range(2):
            watcher = Watcher(log, start, tab_filter(), limits=ReplyLimits(100, 2_000))
            await watcher.catch_up()
            await watcher.close()
            assert [revisions for revisions, _ in shape(watcher.call.replies)] == [
                [],
                [(2, "CREATED")],
                [(3, "UPDATED")],
                [(4, "UPDATED"), (5, "UPDATED")],
                [(6, "UPDATED")],
                [(7, "UPDATED")],
            ]
