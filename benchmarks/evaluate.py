"""`EvaluateScript` against raw `Runtime.evaluate` in the same page."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tabmux.v1.tab_service_pb2 import CreateTabRequest, EvaluateScriptRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from benchmarks.bare_browser import BareBrowser
from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.local_page import local_page
from benchmarks.processes import tabmuxd

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub  # exists for type checkers only

GOAL: Final = 2.5
_ROUNDS: Final = 40
_CALLS: Final = 25
_NUMBER: Final = "6 * 7"
_OBJECT: Final = "({title: document.title, links: [1, 2, 3]})"


async def run() -> str:
    """Measure, and give the line that says what came out.

    One script after another, of a number; `of_object` is the ratio for an object, which we read in a second command.
    """
    async with tabmuxd() as server, server.channel() as channel:
        stub: TabServiceAsyncStub = TabServiceStub(channel)
        with local_page() as uri, BareBrowser(server.profile) as browser:
            tab = (await stub.CreateTab(CreateTabRequest(uri=uri))).tab
            (session_id,) = browser.attach_all([tab.target_id])
            number = await alternate(
                _ours(stub, tab.name, _NUMBER), _bare(browser, session_id, _NUMBER), rounds=_ROUNDS, progress=tell
            )
            object_ = await alternate(
                _ours(stub, tab.name, _OBJECT), _bare(browser, session_id, _OBJECT), rounds=_ROUNDS, progress=tell
            )
    more = {**number.summary("evaluate_script", "bare"), "of_object": round(object_.ratio, 3)}
    return report("evaluate", number.ratio, GOAL, more)


def _ours(stub: TabServiceAsyncStub, tab: str, script: str) -> Measure:
    async def measure(_round: int) -> list[float]:
        times: list[float] = []
        for _ in range(_CALLS):
            begin = time.perf_counter()
            answer = await stub.EvaluateScript(EvaluateScriptRequest(name=tab, script=script))
            times.append(time.perf_counter() - begin)
            assert answer.result_json
        return times

    return measure


def _bare(browser: BareBrowser, session_id: str, script: str) -> Measure:
    params: dict[str, object] = {"expression": script, "returnByValue": True}

    def measure() -> list[float]:
        times: list[float] = []
        for _ in range(_CALLS):
            begin = time.perf_counter()
            (reply,) = browser.call_in_turn(session_id, [("Runtime.evaluate", params)])
            times.append(time.perf_counter() - begin)
            assert "value" in reply["result"]
        return times

    async def measure_beside_the_loop(_round: int) -> list[float]:
        return await asyncio.to_thread(measure)

    return measure_beside_the_loop


if __name__ == "__main__":
    print(asyncio.run(run()))
