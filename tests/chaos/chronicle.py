"""A watch of everything over a whole round: cut, resumed, and kept for the checkers of W1 to W12."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest, WatchSessionsResponse
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmuxd.events import Start
from tabmuxd.events.filters import session_filter
from tabmuxd.resources.event import Progress

from tests.chaos.world import World
from tests.e2e.serving import LIMIT
from tests.events.recording import Call, Reply

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub

_BOOKMARK_SECONDS: Final = 5


class Chronicle:
    """What a client saw that takes up its watch again whenever it ends."""

    def __init__(self, world: World) -> None:
        """Nothing is watched yet."""
        self.calls: list[Call] = []
        self._world = world
        self._stub: WebAiServiceAsyncStub = WebAiServiceStub(world.server.channel())
        self._stream: grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse] | None = None
        self._moved = asyncio.Event()

    @property
    def place(self) -> Progress | None:
        """The last place that was told."""
        return next((call.place for call in reversed(self.calls) if call.replies and call.place), None)

    def cut(self) -> None:
        """End the call that is under way; the next one resumes."""
        if self._stream is not None:
            self._stream.cancel()

    async def passed(self, revision: int) -> None:
        """Return once the watch has come to this revision."""
        async with asyncio.timeout(2 * LIMIT):
            while (place := self.place) is None or place.revision < revision:
                self._moved.clear()
                await self._moved.wait()

    async def follow(self) -> None:
        """Watch until cancelled."""
        while True:
            before = self._world.outages.count
            try:
                await self._watch(self.place or Start.SNAPSHOT)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE or not self._world.outages.met(before):
                    raise
            except asyncio.CancelledError:
                if _is_cancelled():  # else it is only the call that was cut
                    raise

    async def _watch(self, start: Start | Progress) -> None:
        call = Call(start, session_filter(with_tabs=True), head=0)
        self.calls.append(call)
        request = WatchSessionsRequest(with_tabs=True)
        request.bookmark_interval.FromSeconds(_BOOKMARK_SECONDS)
        if isinstance(start, Progress):
            request.start.resume.history_id = start.history_id
            request.start.resume.revision = start.revision
        else:
            request.start.snapshot.SetInParent()
        self._stream = self._stub.WatchSessions(request, wait_for_ready=True)
        async for message in self._stream:
            call.replies.append(Reply.parsed(message.SerializeToString()))
            self._moved.set()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextlib.asynccontextmanager
async def chronicle(world: World) -> AsyncGenerator[Chronicle]:
    """Watch from a snapshot on until left; an end of the watch that no outage explains fails the round."""
    watch = Chronicle(world)
    following = asyncio.ensure_future(watch.follow())
    try:
        await watch.passed(0)
        yield watch
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
