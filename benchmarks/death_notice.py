"""How long after Chrome has told that a tab is gone those who watch are told: the delay that the server adds."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiohttp
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import CloseTabRequest, CreateTabRequest, WatchTabsRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from benchmarks.bare_browser import browser_uri
from benchmarks.comparison import percentile, report, tell
from benchmarks.local_page import local_page
from benchmarks.processes import Server, python, tabmuxd

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub  # exists for type checkers only

GOAL: Final = 5.0
_TABS: Final = 10
_ROUNDS: Final = 25
_LIMIT_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 0.05
_MILLISECONDS: Final = 1000.0


class Arrivals:
    """When something was first heard of each resource, by name, in seconds of the performance counter."""

    def __init__(self) -> None:
        self._arrivals: defaultdict[str, asyncio.Future[float]] = defaultdict(asyncio.get_running_loop().create_future)

    def note(self, name: str) -> None:
        """It is heard of now."""
        if not self._arrivals[name].done():
            self._arrivals[name].set_result(time.perf_counter())

    async def of(self, name: str) -> float:
        """When it was heard of; waits for that."""
        async with asyncio.timeout(_LIMIT_SECONDS):
            return await self._arrivals[name]


async def run() -> str:
    """Measure, and give the line that says what came out.

    Each tab is closed by another client of the browser, one after another. In this process one loop hears of it twice:
    from Chrome itself, on the bare connection that closed it, and by the event of a watch. `relay`: what a process adds
    that does nothing but pass on what its own bare connection hears, which is the least that any server adds here.
    """
    delays: list[float] = []
    floor: list[float] = []
    async with tabmuxd() as server, server.channel() as channel:
        stub: TabServiceAsyncStub = TabServiceStub(channel)
        with local_page() as uri:
            async with (
                _lost_tabs(stub) as lost,
                _other_client(server.profile) as other,
                _relayed(server) as relayed,
            ):
                heard = _Heard(lost, other, relayed)
                for number in range(_ROUNDS + 1):
                    taken, least = await _round(stub, uri, heard)
                    if number:  # the first warms up
                        delays += taken
                        floor += least
                        tell(f"round {number} of {_ROUNDS}: {percentile(taken, 50) * _MILLISECONDS:.2f} ms")
    shown = _percentiles(delays)
    relay = {f"relay_{name}": value for name, value in _percentiles(floor).items()}
    more = {**shown, **relay, "max_ms": round(max(delays) * _MILLISECONDS, 3), "count": len(delays)}
    return report("death_notice", shown["p99_ms"], GOAL, more, unit="ms, p99")


def _percentiles(seconds: list[float]) -> dict[str, float]:
    return {f"p{percent}_ms": round(percentile(seconds, percent) * _MILLISECONDS, 3) for percent in (50, 95, 99)}


@dataclass(frozen=True, slots=True)
class _Heard:
    """Who hears that a tab is gone: a watch, a bare connection, and one in another process that passes it on."""

    lost: Arrivals
    other: OtherClient
    relayed: Arrivals


async def _round(stub: TabServiceAsyncStub, uri: str, heard: _Heard) -> tuple[list[float], list[float]]:
    """Delays of the watch, and of the relay, behind the bare connection."""
    opened = await asyncio.gather(*(stub.CreateTab(CreateTabRequest(uri=uri)) for _ in range(_TABS)))
    delays: list[float] = []
    floor: list[float] = []
    for answer in opened:
        await asyncio.sleep(_SETTLE_SECONDS)  # titles come a moment after the pages, renderers end after their tabs
        target = answer.tab.target_id
        await heard.other.close(target)
        destroyed = await heard.other.destroyed.of(target)
        delays.append(await heard.lost.of(answer.tab.name) - destroyed)
        floor.append(await heard.relayed.of(target) - destroyed)
    for answer in opened:
        await stub.CloseTab(CloseTabRequest(name=answer.tab.name))
    return delays, floor


@asynccontextmanager
async def _lost_tabs(stub: TabServiceAsyncStub) -> AsyncGenerator[Arrivals]:
    """What a watch tells of tabs that are LOST."""
    lost = Arrivals()
    call = stub.WatchTabs(WatchTabsRequest())

    async def listen() -> None:
        async for reply in call:
            for event in reply.events:
                if event.tab.state == Tab.STATE_LOST:
                    lost.note(event.tab.name)

    async with _beside(listen()):
        yield lost
        call.cancel()


class OtherClient:
    """A bare DevTools connection to the browser: closes tabs, and hears which targets are gone."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.destroyed = Arrivals()
        self._socket = socket

    async def close(self, target_id: str) -> None:
        """Order the close of a tab; nothing is waited for."""
        await self._send("Target.closeTarget", {"targetId": target_id})

    async def listen(self) -> None:
        """Hear what becomes of the pages until the connection ends."""
        await self._send("Target.setDiscoverTargets", {"discover": True, "filter": [{"type": "page"}]})
        async for message in self._socket:
            told = json.loads(message.data)
            if told.get("method") == "Target.targetDestroyed":
                self.destroyed.note(told["params"]["targetId"])

    async def _send(self, method: str, params: dict[str, object]) -> None:
        await self._socket.send_json({"id": 1, "method": method, "params": params})


@asynccontextmanager
async def _other_client(profile: Path) -> AsyncGenerator[OtherClient]:
    async with aiohttp.ClientSession() as http, http.ws_connect(browser_uri(profile), max_msg_size=0) as socket:
        other = OtherClient(socket)
        async with _beside(other.listen()):
            yield other


@asynccontextmanager
async def _relayed(server: Server) -> AsyncGenerator[Arrivals]:
    """What another process passes on of the targets that are gone."""
    relayed = Arrivals()
    path = server.state_directory / "relay.sock"

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            relayed.note(line.decode().strip())
        writer.close()

    listening = await asyncio.start_unix_server(listen, path)
    arguments = ("-m", "benchmarks.passing_on", browser_uri(server.profile), str(path))
    async with listening, python(arguments, log=server.state_directory / "relay.log"):
        yield relayed


@asynccontextmanager
async def _beside(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


if __name__ == "__main__":
    print(asyncio.run(run()))
