from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserState, Ownership, TabCounts
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.lease import Lease, LeaseEnd
from tabmuxd.resources.orders import TabFilter, TabUpdate
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import (
    CloseCause,
    Dialog,
    DialogKind,
    DialogPolicy,
    HealthStatus,
    Tab,
    TabHealth,
    TabOrigin,
    TabState,
)
from tabmuxd.tabs import rules
from tabmuxd.tabs.lease_rules import Claim

from tests.domain.values import ADMIN, FRIEND, LEASE, NOW, OWNER, SESSION, STRANGER, TAB, held, ready_tab, told

_DIALOG = Dialog(DialogKind.CONFIRM, "Leave?", "", NOW)


@pytest.mark.parametrize(
    ("caller", "shared", "pooled", "reason"),
    [
        (OWNER, True, False, None),
        (OWNER, False, False, None),
        (FRIEND, True, False, None),
        (FRIEND, False, False, "NOT_OWNER"),
        (STRANGER, True, False, "NOT_OWNER"),
        (ADMIN, True, False, None),
        (OWNER, True, True, "NOT_OWNER"),
        (ADMIN, True, True, "NOT_OWNER"),
    ],
)
def test_who_may_drive(caller: Principal, reason: str | None, *, shared: bool, pooled: bool) -> None:
    """A tab is driven by its owner, those it is shared with and `admin`; a pooled one by nobody (O-2, O-3, O-5)."""
    tab = replace(ready_tab(), shared_with=("local/b",) if shared else (), pooled=pooled)

    assert told(rules.may_drive(caller, tab)) == reason


def test_not_owner_is_silent() -> None:
    """NOT_OWNER tells the owner, and neither address nor title (O-2)."""
    refused = rules.may_drive(STRANGER, ready_tab())

    assert refused is not None
    assert refused.metadata == {"resource": TAB, "owner": "local/a"}
    assert "ecret" not in refused.message


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (TabState.OPENING, None),
        (TabState.READY, None),
        (TabState.CRASHED, "TAB_GONE"),
        (TabState.LOST, "TAB_GONE"),
        (TabState.RECOVERING, "TAB_GONE"),
        (TabState.CLOSED, "TAB_CLOSED"),
    ],
)
def test_is_there(state: TabState, reason: str | None) -> None:
    """A tab without a usable page is TAB_GONE, one that is closed for good TAB_CLOSED (O-24, TAB-03)."""
    assert told(rules.is_there(replace(ready_tab(), state=state))) == reason


def test_closed_tells_why() -> None:
    """TAB_CLOSED tells when and why; its kind differs from that of a lost one (O-25)."""
    refused = rules.is_there(rules.closed(ready_tab(), CloseCause.IDLE, NOW))
    gone = rules.is_there(rules.without_page(ready_tab(), TabState.LOST, NOW))

    assert refused is not None
    assert refused.metadata == {"tab": TAB, "close_time": NOW.isoformat(), "close_cause": "IDLE"}
    assert gone is not None
    assert gone.metadata == {"tab": TAB, "state": "LOST", "generation": "3"}


@pytest.mark.parametrize(
    ("expected", "reason"), [(0, None), (3, None), (2, "TAB_REPLACED"), (4, "TAB_REPLACED"), (-1, "TAB_REPLACED")]
)
def test_generation(expected: int, reason: str | None) -> None:
    """An `expected_generation` that differs is TAB_REPLACED with both values; 0 means any (TAB-20)."""
    refused = rules.has_generation(ready_tab(), expected)

    assert told(refused) == reason
    if refused:
        assert refused.metadata == {"tab": TAB, "expected_generation": str(expected), "generation": "3"}


def test_dialog() -> None:
    """A dialog that is open refuses with its kind and without its text."""
    refused = rules.has_no_dialog(replace(ready_tab(), dialog=_DIALOG))

    assert rules.has_no_dialog(ready_tab()) is None
    assert refused is not None
    assert (refused.reason.value, refused.metadata) == ("DIALOG_OPEN", {"tab": TAB, "kind": "CONFIRM"})
    assert "Leave" not in refused.message


_FREE = Claim(OWNER)
_UNDER = Claim(OWNER, LEASE, held())
_ANOTHER = Claim(OWNER, "leases/other", held("leases/other"))
_LOST = Claim(OWNER, LEASE, replace(held(), end_time=NOW, end_cause=LeaseEnd.RELEASED))


@pytest.mark.parametrize(
    ("lease", "claim", "pinned", "force", "reason"),
    [
        (None, _FREE, False, False, None),
        (None, _FREE, True, False, "TAB_PINNED"),
        (None, _FREE, True, True, None),
        (None, _LOST, False, False, "LEASE_LOST:released"),
        (held(), _FREE, False, False, "LEASE_REQUIRED"),
        (held(), _FREE, False, True, "LEASE_REQUIRED"),
        (held(), _ANOTHER, True, True, "LEASE_HELD"),
        (held(), _UNDER, False, False, None),
        (held(), _UNDER, True, False, "TAB_PINNED"),
        (held(), _UNDER, True, True, None),
        (held(), _FREE, True, False, "LEASE_REQUIRED"),
        (held(session=SESSION), _FREE, False, False, "TAB_BUSY"),
        (held(session=SESSION), _FREE, True, False, "TAB_BUSY"),
        (held(session=SESSION), _FREE, False, True, None),
        (held(session=SESSION), _FREE, True, True, None),
        (held(session=SESSION), _LOST, False, True, "LEASE_LOST:released"),
    ],
)
def test_close(lease: Lease | None, claim: Claim, reason: str | None, *, pinned: bool, force: bool) -> None:
    """`force` overrides a pin and an open turn, never a client's lease (O-10, O-38, TAB-07)."""
    tab = replace(ready_tab(), pinned=pinned)

    assert told(rules.may_close(tab, lease, claim, NOW, force=force)) == reason


def _numbered(number: int, **fields: object) -> Tab:
    return replace(ready_tab(), name=f"browsers/main/tabs/{number:010d}", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tabs", "limit", "reason"),
    [
        ([], 0, "TAB_CAPACITY"),
        ([], 1, None),
        ([_numbered(1)], 1, "TAB_CAPACITY"),
        ([_numbered(1), _numbered(2)], 1, "TAB_CAPACITY"),
        ([_numbered(1, origin=TabOrigin.POPUP)], 1, "TAB_CAPACITY"),
        ([_numbered(1, state=TabState.OPENING)], 1, "TAB_CAPACITY"),
        ([_numbered(1, state=TabState.CRASHED)], 1, "TAB_CAPACITY"),
        ([_numbered(1, state=TabState.LOST)], 1, None),
        ([_numbered(1, state=TabState.CLOSED)], 1, None),
        ([_numbered(1, origin=TabOrigin.ADOPTED)], 1, None),
        ([_numbered(1, origin=TabOrigin.FOREIGN)], 1, None),
        ([replace(ready_tab(), name="browsers/other/tabs/0000000001")], 1, None),
    ],
)
def test_room(tabs: list[Tab], limit: int, reason: str | None) -> None:
    """Tabs of ours with a target count, those of others do not, and a limit of 0 is zero (TAB-10, TAB-23, TAB-24)."""
    refused = rules.has_room(tabs, "browsers/main", BrowserLimits(max_tab_count=limit))

    assert told(refused) == reason
    if refused:
        assert refused.metadata == {"browser": "browsers/main", "limit": str(limit)}
        assert refused.retry_delay == timedelta(seconds=5)


def _updated(update: TabUpdate, caller: Principal = OWNER, tab: Tab | None = None) -> Tab | str:
    try:
        return rules.updated(tab or ready_tab(), update, caller)
    except Refused as refused:
        return refused.reason.value


def test_update_by_presence() -> None:
    """What an update does not set stays, and what it sets may be nothing: unpinned, without a group (TAB-21)."""
    tab = replace(ready_tab(), pinned=True, group="g", labels={"a": "1", "b": "2"})

    assert _updated(TabUpdate(TAB), tab=tab) == tab
    assert _updated(TabUpdate(TAB, pinned=False), tab=tab) == replace(tab, pinned=False)
    assert _updated(TabUpdate(TAB, group=""), tab=tab) == replace(tab, group="")
    assert _updated(TabUpdate(TAB, dialog_policy=DialogPolicy.ACCEPT), tab=tab) == replace(
        tab, dialog_policy=DialogPolicy.ACCEPT
    )
    assert _updated(TabUpdate(TAB, labels={"a": "", "c": "3"}), tab=tab) == replace(tab, labels={"b": "2", "c": "3"})


@pytest.mark.parametrize(
    ("share", "unshare", "shared"),
    [
        (("local/c",), (), ("local/b", "local/c")),
        (("local/b",), (), ("local/b",)),
        (("local/c", "local/c"), (), ("local/b", "local/c")),
        ((), ("local/b",), ()),
        ((), ("local/z",), ("local/b",)),
        (("local/c",), ("local/b", "local/c"), ()),
    ],
)
def test_sharing(share: tuple[str, ...], unshare: tuple[str, ...], shared: tuple[str, ...]) -> None:
    """Names stand once beside those there before; one that is taken out is out (O-3)."""
    update = TabUpdate(TAB, share_with=share, unshare_with=unshare)

    assert _updated(update) == replace(ready_tab(), shared_with=shared)


@pytest.mark.parametrize(
    ("update", "caller", "tab", "reason"),
    [
        (TabUpdate(TAB, expected_revision=8), OWNER, ready_tab(), "REVISION_MISMATCH"),
        (TabUpdate(TAB, pinned=True), OWNER, replace(ready_tab(), state=TabState.CLOSED), "TAB_CLOSED"),
        (TabUpdate(TAB, share_with=("local/c",)), FRIEND, ready_tab(), "NOT_OWNER"),
        (TabUpdate(TAB, unshare_with=("local/a",)), FRIEND, ready_tab(), "NOT_OWNER"),
        (TabUpdate(TAB, labels={f"k{number}": "v" for number in range(17)}), OWNER, ready_tab(), "INVALID_FIELD"),
        (TabUpdate(TAB, share_with=tuple(f"p{n}" for n in range(16))), OWNER, ready_tab(), "INVALID_FIELD"),
    ],
)
def test_update_refused(update: TabUpdate, caller: Principal, tab: Tab, reason: str) -> None:
    """An update is refused whole: another revision, a closed tab, another's list, too much (O-3, TAB-20)."""
    assert _updated(update, caller, tab) == reason


def test_update_allowed() -> None:
    """The revision named fits, `admin` shares, and the sums may just reach their limits (O-5)."""
    sixteen = {f"k{number}": "v" for number in range(16)}
    fifteen = tuple(f"p{number}" for number in range(15))

    assert _updated(TabUpdate(TAB, expected_revision=9, labels=sixteen)) == replace(ready_tab(), labels=sixteen)
    assert _updated(TabUpdate(TAB, share_with=fifteen), ADMIN) == replace(
        ready_tab(), shared_with=("local/b", *fifteen)
    )
    assert _updated(TabUpdate(TAB, pinned=True), FRIEND) == replace(ready_tab(), pinned=True)


def test_closed() -> None:
    """A closed tab serves nothing and is not in front; who had it and what it showed stay readable (O-25)."""
    tab = replace(ready_tab(), session=SESSION, lease=LEASE, front=True, dialog=_DIALOG)

    assert rules.closed(tab, CloseCause.CLIENT, NOW) == replace(
        ready_tab(), state=TabState.CLOSED, close_cause=CloseCause.CLIENT, close_time=NOW
    )


def test_without_page() -> None:
    """A tab without a page is not in front and shows no dialog; who had it, held it and used it stays (O-16, O-112)."""
    tab = replace(ready_tab(), session=SESSION, lease=LEASE, front=True, dialog=_DIALOG)

    assert rules.without_page(tab, TabState.CRASHED, NOW) == replace(
        ready_tab(),
        state=TabState.CRASHED,
        session=SESSION,
        lease=LEASE,
        health=TabHealth(HealthStatus.CRASHED, NOW),
    )


@pytest.mark.parametrize(
    ("wanted", "tab", "listed"),
    [
        (TabFilter(), ready_tab(), True),
        (TabFilter(), replace(ready_tab(), state=TabState.CLOSED), False),
        (TabFilter(), replace(ready_tab(), state=TabState.LOST), True),
        (TabFilter(states=frozenset({TabState.CLOSED})), replace(ready_tab(), state=TabState.CLOSED), True),
        (TabFilter(states=frozenset({TabState.CLOSED})), ready_tab(), False),
        (TabFilter(browser="browsers/main"), ready_tab(), True),
        (TabFilter(browser="browsers/mai"), ready_tab(), False),
        (TabFilter(origins=frozenset({TabOrigin.POPUP})), ready_tab(), False),
        (TabFilter(origins=frozenset({TabOrigin.POPUP, TabOrigin.MANAGED})), ready_tab(), True),
        (TabFilter(groups=frozenset({"g"})), ready_tab(), False),
        (TabFilter(groups=frozenset({"g", "h"})), replace(ready_tab(), group="h"), True),
        (TabFilter(labels={"a": "1"}), replace(ready_tab(), labels={"a": "1", "b": "2"}), True),
        (TabFilter(labels={"a": "1", "b": "3"}), replace(ready_tab(), labels={"a": "1", "b": "2"}), False),
        (TabFilter(labels={"a": ""}), ready_tab(), False),
    ],
)
def test_filter(wanted: TabFilter, tab: Tab, *, listed: bool) -> None:
    """A list holds what matches every field that is set; closed ones on request."""
    assert rules.matches(tab, wanted) is listed


def test_counts() -> None:
    """Each tab that has not closed is in exactly one count; pooled ones are told beside (TAB-11)."""
    tabs = [
        _numbered(1),
        _numbered(2, pooled=True),
        _numbered(3, origin=TabOrigin.POPUP),
        _numbered(4, origin=TabOrigin.ADOPTED),
        _numbered(5, state=TabState.LOST),
        _numbered(6, state=TabState.LOST, origin=TabOrigin.POPUP),
        _numbered(7, state=TabState.CRASHED),
        _numbered(8, state=TabState.CLOSED),
        replace(ready_tab(), name="browsers/other/tabs/0000000009"),
    ]

    assert rules.counts(tabs, "browsers/main", 4) == TabCounts(
        managed_count=3, popup_count=1, adopted_count=1, lost_count=2, foreign_count=4, pooled_count=1
    )


@pytest.mark.parametrize(
    ("before", "key", "generation", "another"),
    [
        (Browser("browsers/main", BrowserState.UNREACHABLE, Ownership.LAUNCHED), "p1", 1, True),
        (
            Browser("browsers/main", BrowserState.UNREACHABLE, Ownership.LAUNCHED, generation=4, process_key="p1"),
            "p1",
            4,
            False,
        ),
        (
            Browser("browsers/main", BrowserState.UNREACHABLE, Ownership.LAUNCHED, generation=4, process_key="p1"),
            "p2",
            5,
            True,
        ),
    ],
)
def test_browser_after_connect(before: Browser, key: str, generation: int, *, another: bool) -> None:
    """A browser's generation grows exactly when another process answers."""
    after = rules.browser_after_connect(before, process_key=key, product="C/1", endpoint="e", headless=True)

    assert after == (
        replace(before, process_key=key, product="C/1", endpoint="e", headless=True, generation=generation),
        another,
    )
