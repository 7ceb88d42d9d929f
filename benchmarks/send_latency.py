"""`SendPrompt` until the send button is pressed, against the raw DevTools commands that type and press."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Final, cast

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
    globalThis.pressedAt = performance.now();
  }
}, true);
"""
_READ: Final = """
new Promise((done) => {
  const look = () => {
    const send = document.querySelector('[data-testid="send-button"]');
    if (send && !send.disabled) done(document.querySelector("#prompt").value);
    else requestAnimationFrame(look);
  };
  look();
})
"""
_PRESS: Final = """document.querySelector('[data-testid="send-button"]').click()"""
_PRESSED_AT: Final = "[globalThis.pressedAt, performance.now()]"
_LOOKS: Final = 5
_ANSWERS: Final = """document.querySelectorAll('[data-testid="copy-turn-action-button"]').length"""
_ANSWERED: Final = """
new Promise((done) => {
  const look = () => (%s > %d ? done(true) : setTimeout(look, 20));
  look();
})
"""
_PAUSE_SECONDS: Final = 0.3


async def run(rounds: int = _ROUNDS) -> str:
    """Measure, and give the line that says what came out.

    In a session that has its tab, one prompt after another, both ways into the same page: with us from the moment at
    which the client has the turn until the page has the click, else from the first command on. The page tells the time
    of each click itself, by a clock that is compared with our own after each round: neither is set meanwhile, as that
    of the system may be. Answers are waited for outside the measured time.
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
        accepted = time.perf_counter()
        await answer.result()
        return [await asyncio.to_thread(_pressed_at, browser, page) - accepted]

    return measure


def _bare(browser: BareBrowser, page: str) -> Measure:
    def measure() -> list[float]:
        (count,) = browser.evaluate_all([page], _ANSWERS)
        begin = time.perf_counter()
        _, read, _ = browser.call_in_turn(
            page,
            (
                ("Input.insertText", {"text": _PROMPT}),
                ("Runtime.evaluate", {"expression": _READ, "returnByValue": True, "awaitPromise": True}),
                ("Runtime.evaluate", {"expression": _PRESS}),
            ),
        )
        seconds = _pressed_at(browser, page) - begin
        assert (read["result"]["value"], seconds > 0) == (_PROMPT, True)
        answered = _ANSWERED % (_ANSWERS, count)
        browser.call_in_turn(page, [("Runtime.evaluate", {"expression": answered, "awaitPromise": True})])
        time.sleep(_PAUSE_SECONDS)
        return [seconds]

    async def measure_beside_the_loop(_round: int) -> list[float]:
        return await asyncio.to_thread(measure)

    return measure_beside_the_loop


def _pressed_at(browser: BareBrowser, page: str) -> float:
    """When the page had the last click, in seconds of our clock; the quickest of several looks compares the two."""
    looks = [_look(browser, page) for _ in range(_LOOKS)]
    return min(looks)[1]


def _look(browser: BareBrowser, page: str) -> tuple[float, float]:
    before = time.perf_counter()
    (told,) = browser.evaluate_all([page], _PRESSED_AT)
    after = time.perf_counter()
    pressed_at, now = cast("tuple[float, float]", told)
    return after - before, (before + after) / 2 - (now - pressed_at) / 1000


if __name__ == "__main__":
    print(asyncio.run(run(*map(int, sys.argv[1:]))))
