"""A hundred thousand stored events replayed to one watcher, against a bare stream of ready-made messages."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import grpc
from tabmux.channel import open_channel
from tabmux.places import find_place
from tabmux.v1.event_pb2 import WatchProgress, WatchStart
from tabmux.v1.tab_service_pb2 import ListTabsRequest, WatchTabsRequest, WatchTabsResponse
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmuxd.clock import steady_clock
from tabmuxd.events import Changes, Log
from tabmuxd.events.watch import LIMITS
from tabmuxd.resources.browser import Browser, BrowserState, Ownership
from tabmuxd.resources.tab import Tab, TabOrigin, TabState

from benchmarks.bare_streams import REPLAY, bare_server
from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.processes import tabmuxd
from benchmarks.watchers import WATCH_TABS

GOAL: Final = 0.3
_EVENTS: Final = 100_000
_TABS: Final = 100
_ROUNDS: Final = 20
_BROWSER: Final = "browsers/main"
_NOW: Final = datetime.now(UTC)


async def run() -> str:
    """Measure, and give the line that says what came out.

    The server was started after the events were recorded, so that it reads all of them from its store. Each round
    begins one event further on than the round before: no reply is one that was made before. The bare server has in
    memory the very replies that ours gave first. One client reads both, and leaves the messages as bytes.
    """
    async with (
        tabmuxd(prepare=_record) as server,
        open_channel(find_place(server.address, {}), for_watch=True) as channel,
    ):
        progress = (await TabServiceStub(channel).ListTabs(ListTabsRequest())).progress
        messages = await _ours(channel, progress, 0)
        tell(f"{len(messages)} replies, {sum(map(len, messages))} bytes")
        async with (
            bare_server(server.state_directory, messages) as bare,
            open_channel(find_place(bare.address, {}), for_watch=True) as bare_channel,
        ):
            comparison = await alternate(
                _timed(lambda number: _ours(channel, progress, number + 1)),
                _timed(lambda _: _read(bare_channel, REPLAY, b"", len(messages))),
                rounds=_ROUNDS,
                progress=tell,
            )
    more = {"events": _EVENTS, **comparison.summary("replay", "bare")}
    return report("resume", 1 / comparison.ratio, GOAL, more, better="higher")


async def _ours(channel: grpc.aio.Channel, head: WatchProgress, skipped: int) -> list[bytes]:
    """Every reply of a watch that resumes so many events behind the first, up to `head`."""
    place = WatchProgress(history_id=head.history_id, revision=head.revision - _EVENTS + skipped)
    request = WatchTabsRequest(start=WatchStart(resume=place))
    count = 1 + -(-(_EVENTS - skipped) // LIMITS.event_count)
    messages = await _read(channel, WATCH_TABS, request.SerializeToString(), count)
    assert WatchTabsResponse.FromString(messages[-1]).progress == head
    return messages


async def _read(channel: grpc.aio.Channel, method: str, request: bytes, count: int) -> list[bytes]:
    """The first messages of a stream, so many of them."""
    open_stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(method)
    call = open_stream(request)
    messages: list[bytes] = []
    async for message in call:
        messages.append(message)
        if len(messages) == count:
            break
    call.cancel()
    return messages


def _timed(replay: Callable[[int], Awaitable[object]]) -> Measure:
    async def measure(number: int) -> list[float]:
        begin = time.perf_counter()
        await replay(number)
        return [time.perf_counter() - begin]

    return measure


async def _record(directory: Path) -> None:
    """Record the events: of tabs that open, change, and close, so that nothing is left to look after."""
    begin = time.perf_counter()
    async with Log(directory / "tabmuxd.sqlite3", clock=steady_clock()) as log:
        await log.change(lambda changes: changes.record(Browser(_BROWSER, BrowserState.ACTIVE, Ownership.LAUNCHED)))
        for count in range(_EVENTS // _TABS):
            state = TabState.CLOSED if count == _EVENTS // _TABS - 1 else TabState.READY
            await log.change(lambda changes: _change_all(changes, f"Page {count}", state))  # noqa: B023 - waited for
    tell(f"{_EVENTS} events recorded in {time.perf_counter() - begin:.1f} s")


def _change_all(changes: Changes, title: str, state: TabState) -> None:
    for number in range(_TABS):
        name = f"{_BROWSER}/tabs/{number:010d}"
        tab = changes.tab(name) or Tab(name, state, TabOrigin.MANAGED, "local/benchmark", _NOW, _NOW)
        changes.record(replace(tab, title=title, state=state))


if __name__ == "__main__":
    print(asyncio.run(run()))
