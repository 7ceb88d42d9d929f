"""Finished bytes that several watches want alike."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias
from weakref import WeakValueDictionary

from tabmuxd.events.filters import WatchFilter
from tabmuxd.resources.event import Resource


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """How much of the log one step reads, and so how large a reply can be; one event it always reads."""

    event_count: int = 256
    size_bytes: int = 256 * 1024


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a watch: the reply to send, None if nothing matched, and the revision it comes to."""

    reply: bytes | None
    revision: int


@dataclass(slots=True, eq=False, weakref_slot=True)
class Lane:
    """What the steps of a watch depend on, but for its place: one object for all watches that want the same.

    `newest` are the steps made last, which begin at `newest_at`: those that nearly all of its watches want next.
    """

    wanted: WatchFilter
    limits: ReplyLimits
    newest: tuple[Step, ...] = ()
    newest_at: int = -1


Place: TypeAlias = tuple[Lane, int]
"""A lane, and the revision behind which a step begins."""


Steps: TypeAlias = tuple[Step, ...]
"""One step or more, each beginning where the one before comes to."""


class Shared:
    """Steps by where the first begins, the newest of them, up to `size_bytes`; and those that are being read now.

    Also the events of snapshots, of the newest `existing_count` resources that were shown. To be used on the loop only.
    """

    def __init__(self, *, size_bytes: int, existing_count: int) -> None:
        self.reading: dict[Place, asyncio.Future[Steps]] = {}
        self._lanes: WeakValueDictionary[tuple[WatchFilter, ReplyLimits], Lane] = WeakValueDictionary()
        self._steps: OrderedDict[Place, Steps] = OrderedDict()
        self._most_bytes = size_bytes
        self._size_bytes = 0
        self._existing: OrderedDict[str, tuple[Resource, bytes]] = OrderedDict()
        self._existing_count = existing_count

    def __len__(self) -> int:
        return len(self._steps)

    def __repr__(self) -> str:
        return f"<Shared steps={len(self._steps)} bytes={self._size_bytes} reading={len(self.reading)}>"

    def lane(self, wanted: WatchFilter, limits: ReplyLimits) -> Lane:
        """The lane of these; it lives as long as somebody has it, or one of its steps is kept."""
        key = (wanted, limits)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(wanted, limits)
        return lane

    def steps(self, place: Place) -> Steps | None:
        """The steps that begin here, if they are known."""
        return self._steps.get(place)

    def keep(self, place: Place, steps: Steps) -> None:
        """Keep steps for others; the oldest are dropped for them."""
        if place in self._steps:
            return
        self._steps[place] = steps
        lane, cursor = place
        lane.newest, lane.newest_at = steps, cursor
        self._size_bytes += _size_of(steps)
        while self._size_bytes > self._most_bytes:
            self._size_bytes -= _size_of(self._steps.popitem(last=False)[1])

    def existing(self, resource: Resource) -> bytes | None:
        """The finished event of a snapshot that shows this very resource, if it is known."""
        known = self._existing.get(resource.name)
        return known[1] if known is not None and known[0] is resource else None

    def keep_existing(self, resource: Resource, body: bytes) -> None:
        """Keep a finished event of a snapshot."""
        self._existing[resource.name] = (resource, body)
        if len(self._existing) > self._existing_count:
            self._existing.popitem(last=False)


def _size_of(steps: Steps) -> int:
    """Bytes that steps take, about, with their place."""
    return sum(200 + len(step.reply or b"") for step in steps)
