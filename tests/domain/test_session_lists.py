"""Lists of sessions and turns, page by page, over a real store."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tabmux.v1 import web_ai_service_pb2 as pb
from tabmuxd.events.changes import Changes
from tabmuxd.resources.orders import SessionFilter
from tabmuxd.resources.session import Session, Turn, TurnState
from tabmuxd.rpc.listing import sessions_page, turns_page
from tabmuxd.rpc.pages import page_of

from tests.domain.below import Below, below
from tests.domain.values import NOW, chat_session

_MIB = 1024 * 1024
_MOST_BYTES = 4 * _MIB


@pytest.fixture
async def parts() -> AsyncIterator[Below]:
    """A server below its edge."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    try:
        async with below(directory) as parts:
            yield parts
    finally:
        shutil.rmtree(directory)


def _session(number: int) -> Session:
    labels = {f"key-{index}": "v" * 60 for index in range(16)}
    return replace(chat_session(), name=f"sessions/s{number}", labels=labels, title="t" * 1024)


def _turn(session: Session, number: int) -> Turn:
    name = f"{session.name}/turns/{number:010d}"
    return Turn(
        name, TurnState.SUCCEEDED, f"r{number}", "a", "b", NOW, NOW, answer_markdown="x" * _MIB, answer_size_bytes=_MIB
    )


async def _listed_sessions(parts: Below, size: int) -> tuple[list[str], int]:
    """Names over all pages, and the size of the largest page."""
    request = pb.ListSessionsRequest(page_size=size)
    names: list[str] = []
    largest = 0
    while True:
        page = page_of(request, parts.log.progress)
        response = await sessions_page(parts.web_ai.sessions, SessionFilter(), page)
        names += [session.name for session in response.sessions]
        largest = max(largest, response.ByteSize())
        if not response.next_page_token:
            return names, largest
        request.page_token = response.next_page_token


async def _listed_turns(parts: Below, session: str, size: int) -> tuple[list[str], int]:
    request = pb.ListTurnsRequest(parent=session, page_size=size)
    names: list[str] = []
    largest = 0
    while True:
        response = await turns_page(parts.web_ai.sessions, session, page_of(request, parts.log.progress))
        names += [turn.name for turn in response.turns]
        largest = max(largest, response.ByteSize())
        assert not any(turn.answer_markdown for turn in response.turns)
        if not response.next_page_token:
            return names, largest
        request.page_token = response.next_page_token


@pytest.mark.parametrize("answers", [20, pytest.param(500, marks=[pytest.mark.long, pytest.mark.timeout(300)])])
async def test_large(parts: Below, answers: int) -> None:
    """500 sessions with turns of 1 MiB are listed in pages below 4 MiB, whole, each once (STO-08)."""
    sessions = [_session(number) for number in range(500)]
    for session in sessions:
        await parts.log.change(lambda changes, session=session: changes.record(session))  # type: ignore[misc]
    for number in range(answers):
        turn = _turn(sessions[number], 0)
        await parts.log.change(lambda changes, turn=turn: changes.record(turn))  # type: ignore[misc]

    names, largest = await _listed_sessions(parts, 500)

    assert names == [session.name for session in sessions]
    assert 0 < largest < _MOST_BYTES


async def test_turns_of_one_session(parts: Below) -> None:
    """The turns of one session are listed without their answers, in pages, whole, each once (STO-08)."""
    session = _session(0)

    def decide(changes: Changes) -> None:
        changes.record(session)
        for number in range(25):
            changes.record(_turn(session, number))

    await parts.log.change(decide)

    names, largest = await _listed_turns(parts, session.name, 10)

    assert names == [_turn(session, number).name for number in range(25)]
    assert largest < _MIB


async def test_created_meanwhile(parts: Below) -> None:
    """A session that is created between two pages is on a later one; one that is there already is not twice."""
    for number in range(3):
        await parts.log.change(lambda changes, number=number: changes.record(_session(number)))  # type: ignore[misc]
    first_page = page_of(pb.ListSessionsRequest(page_size=2), parts.log.progress)
    first = await sessions_page(parts.web_ai.sessions, SessionFilter(), first_page)
    await parts.log.change(lambda changes: changes.record(replace(_session(0), title="changed")))
    await parts.log.change(lambda changes: changes.record(_session(3)))

    request = pb.ListSessionsRequest(page_size=2, page_token=first.next_page_token)
    second = await sessions_page(parts.web_ai.sessions, SessionFilter(), page_of(request, parts.log.progress))

    assert [[session.name for session in page.sessions] for page in (first, second)] == [
        ["sessions/s0", "sessions/s1"],
        ["sessions/s2", "sessions/s3"],
    ]
    assert (second.progress, second.next_page_token) == (first.progress, "")
