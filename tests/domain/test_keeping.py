"""Which tabs are kept and which may go, decided over plain values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.orders import TabOrder, TabsOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import Session, TabSource
from tabmuxd.resources.tab import CloseCause, Dialog, DialogKind, SkipReason, Tab, TabOrigin, TabState
from tabmuxd.tabs import keeping
from tabmuxd.tabs.keeping import Standing

from tests.domain.values import ADMIN, FRIEND, NOW, OWNER, chat_session, held, ready_tab

LIMITS = BrowserLimits()
MINUTE = timedelta(minutes=1)
MOMENT = timedelta(microseconds=1)
CLIENT_LEASE = held()
TURN_LEASE = replace(held(), session="sessions/s", owner="")

Fields: TypeAlias = Any


def tab(number: int = 1, *, idle: timedelta = timedelta(0), **fields: Fields) -> Tab:
    """A READY tab of `local/a` that was not used for `idle`."""
    changed = {"name": f"browsers/main/tabs/{number:010d}", "last_active_time": NOW - idle, **fields}
    return replace(ready_tab(), **changed)


def standing(of: Tab, lease: Lease | None = None, **more: bool) -> Standing:
    """The tab and what keeps it."""
    return Standing(of, lease, **more)


no_session = dict[str, Session]().get


OLD = 31 * MINUTE
KEPT = [
    standing(tab(idle=OLD, pinned=True)),
    standing(tab(idle=OLD), CLIENT_LEASE),
    standing(tab(idle=OLD), TURN_LEASE),
    standing(tab(idle=OLD), at_work=True),
    standing(tab(idle=OLD, origin=TabOrigin.ADOPTED)),
    standing(tab(idle=OLD, state=TabState.OPENING)),
    standing(tab(idle=OLD, state=TabState.RECOVERING)),
    standing(tab(idle=OLD, state=TabState.CLOSED)),
]
KEPT_IDS = ["pinned", "leased", "serving", "at work", "adopted", "opening", "recovering", "closed"]


@pytest.mark.parametrize("kept", KEPT, ids=KEPT_IDS)
def test_what_the_service_never_closes(kept: Standing) -> None:
    """A pinned, leased, serving, busy or adopted tab closes neither by idling nor for room (O-34, O-42, O-48, O-51)."""
    found = (
        keeping.may_go(kept),
        keeping.is_idle(kept, LIMITS, NOW),
        keeping.make_room([kept], "local/a", LIMITS, NOW),
    )
    assert found == (False, False, None)


@pytest.mark.parametrize(
    ("seen", "limits", "idle"),
    [
        (standing(tab(idle=30 * MINUTE)), LIMITS, False),
        (standing(tab(idle=30 * MINUTE + MOMENT)), LIMITS, True),
        (standing(tab(idle=25 * MINUTE)), LIMITS, False),
        (standing(tab(idle=OLD, state=TabState.OPENING, origin=TabOrigin.POPUP)), LIMITS, True),
        (standing(tab(idle=MINUTE, state=TabState.OPENING, origin=TabOrigin.POPUP)), LIMITS, False),
        (standing(tab(idle=-OLD)), LIMITS, False),
        (standing(tab(idle=OLD)), BrowserLimits(idle_timeout=None), False),
        (standing(tab(idle=MOMENT)), BrowserLimits(idle_timeout=timedelta(0)), True),
        (standing(tab(idle=OLD, origin=TabOrigin.POPUP)), LIMITS, True),
        (standing(tab(idle=OLD, origin=TabOrigin.POPUP), opener_in_use=True), LIMITS, False),
        (standing(tab(idle=OLD, pooled=True, owner="")), LIMITS, False),
        (standing(tab(idle=OLD, state=TabState.CRASHED)), LIMITS, False),
        (standing(tab(idle=OLD, session="sessions/s")), LIMITS, True),
    ],
)
def test_idle(seen: Standing, limits: BrowserLimits, *, idle: bool) -> None:
    """A tab idle for exactly its time stays, an older one goes; reading does not count (O-48, O-50, O-119, TAB-08)."""
    assert keeping.is_idle(seen, limits, NOW) == idle


@pytest.mark.parametrize(
    ("state", "since", "pinned", "overdue"),
    [
        (TabState.LOST, 10 * MINUTE, False, False),
        (TabState.LOST, 10 * MINUTE + MOMENT, False, True),
        (TabState.CRASHED, 11 * MINUTE, False, True),
        (TabState.LOST, 11 * MINUTE, True, False),
        (TabState.READY, 11 * MINUTE, False, False),
        (TabState.RECOVERING, 11 * MINUTE, False, False),
    ],
)
def test_overdue(state: TabState, since: timedelta, *, pinned: bool, overdue: bool) -> None:
    """A tab that stays crashed or lost for over 10 min closes for good, unless it is pinned (O-111)."""
    seen = standing(tab(state=state, pinned=pinned, update_time=NOW - since))
    assert keeping.is_overdue(seen, NOW) == overdue


def test_popup_of_one_in_use() -> None:
    """A popup stays while its opener is held, at work or not idle, then goes by its own time (TAB-16, O-48)."""
    opener = tab(1, idle=OLD, lease="leases/l")
    popup = tab(2, idle=OLD, origin=TabOrigin.POPUP, opener=opener.name)
    live = replace(CLIENT_LEASE, name="leases/l", expire_time=NOW + MOMENT)
    found = [
        [
            keeping.is_idle(seen, LIMITS, NOW)
            for seen in keeping.standings([first, popup], leases, at_work, LIMITS, NOW, no_session)
        ]
        for first, leases, at_work in [
            (opener, [live], frozenset[str]()),
            (opener, [replace(live, expire_time=NOW)], frozenset[str]()),
            (opener, [], frozenset({opener.name})),
            (tab(1, idle=MINUTE), [], frozenset[str]()),
            (tab(3, idle=OLD), [], frozenset[str]()),
        ]
    ]
    assert found == [[False, False], [True, True], [False, False], [False, False], [True, True]]


@pytest.mark.parametrize(
    ("standings", "number"),
    [
        ([], None),
        ([standing(tab(1, idle=OLD)), standing(tab(2, pooled=True, owner=""))], 2),
        ([standing(tab(1, pooled=True, owner="", idle=MINUTE)), standing(tab(2, pooled=True, owner=""))], 1),
        ([standing(tab(1, idle=OLD)), standing(tab(2, idle=2 * OLD))], 2),
        ([standing(tab(1, idle=OLD, owner="local/b")), standing(tab(2, idle=6 * MINUTE))], 1),
        ([standing(tab(1, idle=29 * MINUTE, owner="local/b")), standing(tab(2, idle=6 * MINUTE))], 2),
        ([standing(tab(1, idle=29 * MINUTE, owner="local/b")), standing(tab(2, idle=4 * MINUTE))], None),
        ([standing(tab(1, idle=5 * MINUTE))], 1),
        ([standing(tab(1, idle=MINUTE, session="sessions/s"))], 1),
        ([standing(tab(1, idle=MINUTE, session="sessions/s", owner="local/b"))], None),
        ([standing(tab(1, idle=MINUTE, session="sessions/s"), taken=True)], None),
        ([standing(tab(1, idle=5 * MINUTE, session="sessions/s"), taken=True)], 1),
        ([standing(tab(1, idle=MINUTE, session="sessions/s"), TURN_LEASE)], None),
        ([standing(tab(1, idle=OLD, state=TabState.LOST)), standing(tab(2, idle=6 * MINUTE))], 2),
        ([standing(tab(1, idle=6 * MINUTE, origin=TabOrigin.POPUP), opener_in_use=True)], None),
        ([standing(tab(1, idle=6 * MINUTE, state=TabState.CRASHED))], 1),
    ],
)
def test_room(standings: Sequence[Standing], number: int | None) -> None:
    """Room is made by a pooled tab, else the one idle for longest of those the principal may take (O-42, TAB-10)."""
    chosen = keeping.make_room(standings, "local/a", LIMITS, NOW)
    assert chosen == (None if number is None else standings[number - 1].tab)


@pytest.mark.parametrize(
    ("source", "taken"), [(TabSource.TAKEN, True), (TabSource.OPENED, False), (TabSource.POOLED, False)]
)
def test_taken(source: TabSource, *, taken: bool) -> None:
    """A tab that a session found open is not one that the session opened (O-42, O-134)."""
    session = replace(chat_session(), tab_source=source)
    sessions = {session.name: session}.get
    tabs = [tab(1, session=session.name), tab(2)]
    found = keeping.standings(tabs, [], frozenset(), LIMITS, NOW, sessions)
    assert [each.taken for each in found] == [taken, False]


def test_reclaim_of_zero() -> None:
    """With `reclaim_after` 0 the caller's own tab idle for longest goes, and with None none (TAB-24, TAB-23)."""
    standings = [standing(tab(1)), standing(tab(2, idle=MOMENT))]
    found = [
        keeping.make_room(standings, "local/a", BrowserLimits(reclaim_after=after), NOW)
        for after in (timedelta(0), None)
    ]
    assert found == [standings[1].tab, None]


def test_what_counts() -> None:
    """Popups count to the limit, lost and adopted tabs do not, and a limit of 0 is zero (O-44, TAB-23)."""
    tabs = [
        tab(1),
        tab(2, origin=TabOrigin.POPUP),
        tab(3, origin=TabOrigin.ADOPTED),
        tab(4, state=TabState.LOST),
        tab(5, state=TabState.CRASHED),
        tab(6, pooled=True, owner=""),
    ]
    assert [keeping.free_count(tabs, BrowserLimits(max_tab_count=limit)) for limit in (5, 4, 0)] == [1, 0, -4]


def test_hand_over() -> None:
    """The pooled tab of the group that was used last is handed over, and never one that is at work (O-45, LSE-01)."""
    standings = [
        standing(tab(1, group="g", pooled=True, owner="", idle=MINUTE)),
        standing(tab(2, group="g", pooled=True, owner="")),
        standing(tab(3, group="h", pooled=True, owner="")),
        standing(tab(4, group="g")),
    ]
    busy = [standings[0], replace(standings[1], at_work=True)]
    order = TabOrder(group="g", from_pool=True)
    opened = [standings[0], replace(standings[1], tab=replace(standings[1].tab, has_opened=True))]
    found = [keeping.from_pool(seen, order) for seen in (standings, busy, opened, standings[2:])]
    assert found == [standings[1].tab, standings[0].tab, standings[0].tab, None]


@pytest.mark.parametrize(
    ("given", "pooled"),
    [
        ({}, True),
        ({"group": ""}, False),
        ({"state": TabState.CRASHED}, False),
        ({"origin": TabOrigin.POPUP}, False),
        ({"origin": TabOrigin.ADOPTED}, False),
        ({"pinned": True}, False),
        ({"dialog": Dialog(DialogKind.ALERT, "", "", NOW)}, False),
        ({"group": "full"}, False),
        ({"has_opened": True}, False),
    ],
)
def test_giving_back(given: dict[str, Any], *, pooled: bool) -> None:
    """A tab is pooled if it is READY, opened by the service, and its group has room; else it closes (O-47).

    One whose page has opened another is not, since that one may drive it (O-2, O-45).
    """
    others = [tab(number, group="full", pooled=True, owner="") for number in (2, 3, 4)]
    given_back = replace(tab(1, group="g"), **given)
    assert keeping.may_be_pooled(given_back, [given_back, *others], LIMITS) == pooled
    assert not keeping.may_be_pooled(given_back, others, BrowserLimits(max_pooled_tab_count=3))


def test_pooled_is_nobodys() -> None:
    """A pooled tab keeps its group, and has no owner, sharing, labels, session, lease or pin (O-45)."""
    before = tab(1, group="g", labels={"a": "b"}, session="sessions/s", lease="leases/l", idle=MINUTE)
    nothing: dict[str, Any] = {"owner": "", "labels": {}, "shared_with": (), "session": "", "lease": ""}
    expected = replace(tab(1, group="g", pooled=True, left_at=before.uri), **nothing)
    assert keeping.pooled(before, NOW) == expected


def test_pool_excess() -> None:
    """Above 3 of a group, 8 in all or 30 min the oldest close, and the newest are kept (O-47, LSE-10).

    One that has opened a page in the pool is handed over to nobody, and closes too (O-45).
    """
    grouped = [tab(number, group="g", pooled=True, owner="", idle=number * MINUTE) for number in range(1, 6)]
    many = [tab(10 + number, group=f"g{number}", pooled=True, owner="", idle=number * MINUTE) for number in range(9)]
    old = tab(30, group="o", pooled=True, owner="", idle=OLD)
    opened = tab(31, group="o", pooled=True, owner="", has_opened=True)
    chosen = (grouped, many, [old], [opened])
    found = [keeping.pool_excess([standing(each) for each in tabs], LIMITS, NOW) for tabs in chosen]
    assert found == [
        [(grouped[4], CloseCause.CAPACITY), (grouped[3], CloseCause.CAPACITY)],
        [(many[8], CloseCause.CAPACITY)],
        [(old, CloseCause.IDLE)],
        [(opened, CloseCause.CAPACITY)],
    ]


@pytest.mark.parametrize(
    ("seen", "in_front", "reason"),
    [
        (standing(tab()), False, SkipReason.NONE),
        (standing(tab(pinned=True), CLIENT_LEASE), True, SkipReason.FRONT),
        (standing(tab(pinned=True), CLIENT_LEASE, at_work=True), False, SkipReason.PINNED),
        (standing(tab(), CLIENT_LEASE, at_work=True), False, SkipReason.BUSY),
        (standing(tab(), TURN_LEASE), False, SkipReason.BUSY),
        (standing(tab(state=TabState.OPENING)), False, SkipReason.BUSY),
        (standing(tab(state=TabState.OPENING, origin=TabOrigin.POPUP)), False, SkipReason.NONE),
        (standing(tab(), CLIENT_LEASE), False, SkipReason.LEASED),
        (standing(tab(origin=TabOrigin.ADOPTED)), False, SkipReason.NONE),
    ],
)
def test_skip_reason(seen: Standing, reason: SkipReason, *, in_front: bool) -> None:
    """CloseTabs leaves alone what is in front, pinned, busy or leased, and says the first that applies (O-39)."""
    assert keeping.skip_reason(seen, in_front=in_front) is reason


@pytest.mark.parametrize(
    ("order", "caller", "numbers"),
    [
        (TabsOrder(), OWNER, [1, 2]),
        (TabsOrder(), FRIEND, [3]),
        (TabsOrder(), ADMIN, []),
        (TabsOrder(any_owner=True), ADMIN, [1, 2, 3, 4]),
        (TabsOrder(group="g"), OWNER, [2]),
        (TabsOrder(group="g", any_owner=True), ADMIN, [2, 3, 4]),
        (TabsOrder(idle_duration=MINUTE), OWNER, [1]),
        (TabsOrder(idle_duration=MINUTE + MOMENT), OWNER, []),
        (TabsOrder(browser="browsers/other"), OWNER, []),
        (TabsOrder(browser="browsers/main"), OWNER, [1, 2]),
    ],
)
def test_chosen(order: TabsOrder, caller: Principal, numbers: list[int]) -> None:
    """CloseTabs names the caller's own tabs that meet every criterion, with `any_owner` everybody's (O-39, O-5)."""
    tabs = [
        tab(1, idle=MINUTE),
        tab(2, group="g"),
        tab(3, group="g", owner="local/b"),
        tab(4, group="g", owner="", pooled=True),
    ]
    found = [number for number, each in enumerate(tabs, 1) if keeping.is_chosen(each, order, caller, NOW)]
    assert found == numbers
