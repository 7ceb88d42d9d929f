"""What exists, as the first replies of a watch (rule W7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from tabmuxd.events.changes import entry_of, place_of
from tabmuxd.events.filters import WatchFilter
from tabmuxd.events.framing import reply
from tabmuxd.events.log import Log
from tabmuxd.events.shared import ReplyLimits
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Progress, Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.store import Live, Place, kind_of


async def snapshot(log: Log, live: Live, wanted: WatchFilter, limits: ReplyLimits) -> AsyncGenerator[bytes]:
    """Replies that show what of `live` is wanted, in order of revision; their place is not told yet."""
    unfinished = Progress(log.progress.history_id, 0)
    bodies: list[bytes] = []
    size = 0
    for number, resource in enumerate(sorted(live.resources(), key=lambda resource: resource.revision)):
        if number % limits.event_count == limits.event_count - 1:
            await asyncio.sleep(0)  # a snapshot of thousands must not hold up the loop
        body = _existing(log, live, resource, wanted)
        if body is None:
            continue
        if bodies and (len(bodies) == limits.event_count or size + len(body) > limits.size_bytes):
            yield reply(bodies, unfinished)
            bodies, size = [], 0
        bodies.append(body)
        size += len(body)
    if bodies:
        yield reply(bodies, unfinished)


def _existing(log: Log, live: Live, resource: Resource, wanted: WatchFilter) -> bytes | None:
    place = _place(live, resource)
    if not wanted.wants(EventKind.EXISTING, kind_of(resource), place):
        return None
    known = log.shared.existing(resource)
    if known is not None:
        return known
    recorded = resource.update_time
    if recorded is None:
        raise ValueError(f"{resource.name} was never recorded")
    event = Event(resource.revision, EventKind.EXISTING, ChangeCause.NONE, recorded, resource)
    body = entry_of(event, place).body
    log.shared.keep_existing(resource, body)
    return body


def _place(live: Live, resource: Resource) -> Place:
    if not isinstance(resource, Lease):
        return place_of(resource)
    tab = live.tab(resource.tab)
    session = "" if tab is None else tab.session
    return place_of(resource, session=session, session_before=resource.session or session)
