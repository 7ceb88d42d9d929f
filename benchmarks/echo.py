"""The least that a gRPC server in Python can do: take bytes, give bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import grpc
from tabmux.channel import open_channel
from tabmux.places import find_place
from tabmuxd.rpc.server import SERVER_OPTIONS

from benchmarks.processes import python

_SERVICE: Final = "benchmarks.Echo"
_METHOD: Final = "Answer"

Echo = grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]


def serve(socket: str, answer_size_bytes: int) -> None:
    """Serve on a Unix socket until the process ends: to every request the same answer of this size."""
    asyncio.run(_serve(socket, bytes(answer_size_bytes)))


@asynccontextmanager
async def echo(directory: Path, answer_size_bytes: int) -> AsyncGenerator[Echo]:
    """Run the echo in a process of its own, its socket in `directory`; gives the call, through the client's channel."""
    socket = directory / "echo.sock"
    code = f"from benchmarks.echo import serve; serve({str(socket)!r}, {answer_size_bytes})"
    async with (
        python(("-c", code), log=directory / "echo.log"),
        open_channel(find_place(f"unix://{socket}", {})) as channel,
    ):
        call: Echo = channel.unary_unary(f"/{_SERVICE}/{_METHOD}")
        await call(b"", wait_for_ready=True)
        yield call


async def _serve(socket: str, answer: bytes) -> None:
    async def handle(_request: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return answer

    # With other options it would be another comparison.
    server = grpc.aio.server(options=SERVER_OPTIONS)
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {_METHOD: grpc.unary_unary_rpc_method_handler(handle)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    await server.wait_for_termination()
