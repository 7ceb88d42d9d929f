"""What the store holds beside resources, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum
from typing import Any

from tabmuxd.resources.artifacts import KeptArtifact
from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import EventKind, Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.session import Artifact, Session
from tabmuxd.resources.tab import Tab
from tabmuxd.store.codec import moment


class ResourceKind(IntEnum):
    """Of what an event tells; kept in the store, so the numbers never change."""

    BROWSER = 1
    TAB = 2
    LEASE = 3
    SESSION = 4
    TURN = 5


def kind_of(resource: Resource) -> ResourceKind:
    """The kind of `resource`."""
    match resource:
        case Browser():
            return ResourceKind.BROWSER
        case Tab():
            return ResourceKind.TAB
        case Lease():
            return ResourceKind.LEASE
        case Session():
            return ResourceKind.SESSION
        case _:
            return ResourceKind.TURN


@dataclass(frozen=True, slots=True)
class Place:
    """Where a resource belongs, for filters; `session_before` is the session its tab served before the change."""

    browser: str = ""
    tab: str = ""
    session: str = ""
    session_before: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One event of the log: what filters look at, and the finished bytes of `tabmux.v1.Event`."""

    revision: int
    kind: EventKind
    resource_kind: ResourceKind
    place: Place
    record_time: datetime
    body: bytes


@dataclass(frozen=True, slots=True)
class History:
    """Which history the store holds, its newest revision, and the newest one that is gone from it."""

    history_id: str
    head: int
    compact_revision: int


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was carried out: what it asked, and the resource it made."""

    payload_sha256: str
    resource: str


def kept_artifact(row: tuple[Any, ...]) -> KeptArtifact:
    """The file that a row of its table tells of."""
    name, owner, turn, display_name, media_type, size_bytes, sha256, expire_time = row
    artifact = Artifact(name, display_name, media_type, size_bytes, sha256, moment(expire_time))
    return KeptArtifact(artifact, owner, turn)
