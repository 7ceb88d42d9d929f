"""The next step of a watch, made once for all watches that want it."""

from __future__ import annotations

import asyncio

from tabmuxd.events.framing import reply
from tabmuxd.events.log import Log
from tabmuxd.events.resume import compacted
from tabmuxd.events.shared import Lane, Step
from tabmuxd.resources.event import Progress
from tabmuxd.store import Reader


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
    reading = log.shared.reading.get(place)
    if reading is None:
        reading = log.shared.reading[place] = _read(log, lane, cursor)
        reading.add_done_callback(lambda done: _keep(log, place, done))
    # A shield, since cancelling one who waits must not cancel what all share.
    return await asyncio.shield(reading)


def _read(log: Log, lane: Lane, cursor: int) -> asyncio.Future[Step]:
    last = log.head  # what is committed but not published yet must not be seen
    limits, matches = lane.limits, lane.wanted.matches

    def read(reader: Reader) -> Step:
        compact_revision = reader.history().compact_revision
        if cursor < compact_revision:
            raise compacted(cursor, compact_revision)
        revision, bodies = reader.bodies(
            matches, after=cursor, last=last, count=limits.event_count, size_bytes=limits.size_bytes
        )
        return _step(log, bodies, revision)

    return log.reading(read)


def _keep(log: Log, place: tuple[Lane, int], done: asyncio.Future[Step]) -> None:
    del log.shared.reading[place]
    if not done.cancelled() and done.exception() is None:
        log.shared.keep(place, done.result())


def _step(log: Log, bodies: list[bytes], revision: int) -> Step:
    return Step(reply(bodies, Progress(log.progress.history_id, revision)) if bodies else None, revision)
