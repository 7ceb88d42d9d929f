"""Clients that watch, many in one process: they read bytes, and note when."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import grpc
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.tab_service_pb2 import WatchTabsRequest

WATCH_TABS: Final = "/tabmux.v1.TabService/WatchTabs"
# No bookmark comes while a benchmark runs.
QUIET_WATCH: Final = WatchTabsRequest(bookmark_interval=Duration(seconds=300)).SerializeToString()
_LIMIT_SECONDS: Final = 60.0


class Watchers:
    """Streams that are read as fast as they can be."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._arrivals: list[float] = []
        self._complete = asyncio.Event()
        self.last_message = b""

    async def arrivals(self) -> list[float]:
        """When each stream got the one message that was sent to all, in seconds; waits until all have."""
        async with asyncio.timeout(_LIMIT_SECONDS):
            await self._complete.wait()
        arrivals, self._arrivals = self._arrivals, []
        self._complete.clear()
        assert len(arrivals) == self._count, "a stream got more than one"
        return arrivals

    async def read(self, call: grpc.aio.UnaryStreamCall[bytes, bytes]) -> None:
        """Read a stream until it ends."""
        async for message in call:
            self._arrivals.append(time.perf_counter())
            if len(self._arrivals) >= self._count:
                self.last_message = message
                self._complete.set()


@asynccontextmanager
async def watchers(
    address: str, method: str, request: bytes, *, count: int, connections: int
) -> AsyncIterator[Watchers]:
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
