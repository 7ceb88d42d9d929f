"""Clients that watch, many in one process: they read bytes, and note when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import grpc
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.tab_service_pb2 import WatchTabsRequest

WATCH_TABS: Final = "/tabmux.v1.TabService/WatchTabs"
QUIET: Final = Duration(seconds=300)
"""Between bookmarks: none comes while a benchmark runs."""
QUIET_WATCH: Final = WatchTabsRequest(bookmark_interval=QUIET).SerializeToString()
_LIMIT_SECONDS: Final = 60.0


class Watchers:
    """Streams that are read as fast as they can be."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._arrivals: list[float] = []
        self._complete = asyncio.Event()
        self._end = ""
        self.last_message = b""

    async def arrivals(self, sent: float = 0.0) -> list[float]:
        """When each stream got the one message that was sent to all at `sent`, in seconds; waits until all have.

        Raises RuntimeError, with the reason, where one of them does not get it, or gets something else too.
        """
        try:
            async with asyncio.timeout(_LIMIT_SECONDS):
                await self._complete.wait()
        except TimeoutError:
            got = f"{len(self._arrivals)} of {self._count} streams got the message"
            raise RuntimeError(f"{got} within {_LIMIT_SECONDS:.0f} s") from None
        if self._end:
            raise RuntimeError(f"a stream ended: {self._end}")
        arrivals, self._arrivals = self._arrivals, []
        self._complete.clear()
        if len(arrivals) > self._count or min(arrivals) < sent:
            raise RuntimeError("something else was told to the streams, and no time can be taken")
        return arrivals

    async def read(self, call: grpc.aio.UnaryStreamCall[bytes, bytes]) -> None:
        """Read a stream until it is cancelled; that it ends by itself is told to who waits for arrivals."""
        try:
            async for message in call:
                self._arrivals.append(time.perf_counter())
                if len(self._arrivals) >= self._count:
                    self.last_message = message
                    self._complete.set()
            self._end = "OK"
        except grpc.aio.AioRpcError as error:
            self._end = f"{error.code().name}: {error.details()}"
        self._complete.set()


@asynccontextmanager
async def watchers(
    address: str, method: str, request: bytes, *, count: int, connections: int
) -> AsyncGenerator[Watchers]:
    """Watch `method` by so many streams over so many connections; each has got its first reply."""
    watching = Watchers(count)
    async with AsyncExitStack() as stack:
        calls = [
            call
            for number in range(connections)
            for call in await _open(stack, address, method, request, len(range(number, count, connections)))
        ]
        reading = [asyncio.ensure_future(watching.read(call)) for call in calls]
        try:
            await watching.arrivals()
            yield watching
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*reading, return_exceptions=True)


async def _open(
    stack: AsyncExitStack, address: str, method: str, request: bytes, count: int
) -> list[grpc.aio.UnaryStreamCall[bytes, bytes]]:
    # Channels to one address would else share a connection.
    options = (("grpc.use_local_subchannel_pool", 1),)
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(address, options))
    open_stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(method)
    return [open_stream(request) for _ in range(count)]
