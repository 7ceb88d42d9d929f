"""Clients that do what nobody should, beside others who must not notice."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Final

import grpc
import grpc.aio
from google.protobuf.duration_pb2 import Duration
from tabmux.statuses import error_of_call
from tabmux.v1.tab_service_pb2 import WatchTabsRequest, WatchTabsResponse
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from tests.e2e.serving import LIMIT, Server

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub

PLACES: Final = 64
"""Watches that one principal may have open."""

_AT_ONCE: Final = 50
_DEAD_SECONDS: Final = 130  # two keepalive times and one timeout of the server
_QUIET: Final = WatchTabsRequest(tabs=["browsers/-/tabs/0000000000"], bookmark_interval=Duration(seconds=300))
_GHOST: Final = """
import asyncio, sys
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tests.e2e.serving import Server
from tests.soak.misuse import open_watches
async def haunt():
    server = Server(__import__("pathlib").Path(sys.argv[1]), 0)
    await open_watches(TabServiceStub(server.channel("ghost")), int(sys.argv[2]))
    print("open", flush=True)
    await asyncio.Event().wait()
asyncio.run(haunt())
"""

Watch = grpc.aio.UnaryStreamCall[WatchTabsRequest, WatchTabsResponse]


async def open_watches(stub: TabServiceAsyncStub, count: int) -> tuple[list[Watch], set[str]]:
    """Open watches of a tab that there is not: those that were let in, and why the others were not."""
    room = asyncio.Semaphore(_AT_ONCE)
    opened: list[Watch] = []
    reasons: set[str] = set()

    async def open_one() -> None:
        async with room:
            call = stub.WatchTabs(_QUIET)
            try:
                reply = await call.read()
            except grpc.aio.AioRpcError as error:
                reasons.add(error_of_call(error).reason)
            else:
                assert isinstance(reply, WatchTabsResponse)
                assert not reply.events
                opened.append(call)

    await asyncio.gather(*(open_one() for _ in range(count)))
    return opened, reasons


async def take_all_places(server: Server, count: int) -> None:
    """One principal opens so many watches: it gets its places, and each other call is told WATCH_CAPACITY."""
    channel = server.channel("greedy")
    opened, reasons = await open_watches(TabServiceStub(channel), count)
    assert (len(opened), reasons) == (PLACES, {"WATCH_CAPACITY"})
    await channel.close()


@contextlib.asynccontextmanager
async def pinging(server: Server) -> AsyncGenerator[Watch]:
    """A watch that is idle, whose connection pings every 10 s, with data or without; it has to last (WAT-05)."""
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    address = f"unix://{server.state_directory / 'tabmuxd.sock'}"
    async with grpc.aio.insecure_channel(address, options=options) as channel:
        stub: TabServiceAsyncStub = TabServiceStub(channel)
        call = stub.WatchTabs(_QUIET)
        await call.read()
        yield call
        assert (call.done(), channel.get_state()) == (False, grpc.ChannelConnectivity.READY)
        call.cancel()


async def vanish(server: Server) -> None:
    """A program that holds all its places stops, as if the machine were gone: they are free in about two minutes.

    A process that ends is no such thing: the kernel closes its socket.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _GHOST, str(server.state_directory), str(PLACES)),
        stdout=asyncio.subprocess.PIPE,
        # A stopped process has all of its group hung up when the shell that leads the group exits.
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(3 * LIMIT):
            assert await process.stdout.readline() == b"open\n"
        os.kill(process.pid, signal.SIGSTOP)
        stub: TabServiceAsyncStub = TabServiceStub(server.channel("ghost"))
        async with asyncio.timeout(_DEAD_SECONDS + 3 * LIMIT):
            while not (await open_watches(stub, 1))[0]:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(1)
    finally:
        process.kill()
        await process.wait()
