"""Retiring: the end of a session, in one transaction with what becomes of its tab."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.session import RetireCause, Session, SessionState, TabSource
from tabmuxd.webai import parting
from tabmuxd.webai.parting import Parting

_WHY: Final = {
    RetireCause.CLIENT: ChangeCause.CLIENT,
    RetireCause.EXPIRY: ChangeCause.EXPIRY,
    RetireCause.CONVERSATION_LOST: ChangeCause.PAGE,
}


def retired(session: Session, cause: RetireCause, now: datetime) -> Session:
    """The session as it is at its end: without a tab, and with nothing more to wait for."""
    return replace(
        session,
        state=SessionState.RETIRED,
        tab="",
        tab_source=TabSource.NONE,
        expire_time=None,
        retire_time=now,
        retire_cause=cause,
    )


def retire(changes: Changes, session: Session, cause: RetireCause, how: Parting) -> Session:
    """Record the end of a session that has no open turn, and what becomes of its tab."""
    if session.open_turn:
        raise AssertionError(f"{session.name} has an open turn, which has to end first")
    why = _WHY[cause]
    ended = changes.record(retired(session, cause, changes.now), why)
    parting.give_up(changes, session, how, why)
    return ended


def is_due(session: Session, now: datetime) -> bool:
    """Whether the session went without a turn for its whole `ttl`; never while a turn is open."""
    return not (session.ended or session.open_turn) and session.expire_time is not None and session.expire_time <= now
