from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.lease import Lease, LeaseEnd, LeaseTerms
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import Tab, TabOrigin, TabState
from tabmuxd.tabs import lease_rules
from tabmuxd.tabs.lease_rules import Claim, Right

from tests.domain.values import ADMIN, FRIEND, LEASE, NOW, OWNER, SESSION, STRANGER, TAB, held, ready_tab, told

OTHER = "leases/other"
LIVE = held()
RELEASED = replace(held(), end_time=NOW, end_cause=LeaseEnd.RELEASED)
EXPIRED = replace(held(), end_time=NOW, end_cause=LeaseEnd.EXPIRED)
CLOSED = replace(held(), end_time=NOW, end_cause=LeaseEnd.CLOSED)
OVER = held(seconds=0)
ELSEWHERE = replace(held(OTHER), tab="browsers/main/tabs/9876543210")
SERVICE = held(OTHER, session=SESSION)
SERVICE_ENDED = replace(SERVICE, end_time=NOW, end_cause=LeaseEnd.RELEASED)
NONE = Claim(OWNER)


def under(lease: Lease, caller: Principal = OWNER) -> Claim:
    """This principal names this lease."""
    return Claim(caller, lease.name, lease)


@pytest.mark.parametrize(
    ("lease", "over", "holds"),
    [
        (held(seconds=0.000001), False, True),
        (held(seconds=0), True, False),
        (held(seconds=-5), True, False),
        (RELEASED, False, False),
        (replace(OVER, end_time=NOW), False, False),
        (held(session=SESSION, seconds=-5), False, True),
    ],
)
def test_over(lease: Lease, *, over: bool, holds: bool) -> None:
    """A client's lease holds until its `expire_time` and not a moment longer; the service's until its end (O-12)."""
    assert (lease_rules.is_over(lease, NOW), lease_rules.holding(lease, NOW)) == (over, lease if holds else None)


@pytest.mark.parametrize(
    ("holder", "claim", "reason"),
    [
        (None, NONE, None),
        (LIVE, NONE, "LEASE_REQUIRED"),
        (LIVE, under(LIVE), None),
        (LIVE, under(ELSEWHERE), "LEASE_HELD"),
        (LIVE, Claim(OWNER, OTHER), "LEASE_HELD"),
        (LIVE, under(replace(RELEASED, name=OTHER)), "LEASE_LOST:released"),
        (LIVE, under(replace(EXPIRED, name=OTHER)), "LEASE_LOST:expired"),
        (LIVE, under(replace(CLOSED, name=OTHER)), "LEASE_LOST:closed"),
        (LIVE, under(SERVICE_ENDED), "LEASE_HELD"),
        (None, under(RELEASED), "LEASE_LOST:released"),
        (None, under(EXPIRED), "LEASE_LOST:expired"),
        (None, under(OVER), "LEASE_LOST:expired"),
        (None, Claim(OWNER, OTHER), "LEASE_NOT_FOUND"),
        (None, under(ELSEWHERE), "INVALID_FIELD"),
        (None, under(SERVICE_ENDED), "NOT_OWNER"),
        (SERVICE, NONE, "LEASE_HELD"),
        (SERVICE, under(SERVICE), "LEASE_HELD"),
        (SERVICE, under(ELSEWHERE), "LEASE_HELD"),
        (SERVICE, under(RELEASED), "LEASE_LOST:released"),
    ],
)
def test_act(holder: Lease | None, claim: Claim, reason: str | None) -> None:
    """A held tab is acted on under its lease alone, and while a turn is open under none (O-10, O-15, LSE-04)."""
    assert told(lease_rules.may_act_under(ready_tab(), holder, claim, NOW)) == reason


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        (NONE, None),
        (Claim(FRIEND, LEASE), None),
        (under(LIVE), None),
        (under(LIVE, FRIEND), "NOT_OWNER"),
        (under(LIVE, ADMIN), "NOT_OWNER"),
        (under(RELEASED, FRIEND), "NOT_OWNER"),
        (under(SERVICE, FRIEND), None),
    ],
)
def test_claim(claim: Claim, reason: str | None) -> None:
    """Nobody acts under another's lease, whoever may drive the tab, `admin` included (O-11)."""
    refused = lease_rules.may_claim(claim)

    assert told(refused) == reason
    assert refused is None or refused.metadata == {"resource": LEASE, "owner": "local/a"}


@pytest.mark.parametrize(("left", "delay"), [(4.0, 4.0), (60.0, 10.0), (-3.0, 0.0)])
def test_held_delay(left: float, delay: float) -> None:
    """LEASE_HELD says how long to wait: until the lease expires, at most 10 s (O-10)."""
    refused = lease_rules.may_act_under(ready_tab(), held(session=SESSION, seconds=left), NONE, NOW)

    assert refused is not None
    assert refused.retry_delay == timedelta(seconds=delay)
    assert refused.metadata == {
        "tab": TAB,
        "lease": LEASE,
        "expire_time": (NOW + timedelta(seconds=left)).isoformat(),
    }


def test_lost_says_which() -> None:
    """LEASE_LOST names the lease, its tab and why it ended (O-10)."""
    assert lease_rules.lost(CLOSED).metadata == {"lease": LEASE, "tab": TAB, "cause": "closed"}


@pytest.mark.parametrize(
    ("claim", "renew", "release"),
    [
        (under(LIVE), None, None),
        (under(LIVE, FRIEND), "NOT_OWNER", "NOT_OWNER"),
        (under(LIVE, ADMIN), "NOT_OWNER", None),
        (under(OVER), "LEASE_LOST:expired", None),
        (under(RELEASED), "LEASE_LOST:released", None),
        (under(CLOSED), "LEASE_LOST:closed", None),
        (under(RELEASED, STRANGER), "NOT_OWNER", "NOT_OWNER"),
        (under(RELEASED, ADMIN), "NOT_OWNER", None),
        (under(SERVICE), "NOT_OWNER", "LEASE_HELD"),
        (under(SERVICE, ADMIN), "NOT_OWNER", "LEASE_HELD"),
        (under(SERVICE_ENDED), "NOT_OWNER", "NOT_OWNER"),
        (under(SERVICE_ENDED, ADMIN), "NOT_OWNER", None),
        (Claim(OWNER, OTHER), "LEASE_NOT_FOUND", "LEASE_NOT_FOUND"),
    ],
)
def test_renew_and_release(claim: Claim, renew: str | None, release: str | None) -> None:
    """A lease is renewed by its holder, released by it and by `admin`; a turn's by nobody (O-11, O-15)."""
    assert (told(lease_rules.may_renew(claim, NOW)), told(lease_rules.may_release(claim, NOW))) == (renew, release)


def test_renewed() -> None:
    """A renewal counts from now, by the terms as they were granted (O-12)."""
    lease = replace(held(seconds=1), terms=LeaseTerms(timedelta(seconds=7)))

    assert lease_rules.renewed(lease, NOW) == replace(lease, expire_time=NOW + timedelta(seconds=7))


_KEY = "0b6f5f0a-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("lease", "caller", "order", "found"),
    [
        (replace(LIVE, request_id=_KEY), OWNER, LeaseOrder(TAB, request_id=_KEY), True),
        (replace(LIVE, request_id=_KEY), FRIEND, LeaseOrder(TAB, request_id=_KEY), False),
        (replace(LIVE, request_id=_KEY), OWNER, LeaseOrder(TAB), False),
        (LIVE, OWNER, LeaseOrder(TAB), False),
        (LIVE, OWNER, LeaseOrder(TAB, request_id=_KEY), False),
        (replace(OVER, request_id=_KEY), OWNER, LeaseOrder(TAB, request_id=_KEY), False),
    ],
)
def test_repeated(lease: Lease, caller: Principal, order: LeaseOrder, *, found: bool) -> None:
    """The same request gets the same lease while that lives."""
    assert lease_rules.repeated([lease], caller.name, order, NOW) == (lease if found else None)


@pytest.mark.parametrize(
    ("lease", "terms"), [(LIVE, LeaseTerms(holder="x")), (ELSEWHERE, LeaseTerms())], ids=["terms", "tab"]
)
def test_request_id_reused(lease: Lease, terms: LeaseTerms) -> None:
    """A request id that stands for another tab or other terms is REQUEST_ID_REUSED, and names its lease."""
    with pytest.raises(Refused) as raised:
        lease_rules.repeated([replace(lease, request_id=_KEY)], OWNER.name, LeaseOrder(TAB, terms, _KEY), NOW)

    assert (raised.value.reason, raised.value.metadata) == (
        Reason.REQUEST_ID_REUSED,
        {"request_id": _KEY, "resource": lease.name},
    )


_NEXT = replace(held(OTHER), fencing_token=2)


@pytest.mark.parametrize(
    ("began", "holder", "known", "reason"),
    [
        (None, None, None, None),
        (None, SERVICE, None, None),
        (None, LIVE, None, "LEASE_HELD"),
        (LIVE, LIVE, LIVE, None),
        (LIVE, replace(LIVE, expire_time=NOW + timedelta(hours=1)), LIVE, None),
        (LIVE, None, RELEASED, "LEASE_LOST:released"),
        (LIVE, None, CLOSED, "LEASE_LOST:closed"),
        (LIVE, None, OVER, "LEASE_LOST:expired"),
        (LIVE, None, None, "LEASE_LOST:expired"),
        (LIVE, _NEXT, EXPIRED, "LEASE_LOST:expired"),
        (LIVE, replace(LIVE, fencing_token=2), EXPIRED, "LEASE_LOST:expired"),
        (LIVE, SERVICE, RELEASED, "LEASE_LOST:released"),
    ],
)
def test_fence(began: Lease | None, holder: Lease | None, known: Lease | None, reason: str | None) -> None:
    """A call records its result only while what it began under holds the tab, by name and token (O-14, LSE-03)."""
    assert told(lease_rules.fenced(Right(ready_tab(), began), holder, known, NOW)) == reason


@pytest.mark.parametrize(
    ("lease", "tab", "closes"),
    [
        (LIVE, ready_tab(), False),
        (replace(LIVE, terms=LeaseTerms(close_on_expiry=True)), ready_tab(), True),
        (replace(LIVE, terms=LeaseTerms(close_on_expiry=True)), replace(ready_tab(), pinned=True), False),
        (replace(LIVE, terms=LeaseTerms(close_on_expiry=True)), replace(ready_tab(), origin=TabOrigin.ADOPTED), False),
        (replace(LIVE, terms=LeaseTerms(close_on_expiry=True)), replace(ready_tab(), state=TabState.CLOSED), False),
        (replace(LIVE, terms=LeaseTerms(close_on_expiry=True)), replace(ready_tab(), state=TabState.LOST), True),
        (replace(ELSEWHERE, terms=LeaseTerms(close_on_expiry=True)), ready_tab(), False),
    ],
)
def test_closes(lease: Lease, tab: Tab, *, closes: bool) -> None:
    """An expired lease closes its tab if its terms say so, but none that is pinned or adopted (O-13, O-51)."""
    assert lease_rules.closes_on_expiry(lease, tab) is closes
