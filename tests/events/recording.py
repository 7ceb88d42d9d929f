"""What clients of watches saw, recorded for the checkers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import cast

from google.protobuf.message import Message
from tabmux.v1 import event_pb2, web_ai_service_pb2
from tabmuxd.events import Log, ReplyLimits, Start, Timer, WatchFilter, WatchStart, watch
from tabmuxd.events.bell import Bell
from tabmuxd.resources.event import EventKind, Progress
from tabmuxd.store import Entry

INTERVAL = timedelta(seconds=15)
TINY = ReplyLimits(event_count=2, size_bytes=200)


@dataclass(frozen=True, slots=True)
class Shown:
    """One event as a client saw it."""

    revision: int
    kind: EventKind
    name: str
    resource_revision: int
    message: event_pb2.Event

    @classmethod
    def of(cls, message: event_pb2.Event) -> Shown:
        """The event that `message` tells."""
        which = message.WhichOneof("resource")
        resource = cast("Message", getattr(message, which or "tab"))
        return cls(
            message.revision,
            EventKind(message.kind),
            getattr(resource, "name", ""),
            getattr(resource, "revision", 0),
            message,
        )


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, and when it was sent in seconds."""

    events: tuple[Shown, ...]
    progress: Progress
    time: float = 0.0

    @classmethod
    def parsed(cls, body: bytes, time: float = 0.0) -> Reply:
        """The reply that these bytes are."""
        message = web_ai_service_pb2.WatchSessionsResponse.FromString(body)
        progress = Progress(message.progress.history_id, message.progress.revision)
        return cls(tuple(Shown.of(event) for event in message.events), progress, time)


@dataclass(slots=True)
class Call:
    """One call of a watch: how it began, what it wanted, and all replies so far; `head`: the revision then."""

    start: WatchStart
    wanted: WatchFilter
    head: int
    replies: list[Reply] = field(default_factory=list)

    @property
    def place(self) -> Progress | None:
        """The last place that can be resumed from, None while there is none."""
        known = [reply.progress for reply in self.replies if reply.progress.revision or not _snapshot_open(self)]
        return known[-1] if known else None

    @property
    def events(self) -> list[Shown]:
        """All events but those of the snapshot."""
        return [shown for reply in self.replies for shown in reply.events if shown.kind is not EventKind.EXISTING]

    @property
    def existing(self) -> list[Shown]:
        """The events of the snapshot."""
        return [shown for reply in self.replies for shown in reply.events if shown.kind is EventKind.EXISTING]


def _snapshot_open(call: Call) -> bool:
    return call.start is Start.SNAPSHOT and bool(call.existing) and all(not r.progress.revision for r in call.replies)


class JumpingTimer:
    """Time that jumps to the next bookmark whenever a watch has nothing to do, so that a watch never waits."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def wait(self, bell: Bell, until: float) -> bool:
        self.time = max(self.time, until)
        return True

    def close(self) -> None:
        pass


class Watcher:
    """A client that records one call."""

    def __init__(
        self,
        log: Log,
        start: WatchStart,
        wanted: WatchFilter,
        *,
        limits: ReplyLimits = TINY,
        timer: Timer | None = None,
    ) -> None:
        self.call = Call(start, wanted, log.progress.revision)
        self._log = log
        self._timer = timer or JumpingTimer()
        self._replies = watch(
            log,
            start,
            wanted,
            bookmark_interval=INTERVAL,
            limits=limits,
            timer=self._timer,
            jitter=0.0,
        )

    async def read(self) -> Reply:
        """The next reply."""
        time = self._timer.now()
        reply = Reply.parsed(await anext(self._replies), max(time, self._timer.now()))
        self.call.replies.append(reply)
        return reply

    async def catch_up(self) -> None:
        """Read until the place is the head of the log."""
        while not self.call.replies or self.call.replies[-1].progress.revision < self._log.progress.revision:
            await self.read()

    async def close(self) -> None:
        """Cut the connection."""
        await self._replies.aclose()


async def read_all(log: Log, after: int) -> list[Entry]:
    """Every event after `after`."""
    entries: list[Entry] = []
    while found := await log.entries(entries[-1].revision if entries else after, count=100, size_bytes=100_000):
        entries += found
    return entries
