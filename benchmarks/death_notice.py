"""How long after Chrome has told that a tab is gone those who watch are told: the delay that the server adds."""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import aiohttp
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import CloseTabRequest, CreateTabRequest, WatchTabsRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from benchmarks.bare_browser import browser_uri
from benchmarks.comparison import percentile, report, tell
from benchmarks.local_page import local_page
from benchmarks.processes import tabmuxd

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
    from Chrome itself, on the bare connection that closed it, and by the event of a watch.
    """
    delays: list[float] = []
    async with tabmuxd() as server, server.channel() as channel:
        stub: TabServiceAsyncStub = TabServiceStub(channel)
        with local_page() as uri:
            async with _lost_tabs(stub) as lost, _other_client(server.profile) as other:
                for number in range(_ROUNDS + 1):
                    taken = await _round(stub, uri, other, lost)
                    if number:  # the first warms up
                        delays += taken
                        tell(f"round {number} of {_ROUNDS}: {percentile(taken, 50) * _MILLISECONDS:.2f} ms")
    p50, p95, p99 = (round(percentile(delays, percent) * _MILLISECONDS, 3) for percent in (50, 95, 99))
    more = {"p50_ms": p50, "p95_ms": p95, "max_ms": round(max(delays) * _MILLISECONDS, 3), "count": len(delays)}
    return report("death_notice", p99, GOAL, more, unit="ms, p99")


async def _round(stub: TabServiceAsyncStub, uri: str, other: OtherClient, lost: Arrivals) -> list[float]:
    opened = await asyncio.gather(*(stub.CreateTab(CreateTabRequest(uri=uri)) for _ in range(_TABS)))
    delays: list[float] = []
    for answer in opened:
        await asyncio.sleep(_SETTLE_SECONDS)  # titles come a moment after the pages, renderers end after their tabs
        await other.close(answer.tab.target_id)
        delays.append(await lost.of(answer.tab.name) - await other.destroyed.of(answer.tab.target_id))
    for answer in opened:
        await stub.CloseTab(CloseTabRequest(name=answer.tab.name))
    return delays


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
async def _beside(work: Coroutine[object, object, None]) -> AsyncGenerator[None]:
    task = asyncio.ensure_future(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


if __name__ == "__main__":
    print(asyncio.run(run()))
