"""`SendPrompt` until the send button is pressed, against the raw DevTools commands that type and press."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final

import tabmux
from tabmux.ai import Session
from tabmux.v1.tab_service_pb2 import GetTabRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from benchmarks.bare_browser import BareBrowser
from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.processes import Server, tabmuxd

GOAL: Final = 1.5
_PROVIDER: Final = "playground-textarea"
_ROUNDS: Final = 60
_PROMPT: Final = "Tell me about rivers. " * 48 + "{{plain=1 seconds=0.1 think=0.05 characters=40}}"
_FIRST: Final = "Say hello. {{plain=1 seconds=0.1 think=0.05}}"
_LISTEN: Final = """
document.querySelector("#prompt").focus();
addEventListener("click", (event) => {
  if (event.target.closest('[data-testid="send-button"]')) {
    globalThis.pressedAt = performance.timeOrigin + performance.now();
  }
}, true);
"""
_READ: Final = """document.querySelector("#prompt").value"""
_PRESS: Final = """document.querySelector('[data-testid="send-button"]').click()"""
_PRESSED_AT: Final = "globalThis.pressedAt"
_ANSWERED: Final = """
new Promise((done) => {
  const look = () => document.querySelector('[data-testid="send-button"]') ? done(true) : setTimeout(look, 20);
  setTimeout(look, 100);
})
"""


async def run(rounds: int = _ROUNDS) -> str:
    """Measure, and give the line that says what came out.

    In a session that has its tab, one prompt after another, both ways into the same page: with us from the moment at
    which the client has the turn until the page has the click, else from the first command on. The page tells the time
    of each click itself. Answers are waited for outside the measured time.
    """
    async with (
        tabmuxd("--playground") as server,
        tabmux.connect(server.address, as_="benchmark", environment={}) as client,
    ):
        session = await client.start_session(_PROVIDER)
        await (await session.ask(_FIRST)).result()
        with BareBrowser(server.profile) as browser:
            (page,) = browser.attach_all([await _target(server, session)])
            browser.evaluate_all([page], _LISTEN)
            comparison = await alternate(
                _ours(session, browser, page), _bare(browser, page), rounds=rounds, progress=tell
            )
    more = {"prompt_characters": len(_PROMPT), **comparison.summary("send_prompt", "bare")}
    return report("send_latency", comparison.ratio, GOAL, more)


async def _target(server: Server, session: Session) -> str:
    async with server.channel() as channel:
        tab = (await TabServiceStub(channel).GetTab(GetTabRequest(name=(await session.get()).tab))).tab
        return str(tab.target_id)


def _ours(session: Session, browser: BareBrowser, page: str) -> Measure:
    async def measure(_round: int) -> list[float]:
        answer = await session.ask(_PROMPT)
        accepted = time.time()
        await answer.result()
        return [await asyncio.to_thread(_pressed_at, browser, page) - accepted]

    return measure


def _bare(browser: BareBrowser, page: str) -> Measure:
    def measure() -> list[float]:
        begin = time.time()
        _, read, _ = browser.call_in_turn(
            page,
            (
                ("Input.insertText", {"text": _PROMPT}),
                ("Runtime.evaluate", {"expression": _READ, "returnByValue": True}),
                ("Runtime.evaluate", {"expression": _PRESS}),
            ),
        )
        seconds = _pressed_at(browser, page) - begin
        assert read["result"]["value"] == _PROMPT
        browser.call_in_turn(page, [("Runtime.evaluate", {"expression": _ANSWERED, "awaitPromise": True})])
        return [seconds]

    async def measure_beside_the_loop(_round: int) -> list[float]:
        return await asyncio.to_thread(measure)

    return measure_beside_the_loop


def _pressed_at(browser: BareBrowser, page: str) -> float:
    (milliseconds,) = browser.evaluate_all([page], _PRESSED_AT)
    assert isinstance(milliseconds, int | float)
    return milliseconds / 1000


if __name__ == "__main__":
    print(asyncio.run(run(*map(int, sys.argv[1:]))))
