"""Twenty second turns of one provider at once against one alone: whether long answers are all whole, and in time."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Final

import tabmux
from tabmux.ai import Session
from tabmux.client import Client
from tabmuxd.playground.answers import answer_to

from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.processes import tabmuxd

GOAL: Final = 1.3
_PROVIDER: Final = "playground-textarea"
_SESSIONS: Final = 20
_ROUNDS: Final = 4
_FIRST: Final = "Say hello. {{plain=1 seconds=0.2 think=0.1}}"
_PROMPT: Final = "Tell me about rivers. {{seconds=5 think=0.1 characters=5000}}"
_EXPECTED: Final = answer_to(_PROMPT)


async def run(sessions: int = _SESSIONS) -> str:
    """Measure, and give the line that says what came out.

    As `parallel_turns`, with the limits of tabs and turns raised: every answer has to be what the page itself wrote.
    """
    settings = f"max_turn_count = {sessions}\n[browsers.main]\nmax_tab_count = {sessions}\n"
    async with (
        tabmuxd("--playground", settings=settings) as server,
        tabmux.connect(server.address, as_="benchmark", environment={}) as client,
    ):
        begun = await _sessions(client, sessions)
        comparison = await alternate(_all(begun), _alone(begun), rounds=_ROUNDS, progress=tell)
    more = {"sessions": sessions, "answer_seconds": 5, "characters": len(_EXPECTED)}
    return report("turns_20", comparison.ratio, GOAL, {**more, **comparison.summary("together", "alone")})


async def _sessions(client: Client, count: int) -> Sequence[Session]:
    begin = time.perf_counter()
    sessions = [await client.start_session(_PROVIDER) for _ in range(count)]
    await asyncio.gather(*(_ask(session, _FIRST) for session in sessions))
    tell(f"{count} tabs opened, each with its first turn, in {time.perf_counter() - begin:.1f} s")
    return sessions


def _all(sessions: Sequence[Session]) -> Measure:
    async def measure(_round: int) -> list[float]:
        begin = time.perf_counter()
        answers = await asyncio.gather(*(_ask(session, _PROMPT) for session in sessions))
        taken = time.perf_counter() - begin
        _check(answers)
        return [taken]

    return measure


def _alone(sessions: Sequence[Session]) -> Measure:
    async def measure(number: int) -> list[float]:
        begin = time.perf_counter()
        answer = await _ask(sessions[number % len(sessions)], _PROMPT)
        taken = time.perf_counter() - begin
        _check([answer])
        return [taken]

    return measure


async def _ask(session: Session, prompt: str) -> str:
    return (await (await session.ask(prompt)).result()).answer_markdown


def _check(answers: Sequence[str]) -> None:
    different = sum(answer != _EXPECTED for answer in answers)
    if different:
        raise AssertionError(f"{different} of {len(answers)} answers are not what the page wrote")


if __name__ == "__main__":
    print(asyncio.run(run(*map(int, sys.argv[1:]))))
