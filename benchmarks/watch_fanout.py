"""One event to a thousand watchers, against a bare server that gives the same bytes to as many streams."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import TYPE_CHECKING, Final

from tabmux.channel import open_channel
from tabmux.places import find_place
from tabmux.v1.web_ai_service_pb2 import CreateSessionRequest, WatchSessionsRequest
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub

from benchmarks.bare_streams import WATCH, bare_server, tell_all
from benchmarks.comparison import Comparison, Measure, alternate, percentile, report, tell
from benchmarks.processes import tabmuxd
from benchmarks.watchers import QUIET, Watchers, watchers

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only

GOAL: Final = 1.1
_WATCHERS: Final = 1000
_CONNECTIONS: Final = 10
_ROUNDS: Final = 100
_WATCH_SESSIONS: Final = "/tabmux.v1.WebAiService/WatchSessions"
_SETTINGS: Final = f"max_watch_count = {2 * _WATCHERS}\nmax_principal_watch_count = {2 * _WATCHERS}\n"


async def run() -> str:
    """Measure, and give the line that says what came out.

    From the call that makes the change until each watcher has its bytes; on our side that is `CreateSession`, with its
    transaction: nothing but this benchmark changes sessions, while a tab is looked at by the server too. All streams
    are read by this process. p50 and p99 are those of the watchers of one event; their medians over all events are
    compared, and the worse of the two ratios counts.
    """
    # Sessions need a provider; nothing is asked of it.
    async with tabmuxd("--playground-port", "9", settings=_SETTINGS) as server, server.channel() as channel:
        stub: WebAiServiceAsyncStub = WebAiServiceStub(channel)

        async def change() -> None:
            await stub.CreateSession(CreateSessionRequest(provider="playground-textarea"))

        request = WatchSessionsRequest(bookmark_interval=QUIET).SerializeToString()
        size = {"count": _WATCHERS, "connections": _CONNECTIONS}
        async with (
            watchers(server.address, _WATCH_SESSIONS, request, **size) as ours,
            bare_server(server.state_directory) as bare,
            watchers(bare.address, WATCH, bytes(60), **size) as theirs,
            open_channel(find_place(bare.address, {})) as bare_channel,
        ):
            await change()
            await ours.arrivals()
            message = ours.last_message
            tell(f"{len(message)} bytes to each of {_WATCHERS} watchers")
            comparison = await alternate(
                _event(ours, change),
                _event(theirs, lambda: tell_all(bare_channel, message)),
                rounds=_ROUNDS,
                progress=tell,
            )
    p50, p99 = _ratio(comparison, 50), _ratio(comparison, 99)
    more = {"p50_ratio": round(p50, 3), "p99_ratio": round(p99, 3), **comparison.summary("watches", "bare")}
    return report("watch_fanout", max(p50, p99), GOAL, more)


def _event(watching: Watchers, send: Callable[[], Awaitable[None]]) -> Measure:
    async def measure(_round: int) -> list[float]:
        begin = time.perf_counter()
        await send()
        return [arrival - begin for arrival in await watching.arrivals(begin)]

    return measure


def _ratio(comparison: Comparison, percent: float) -> float:
    measured, against = (
        median(percentile(times, percent) for times in rounds) for rounds in (comparison.measured, comparison.against)
    )
    return measured / against


if __name__ == "__main__":
    print(asyncio.run(run()))
