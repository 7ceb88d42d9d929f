"""Ten conversations answered at once against one alone: whether sessions wait for each other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final

import tabmux
from tabmux.ai import Session
from tabmux.client import Client

from benchmarks.comparison import Measure, alternate, report, tell
from benchmarks.processes import tabmuxd

GOAL: Final = 1.2
_PROVIDERS: Final = ("playground-textarea", "playground-editor", "playground-shadow")
_SESSIONS: Final = 10
_ROUNDS: Final = 6
_FIRST: Final = "Say hello. {{plain=1 seconds=0.2 think=0.1}}"
_PROMPT: Final = "Tell me about rivers. {{plain=1 seconds=3 think=0.1}}"


async def run() -> str:
    """Measure, and give the line that says what came out.

    The first turn of each session opens its tab, beforehand. What is measured are later turns, from the first prompt
    sent to the last answer read whole. Which session runs alone changes from round to round; the other tabs stay.
    """
    async with (
        tabmuxd("--playground") as server,
        tabmux.connect(server.address, as_="benchmark", environment={}) as client,
    ):
        sessions = await _sessions(client)
        comparison = await alternate(_all(sessions), _alone(sessions), rounds=_ROUNDS, progress=tell)
    more = {"sessions": _SESSIONS, "answer_seconds": 3, **comparison.summary("together", "alone")}
    return report("parallel_turns", comparison.ratio, GOAL, more)


async def _sessions(client: Client) -> Sequence[Session]:
    begin = time.perf_counter()
    sessions = [await client.start_session(_PROVIDERS[number % len(_PROVIDERS)]) for number in range(_SESSIONS)]
    await asyncio.gather(*(_ask(session, _FIRST) for session in sessions))
    tell(f"{_SESSIONS} tabs opened, each with its first turn, in {time.perf_counter() - begin:.1f} s")
    return sessions


def _all(sessions: Sequence[Session]) -> Measure:
    async def measure(_round: int) -> list[float]:
        begin = time.perf_counter()
        await asyncio.gather(*(_ask(session, _PROMPT) for session in sessions))
        return [time.perf_counter() - begin]

    return measure


def _alone(sessions: Sequence[Session]) -> Measure:
    async def measure(number: int) -> list[float]:
        begin = time.perf_counter()
        await _ask(sessions[number % len(sessions)], _PROMPT)
        return [time.perf_counter() - begin]

    return measure


async def _ask(session: Session, prompt: str) -> None:
    turn = await (await session.ask(prompt)).result()
    assert turn.answer_markdown.strip()


if __name__ == "__main__":
    print(asyncio.run(run()))
