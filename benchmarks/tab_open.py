"""`CreateTab` against the raw DevTools commands for the same: what a guarded tab costs to open."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tabmux.v1.tab_service_pb2 import LOAD_MILESTONE_COMMITTED, CloseTabRequest, CreateTabRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from benchmarks.bare_browser import BareBrowser
from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.local_page import local_page
from benchmarks.processes import tabmuxd

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub  # exists for type checkers only

GOAL: Final = 1.25
_ROUNDS: Final = 100
_HIDDEN_ROUNDS: Final = 40
_SETTLE_SECONDS: Final = 0.1


async def run() -> str:
    """Measure, and give the line that says what came out.

    One tab at a time, both ways in the same browser and the same place (in the background, made to paint there), until
    its document is committed. Outside the measured time it is closed, and a moment left for Chrome to end its renderer.
    `over_hidden` is the ratio over bare tabs that are left hidden, and hardly run.
    """
    async with tabmuxd() as server, server.channel() as channel:
        stub: TabServiceAsyncStub = TabServiceStub(channel)
        with local_page() as uri, BareBrowser(server.profile) as browser:
            # One tab stays, as with everybody: else each way would open and close a window too.
            await stub.CreateTab(CreateTabRequest(uri=uri))
            ours = _ours(stub, uri)
            comparison = await alternate(ours, _bare(browser, uri, painting=True), rounds=_ROUNDS, progress=tell)
            hidden = await alternate(ours, _bare(browser, uri, painting=False), rounds=_HIDDEN_ROUNDS, progress=tell)
    more = {**comparison.summary("create_tab", "bare"), "over_hidden": round(hidden.ratio, 3)}
    return report("tab_open", comparison.ratio, GOAL, more)


def _ours(stub: TabServiceAsyncStub, uri: str) -> Measure:
    async def measure(_round: int) -> list[float]:
        begin = time.perf_counter()
        opened = await stub.CreateTab(CreateTabRequest(uri=uri, until=LOAD_MILESTONE_COMMITTED))
        seconds = time.perf_counter() - begin
        assert opened.navigation.reached >= LOAD_MILESTONE_COMMITTED
        await stub.CloseTab(CloseTabRequest(name=opened.tab.name))
        await asyncio.sleep(_SETTLE_SECONDS)
        return [seconds]

    return measure


def _bare(browser: BareBrowser, uri: str, *, painting: bool) -> Measure:
    def measure() -> list[float]:
        begin = time.perf_counter()
        (target_id,) = browser.open_tabs([uri], painting=painting)
        seconds = time.perf_counter() - begin
        browser.close_tab(target_id)
        time.sleep(_SETTLE_SECONDS)
        return [seconds]

    async def measure_beside_the_loop(_round: int) -> list[float]:
        return await asyncio.to_thread(measure)

    return measure_beside_the_loop


if __name__ == "__main__":
    print(asyncio.run(run()))
