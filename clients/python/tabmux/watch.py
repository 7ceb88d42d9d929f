"""The raw watch: replies as they come, over lost connections, from the place where the last one ended."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal, TypeAlias

import grpc

from tabmux.errors import TabmuxError
from tabmux.streams import resumed
from tabmux.v1.event_pb2 import Event, WatchProgress, WatchStart
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest, WatchSessionsResponse

OpenWatch: TypeAlias = Callable[
    [WatchStart | None], "grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse]"
]
"""Opens a watch from a place."""
WatchScope = Literal["everything", "tabs", "sessions"]

_DEFAULT_BOOKMARK_INTERVAL = timedelta(seconds=15)
_MOST_BOOKMARK_INTERVAL = timedelta(minutes=5)
_LEAST_BOOKMARK_INTERVAL = timedelta(seconds=1)
_MISSED_BOOKMARKS = 3


@dataclass(frozen=True, slots=True)
class WatchReply:
    """One reply of a watch: events in revision order, none in a bookmark; `progress`, how far the watch has come."""

    events: Sequence[Event]
    progress: WatchProgress


def next_start(start: WatchStart | None, progress: WatchProgress) -> WatchStart | None:
    """Where a watch that was cut off behind `progress` begins again; `start` is where it first began.

    Rule W7: a snapshot that is not complete begins anew.
    """
    if start is not None and start.HasField("snapshot") and progress.revision == 0:
        return start
    return WatchStart(resume=progress)


def silence_limit(bookmark_interval: timedelta | None) -> timedelta:
    """How long a watch may be silent before its connection counts as dead: three bookmarks are missing."""
    interval = bookmark_interval or _DEFAULT_BOOKMARK_INTERVAL
    # The server limits what was asked for in the same way.
    return _MISSED_BOOKMARKS * min(max(interval, _LEAST_BOOKMARK_INTERVAL), _MOST_BOOKMARK_INTERVAL)


async def watch_replies(
    open_watch: OpenWatch,
    start: WatchStart | None,
    silence: timedelta,
) -> AsyncGenerator[WatchReply, None]:
    """Yield the replies of a watch, opened again behind the last one whenever the connection is lost.

    Raises `TabmuxError` where the watch cannot go on without the caller's word, such as REVISION_COMPACTED.
    """
    position = start

    def open_stream() -> grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse]:
        return open_watch(position)

    async with aclosing(resumed(open_stream, silence)) as replies:
        async for reply in replies:
            position = next_start(start, reply.progress)
            yield WatchReply(tuple(reply.events), reply.progress)
    raise TabmuxError("the server ended the watch without a status", code="INTERNAL")
