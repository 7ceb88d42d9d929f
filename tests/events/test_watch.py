"""The watch loop, case by case."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tabmux.v1 import tab_service_pb2
from tabmuxd.events import Changes, Log, LoopTimer, ReplyLimits, Start, WatchFilter, session_filter, tab_filter, watch
from tabmuxd.events.bell import Bell
from tabmuxd.events.shared import Shared, Step, Steps
from tabmuxd.events.watch import longest_silence
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause, EventKind, Progress
from tabmuxd.resources.tab import Tab
from tabmuxd.store import Reader

from tests.events.checkers import check, w9_idle
from tests.events.recording import INTERVAL, Call, JumpingTimer, Reply, Watcher, read_all
from tests.events.steps import Clock, know_browser, step
from tests.store.samples import MAIN, lease, session, tab

LIMIT = 20


@asynccontextmanager
async def opened(directory: Path, tail_count: int = 10_000) -> AsyncGenerator[Log]:
    """An open log that knows the browser: revision 1."""
    async with Log(directory / "s", clock=Clock(), tail_count=tail_count) as log:
        if log.progress.revision == 0:
            await log.change(know_browser)
        yield log


async def open_tab(log: Log, number: int) -> Tab:
    """A new tab."""
    return await log.change(lambda changes: changes.record(tab(number), ChangeCause.CLIENT))


async def rename(log: Log, number: int, title: str) -> Tab:
    """A change of a tab."""

    def decide(changes: Changes) -> Tab:
        known = changes.tab(tab(number).name)
        assert known is not None
        return changes.record(replace(known, title=title))

    return await log.change(decide)


def shape(replies: list[Reply]) -> list[tuple[list[tuple[int, str]], int]]:
    """Revisions and kinds of the events, and the place, of each reply."""
    return [
        ([(shown.revision, shown.kind.name) for shown in reply.events], reply.progress.revision) for reply in replies
    ]


async def test_now(directory: Path) -> None:
    """A watch from now tells its place at once and then what changes (W1)."""
    async with opened(directory) as log:
        await open_tab(log, 1)
        watcher = Watcher(log, Start.NOW, tab_filter())
        await watcher.read()
        await rename(log, 1, "a")
        await watcher.catch_up()
        await watcher.close()
    assert shape(watcher.call.replies) == [([], 2), ([(3, "UPDATED")], 3)]


async def test_snapshot(directory: Path) -> None:
    """A snapshot has what exists in order of revision, in small replies, then the moment, then changes (W7)."""
    async with opened(directory) as log:
        for number in (1, 2, 3):
            await open_tab(log, number)
        await rename(log, 1, "a")
        watcher = Watcher(log, Start.SNAPSHOT, tab_filter(), limits=ReplyLimits(event_count=2, size_bytes=10_000))
        await watcher.read()
        await rename(log, 2, "b")
        await watcher.catch_up()
        truth = await read_all(log, 0)
        await watcher.close()
    assert shape(watcher.call.replies) == [
        ([(1, "EXISTING"), (3, "EXISTING")], 0),
        ([(4, "EXISTING"), (5, "EXISTING")], 0),
        ([], 5),
        ([(6, "UPDATED")], 6),
    ]
    check(watcher.call, truth)


async def test_empty_snapshot(directory: Path) -> None:
    """A snapshot of nothing is the one reply with its moment (W1, W7)."""
    async with opened(directory) as log:
        watcher = Watcher(log, Start.SNAPSHOT, session_filter())
        await watcher.read()
        await watcher.close()
    assert shape(watcher.call.replies) == [([], 1)]


@pytest.mark.parametrize("wanted", [tab_filter(), session_filter(with_tabs=True)], ids=["tabs", "everything"])
async def test_cut_twenty_times(directory: Path, wanted: WatchFilter) -> None:
    """500 changes seen over 20 connections that are cut are each seen once, in order (WAT-01, W6)."""
    async with opened(directory, tail_count=50) as log:
        await open_tab(log, 1)
        calls: list[Call] = []
        place = log.progress
        writing = asyncio.gather(*(rename(log, 1, str(number)) for number in range(500)))
        for number in range(20):
            watcher = Watcher(log, place, wanted, limits=ReplyLimits(7, 4_000), timer=LoopTimer())
            while place.revision < 2 + 25 * (number + 1):
                async with asyncio.timeout(LIMIT):
                    place = (await watcher.read()).progress
            await watcher.close()
            calls.append(watcher.call)
        last = Watcher(log, place, wanted)
        await writing
        await last.catch_up()
        await last.close()
        calls.append(last.call)
        truth = await read_all(log, 0)
    assert [shown.revision for call in calls for shown in call.events] == list(range(3, 503))
    for call in calls:
        check(call, truth)


async def test_snapshot_while_written(directory: Path) -> None:
    """Snapshots taken while others write have no gap to what follows (WAT-02, W7)."""
    async with opened(directory, tail_count=20) as log:

        async def write(number: int) -> None:
            for kind in range(30):
                await log.change(step(kind, number))

        async def look() -> Call:
            watcher = Watcher(log, Start.SNAPSHOT, session_filter(with_tabs=True), timer=LoopTimer())
            for _ in range(12):
                await watcher.read()
                await asyncio.sleep(0)
            await watcher.catch_up()
            await watcher.close()
            return watcher.call

        async with asyncio.timeout(LIMIT):
            writing = asyncio.gather(*(write(number) for number in range(8)))
            await log.moved(5)
            calls = [await look() for _ in range(5)]
            await writing
        truth = await read_all(log, 0)
    for call in calls:
        check(call, truth)


async def refusal(log: Log, start: Progress) -> tuple[Reason, dict[str, str]]:
    """What a watch that resumes here is told before any reply."""
    watcher = Watcher(log, start, tab_filter())
    with pytest.raises(Refused) as caught:
        await watcher.read()
    return caught.value.reason, dict(caught.value.metadata)


async def test_places_that_cannot_be_resumed(directory: Path) -> None:
    """A place that is compacted, in the future, or of another history is refused before the first reply (WAT-03)."""
    async with opened(directory) as log:
        for number in range(1, 6):
            await open_tab(log, number)
        history_id = log.progress.history_id
        assert await log.compact(age=timedelta(0), count=3) == 3
        assert [
            await refusal(log, Progress(history_id, 2)),
            await refusal(log, Progress(history_id, 0)),
            await refusal(log, Progress(history_id, 7)),
            await refusal(log, Progress("other", 4)),
            await refusal(log, Progress("", 4)),
        ] == [
            (Reason.REVISION_COMPACTED, {"after_revision": "2", "compact_revision": "3"}),
            (Reason.REVISION_COMPACTED, {"after_revision": "0", "compact_revision": "3"}),
            (Reason.REVISION_IN_FUTURE, {"after_revision": "7", "current_revision": "6"}),
            (Reason.HISTORY_CHANGED, {"history_id": history_id}),
            (Reason.HISTORY_CHANGED, {"history_id": history_id}),
        ]
        for revision in (3, 6):
            watcher = Watcher(log, Progress(history_id, revision), tab_filter())
            assert (await watcher.read()).progress == Progress(history_id, revision)
            await watcher.close()


async def test_resume_after_restart(directory: Path) -> None:
    """A place holds across a restart; a new store is another history (WAT-03, W6)."""
    async with opened(directory) as log:
        await open_tab(log, 1)
        place = log.progress
        await open_tab(log, 2)
    async with opened(directory) as log:
        watcher = Watcher(log, place, tab_filter())
        await watcher.catch_up()
        await watcher.close()
    assert shape(watcher.call.replies) == [([], 2), ([(3, "CREATED")], 3)]
    (directory / "s").unlink()
    async with opened(directory) as log:
        assert (await refusal(log, place))[0] is Reason.HISTORY_CHANGED


async def test_compacted_under_a_slow_watch(directory: Path) -> None:
    """A watch that was overtaken by compaction ends with REVISION_COMPACTED, never with a gap (W4)."""
    async with opened(directory, tail_count=1) as log:
        watcher = Watcher(log, Start.NOW, tab_filter())
        await watcher.read()
        for number in range(1, 9):
            await open_tab(log, number)
        truth = await read_all(log, 0)
        await watcher.read()
        await log.compact(age=timedelta(0), count=2)
        with pytest.raises(Refused) as caught:
            await watcher.catch_up()
    last = watcher.call.replies[-1].progress.revision
    assert (caught.value.reason, caught.value.metadata["after_revision"]) == (Reason.REVISION_COMPACTED, str(last))
    assert last < 7
    check(watcher.call, truth)


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
