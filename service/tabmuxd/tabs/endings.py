"""How a tab loses its page or ends: the tab, its lease and what it served change in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import LeaseEnd
from tabmuxd.resources.session import SessionState
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import keeping, lease_records, recovery_rules, rules

ServedHook = Callable[[Changes, Tab, Refused, ChangeCause], None]
"""Told, inside the transaction, that the session of a tab loses it: the tab before the change, why, and the cause."""

CHANGE_CAUSES: Final[Mapping[CloseCause, ChangeCause]] = {
    CloseCause.CLIENT: ChangeCause.CLIENT,
    CloseCause.OUTSIDE: ChangeCause.EXPIRY,
    CloseCause.IDLE: ChangeCause.EXPIRY,
    CloseCause.CAPACITY: ChangeCause.CAPACITY,
    CloseCause.SESSION: ChangeCause.CLIENT,
    CloseCause.BROWSER: ChangeCause.EXPIRY,
    CloseCause.RECOVERY: ChangeCause.RECOVERY,
    CloseCause.LEASE: ChangeCause.EXPIRY,
}
"""What the event of a close by the service itself says, by its cause."""


def close(changes: Changes, tab: Tab, cause: CloseCause, why: ChangeCause, served: ServedHook) -> Tab:
    """Record that the tab is closed for good; one that is closed already is given as it is."""
    if tab.ended:
        return tab
    after = rules.closed(tab, cause, changes.now)
    return _end(changes, tab, after, rules.is_there(after) or rules.gone(after), why=why, served=served)


def give_back(changes: Changes, tab: Tab, why: ChangeCause, served: ServedHook) -> Tab:
    """Record that the tab waits in the pool of its group: its lease ends, and the session that it served is parked."""
    after = keeping.pooled(tab, changes.now)
    return _end(changes, tab, after, rules.given_back(tab), why=why, served=served)


def lose_page(changes: Changes, tab: Tab, state: TabState, why: ChangeCause, served: ServedHook) -> Tab:
    """Record that the tab is CRASHED or LOST; one that was still OPENING has ended, for it has no page to come back to.

    Its lease lives on. Its session keeps the tab, and is RECOVERING, if the address of its conversation is known; else
    it loses the tab. A tab that has no page already is given as it is.
    """
    if tab.ended or tab.state in (TabState.LOST, state):
        return tab
    if tab.state is TabState.OPENING:
        cause = CloseCause.BROWSER if why is ChangeCause.BROWSER else CloseCause.OUTSIDE
        return close(changes, tab, cause, why, served)
    after = rules.without_page(tab, state, changes.now)
    session = changes.session(tab.session) if tab.session else None
    if session is None:
        return changes.record(after, why)
    if not recovery_rules.way_back(tab, session):
        return _part(changes, tab, after, recovery_rules.no_address(tab), why=why, served=served)
    leave(changes, tab, why)
    return changes.record(after, why)


def leave(changes: Changes, tab: Tab, why: ChangeCause) -> None:
    """Record that the session of a tab waits for it to be brought back, once however it lost its page."""
    session = changes.session(tab.session) if tab.session else None
    if session is not None and session.state is SessionState.ACTIVE:
        away = replace(session, state=SessionState.RECOVERING, close_count=session.close_count + 1)
        changes.record(away, why)


def come_back(changes: Changes, tab: Tab) -> Tab:
    """Record the tab as it is with its page back, and its session as ACTIVE again."""
    session = changes.session(tab.session) if tab.session else None
    if session is not None and session.state is SessionState.RECOVERING:
        back = replace(session, state=SessionState.ACTIVE, recovery_count=session.recovery_count + 1)
        changes.record(back, ChangeCause.RECOVERY)
    back_tab = replace(tab, recovery_count=tab.recovery_count + 1, last_active_time=changes.now)
    return changes.record(back_tab, ChangeCause.RECOVERY)


def give_up(changes: Changes, tab: Tab, refused: Refused, served: ServedHook) -> Tab:
    """Record that the tab is not brought back: its session loses it, its turn ends with the reason."""
    if not tab.session:
        return tab
    return _part(changes, tab, tab, refused, why=ChangeCause.RECOVERY, served=served)


def _part(changes: Changes, tab: Tab, after: Tab, reason: Refused, *, why: ChangeCause, served: ServedHook) -> Tab:
    """The session loses the tab, which stays; the service's own lease on it ends, a client's lives on."""
    served(changes, tab, reason, why)
    after = replace(after, session="")
    lease = changes.lease_on(tab.name)
    if lease is not None and lease.session:
        lease_records.end(changes, lease, LeaseEnd.CLOSED, why, besides=tab.name)
        after = replace(after, lease="")
    return changes.record(after, why)


def _end(changes: Changes, tab: Tab, after: Tab, reason: Refused, *, why: ChangeCause, served: ServedHook) -> Tab:
    if tab.session:
        served(changes, tab, reason, why)
    lease = changes.lease_on(tab.name)
    if lease is not None:
        lease_records.end(changes, lease, LeaseEnd.CLOSED, why, besides=tab.name)
    return changes.record(after, why)
