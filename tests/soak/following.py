"""Clients that watch everything for long, are cut off, and go on; each judges every reply as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
from tabmux.statuses import error_of_call
from tabmux.v1.event_pb2 import EventKind, WatchProgress
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest, WatchSessionsResponse
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmux.view import View

from tests.e2e.serving import LIMIT, Server

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub

_BOOKMARK_SECONDS: Final = 5
_SNAPSHOT_AGAIN: Final = 0.1
_DAWDLE_SECONDS: Final = 0.2


class Lines:
    """Connections to the server; one can be cut, and the next call on it uses a new one."""

    def __init__(self, server: Server, names: Sequence[str]) -> None:
        """One for each name, which is that of the program that calls."""
        self._server = server
        self._names = names
        self._channels = [server.channel(name) for name in names]

    def stub(self, number: int) -> WebAiServiceAsyncStub:
        """Calls over the connection that a client of this number has now."""
        return WebAiServiceStub(self._channels[number % len(self._channels)])

    async def cut(self, number: int) -> None:
        """End a connection, and every call on it."""
        number %= len(self._channels)
        old, self._channels[number] = self._channels[number], self._server.channel(self._names[number])
        await old.close()


class Follower:
    """Keeps a view of all there is, over calls that are cut.

    Since it watches everything, revisions follow each other without a gap, over all of its calls (W2 to W6), but where
    it chose to begin with a snapshot (W7).
    """

    def __init__(
        self,
        lines: Lines,
        number: int,
        chance: Random,
        *,
        dawdles: bool = False,
        sleeps_until: asyncio.Event | None = None,
    ) -> None:
        """Nothing is watched yet.

        `dawdles`: it takes its time over each reply. `sleeps_until`: from its first place on it reads nothing until
        then.
        """
        self.view = View()
        self.cut_count = 0
        self.stall_count = 0
        self._lines = lines
        self._number = number
        self._chance = chance
        self._dawdles = dawdles
        self._sleeps_until = sleeps_until
        self._place: WatchProgress | None = None
        self._call: grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse] | None = None
        self._moved = asyncio.Event()

    @property
    def revision(self) -> int:
        """How far it has come."""
        return self._place.revision if self._place else 0

    def cut(self) -> None:
        """End the call that is under way."""
        if self._call is not None:
            self._call.cancel()

    async def passed(self, revision: int) -> None:
        """Return once it has come this far."""
        async with asyncio.timeout(3 * LIMIT):
            while self.revision < revision:
                self._moved.clear()
                await self._moved.wait()

    async def follow(self) -> None:
        """Watch until cancelled; raises where a rule is broken, and for an end that nothing explains."""
        while True:
            if self._place is None or self._chance.random() < _SNAPSHOT_AGAIN:
                self._place = None
                self.view.begin_snapshot()
            try:
                await self._read()
            except grpc.aio.AioRpcError as error:
                if error_of_call(error).reason == "WATCH_STALLED":
                    self.stall_count += 1
                elif error.code() is not grpc.StatusCode.UNAVAILABLE:
                    raise
            except asyncio.CancelledError:
                if _is_cancelled():  # else it is only the call that was cut
                    raise
                self.cut_count += 1

    async def _read(self) -> None:
        request = WatchSessionsRequest(with_tabs=True)
        request.bookmark_interval.FromSeconds(_BOOKMARK_SECONDS)
        if self._place is None:
            request.start.snapshot.SetInParent()
        else:
            request.start.resume.CopyFrom(self._place)
        self._call = self._lines.stub(self._number).WatchSessions(request)
        async for reply in self._call:
            self._take(reply)
            if self._dawdles:
                await asyncio.sleep(_DAWDLE_SECONDS)
            if self._sleeps_until is not None and self._place is not None:
                await self._sleeps_until.wait()

    def _take(self, reply: WatchSessionsResponse) -> None:
        kinds = {event.kind == EventKind.EVENT_KIND_EXISTING for event in reply.events}
        if self._place is None:
            assert kinds <= {True}
            assert bool(reply.events) != bool(reply.progress.revision)
        else:
            assert kinds <= {False}
            expected = range(self._place.revision + 1, reply.progress.revision + 1)
            assert [event.revision for event in reply.events] == list(expected)
        self.view.take(reply.events, reply.progress)
        if reply.progress.revision:
            self._place = reply.progress
            self._moved.set()


@contextlib.asynccontextmanager
async def followed(followers: Sequence[Follower]) -> AsyncGenerator[None]:
    """All of them follow, each from a whole snapshot, until left; leaving raises what one of them has found wrong."""
    following = [asyncio.ensure_future(follower.follow()) for follower in followers]
    try:
        await asyncio.gather(*(follower.passed(1) for follower in followers))
        yield
    finally:
        for task in following:
            task.cancel()
        ends = await asyncio.gather(*following, return_exceptions=True)
    for end in ends:
        if isinstance(end, BaseException) and not isinstance(end, asyncio.CancelledError):
            raise end


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
