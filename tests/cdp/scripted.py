"""A scripted DevTools endpoint: a real socket on loopback that records what it gets and says what a test tells it."""

import asyncio
import base64
import contextlib
import hashlib
import json
import socket
import struct
from collections.abc import AsyncGenerator
from typing import Any

_TEXT, _CLOSE, _PING, _PONG = 1, 8, 9, 10
_KEY_SUFFIX = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455, 1.3


class Peer:
    """The far end of one connection; `handshake` and `messages` hold what arrived, `pings` how many."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handshake: bytes) -> None:
        self.handshake = handshake
        self.messages: list[dict[str, Any]] = []
        self.pongs: list[bytes] = []
        self.pings = 0
        self.silent = False
        self._reader = reader
        self._writer = writer
        self._arrived = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def call(self, method: str) -> dict[str, Any]:
        """The first call of this method, now or as soon as it arrives."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: any(message["method"] == method for message in self.messages))
        return next(message for message in self.messages if message["method"] == method)

    async def calls(self, count: int) -> list[dict[str, Any]]:
        """All calls, as soon as there are this many."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.messages) >= count)
        return list(self.messages)

    async def pinged(self, count: int) -> None:
        """Wait for this many pings."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.pings >= count)

    async def ponged(self) -> list[bytes]:
        """The pongs, as soon as there is one."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: self.pongs)
        return self.pongs

    def reply(self, call: dict[str, Any], result: dict[str, Any] | None = None) -> None:
        """Answer a call."""
        self.say({"id": call["id"], "result": result or {}})

    def event(self, method: str, params: dict[str, Any] | None = None, session_id: str = "") -> None:
        """Tell of an event."""
        self.say({"method": method, "params": params or {}} | ({"sessionId": session_id} if session_id else {}))

    def attached(self, session_id: str, target_id: str, parent_id: str = "") -> None:
        """Tell of a new session."""
        info = {"targetId": target_id, "type": "page"}
        self.event("Target.attachedToTarget", {"sessionId": session_id, "targetInfo": info}, parent_id)

    def detached(self, session_id: str) -> None:
        """Tell of the end of a session."""
        self.event("Target.detachedFromTarget", {"sessionId": session_id})

    def say(self, message: object) -> None:
        """Send a message."""
        self.frame(json.dumps(message).encode())

    def frame(self, data: bytes, opcode: int = _TEXT, *, last: bool = True) -> None:
        """Send one frame."""
        head = bytes([opcode | (0x80 if last else 0)])
        if len(data) < 126:
            head += bytes([len(data)])
        elif len(data) < 65536:
            head += b"\x7e" + struct.pack("!H", len(data))
        else:
            head += b"\x7f" + struct.pack("!Q", len(data))
        self.octets(head + data)

    def octets(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._writer.write(data)

    def ping(self, data: bytes) -> None:
        """Send a ping."""
        self.frame(data, _PING)

    def goodbye(self, code: int) -> None:
        """Send a close frame, and leave the socket open."""
        self.frame(struct.pack("!H", code), _CLOSE)

    def end(self) -> None:
        """Close the socket without a word."""
        self._writer.close()

    def reset(self) -> None:
        """Reset the socket."""
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def deaf(self) -> None:
        """Read no more."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)

    def hear(self) -> None:
        """Read again."""
        self._reading = asyncio.create_task(self._read())

    async def leave(self) -> None:
        """End everything of this end."""
        await self.deaf()
        self._writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                first, second = await self._reader.readexactly(2)
                length = second & 0x7F
                if length == 126:
                    (length,) = struct.unpack("!H", await self._reader.readexactly(2))
                elif length == 127:
                    (length,) = struct.unpack("!Q", await self._reader.readexactly(8))
                mask = await self._reader.readexactly(4)
                data = unmasked(await self._reader.readexactly(length), mask)
                async with self._arrived:
                    self._take(first & 0x0F, data)
                    self._arrived.notify_all()

    def _take(self, opcode: int, data: bytes) -> None:
        match opcode:
            case 1:
                self.messages.append(json.loads(data))
            case 9:
                self.pings += 1
                if not self.silent:
                    self.frame(data, _PONG)
            case 10:
                self.pongs.append(data)
            case _:
                pass


class ScriptedEndpoint:
    """Where connections are accepted; each gives a `Peer`."""

    def __init__(self) -> None:
        self.uri = ""
        self._peers: asyncio.Queue[Peer] = asyncio.Queue()
        self._all: list[Peer] = []

    async def peer(self) -> Peer:
        """The next connection."""
        return await self._peers.get()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handshake = await reader.readuntil(b"\r\n\r\n")
        key = next(line for line in handshake.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key:")).split(b": ")[1]
        accepted = base64.b64encode(hashlib.sha1(key + _KEY_SUFFIX, usedforsecurity=False).digest())
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
        writer.write(b"Sec-WebSocket-Accept: " + accepted + b"\r\n\r\n")
        peer = Peer(reader, writer, handshake)
        self._all.append(peer)
        await self._peers.put(peer)

    async def leave(self) -> None:
        for peer in self._all:
            await peer.leave()


@contextlib.asynccontextmanager
async def scripted_endpoint() -> AsyncGenerator[ScriptedEndpoint, None]:
    """An endpoint on a free port of loopback."""
    endpoint = ScriptedEndpoint()
    server = await asyncio.start_server(endpoint.accept, "127.0.0.1", 0)
    endpoint.uri = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/devtools/browser/scripted"
    try:
        yield endpoint
    finally:
        server.close()
        await endpoint.leave()
        await server.wait_closed()


def unmasked(data: bytes, mask: bytes) -> bytes:
    """What the bytes were before they were masked."""
    size = len(data)
    repeated = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(data) ^ int.from_bytes(repeated)).to_bytes(size)
