"""Whose a session is, whether it is known, and whether it still takes turns."""

from __future__ import annotations

from tabmuxd.events.changes import Changes
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.principal import Principal, not_owner
from tabmuxd.resources.session import Session


def owned(changes: Changes, caller: Principal, name: str) -> Session:
    """The session, retired or not, if the caller may act in it; SESSION_NOT_FOUND, NOT_OWNER."""
    session = changes.session(name)
    if session is None:
        raise unknown(name)
    if refused := may_act_in(caller, session):
        raise refused
    return session


def may_act_in(caller: Principal, session: Session) -> Refused | None:
    """Whether this principal may send, cancel, change, recover and retire: the owner, and `admin`."""
    return None if caller.admin or caller.name == session.owner else not_owner(session.name, session.owner)


def active(session: Session | None, name: str) -> Session:
    """The session, if it takes turns; SESSION_NOT_FOUND, SESSION_RETIRED."""
    if session is None:
        raise unknown(name)
    if session.ended:
        raise refuse(
            Reason.SESSION_RETIRED,
            f"{session.name} is retired for good. Start another, with conversation_uri to go on.",
            session=session.name,
            retire_time=session.retire_time.isoformat() if session.retire_time else "",
            retire_cause=session.retire_cause.name,
        )
    return session


def unknown(name: str) -> Refused:
    """SESSION_NOT_FOUND."""
    return refuse(Reason.SESSION_NOT_FOUND, f"No session {name} is known; nothing was done.", session=name)
