"""Eight `CreateTab` at once against the raw DevTools commands for eight: whether tabs wait for each other to open."""

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
_TABS: Final = 8
_ROUNDS: Final = 30
_SETTLE_SECONDS: Final = 0.5


async def run() -> str:
    """Measure, and give the line that says what came out.

    From the first command sent to the last of the eight documents committed, both ways in the same browser and the same
    place (in the background, made to paint there). Outside the measured time they are closed, and a moment left for
    Chrome to end its renderers.
    """
    async with tabmuxd() as server, server.channel() as channel:
        stub: TabServiceAsyncStub = TabServiceStub(channel)
        with local_page() as uri, BareBrowser(server.profile) as browser:
            # One tab stays, as with everybody: else each way would open and close a window too.
            await stub.CreateTab(CreateTabRequest(uri=uri))
            comparison = await alternate(_ours(stub, uri), _bare(browser, uri), rounds=_ROUNDS, progress=tell)
    return report("open_8_parallel", comparison.ratio, GOAL, comparison.summary("create_tabs", "bare"))


def _ours(stub: TabServiceAsyncStub, uri: str) -> Measure:
    async def measure(_round: int) -> list[float]:
        begin = time.perf_counter()
        order = CreateTabRequest(uri=uri, until=LOAD_MILESTONE_COMMITTED)
        opened = await asyncio.gather(*(stub.CreateTab(order) for _ in range(_TABS)))
        seconds = time.perf_counter() - begin
        assert all(each.navigation.reached >= LOAD_MILESTONE_COMMITTED for each in opened)
        await asyncio.gather(*(stub.CloseTab(CloseTabRequest(name=each.tab.name)) for each in opened))
        await asyncio.sleep(_SETTLE_SECONDS)
        return [seconds]

    return measure


def _bare(browser: BareBrowser, uri: str) -> Measure:
    def measure() -> list[float]:
        begin = time.perf_counter()
        target_ids = browser.open_tabs([uri] * _TABS, painting=True)
        seconds = time.perf_counter() - begin
        for target_id in target_ids:
            browser.close_tab(target_id)
        time.sleep(_SETTLE_SECONDS)
        return [seconds]

    async def measure_beside_the_loop(_round: int) -> list[float]:
        return await asyncio.to_thread(measure)

    return measure_beside_the_loop


if __name__ == "__main__":
    print(asyncio.run(run()))
