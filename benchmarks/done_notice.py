"""How long after an answer was surely whole those who watch are told: the delay that the server adds to its window."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import tabmux
from tabmux.ai import Session
from tabmux.client import Client
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_service_pb2 import GetTabRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmuxd.webai.providers import descriptor

from benchmarks.bare_browser import BareBrowser
from benchmarks.comparison import percentile, report, tell
from benchmarks.processes import tabmuxd

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub  # exists for type checkers only
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub

GOAL: Final = 250.0
_PROVIDERS: Final = ("playground-textarea", "playground-editor", "playground-shadow")
_ROUNDS: Final = 20
_LIMIT_SECONDS: Final = 60.0
_MILLISECONDS: Final = 1000.0
_FIRST: Final = "Say hello. {{plain=1 seconds=0.2 think=0.1}}"
_PROMPT: Final = "Tell me about rivers. {{plain=1 seconds=1 think=0.1}}"
# Nodes and texts alone: what a press on a control of the finished answer changes is no change of the answer.
_NOTE_CHANGES: Final = """(() => {
  const root = document.querySelector("chat-app")?.shadowRoot ?? document;
  globalThis.lastChange = 0;
  new MutationObserver(() => { globalThis.lastChange = Date.now(); }).observe(
    root.querySelector(".transcript"), { subtree: true, childList: true, characterData: true });
})()"""


async def run() -> str:
    """Measure, and give the line that says what came out.

    The page itself notes when it last changed; one process hears of the end by a watch. Both read the same clock. The
    time between, less the window of the descriptor, is the delay. One turn at a time, in three kinds of page.
    """
    delays: list[float] = []
    async with (
        tabmuxd("--playground") as server,
        server.channel() as channel,
        tabmux.connect(server.address, as_="benchmark", environment={}) as client,
        _ends(WebAiServiceStub(channel)) as ends,
    ):
        sessions = [await _talk(client, provider) for provider in _PROVIDERS]
        targets = [await _target(TabServiceStub(channel), session) for session in sessions]
        with BareBrowser(server.profile) as browser:
            pages = browser.attach_all(targets)
            browser.evaluate_all(pages, _NOTE_CHANGES)
            for number in range(_ROUNDS + 1):
                taken = [
                    await _delay(browser, page, session, ends, provider)
                    for page, session, provider in zip(pages, sessions, _PROVIDERS, strict=True)
                ]
                if number:  # the first warms up
                    delays += taken
                    tell(f"round {number} of {_ROUNDS}: {percentile(taken, 50) * _MILLISECONDS:.0f} ms")
    p50, p95 = (round(percentile(delays, percent) * _MILLISECONDS, 1) for percent in (50, 95))
    more = {"p50_ms": p50, "max_ms": round(max(delays) * _MILLISECONDS, 1), "count": len(delays)}
    return report("done_notice", p95, GOAL, more, unit="ms, p95")


async def _talk(client: Client, provider: str) -> Session:
    session = await client.start_session(provider)
    await _ask(session, _FIRST)
    return session


async def _target(stub: TabServiceAsyncStub, session: Session) -> str:
    tab = (await session.get()).tab
    return str((await stub.GetTab(GetTabRequest(name=tab))).tab.target_id)


async def _ask(session: Session, prompt: str) -> Turn:
    turn = await (await session.ask(prompt)).result()
    assert turn.answer_markdown.strip()
    return turn


async def _delay(
    browser: BareBrowser, page: str, session: Session, ends: dict[str, asyncio.Future[float]], provider: str
) -> float:
    """Seconds from when the answer had been unchanged for the window until its end was told."""
    turn = await _ask(session, _PROMPT)
    async with asyncio.timeout(_LIMIT_SECONDS):
        told = await ends.setdefault(turn.name, asyncio.get_running_loop().create_future())
    (changed,) = browser.evaluate_all([page], "globalThis.lastChange")
    window = descriptor.load(provider, {"port": "1"}).windows.done_quiet
    return told - cast("float", changed) / _MILLISECONDS - window


@asynccontextmanager
async def _ends(stub: WebAiServiceAsyncStub) -> AsyncGenerator[dict[str, asyncio.Future[float]]]:
    """When a watch told of the end of each turn, by name, in seconds of the system's clock."""
    loop = asyncio.get_running_loop()
    ends: dict[str, asyncio.Future[float]] = {}
    call = stub.WatchSessions(WatchSessionsRequest())

    async def listen() -> None:
        async for reply in call:
            now = time.time()
            for event in reply.events:
                if event.turn.state == Turn.STATE_SUCCEEDED:
                    end = ends.setdefault(event.turn.name, loop.create_future())
                    if not end.done():
                        end.set_result(now)

    listening = asyncio.ensure_future(listen())
    try:
        yield ends
    finally:
        call.cancel()
        with suppress(asyncio.CancelledError):
            await listening


if __name__ == "__main__":
    print(asyncio.run(run()))
