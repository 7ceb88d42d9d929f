"""Requests of `WatchTabs` and `WatchSessions`, checked for form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from tabmux.v1 import event_pb2, tab_service_pb2, web_ai_service_pb2

from tabmuxd.events.filters import WatchFilter, session_filter, tab_filter
from tabmuxd.events.watch import Start, WatchStart
from tabmuxd.resources.errors import invalid_field
from tabmuxd.resources.event import EventKind, Progress
from tabmuxd.rpc import fields

MAX_WATCHED_NAMES: Final = 500
_DEFAULT_BOOKMARK_INTERVAL: Final = timedelta(seconds=15)
_LEAST_BOOKMARK_INTERVAL: Final = timedelta(seconds=1)
_MOST_BOOKMARK_INTERVAL: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WatchOrder:
    """Where a watch begins, what it wants, and its longest silence."""

    start: WatchStart
    wanted: WatchFilter
    bookmark_interval: timedelta


def tabs_watch(request: tab_service_pb2.WatchTabsRequest) -> WatchOrder:
    """`WatchTabs`."""
    return WatchOrder(
        start=_start(request.start),
        wanted=tab_filter(
            parent=fields.any_browser("parent", request.parent),
            tabs=_names("tabs", request.tabs, fields.tab_name),
            kinds=fields.members("kinds", request.kinds, EventKind),
        ),
        bookmark_interval=_bookmark_interval(request.bookmark_interval, given=request.HasField("bookmark_interval")),
    )


def sessions_watch(request: web_ai_service_pb2.WatchSessionsRequest) -> WatchOrder:
    """`WatchSessions`."""
    return WatchOrder(
        start=_start(request.start),
        wanted=session_filter(
            sessions=_names("sessions", request.sessions, fields.session_name),
            kinds=fields.members("kinds", request.kinds, EventKind),
            with_tabs=request.with_tabs,
        ),
        bookmark_interval=_bookmark_interval(request.bookmark_interval, given=request.HasField("bookmark_interval")),
    )


def _start(start: event_pb2.WatchStart) -> WatchStart:
    match start.WhichOneof("position"):
        case "snapshot":
            return Start.SNAPSHOT
        case "resume":
            if not start.resume.history_id:
                raise invalid_field("start.resume.history_id", "must be that of the progress to resume from")
            revision = fields.natural("start.resume.revision", start.resume.revision)
            return Progress(start.resume.history_id, revision)
        case None:
            return Start.NOW


def _names(field: str, names: Iterable[str], checked: Callable[[str, str], str]) -> tuple[str, ...]:
    few = fields.few(field, names, MAX_WATCHED_NAMES)
    return tuple(checked(f"{field}[{index}]", name) for index, name in enumerate(few))


def _bookmark_interval(interval: Duration, *, given: bool) -> timedelta:
    if not given:
        return _DEFAULT_BOOKMARK_INTERVAL
    return fields.clamped("bookmark_interval", interval, least=_LEAST_BOOKMARK_INTERVAL, most=_MOST_BOOKMARK_INTERVAL)
