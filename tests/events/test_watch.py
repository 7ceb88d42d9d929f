"""The watch loop: where a watch begins, and comes back to."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from tabmuxd.events import Log, LoopTimer, ReplyLimits, Start, WatchFilter, session_filter, tab_filter
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import Progress

from tests.events.checkers import check
from tests.events.recording import Call, Watcher, read_all
from tests.events.small_log import LIMIT, open_tab, opened, rename, shape
from tests.events.steps import step


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
