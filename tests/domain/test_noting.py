"""Title and address of a conversation: recorded as they change, a title now and then, the last one always."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tabmuxd.resources.orders import PromptOrder
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import Session, TurnState
from tabmuxd.webai import noting
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.conversation import Conversation, Surroundings
from tabmuxd.webai.line import ProviderLine
from tabmuxd.webai.noting import Noting
from tabmuxd.webai.runner import TurnRunner
from tabmuxd.webai.samples import Sample
from tabmuxd.webai.service import _insert_turn

from tests.domain.below import Below, below
from tests.domain.values import OWNER, SESSION, TERMS, chat_session, playground, sample

_TURN = f"{SESSION}/turns/0123456789"
_CHAT = "http://textarea.localhost:8000/c/0123456789ab"


@pytest.fixture
async def parts() -> AsyncGenerator[Below]:
    """A server below its edge with a session and an open turn in it."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    async with below(directory) as made:
        order = PromptOrder(SESSION, Prompt("why?"), "key", "hash")
        await made.log.change(lambda changes: changes.record(chat_session()))
        await made.log.change(
            lambda changes: _insert_turn(changes, OWNER, order, _TURN, timedelta(minutes=5), terms=TERMS)
        )
        yield made
    shutil.rmtree(directory)


def _around(parts: Below) -> Surroundings:
    return Surroundings(parts.tabs, parts.log, secrets.token_bytes, parts.clock, parts.web_ai.artifacts)


def _session(parts: Below) -> Session:
    return parts.log.live.sessions[SESSION]


def _shown(title: str, uri: str = "http://textarea.localhost:8000/") -> Sample:
    return replace(sample(), title=title, uri=uri)


async def test_now_and_then(parts: Below, monkeypatch: pytest.MonkeyPatch) -> None:
    """A title that changes all the time is recorded once in a while, an address at once (O-152)."""
    monkeypatch.setattr(noting, "_INTERVAL", 3600)
    notes = Noting(Conversation(_TURN, playground(), _around(parts)))
    found: list[tuple[str, str]] = []
    for title, uri in (("one", ""), ("two", ""), ("three", _CHAT), ("four", _CHAT), ("three", _CHAT)):
        await notes.note(_shown(title, uri or "http://textarea.localhost:8000/"), is_own=True)
        found.append((_session(parts).title, _session(parts).conversation_uri))

    assert found == [("one", ""), ("one", ""), ("three", _CHAT), ("three", _CHAT), ("three", _CHAT)]
    assert notes.waiting is None


async def test_next_look(parts: Below, monkeypatch: pytest.MonkeyPatch) -> None:
    """What waited is recorded with a later look."""
    monkeypatch.setattr(noting, "_INTERVAL", 3600)
    notes = Noting(Conversation(_TURN, playground(), _around(parts)))
    await notes.note(_shown("one"), is_own=True)
    await notes.note(_shown("two"), is_own=True)
    monkeypatch.setattr(noting, "_INTERVAL", 0)

    await notes.note(_shown("two"), is_own=True)

    assert (_session(parts).title, notes.waiting) == ("two", None)


async def test_last_title(parts: Below) -> None:
    """The last title is recorded in the step in which the turn ends, if it was not before."""
    turn = parts.log.live.turns[_TURN]
    runner = TurnRunner(turn, playground(), _around(parts), Feed(), ProviderLine("p", 1).join(at_work=False))
    runner._observer.noting.waiting = ("", "last")

    ended = await runner._end(TurnState.CANCELLED)

    assert (ended.state, _session(parts).title, _session(parts).open_turn) == (TurnState.CANCELLED, "last", "")


async def test_long_title(parts: Below) -> None:
    """A title that is longer than what is kept of it is not news at every look."""
    notes = Noting(Conversation(_TURN, playground(), _around(parts)))
    await notes.note(_shown("x" * 5000), is_own=True)
    head = parts.log.head

    await notes.note(_shown("x" * 6000), is_own=True)

    assert (_session(parts).title, notes.waiting, parts.log.head) == ("x" * 1024, None, head)


async def test_not_own(parts: Below) -> None:
    """Of a page that does not show the own prompt nothing is noted while the conversation has no address (FIN-17)."""
    notes = Noting(Conversation(_TURN, playground(), _around(parts)))
    await notes.note(_shown("somebody's", _CHAT), is_own=False)

    assert (_session(parts).title, _session(parts).conversation_uri, notes.waiting) == ("", "", None)
