"""How a tab loses its page or ends: the tab, its lease and what it served change in one transaction."""

from __future__ import annotations

from collections.abc import Callable

from tabmuxd.events.changes import Changes
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import LeaseEnd
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import keeping, lease_records, rules

ServedHook = Callable[[Changes, Tab, Refused, ChangeCause], None]
"""Told, inside the transaction, that the session of a tab loses it: the tab before the change, why, and the cause."""


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

    A tab that has no page already is given as it is.
    """
    if tab.ended or tab.state in (TabState.LOST, state):
        return tab
    if tab.state is TabState.OPENING:
        cause = CloseCause.BROWSER if why is ChangeCause.BROWSER else CloseCause.OUTSIDE
        return close(changes, tab, cause, why, served)
    after = rules.without_page(tab, state)
    reason = _browser_gone(changes, tab) if why is ChangeCause.BROWSER else rules.gone(after)
    return _end(changes, tab, after, reason, why=why, served=served)


def _end(changes: Changes, tab: Tab, after: Tab, reason: Refused, *, why: ChangeCause, served: ServedHook) -> Tab:
    if tab.session:
        served(changes, tab, reason, why)
    lease = changes.lease_on(tab.name)
    if lease is not None:
        lease_records.end(changes, lease, LeaseEnd.CLOSED, why, besides=tab.name)
    return changes.record(after, why)


def _browser_gone(changes: Changes, tab: Tab) -> Refused:
    browser = changes.browser(tab.browser_name)
    return refuse(
        Reason.BROWSER_GONE,
        f"{tab.browser_name} ended or was replaced, and {tab.name} with it. Open another tab, and start the step over.",
        browser=tab.browser_name,
        generation=browser.generation if browser else 0,
    )
