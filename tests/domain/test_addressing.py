"""An address that came late is the session's only where nothing else is possible."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.session import Session, SessionState
from tabmuxd.webai.addressing import late_address, note_address
from tabmuxd.webai.samples import SeenTurn, lookup_hash

from tests.domain.values import NOW, SESSION, TAB, chat_session, playground, sample

_URI: Final = "http://textarea.localhost:8000/c/0123456789ab"
_OTHER: Final = "http://textarea.localhost:8000/c/ba9876543210"
_TURNS: Final = (SeenTurn("a0", "assistant", "Hi"), SeenTurn("u1", "user", "Why?"), SeenTurn("a1", "assistant", "So"))
_SAID: Final = replace(chat_session(), prompted=True, tab=TAB)
_BROUGHT: Final = replace(sample(), uri=_URI, turns=_TURNS, brought=True)


def test_certain() -> None:
    """The page brought a session that said something there, and shows what it said first (FIN-17)."""
    assert late_address(playground(), _SAID, _BROUGHT) == (_URI, lookup_hash("Why?"))


@pytest.mark.parametrize(
    ("session", "seen"),
    [
        ({"conversation_uri": _OTHER}, {}),
        ({"prompted": False}, {}),
        ({"state": SessionState.RETIRED}, {}),
        ({}, {"brought": False}),
        ({}, {"uri": "http://textarea.localhost:8000/"}),
        ({}, {"uri": "http://elsewhere.example/c/0123456789ab"}),
        ({}, {"turns": ()}),
        ({}, {"turns": (SeenTurn("u1", "user", " "), *_TURNS)}),
        ({}, {"turns": (SeenTurn("u1", "user"), *_TURNS)}),
    ],
)
def test_uncertain(session: dict[str, Any], seen: dict[str, Any]) -> None:
    """Else it may be anybody's (O-135)."""
    assert late_address(playground(), replace(_SAID, **session), replace(_BROUGHT, **seen)) is None


@pytest.mark.parametrize(
    ("others", "changed", "noted"),
    [
        ({}, {}, True),
        ({}, {"tab": ""}, False),
        ({}, {"conversation_uri": _OTHER}, False),
        ({}, {"prompted": False}, False),
        ({"conversation_uri": f"{_URI}?model=x"}, {}, False),
        ({"conversation_uri": _OTHER}, {}, True),
        ({"conversation_uri": _URI, "provider": "else"}, {}, True),
    ],
)
async def test_noted(others: dict[str, Any], changed: dict[str, Any], noted: bool, tmp_path: Path) -> None:  # noqa: FBT001 - of the table
    """It is recorded once, with its event, unless the session moved on, or another one has the conversation (O-135)."""
    other = replace(chat_session(), name="sessions/other", **others)

    def prepare(changes: Changes) -> None:
        changes.record(other)
        changes.record(replace(_SAID, **changed))

    async with Log(tmp_path / "t.sqlite3", clock=lambda: NOW) as log:
        await log.change(prepare)
        head = log.progress.revision
        found = [await log.change(_note) for _ in range(2)]
        session: Session = log.live.sessions[SESSION]

        assert found == [noted, False]
        assert (session.conversation_uri, log.progress.revision - head) == (
            (_URI, 1) if noted else (changed.get("conversation_uri", ""), 0)
        )


def _note(changes: Changes) -> bool:
    return note_address(changes, SESSION, TAB, _URI, playground().same_conversation)
