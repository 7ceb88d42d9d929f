"""A relay between a server and somebody's browser that writes down every DevTools command the server sends."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web


@dataclass(frozen=True)
class Command:
    """One command as it was sent: to a target by its session or its id, or to the browser itself (empty)."""

    method: str
    target_id: str


class Relay:
    """What passed so far; `uri` is where the server finds the browser."""

    def __init__(self, upstream: str) -> None:
        """`upstream` is the DevTools address of the browser."""
        self.uri = ""
        self.commands: list[Command] = []
        self.refused: set[str] = set()
        """Methods that are answered with an error and not passed on."""
        self.connection_count = 0
        self._upstream = upstream
        self._targets: dict[str, str] = {}
        self._open: set[web.WebSocketResponse] = set()
        self._away = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._passed = asyncio.Event()
        self._cut_at: tuple[str, bool] | None = None

    def methods_to(self, target_id: str) -> list[str]:
        """Commands that named this target, or a session of it, in order."""
        return [command.method for command in self.commands if command.target_id == target_id]

    def count(self, method: str) -> int:
        """How often a command was sent."""
        return sum(command.method == method for command in self.commands)

    async def cut(self) -> None:
        """End what is open, and take no connection until `mend`."""
        self._away = True
        for near in tuple(self._open):
            await near.close()

    @contextlib.contextmanager
    def slow(self) -> Generator[None]:
        """Keep back what the browser tells, answers too, until this ends."""
        self._flowing.clear()
        try:
            yield
        finally:
            self._flowing.set()

    async def sent(self, method: str, *, times: int = 1) -> None:
        """Return once a command was sent this often; within a limit that the caller sets."""
        while self.count(method) < times:
            self._passed.clear()
            await self._passed.wait()

    async def connected(self, *, times: int) -> None:
        """Return once this many connections were taken; within a limit that the caller sets."""
        while self.connection_count < times:
            self._passed.clear()
            await self._passed.wait()

    def cut_at(self, word: str, *, carried_out: bool) -> None:
        """Once: end the connection at the next command with this word, before it or right after it was passed on."""
        self._cut_at = (word, carried_out)

    def mend(self) -> None:
        """Take connections again."""
        self._away = False

    async def serve(self, request: web.Request) -> web.WebSocketResponse:
        """Pass everything on, both ways, until either end is gone."""
        if self._away:
            raise web.HTTPServiceUnavailable
        near = web.WebSocketResponse(max_msg_size=0)
        await near.prepare(request)
        self._open.add(near)
        self.connection_count += 1
        self._passed.set()
        async with aiohttp.ClientSession() as http, http.ws_connect(self._upstream, max_msg_size=0) as far:
            ways = [asyncio.ensure_future(self._up(near, far)), asyncio.ensure_future(self._down(far, near))]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
        self._open.discard(near)
        return near

    async def _up(self, near: web.WebSocketResponse, far: aiohttp.ClientWebSocketResponse) -> None:
        async for message in near:
            sent = json.loads(message.data)
            self._write_down(sent)
            if self._cut_at is not None and self._cut_at[0] in message.data:
                _, carried_out = self._cut_at
                self._cut_at = None
                if carried_out:
                    await far.send_str(message.data)
                await near.close()
            elif sent["method"] in self.refused:
                await near.send_json({"id": sent["id"], "error": {"code": -32000, "message": "not now"}})
            else:
                await far.send_str(message.data)

    async def _down(self, far: aiohttp.ClientWebSocketResponse, near: web.WebSocketResponse) -> None:
        async for message in far:
            told = json.loads(message.data)
            if told.get("method") == "Target.attachedToTarget":
                self._targets[told["params"]["sessionId"]] = told["params"]["targetInfo"]["targetId"]
            await self._flowing.wait()
            await near.send_str(message.data)

    def _write_down(self, sent: dict[str, Any]) -> None:
        params = sent.get("params", {})
        session = sent.get("sessionId") or params.get("sessionId", "")
        target_id = params.get("targetId") or self._targets.get(session, "")
        self.commands.append(Command(sent["method"], target_id))
        self._passed.set()


@contextlib.asynccontextmanager
async def relaying(upstream: str) -> AsyncGenerator[Relay]:
    """A relay to the browser at this DevTools address."""
    relay = Relay(upstream)
    application = web.Application()
    application.router.add_get("/{path:.*}", relay.serve)
    runner = web.AppRunner(application, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        relay.uri = f"ws://{host}:{port}/{upstream.partition('://')[2].partition('/')[2]}"
        yield relay
    finally:
        await runner.cleanup()
