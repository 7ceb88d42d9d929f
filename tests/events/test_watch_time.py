"""The watch loop and time: bookmarks, slow readers, ends."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from tabmuxd.events import Start, session_filter, tab_filter, watch
from tabmuxd.events.watch import longest_silence

from tests.events.checkers import check, w9_idle
from tests.events.recording import INTERVAL, JumpingTimer, Reply, Watcher, read_all
from tests.events.small_log import LIMIT, open_tab, opened, shape
from tests.store.samples import tab


async def test_slow_watch_delays_nobody(directory: Path) -> None:
    """A watch that is not read holds up neither writers nor other watches, and later gets everything (W4, WAT-07)."""
    async with opened(directory, tail_count=10) as log:
        slow = Watcher(log, Start.NOW, tab_filter())
        await slow.read()
        quick = Watcher(log, Start.NOW, tab_filter())
        await quick.read()
        for number in range(1, 101):
            await open_tab(log, number)
            await quick.catch_up()
        assert len(quick.call.events) == 100
        await slow.catch_up()
        truth = await read_all(log, 0)
        for watcher in (slow, quick):
            await watcher.close()
            check(watcher.call, truth)
    assert [shown.revision for shown in slow.call.events] == [shown.revision for shown in quick.call.events]


async def test_bookmarks(directory: Path) -> None:
    """When nothing was sent for the interval a reply without events is sent, and only then (W8, W9)."""
    async with opened(directory) as log:
        watcher = Watcher(log, Start.NOW, tab_filter(tabs=[tab(1).name]))
        for _ in range(3):
            await watcher.read()
        await open_tab(log, 1)
        await watcher.read()
        await open_tab(log, 2)
        await watcher.read()
        await watcher.close()
    seconds = INTERVAL.total_seconds()
    assert [(reply.time, reply.progress.revision) for reply in watcher.call.replies] == [
        (0, 1),
        (seconds, 1),
        (2 * seconds, 1),
        (2 * seconds, 2),
        (3 * seconds, 3),
    ]
    w9_idle(watcher.call, INTERVAL)


async def test_bookmark_while_catching_up(directory: Path) -> None:
    """A watch that reads a long history of which it wants nothing sends its place in time all the same (W8, W9)."""

    class SlowTimer(JumpingTimer):
        def now(self) -> float:
            self.time += 1.0
            return self.time

    async with opened(directory, tail_count=1) as log:
        start = log.progress
        for number in range(1, 101):
            await open_tab(log, number)
        watcher = Watcher(log, start, session_filter(), timer=SlowTimer())
        await watcher.catch_up()
        await watcher.close()
    places = [reply.progress.revision for reply in watcher.call.replies]
    assert places[0] == 1
    assert places[-1] == 101
    assert len(places) > 3
    assert places == sorted(set(places))


async def test_real_time(directory: Path) -> None:
    """On the loop's own time a change and a bookmark both wake a watch that waits (W9)."""
    async with opened(directory) as log:
        replies = watch(log, Start.NOW, tab_filter(), bookmark_interval=timedelta(milliseconds=20))
        async with asyncio.timeout(LIMIT):
            assert [Reply.parsed(await anext(replies)).progress.revision for _ in range(3)] == [1, 1, 1]
            await replies.aclose()
            replies = watch(log, Start.NOW, tab_filter())
            await anext(replies)
            waiting = asyncio.ensure_future(anext(replies))
            await asyncio.sleep(0)
            await open_tab(log, 1)
            assert Reply.parsed(await waiting).progress.revision == 2
            await replies.aclose()


@pytest.mark.parametrize(("jitter", "expected"), [(0.0, 15.0), (0.5, 14.25), (0.999999, 13.5)])
def test_jitter(jitter: float, expected: float) -> None:
    """Jitter shortens the interval by up to a tenth."""
    assert longest_silence(timedelta(seconds=15), jitter) == pytest.approx(expected, abs=1e-4)


async def test_cancelled_watch(directory: Path) -> None:
    """A watch that is cancelled while it waits takes no other along (WAT-07)."""
    async with opened(directory) as log:
        streams = [watch(log, Start.NOW, tab_filter()) for _ in range(3)]
        for stream in streams:
            await anext(stream)
        waiting = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        await open_tab(log, 1)
        async with asyncio.timeout(LIMIT):
            replies = await asyncio.gather(*waiting[1:])
        assert waiting[0].cancelled()
        assert [Reply.parsed(body).progress.revision for body in replies] == [2, 2]
        for stream in streams:
            await stream.aclose()


async def test_news_and_bookmarks_together(directory: Path) -> None:
    """On the loop's own time a bookmark comes after each silence, also after changes that came in between (W9)."""
    async with opened(directory) as log:
        replies = watch(log, Start.NOW, tab_filter(), bookmark_interval=timedelta(milliseconds=60), jitter=0.0)
        async with asyncio.timeout(LIMIT):
            await anext(replies)
            seen = [Reply.parsed(await anext(replies))]
            await open_tab(log, 1)
            seen += [Reply.parsed(await anext(replies)) for _ in range(2)]
        await replies.aclose()
        assert shape(seen)[0] == ([], 1)
        assert [events for events, _ in shape(seen) if events] == [[(2, "CREATED")]]
        assert repr(log.bell) == "<Bell waiting=0>"
