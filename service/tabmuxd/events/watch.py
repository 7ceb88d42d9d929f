"""The watch: a cursor over the log (rules W1 to W12 of `event.proto`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from datetime import timedelta
from enum import Enum
from typing import Final

from tabmuxd.events.filters import WatchFilter
from tabmuxd.events.framing import reply
from tabmuxd.events.log import Log
from tabmuxd.events.resume import check_resume
from tabmuxd.events.shared import ReplyLimits
from tabmuxd.events.snapshot import snapshot
from tabmuxd.events.steps import next_steps, read_ahead
from tabmuxd.events.timer import LoopTimer, Timer
from tabmuxd.resources.event import Progress


class Start(Enum):
    """Where a watch begins that does not resume."""

    NOW = "now"
    SNAPSHOT = "snapshot"


WatchStart = Start | Progress

LIMITS: Final = ReplyLimits()


async def watch(
    log: Log,
    start: WatchStart,
    wanted: WatchFilter,
    *,
    bookmark_interval: timedelta = timedelta(seconds=15),
    limits: ReplyLimits = LIMITS,
    timer: Timer | None = None,
    jitter: float | None = None,
) -> AsyncGenerator[bytes]:
    """Finished bytes of `WatchTabsResponse` or `WatchSessionsResponse`, without an end.

    Raises REVISION_COMPACTED, HISTORY_CHANGED or REVISION_IN_FUTURE, before the first reply where it resumes; later
    only REVISION_COMPACTED, of a watch that was read too slowly. `timer`: by default that of the loop. `jitter` is in
    [0, 1), by default by chance.
    """
    here = _begin(log, start)
    live = log.live  # of the same moment
    if start is Start.SNAPSHOT:
        async for snapshot_reply in snapshot(log, live, wanted, limits):
            yield snapshot_reply
    del live
    yield reply((), here)
    timer = timer or LoopTimer()
    shared, lane = log.shared, log.shared.lane(wanted, limits)
    chance = random.random() if jitter is None else jitter  # noqa: S311 - no secret
    silence = longest_silence(bookmark_interval, chance)
    cursor = here.revision
    due = timer.now() + silence
    try:
        while True:
            if cursor >= log.head:
                if await timer.wait(log.bell, due):
                    yield reply((), Progress(here.history_id, cursor))
                    due = timer.now() + silence
                continue
            if lane.newest_at == cursor:
                steps = lane.newest
            else:
                steps = shared.steps((lane, cursor)) or await next_steps(log, lane, cursor)
            cursor = steps[-1].revision
            if cursor < log.head:
                read_ahead(log, lane, cursor)
            for step in steps:
                if step.reply is None and timer.now() < due:
                    await asyncio.sleep(0)  # a long history without a match must not hold up the loop
                    continue
                yield step.reply or reply((), Progress(here.history_id, step.revision))
                due = timer.now() + silence
    finally:
        timer.close()


def _begin(log: Log, start: WatchStart) -> Progress:
    if not isinstance(start, Progress):
        return log.progress
    check_resume(start, log.progress, log.compact_revision)
    return start


def longest_silence(interval: timedelta, jitter: float) -> float:
    """Seconds without a reply after which a bookmark is sent.

    `jitter` is in [0, 1); it shortens the interval by up to a tenth, so that watches opened together drift apart.
    """
    return interval.total_seconds() * (1 - jitter / 10)
