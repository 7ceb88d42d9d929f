"""The mirror: a live map of what the server has, kept by a watch that takes care of itself."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final, TypeVar

import grpc

from tabmux.errors import TabmuxError
from tabmux.streams import resumed
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.event_pb2 import WatchProgress, WatchSnapshot, WatchStart
from tabmux.v1.lease_pb2 import Lease
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest, WatchSessionsResponse
from tabmux.view import Change, Resource, View
from tabmux.watch import OpenWatch

T = TypeVar("T")
Kind = TypeVar("Kind", Browser, Tab, Lease, Session, Turn)

# The history behind the mirror's place is gone, or is another: what is there now is compared with what was.
_GAPS: Final = frozenset({"REVISION_COMPACTED", "HISTORY_CHANGED"})
_PLACE_PAUSE: Final = timedelta(seconds=1)


class Mirror:
    """What exists, by name, up to the second; use it while `Client.mirror` is entered.

    A lost connection, a server that restarts and a history that was compacted or replaced are its own affair: until it
    is connected again it shows what was last known. What changes without an event, such as `Tab.last_active_time`, is
    as old as the last event of its resource.
    """

    def __init__(
        self,
        on_change: Callable[[Change], None] | None = None,
        on_gap: Callable[[TabmuxError], None] | None = None,
    ) -> None:
        self._on_change = on_change
        self._on_gap = on_gap
        self._view = View()
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._failure: BaseException | None = None

    def __repr__(self) -> str:
        """How much it holds, and up to where."""
        progress = self._view.progress
        return f"<Mirror resources={len(self._view.resources)} revision={progress.revision if progress else None}>"

    @property
    def progress(self) -> WatchProgress:
        """The place in the history up to which everything is taken in."""
        return self._view.progress or WatchProgress()

    @property
    def browsers(self) -> Mapping[str, Browser]:
        """Browsers by name."""
        return self._of(Browser)

    @property
    def tabs(self) -> Mapping[str, Tab]:
        """Tabs that are not closed, by name."""
        return self._of(Tab)

    @property
    def leases(self) -> Mapping[str, Lease]:
        """Leases that are held, by name."""
        return self._of(Lease)

    @property
    def sessions(self) -> Mapping[str, Session]:
        """Sessions that are not retired, by name."""
        return self._of(Session)

    @property
    def turns(self) -> Mapping[str, Turn]:
        """Open turns, by name."""
        return self._of(Turn)

    @property
    def resources(self) -> Mapping[str, Resource]:
        """All of every kind, by name."""
        return self._view.resources

    def _of(self, kind: type[Kind]) -> Mapping[str, Kind]:
        return {name: resource for name, resource in self._view.resources.items() if isinstance(resource, kind)}

    async def until(self, reached: Callable[["Mirror"], T]) -> T:
        """What `reached` gives, once that is true; it is asked again after each reply of the server.

        Raises what ended the mirror: a `TabmuxError`, or what `on_change` or `on_gap` raised.
        """
        while not (found := reached(self)):
            if self._failure is not None:
                raise self._failure
            await asyncio.shield(self._moved)
        return found

    # Used by `mirrored` alone

    def begin_snapshot(self) -> None:
        """A snapshot begins, perhaps anew."""
        self._view.begin_snapshot()

    def take(self, reply: WatchSessionsResponse) -> None:
        """Take in one reply, and tell of each change by itself."""
        for change in self._view.take(reply.events, reply.progress):
            if self._on_change is not None:
                self._on_change(change)
        self._move()

    def miss(self, error: TabmuxError) -> None:
        """What happened behind the place is not to be had; a snapshot follows."""
        if self._on_gap is not None:
            self._on_gap(error)

    def fail(self, failure: BaseException) -> None:
        """Nothing more comes."""
        self._failure = failure
        self._move()

    @property
    def failure(self) -> BaseException | None:
        """What ended it."""
        return self._failure

    def _move(self) -> None:
        if not self._moved.done():
            self._moved.set_result(None)
        self._moved = asyncio.get_running_loop().create_future()


@contextlib.asynccontextmanager
async def mirrored(
    open_watch: OpenWatch,
    silence: timedelta,
    on_change: Callable[[Change], None] | None,
    on_gap: Callable[[TabmuxError], None] | None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[Mirror, None]:
    """A mirror that is kept while entered, whole from the start; leaving raises what ended it before."""
    mirror = Mirror(on_change, on_gap)
    keeping = asyncio.ensure_future(_keep(mirror, open_watch, silence, sleep))
    try:
        await mirror.until(lambda mirror: mirror.progress.revision or mirror.progress.history_id)
        yield mirror
        if mirror.failure is not None:
            raise mirror.failure
    finally:
        keeping.cancel()
        await asyncio.wait({keeping})


async def _keep(
    mirror: Mirror,
    open_watch: OpenWatch,
    silence: timedelta,
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    position: WatchStart | None = None

    def open_stream() -> grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse]:
        if position is None:
            mirror.begin_snapshot()
        return open_watch(position or WatchStart(snapshot=WatchSnapshot()))

    try:
        while True:
            try:
                async with contextlib.aclosing(resumed(open_stream, silence)) as replies:
                    async for reply in replies:
                        mirror.take(reply)
                        # A snapshot that is not whole yet begins anew (rule W7).
                        position = WatchStart(resume=reply.progress) if reply.progress.revision else None
                raise TabmuxError("the server ended the watch without a status", code="INTERNAL")  # noqa: TRY301
            except TabmuxError as error:
                if error.reason == "WATCH_CAPACITY" and mirror.progress.history_id:
                    await sleep((error.retry_delay or _PLACE_PAUSE).total_seconds())
                elif error.reason in _GAPS:
                    mirror.miss(error)
                    position = None
                else:
                    raise
    except Exception as failure:  # noqa: BLE001 - told to whoever uses the mirror
        mirror.fail(failure)
