"""The next steps of a watch, made once for all watches that want them."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from tabmuxd.events.framing import reply
from tabmuxd.events.log import Log
from tabmuxd.events.resume import compacted
from tabmuxd.events.shared import Lane, Step, Steps
from tabmuxd.resources.event import Progress
from tabmuxd.store import Reader, StoreBusy

# To hand a step from thread to thread took longer than to read it.
_AT_ONCE: Final = 16


async def next_steps(log: Log, lane: Lane, cursor: int) -> Steps:
    """The steps behind `cursor`, which lies before the head of the log. Raises REVISION_COMPACTED if events are gone.

    One from memory; from the store up to 16, or those that fill half a reply.
    """
    place = (lane, cursor)
    entries = log.recent(cursor, count=lane.limits.event_count, size_bytes=lane.limits.size_bytes)
    if entries is not None:
        wants = lane.wanted.wants
        bodies = [entry.body for entry in entries if wants(entry.kind, entry.resource_kind, entry.place)]
        steps = (_step(log, bodies, entries[-1].revision),)
        log.shared.keep(place, steps)
        return steps
    # A shield, since cancelling one who waits must not cancel what all share.
    return await asyncio.shield(log.shared.reading.get(place) or _begin(log, lane, cursor))


def read_ahead(log: Log, lane: Lane, cursor: int) -> None:
    """Begin to read the steps behind `cursor` for a watch that is busy with those before, if the store has them."""
    place = (lane, cursor)
    if place in log.shared.reading or log.shared.steps(place) or log.is_recent(cursor):
        return
    with contextlib.suppress(StoreBusy):  # then they are read when they are needed
        _begin(log, lane, cursor)


def _begin(log: Log, lane: Lane, cursor: int) -> asyncio.Future[Steps]:
    place = (lane, cursor)
    reading = log.shared.reading[place] = _read(log, lane, cursor)
    reading.add_done_callback(lambda done: _keep(log, place, done))
    return reading


def _read(log: Log, lane: Lane, cursor: int) -> asyncio.Future[Steps]:
    last = log.head  # what is committed but not published yet must not be seen
    count, size_bytes = lane.limits.event_count, lane.limits.size_bytes
    wanted = lane.wanted.wanted

    def read(reader: Reader) -> Steps:
        compact_revision = reader.history().compact_revision
        if cursor < compact_revision:
            raise compacted(cursor, compact_revision)
        steps: list[Step] = []
        revision, left = cursor, size_bytes
        while revision < last and len(steps) < _AT_ONCE and left > size_bytes // 2:
            revision, bodies = reader.bodies(wanted, after=revision, last=last, count=count, size_bytes=left)
            steps.append(_step(log, bodies, revision))
            left -= sum(map(len, bodies))
        return tuple(steps)

    return log.reading(read)


def _keep(log: Log, place: tuple[Lane, int], done: asyncio.Future[Steps]) -> None:
    del log.shared.reading[place]
    if not done.cancelled() and done.exception() is None:
        log.shared.keep(place, done.result())


def _step(log: Log, bodies: list[bytes], revision: int) -> Step:
    return Step(reply(bodies, Progress(log.progress.history_id, revision)) if bodies else None, revision)
