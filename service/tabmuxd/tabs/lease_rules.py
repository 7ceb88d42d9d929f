"""Decisions about leases, as plain functions: what holds a tab, who may act under a lease, renew it or release it.

Each check returns the refusal, or None. A client's lease counts as ended from its `expire_time` on, recorded or not,
and never before; one that the service took for a turn lives as long as its record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from tabmuxd.resources.errors import Reason, Refused, invalid_field, refuse
from tabmuxd.resources.lease import Lease, LeaseEnd
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.resources.principal import Principal, not_owner
from tabmuxd.resources.session import Turn
from tabmuxd.resources.tab import Tab, TabOrigin

_MOST_RETRY_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Claim:
    """Under which lease a principal acts, as it says: `named` is empty for none, `lease` None if it is not known."""

    caller: Principal
    named: str = ""
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class Right:
    """What a call began on: the tab as it was, and the lease that held it; None if it was free."""

    tab: Tab
    lease: Lease | None = None


def is_over(lease: Lease, now: datetime) -> bool:
    """Whether the time of a client's lease has come, though its end may not be recorded yet."""
    return not lease.ended and not lease.session and now >= lease.expire_time


def holding(lease: Lease | None, now: datetime) -> Lease | None:
    """The lease, if it holds its tab at this moment."""
    return None if lease is None or lease.ended or is_over(lease, now) else lease


def may_claim(claim: Claim) -> Refused | None:
    """Whether the lease named, if any is known, is the caller's own; the service's are told apart later."""
    if claim.lease is None or claim.lease.session or claim.lease.owner == claim.caller.name:
        return None
    return not_owner(claim.lease.name, claim.lease.owner)


def may_act_under(tab: Tab, held: Lease | None, claim: Claim, now: datetime) -> Refused | None:
    """Whether a call may act on the tab, which `held` holds (None: it is free); after `may_claim`."""
    known = claim.lease
    if known is not None and not known.session and holding(known, now) is None:
        return lost(known)
    if held is None:
        return _needs_no(tab, claim)
    if held.session or (claim.named and claim.named != held.name):
        return is_held(tab.name, held, now)
    if not claim.named:
        return refuse(
            Reason.LEASE_REQUIRED,
            f"{tab.name} is held by {held.name}, and the request names none; nothing was done.",
            tab=tab.name,
            lease=held.name,
        )
    return None


def _needs_no(tab: Tab, claim: Claim) -> Refused | None:
    """What is wrong with naming a lease where none holds the tab: it is unknown, the service's, or of another tab."""
    if not claim.named:
        return None
    if claim.lease is None:
        return unknown_lease(claim.named)
    if claim.lease.session:
        return not_owner(claim.lease.name, "")
    return invalid_field("lease", f"holds {claim.lease.tab}, not {tab.name}; nothing was done. Leave the field out")


def may_renew(claim: Claim, now: datetime) -> Refused | None:
    """Whether the caller may extend the lease it names."""
    if claim.lease is None:
        return unknown_lease(claim.named)
    if claim.lease.session:
        return not_owner(claim.lease.name, "")
    if refused := may_claim(claim):
        return refused
    return lost(claim.lease) if holding(claim.lease, now) is None else None


def may_release(claim: Claim, now: datetime) -> Refused | None:
    """Whether the caller may give back the lease it names: its own, as `admin` any client's; an ended one too."""
    lease = claim.lease
    if lease is None:
        return unknown_lease(claim.named)
    if lease.session and not lease.ended:
        return is_held(lease.tab, lease, now)
    if claim.caller.admin or claim.caller.name == lease.owner:
        return None
    return not_owner(lease.name, lease.owner)


def repeated(leases: Iterable[Lease], caller: str, order: LeaseOrder, now: datetime) -> Lease | None:
    """The live lease that the same request has brought the caller before; REQUEST_ID_REUSED if it was another."""
    if not order.request_id:
        return None
    for lease in leases:
        if (lease.owner, lease.request_id) == (caller, order.request_id) and holding(lease, now):
            if (lease.tab, lease.terms) == (order.tab, order.terms):
                return lease
            raise refuse(
                Reason.REQUEST_ID_REUSED,
                f"The request id {order.request_id} was used for another lease; nothing was done.",
                request_id=order.request_id,
                resource=lease.name,
            )
    return None


def fenced(right: Right, held: Lease | None, known: Lease | None, now: datetime) -> Refused | None:
    """Whether a call that began with `right` may record its result on the tab, which `held` holds now.

    `known` is the lease it began under, as it is now. The service's own lease keeps out no call that was there before.
    """
    began = right.lease
    if began is None:
        return None if held is None or held.session else is_held(right.tab.name, held, now)
    if held is not None and (held.name, held.fencing_token) == (began.name, began.fencing_token):
        return None
    return lost(known or began)


def lost(lease: Lease) -> Refused:
    """LEASE_LOST: this lease holds its tab no more."""
    cause = lease.end_cause or LeaseEnd.EXPIRED
    return refuse(
        Reason.LEASE_LOST,
        f"{lease.name} does not hold {lease.tab} any more ({cause.name.lower()}). Acquire one, look at the page, and"
        " start the step over.",
        lease=lease.name,
        tab=lease.tab,
        cause=cause.name.lower(),
    )


def is_held(tab: str, lease: Lease, now: datetime) -> Refused:
    """LEASE_HELD: another lease holds the tab of this name."""
    seconds = min(_MOST_RETRY_SECONDS, max(0.0, (lease.expire_time - now).total_seconds()))
    holder = f"the open turn of {lease.session}" if lease.session else "another lease"
    return refuse(
        Reason.LEASE_HELD,
        f"{tab} is held by {holder}; nothing was done. Wait for it, or take another tab.",
        retry_after=seconds,
        tab=tab,
        lease=lease.name,
        expire_time=lease.expire_time.isoformat(),
    )


def about_to_be_held(tab: str, turn: Turn) -> Refused:
    """LEASE_HELD: the service takes the tab for an open turn as soon as it is the turn's turn."""
    return refuse(
        Reason.LEASE_HELD,
        f"{tab} serves {turn.name}, which has not ended; nothing was done. Wait for it, or take another tab.",
        retry_after=_MOST_RETRY_SECONDS,
        tab=tab,
        lease="",
        expire_time=turn.expire_time.isoformat(),
    )


def unknown_lease(name: str) -> Refused:
    """LEASE_NOT_FOUND."""
    return refuse(
        Reason.LEASE_NOT_FOUND, f"No lease {name} is known; nothing was done. Leave the field out.", lease=name
    )


def renewed(lease: Lease, now: datetime) -> Lease:
    """The lease with its time to live from now."""
    return replace(lease, expire_time=now + lease.terms.ttl)


def closes_on_expiry(lease: Lease, tab: Tab) -> bool:
    """Whether the tab closes because this lease on it expired: as its terms ask, unless it is pinned or adopted."""
    return lease.terms.close_on_expiry and lease.tab == tab.name and may_be_closed(tab)


def may_be_closed(tab: Tab) -> bool:
    """Whether the tab is one that the end of a lease may close."""
    return not tab.ended and not tab.pinned and tab.origin is not TabOrigin.ADOPTED
