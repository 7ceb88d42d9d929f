"""The next step of a watch, made once for all watches that want it."""

from __future__ import annotations

import asyncio
import contextlib

from tabmuxd.events.framing import reply
from tabmuxd.events.log import Log
from tabmuxd.events.resume import compacted
from tabmuxd.events.shared import Lane, Step
from tabmuxd.resources.event import Progress
from tabmuxd.store import Reader, StoreBusy


async def next_step(log: Log, lane: Lane, cursor: int) -> Step:
    """The step behind `cursor`, which lies before the head of the log. Raises REVISION_COMPACTED if events are gone."""
    place = (lane, cursor)
    entries = log.recent(cursor, count=lane.limits.event_count, size_bytes=lane.limits.size_bytes)
    if entries is not None:
        wants = lane.wanted.wants
        bodies = [entry.body for entry in entries if wants(entry.kind, entry.resource_kind, entry.place)]
        step = _step(log, bodies, entries[-1].revision)
        log.shared.keep(place, step)
        return step
    # A shield, since cancelling one who waits must not cancel what all share.
    return await asyncio.shield(log.shared.reading.get(place) or _begin(log, lane, cursor))


def read_ahead(log: Log, lane: Lane, cursor: int) -> None:
    """Begin to read the step behind `cursor` for a watch that is busy with the one before, if the store has it."""
    place = (lane, cursor)
    if place in log.shared.reading or log.shared.step(place) or log.is_recent(cursor):
        return
    with contextlib.suppress(StoreBusy):  # then it is read when it is needed
        _begin(log, lane, cursor)


def _begin(log: Log, lane: Lane, cursor: int) -> asyncio.Future[Step]:
    place = (lane, cursor)
    reading = log.shared.reading[place] = _read(log, lane, cursor)
    reading.add_done_callback(lambda done: _keep(log, place, done))
    return reading


def _read(log: Log, lane: Lane, cursor: int) -> asyncio.Future[Step]:
    last = log.head  # what is committed but not published yet must not be seen
    limits, wanted = lane.limits, lane.wanted

    def read(reader: Reader) -> Step:
        compact_revision = reader.history().compact_revision
        if cursor < compact_revision:
            raise compacted(cursor, compact_revision)
        revision, bodies = reader.bodies(
            wanted.matches,
            wanted.places,
            after=cursor,
            last=last,
            count=limits.event_count,
            size_bytes=limits.size_bytes,
        )
        return _step(log, bodies, revision)

    return log.reading(read)


def _keep(log: Log, place: tuple[Lane, int], done: asyncio.Future[Step]) -> None:
    del log.shared.reading[place]
    if not done.cancelled() and done.exception() is None:
        log.shared.keep(place, done.result())


def _step(log: Log, bodies: list[bytes], revision: int) -> Step:
    return Step(reply(bodies, Progress(log.progress.history_id, revision)) if bodies else None, revision)
