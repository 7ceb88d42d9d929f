"""The least that a gRPC server in Python can do for those who watch: give the same bytes to every stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from tabmux.channel import open_channel
from tabmux.places import find_place
from tabmuxd.rpc import server as rpc_server

from benchmarks.processes import python

_SERVICE: Final = "benchmarks.Streams"
WATCH: Final = f"/{_SERVICE}/Watch"
REPLAY: Final = f"/{_SERVICE}/Replay"
_TELL: Final = f"/{_SERVICE}/Tell"
_LENGTH_BYTES: Final = 4

Context = grpc.aio.ServicerContext[bytes, bytes]


@dataclass(frozen=True, slots=True)
class BareServer:
    """A bare server that serves."""

    address: str
    pid: int


def serve(socket: str, messages: str) -> None:
    """Serve on a Unix socket until the process ends; `messages` is a file of messages to replay, or empty."""
    asyncio.run(_serve(socket, _read(Path(messages)) if messages else []))


@asynccontextmanager
async def bare_server(directory: Path, messages: Sequence[bytes] = ()) -> AsyncGenerator[BareServer]:
    """Run it in a process of its own, socket and messages in `directory`."""
    socket, file = directory / "streams.sock", directory / "streams.messages"
    file.write_bytes(b"".join(len(each).to_bytes(_LENGTH_BYTES, "big") + each for each in messages))
    code = f"from benchmarks.bare_streams import serve; serve({str(socket)!r}, {str(file)!r})"
    async with python(("-c", code), log=directory / "streams.log") as process:
        server = BareServer(f"unix://{socket}", process.pid)
        async with open_channel(find_place(server.address, {})) as channel:
            await tell_all(channel, b"")
        yield server


async def tell_all(channel: grpc.aio.Channel, message: bytes) -> None:
    """Give this message to every stream."""
    call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_TELL)
    await call(message, wait_for_ready=True)


class _Streams:
    """What it does: each stream waits for the one future that all wait for, and writes the one message."""

    def __init__(self, messages: Sequence[bytes]) -> None:
        self._messages = messages
        self._message = b""
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def watch(self, request: bytes, context: Context) -> None:
        """Give the request back, so that the client knows that it is open; then each message that is told."""
        await context.write(request)
        while True:
            await self._moved  # without a shield: none is cancelled before the end
            await context.write(self._message)

    async def replay(self, _request: bytes, context: Context) -> None:
        """Give all messages there are."""
        for message in self._messages:
            await context.write(message)

    async def tell(self, request: bytes, _context: Context) -> bytes:
        """Tell this to all."""
        self._message = request
        moved, self._moved = self._moved, asyncio.get_running_loop().create_future()
        moved.set_result(None)
        return b""


async def _serve(socket: str, messages: Sequence[bytes]) -> None:
    streams = _Streams(messages)
    server = grpc.aio.server(options=rpc_server.SERVER_OPTIONS)
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        "Watch": grpc.unary_stream_rpc_method_handler(streams.watch),
        "Replay": grpc.unary_stream_rpc_method_handler(streams.replay),
        "Tell": grpc.unary_unary_rpc_method_handler(streams.tell),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(_SERVICE, handlers),))
    server.add_insecure_port(f"unix://{socket}")
    await server.start()
    await server.wait_for_termination()


def _read(file: Path) -> list[bytes]:
    content, messages = memoryview(file.read_bytes()), list[bytes]()
    while content:
        end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "big")
        messages.append(bytes(content[_LENGTH_BYTES:end]))
        content = content[end:]
    return messages
