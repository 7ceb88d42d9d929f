"""The health sweep of fifty tabs against one bare evaluation in each: what it costs to know that all of them answer."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import Final

import grpc
from tabmux.channel import open_channel
from tabmux.places import find_place
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.tab_pb2 import TabHealth
from tabmux.v1.tab_service_pb2 import CreateTabRequest, ListBrowsersRequest, ListTabsRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmuxd.app import Running, running
from tabmuxd.logs import configure
from tabmuxd.settings import BrowserSettings, Settings

from benchmarks.bare_browser import BareBrowser
from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.local_page import local_page

GOAL: Final = 1.5
_TABS: Final = 50
_AT_ONCE: Final = 10
_ROUNDS: Final = 60
_EXPRESSION: Final = "document.visibilityState"
_LOOK_SECONDS: Final = 0.05


async def run() -> str:
    """Measure, and give the line that says what came out.

    The server runs in this process, since nothing in the contract asks for a sweep: what is measured is the job as the
    schedule runs it, from the first look to the commit of what was found. Both look at the same fifty small pages.
    """
    configure("error")
    with tempfile.TemporaryDirectory(prefix="tm") as directory:
        place = Path(directory)
        executable = os.environ.get("TABMUX_CHROMIUM")
        browser = BrowserSettings(executable=Path(executable) if executable else None, max_tab_count=_TABS + 1)
        settings = Settings(
            state_directory=place,
            socket=place / "tabmuxd.sock",
            providers_directory=place / "providers",
            browsers=(browser,),
        )
        async with running(settings) as server, open_channel(find_place(f"unix://{settings.socket}", {})) as channel:
            with local_page() as uri, BareBrowser(await _profile(channel, place)) as bare:
                targets = await _open(channel, uri)
                sessions = bare.attach_all(targets)
                comparison = await alternate(_sweep(server), _round(bare, sessions), rounds=_ROUNDS, progress=tell)
                await _all_alive(channel)
    return report("sweep", comparison.ratio, GOAL, {"tabs": _TABS, **comparison.summary("sweep", "bare")})


async def _profile(channel: grpc.aio.Channel, state_directory: Path) -> Path:
    """Profile directory of the server's browser, once that is connected."""
    stub = TabServiceStub(channel)
    while True:
        reply = await stub.ListBrowsers(ListBrowsersRequest(), wait_for_ready=True)
        if all(browser.state == Browser.STATE_ACTIVE for browser in reply.browsers):
            return state_directory / "browsers" / "main"
        await asyncio.sleep(_LOOK_SECONDS)


async def _open(channel: grpc.aio.Channel, uri: str) -> list[str]:
    """Target ids of the tabs that were opened."""
    stub = TabServiceStub(channel)
    targets: list[str] = []
    while len(targets) < _TABS:
        opened = await asyncio.gather(*(stub.CreateTab(CreateTabRequest(uri=uri)) for _ in range(_AT_ONCE)))
        targets += [answer.tab.target_id for answer in opened]
    tell(f"{len(targets)} tabs opened")
    return targets


async def _all_alive(channel: grpc.aio.Channel) -> None:
    listed = await TabServiceStub(channel).ListTabs(ListTabsRequest(page_size=500))
    assert [tab.health.status for tab in listed.tabs] == [TabHealth.STATUS_ALIVE] * _TABS


def _sweep(server: Running) -> Measure:
    async def measure(_round: int) -> list[float]:
        begin = time.perf_counter()
        await server.tabs.recovery.sweep()
        return [time.perf_counter() - begin]

    return measure


def _round(bare: BareBrowser, sessions: list[str]) -> Measure:
    def measure() -> list[float]:
        begin = time.perf_counter()
        values = bare.evaluate_all(sessions, _EXPRESSION)
        seconds = time.perf_counter() - begin
        assert values == ["visible"] * _TABS
        return [seconds]

    async def measure_beside_the_loop(_round: int) -> list[float]:
        return await asyncio.to_thread(measure)

    return measure_beside_the_loop


if __name__ == "__main__":
    print(asyncio.run(run()))
