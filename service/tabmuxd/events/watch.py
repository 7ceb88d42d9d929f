"""The watch: a cursor over the log (rules W1 to W12 of `event.proto`)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Final, Protocol

from tabmuxd.events.changes import entry_of, place_of
from tabmuxd.events.filters import WatchFilter
from tabmuxd.events.framing import reply
from tabmuxd.events.log import Log
from tabmuxd.events.resume import check_resume
from tabmuxd.events.shared import Step
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Progress, Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.store import Entry, Live, Place, kind_of


class Start(Enum):
    """Where a watch begins that does not resume."""

    NOW = "now"
    SNAPSHOT = "snapshot"


WatchStart = Start | Progress


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """How much of the log one step reads, and so how large a reply can be; one event it always reads."""

    event_count: int = 256
    size_bytes: int = 256 * 1024


class Timer(Protocol):
    """What a watch needs of time, in seconds that never go back."""

    def now(self) -> float:
        """The time."""
        ...

    async def wait(self, ready: Coroutine[None, None, None], until: float) -> None:
        """Return when `ready` has returned, or at the time `until`; nothing of `ready` is left running."""
        ...


class LoopTimer:
    """The time of the running loop."""

    def now(self) -> float:
        """The time."""
        return asyncio.get_running_loop().time()

    async def wait(self, ready: Coroutine[None, None, None], until: float) -> None:
        """Return when `ready` has returned, or at the time `until`."""
        try:
            async with asyncio.timeout_at(until):
                await ready
        except TimeoutError:
            pass


LIMITS: Final = ReplyLimits()
LOOP_TIMER: Final = LoopTimer()


async def watch(
    log: Log,
    start: WatchStart,
    wanted: WatchFilter,
    *,
    bookmark_interval: timedelta = timedelta(seconds=15),
    limits: ReplyLimits = LIMITS,
    timer: Timer = LOOP_TIMER,
    jitter: Callable[[], float] = random.random,
) -> AsyncGenerator[bytes]:
    """Finished bytes of `WatchTabsResponse` or `WatchSessionsResponse`, without an end.

    Raises REVISION_COMPACTED, HISTORY_CHANGED or REVISION_IN_FUTURE, before the first reply where it resumes; later
    only REVISION_COMPACTED, of a watch that was read too slowly. `jitter` gives numbers in [0, 1).
    """
    if isinstance(start, Progress):
        check_resume(start, log.progress, log.compact_revision)
    here = start if isinstance(start, Progress) else log.progress
    if start is Start.SNAPSHOT:
        live = log.live
        async for snapshot_reply in _snapshot(log, live, wanted, here.history_id, limits):
            yield snapshot_reply
    yield reply((), here)
    cursor = here.revision
    due = next_bookmark(timer.now(), bookmark_interval, jitter())
    while True:
        step = await _step(log, wanted, cursor, limits)
        moved = step.revision > cursor
        cursor = step.revision
        if step.reply is not None:
            yield step.reply
        elif timer.now() >= due:
            yield reply((), Progress(here.history_id, cursor))
        else:
            await (asyncio.sleep(0) if moved else timer.wait(log.moved(cursor), due))
            continue
        due = next_bookmark(timer.now(), bookmark_interval, jitter())


def next_bookmark(sent: float, interval: timedelta, jitter: float) -> float:
    """Time of the next bookmark after a reply that was sent at `sent`, in seconds.

    `jitter` is in [0, 1); it shortens the interval by up to a tenth, so that watches opened together drift apart.
    """
    return sent + interval.total_seconds() * (1 - jitter / 10)


async def _step(log: Log, wanted: WatchFilter, cursor: int, limits: ReplyLimits) -> Step:
    key = (wanted, cursor, limits)
    known = log.shared.steps.get(key)
    if known is not None:
        return known
    if cursor >= log.progress.revision:
        return Step(None, cursor)
    entries = await log.entries(cursor, count=limits.event_count, size_bytes=limits.size_bytes)
    if not entries:
        return Step(None, cursor)
    step = step_over(entries, wanted, log.progress.history_id)
    log.shared.steps[key] = step
    return step


def step_over(entries: Sequence[Entry], wanted: WatchFilter, history_id: str) -> Step:
    """The step that a watch makes over `entries`, which are not empty."""
    revision = entries[-1].revision
    bodies = [entry.body for entry in entries if wanted.wants(entry.kind, entry.resource_kind, entry.place)]
    return Step(reply(bodies, Progress(history_id, revision)) if bodies else None, revision)


async def _snapshot(
    log: Log, live: Live, wanted: WatchFilter, history_id: str, limits: ReplyLimits
) -> AsyncGenerator[bytes]:
    unfinished = Progress(history_id, 0)
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
    known = log.shared.existing.get(resource.name)
    if known is not None and known[0] is resource:
        return known[1]
    recorded = resource.update_time
    if recorded is None:
        raise ValueError(f"{resource.name} was never recorded")
    event = Event(resource.revision, EventKind.EXISTING, ChangeCause.NONE, recorded, resource)
    body = entry_of(event, place).body
    log.shared.existing[resource.name] = (resource, body)
    return body


def _place(live: Live, resource: Resource) -> Place:
    if not isinstance(resource, Lease):
        return place_of(resource)
    tab = live.tab(resource.tab)
    session = "" if tab is None else tab.session
    return place_of(resource, session=session, session_before=resource.session or session)
