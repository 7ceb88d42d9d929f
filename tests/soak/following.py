"""Clients that watch everything for long, are cut off, and go on; each judges every reply as it comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from enum import Enum
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


class Manner(Enum):
    """How a client reads."""

    QUICK = "quick"
    DAWDLES = "dawdles"
    """It takes its time over each reply."""
    SLEEPS = "sleeps"
    """From its first place on it reads nothing."""


class Follower:
    """Keeps a view of all there is, over calls that are cut.

    Since it watches everything, revisions follow each other without a gap, over all of its calls (W2 to W6), but where
    it chose to begin with a snapshot (W7).
    """

    def __init__(
        self, lines: Lines, number: int, chance: Random, morning: asyncio.Event, manner: Manner = Manner.QUICK
    ) -> None:
        """Nothing is watched yet. `manner` is how it reads until `morning`; then it is quick."""
        self.view = View()
        self.cut_count = 0
        self.stall_count = 0
        self._lines = lines
        self._number = number
        self._chance = chance
        self._morning = morning
        self._manner = manner
        self._place: WatchProgress | None = None
        self._call: grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse] | None = None
        self._moved = asyncio.Event()

    def __repr__(self) -> str:
        """Which it is, how far it has come, and how its call stands."""
        done = self._call is None or self._call.done()
        return f"<Follower {self._number} {self._manner.value} {self.revision=} {self.cut_count=} {done=}>"

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
        try:
            async with asyncio.timeout(3 * LIMIT):
                while self.revision < revision:
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            raise AssertionError(f"{self} does not come to {revision}") from None

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
            if self._manner is Manner.DAWDLES and not self._morning.is_set():
                await asyncio.sleep(_DAWDLE_SECONDS)
            if self._manner is Manner.SLEEPS and self._place is not None:
                await self._morning.wait()

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
    """All of them follow, each from a whole snapshot, until left; what one of them finds wrong ends all at once."""
    async with asyncio.TaskGroup() as tasks:
        following = [tasks.create_task(follower.follow()) for follower in followers]
        try:
            await asyncio.gather(*(follower.passed(1) for follower in followers))
            yield
        finally:
            for task in following:
                task.cancel()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
