"""What the grant, the end and the check of a lease change in the store: lease and tabs, in one transaction.

Whoever ends a lease does it by `end`, so that it is cleared on every tab that it holds, popups included.
"""

from __future__ import annotations

from dataclasses import replace

from tabmuxd.events.changes import Changes
from tabmuxd.resources.errors import PageTouched
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import Lease, LeaseEnd, LeaseTerms
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import lease_rules, rules
from tabmuxd.tabs.lease_rules import Claim, Right


def driven(changes: Changes, caller: Principal, name: str) -> Tab:
    """The tab, closed or not, if the caller may drive it; TAB_NOT_FOUND, NOT_OWNER."""
    tab = changes.tab(name)
    if tab is None:
        raise rules.unknown_tab(name)
    if refused := rules.may_drive(caller, tab):
        raise refused
    return tab


def holder(changes: Changes, tab: Tab) -> Lease | None:
    """The lease that holds the tab at this moment; one whose time is over does not."""
    return lease_rules.holding(changes.holder(tab), changes.now)


def claim(changes: Changes, caller: Principal, named: str) -> Claim:
    """What the caller says of the lease it acts under; NOT_OWNER for another's."""
    made = Claim(caller, named, changes.lease(named) if named else None)
    if refused := lease_rules.may_claim(made):
        raise refused
    return made


def fence(changes: Changes, right: Right, touched: PageTouched) -> None:
    """Raise LEASE_LOST, with how far the call came, if what it began under does not hold the tab any more.

    Whatever records the result of a call does this first: nothing of a call that is fenced off is recorded.
    """
    tab = changes.tab(right.tab.name) or right.tab
    known = changes.lease(right.lease.name) if right.lease else None
    if refused := lease_rules.fenced(right, holder(changes, tab), known, changes.now):
        raise with_outcome(refused, touched)


def acquire(changes: Changes, caller: Principal, order: LeaseOrder, name: str) -> Lease | None:
    """Grant the lease `name`, or give the live one that the same request brought.

    None where something has to end before: a lease that is over, or the opening of the tab, since whoever opens it may
    get one with it.

    The caller holds the tab's line, so that no call is at work beside the new lease.
    """
    tab = driven(changes, caller, order.tab)
    if known := lease_rules.repeated(changes.leases(), caller.name, order, changes.now):
        return known
    if refused := rules.is_open(tab):
        raise refused
    held = changes.holder(tab)
    if tab.state is TabState.OPENING or (held is not None and lease_rules.is_over(held, changes.now)):
        return None
    if held is not None:
        raise lease_rules.is_held(tab.name, held, changes.now)
    session = changes.session(tab.session) if tab.session else None
    turn = changes.turn(session.open_turn) if session and session.open_turn else None
    if turn is not None:
        raise lease_rules.about_to_be_held(tab.name, turn)
    lease = grant(changes, tab, name, order.terms, owner=caller.name, request_id=order.request_id)
    # Somebody is back before a close that is owed could be done, so it is not done.
    changes.record(replace(tab, lease=lease.name, close_owed=CloseCause.NONE), ChangeCause.CLIENT)
    return lease


def grant(changes: Changes, tab: Tab, name: str, terms: LeaseTerms, *, owner: str, request_id: str = "") -> Lease:
    """Record a client's lease on a tab that is free; the caller records the tab with it."""
    return changes.record(
        Lease(
            name=name,
            tab=tab.name,
            terms=terms,
            expire_time=changes.now + terms.ttl,
            fencing_token=next_token(changes, tab),
            create_time=changes.now,
            owner=owner,
            request_id=request_id,
        ),
        ChangeCause.CLIENT,
    )


def next_token(changes: Changes, tab: Tab) -> int:
    """A fencing token above those of all leases that ever held the tab, as a popup also under its openers'."""
    tokens = [changes.last_fencing_token(tab.name)]
    seen = {tab.name}
    opener = tab.opener
    while opener and opener not in seen:
        seen.add(opener)
        tokens.append(changes.last_fencing_token(opener))
        above = changes.tab(opener)
        opener = above.opener if above else ""
    return max(tokens) + 1


def renew(changes: Changes, caller: Principal, name: str) -> Lease:
    """Extend a lease by its time to live from now; no event tells of it."""
    made = Claim(caller, name, changes.lease(name))
    if refused := lease_rules.may_renew(made, changes.now):
        raise refused
    lease = made.lease
    assert lease is not None  # noqa: S101 - else it was refused
    driven(changes, caller, lease.tab)
    return changes.keep(lease_rules.renewed(lease, changes.now))


def release(changes: Changes, caller: Principal, name: str) -> Lease:
    """End a lease on its holder's word, or on that of `admin`; one that has ended is given as it is."""
    made = Claim(caller, name, changes.lease(name))
    if refused := lease_rules.may_release(made, changes.now):
        raise refused
    lease = made.lease
    assert lease is not None  # noqa: S101 - else it was refused
    if lease.ended:
        return lease
    if lease_rules.is_over(lease, changes.now):
        return _expire(changes, lease)
    return end(changes, lease, LeaseEnd.RELEASED, ChangeCause.CLIENT)


def end(changes: Changes, lease: Lease, cause: LeaseEnd, why: ChangeCause, *, besides: str = "") -> Lease:
    """Record the end of a live lease, and clear it on all tabs that it holds but `besides`, which the caller writes."""
    ended = changes.record(replace(lease, end_time=changes.now, end_cause=cause), why)
    for tab in changes.tabs():
        if tab.lease == lease.name and tab.name != besides:
            changes.record(replace(tab, lease=""), why)
    return ended


def expire(changes: Changes) -> None:
    """End each client's lease whose time is over; a renewal that came before, in the same batch too, counts."""
    for lease in changes.leases():
        if lease_rules.is_over(lease, changes.now):
            _expire(changes, lease)


def _expire(changes: Changes, lease: Lease) -> Lease:
    tab = changes.tab(lease.tab)
    besides = ""
    if tab is not None and lease_rules.closes_on_expiry(lease, tab):
        besides = tab.name
    ended = end(changes, lease, LeaseEnd.EXPIRED, ChangeCause.EXPIRY, besides=besides)
    if tab is not None and besides:
        # The close itself needs the browser; until it was done it is owed, over a restart too.
        changes.record(replace(tab, lease="", close_owed=CloseCause.LEASE), ChangeCause.EXPIRY)
    return ended


def owed_close(changes: Changes, name: str) -> Tab | None:
    """The tab, if its expired lease still closes it; if somebody keeps it meanwhile, the close is owed no more."""
    tab = changes.tab(name)
    if tab is None or tab.ended or tab.close_owed is not CloseCause.LEASE:
        return None
    if lease_rules.may_be_closed(tab) and holder(changes, tab) is None:
        return tab
    changes.keep(replace(tab, close_owed=CloseCause.NONE))
    return None


def prolong(changes: Changes) -> None:
    """Give each client's live lease its time to live once more: while no server ran, nobody could renew it."""
    for lease in changes.leases():
        if not lease.session:
            changes.keep(lease_rules.renewed(lease, changes.now))
