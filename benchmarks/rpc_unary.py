"""`GetTab` against an echo of the same sizes: what the server adds to a call that only reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from tabmux.v1.tab_service_pb2 import LOAD_MILESTONE_COMMITTED, CreateTabRequest, GetTabRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.echo import echo
from benchmarks.processes import tabmuxd

GOAL: Final = 1.5
_PAGE: Final = "data:text/html,<title>Page</title>"
_METADATA: Final = (("x-tabmux-client", "python/0.1.0"),)  # the client's own
_ROUNDS: Final = 30
_CALLS: Final = 200


async def run() -> str:
    """Measure, and give the line that says what came out.

    One client calls both, one call after another. On our side it makes and reads messages, as every client does; the
    echo is bytes all the way.
    """
    async with tabmuxd() as server, server.channel() as channel:
        stub = TabServiceStub(channel)
        opened = await stub.CreateTab(CreateTabRequest(uri=_PAGE, until=LOAD_MILESTONE_COMMITTED))
        request = GetTabRequest(name=opened.tab.name)
        answer = await stub.GetTab(request)
        bare_request = request.SerializeToString()
        tell(f"GetTab: {len(bare_request)} bytes asked, {answer.ByteSize()} answered")
        async with echo(server.state_directory, answer.ByteSize()) as call:
            comparison = await alternate(
                _block(lambda: stub.GetTab(request, metadata=_METADATA)),
                _block(lambda: call(bare_request, metadata=_METADATA)),
                rounds=_ROUNDS,
                progress=tell,
            )
    return report("rpc_unary", comparison.ratio, GOAL, comparison.summary("get_tab", "echo"))


def _block(call: Callable[[], Awaitable[object]]) -> Measure:
    async def measure(_round: int) -> list[float]:
        times: list[float] = []
        for _ in range(_CALLS):
            begin = time.perf_counter()
            await call()
            times.append(time.perf_counter() - begin)
        return times

    return measure


if __name__ == "__main__":
    print(asyncio.run(run()))
