"""An event: one recorded change of one resource."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from tabmuxd.resources.browser import Browser
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.session import Session, Turn
from tabmuxd.resources.tab import Tab

Resource = Browser | Tab | Lease | Session | Turn


class EventKind(IntEnum):
    """What an event records; numbers as in `tabmux.v1.EventKind`."""

    EXISTING = 1
    CREATED = 2
    UPDATED = 3
    ENDED = 4


class ChangeCause(IntEnum):
    """Why a resource changed; numbers as in `tabmux.v1.ChangeCause`."""

    NONE = 0
    CLIENT = 1
    PERSON = 2
    PAGE = 3
    BROWSER = 4
    CRASH = 5
    EXPIRY = 6
    RECOVERY = 7
    CAPACITY = 8


@dataclass(frozen=True, slots=True)
class Event:
    """One recorded change: `resource` as it stood after it."""

    revision: int
    kind: EventKind
    cause: ChangeCause
    record_time: datetime
    resource: Resource


@dataclass(frozen=True, slots=True)
class Progress:
    """A place in a history: every change up to `revision` is known."""

    history_id: str
    revision: int
