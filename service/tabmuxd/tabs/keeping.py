"""Which tabs are kept and which may go: decisions over plain values, for jobs, limits and calls alike.

Whoever closes a tab judges it again right before, while nobody else can act on it: what is decided here holds for that
moment only. Foreign pages are no tabs and never come here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.orders import TabOrder, TabsOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import Session, TabSource
from tabmuxd.resources.tab import CloseCause, SkipReason, Tab, TabOrigin, TabState

LOST_TIMEOUT: Final = timedelta(minutes=10)

_OURS: Final = frozenset({TabOrigin.MANAGED, TabOrigin.POPUP})
_WITH_TARGET: Final = frozenset({TabState.OPENING, TabState.READY, TabState.CRASHED, TabState.RECOVERING})


@dataclass(frozen=True, slots=True)
class Standing:
    """One tab and what keeps it: the live lease that holds it, and whether a call is at work on it.

    `opener_in_use`: it is a popup, and its opener is held, at work or not idle yet. `taken`: the session that it serves
    found it open.
    """

    tab: Tab
    lease: Lease | None = None
    at_work: bool = False
    opener_in_use: bool = False
    taken: bool = False

    @property
    def serves_turn(self) -> bool:
        """Whether the service itself holds it for an open turn."""
        return self.lease is not None and bool(self.lease.session)

    @property
    def leased(self) -> bool:
        """Whether a client's lease holds it."""
        return self.lease is not None and not self.lease.session

    @property
    def busy(self) -> bool:
        """Whether it serves an open turn, is being opened or brought back, or a call is at work on it."""
        return self.serves_turn or self.at_work or _is_unsettled(self.tab)

    def idle(self, now: datetime) -> timedelta:
        """How long it has been without activity; never negative."""
        return max(timedelta(0), now - self.tab.last_active_time)


def _is_unsettled(tab: Tab) -> bool:
    return tab.state is TabState.RECOVERING or (tab.state is TabState.OPENING and not _never_answered(tab))


def _never_answered(tab: Tab) -> bool:
    """Whether it is a popup whose page has not answered yet, and perhaps never will: nobody waits for it."""
    return tab.state is TabState.OPENING and tab.origin is TabOrigin.POPUP


def standings(  # noqa: PLR0917 - all that says how tabs stand
    tabs: Sequence[Tab],
    leases: Iterable[Lease],
    at_work: frozenset[str],
    limits: BrowserLimits,
    now: datetime,
    session_of: Callable[[str], Session | None],
) -> list[Standing]:
    """Every tab with what keeps it.

    `at_work` are the names of those that a call is at work on; `session_of` gives the session of a name.
    """
    held = {lease.name: lease for lease in leases if lease.session or lease.expire_time > now}

    def taken(tab: Tab) -> bool:
        session = session_of(tab.session) if tab.session else None
        return session is not None and session.tab_source is TabSource.TAKEN

    alone = {tab.name: Standing(tab, held.get(tab.lease), tab.name in at_work, taken=taken(tab)) for tab in tabs}
    return [
        replace(standing, opener_in_use=_in_use(alone.get(standing.tab.opener), limits, now))
        for standing in alone.values()
    ]


def _in_use(opener: Standing | None, limits: BrowserLimits, now: datetime) -> bool:
    if opener is None:
        return False
    idle = limits.idle_timeout is not None and opener.idle(now) > limits.idle_timeout
    return opener.leased or opener.busy or not idle


def may_go(standing: Standing) -> bool:
    """Whether the service may close the tab by itself at all: never one adopted, pinned, held or busy."""
    return (
        standing.tab.origin in _OURS
        and not standing.tab.pinned
        and not standing.leased
        and not standing.busy
        and standing.tab.state is not TabState.CLOSED
    )


def is_idle(standing: Standing, limits: BrowserLimits, now: datetime) -> bool:
    """Whether idle clean-up closes the tab: unused for longer than the idle time, and its opener not in use either.

    A pooled one goes by the rules of the pool, one that is crashed or lost by those of recovery.
    """
    return (
        limits.idle_timeout is not None
        and may_go(standing)
        and not standing.opener_in_use
        and not standing.tab.pooled
        and (standing.tab.state is TabState.READY or _never_answered(standing.tab))
        and standing.idle(now) > limits.idle_timeout
    )


def is_overdue(standing: Standing, now: datetime, lost_timeout: timedelta = LOST_TIMEOUT) -> bool:
    """Whether a tab that is CRASHED or LOST has been so for too long; it is then closed for good unless pinned."""
    tab = standing.tab
    return (
        tab.state in (TabState.CRASHED, TabState.LOST)
        and not tab.pinned
        and tab.update_time is not None
        and now - tab.update_time > lost_timeout
    )


def counts_to_limit(tab: Tab) -> bool:
    """Whether the tab is one of those that `max_tab_count` limits; a LOST one has no target and does not count."""
    return tab.origin in _OURS and tab.state in _WITH_TARGET


def free_count(tabs: Iterable[Tab], limits: BrowserLimits) -> int:
    """How many more tabs may be opened; below zero where popups have exceeded the limit."""
    return limits.max_tab_count - sum(map(counts_to_limit, tabs))


def make_room(all_standings: Sequence[Standing], caller: str, limits: BrowserLimits, now: datetime) -> Tab | None:
    """The tab to close so that this principal can open one; None if none may be closed.

    First the pooled tab unused for longest; else the one idle for longest of those past the idle time, the caller's own
    unused for `reclaim_after`, and those that the caller's sessions opened and that serve no open turn.
    """
    able = [standing for standing in all_standings if counts_to_limit(standing.tab) and may_go(standing)]
    pooled = [standing for standing in able if standing.tab.pooled]
    chosen = pooled or [standing for standing in able if may_be_reclaimed(standing, caller, limits, now)]
    return min(chosen, key=_last_use).tab if chosen else None


def may_be_reclaimed(standing: Standing, caller: str, limits: BrowserLimits, now: datetime) -> bool:
    """Whether the tab may be closed to make room for this principal."""
    if not may_go(standing):
        return False
    if standing.tab.pooled or is_idle(standing, limits, now):
        return True
    if standing.tab.owner != caller:
        return False
    if standing.tab.session and not standing.taken and standing.tab.origin is TabOrigin.MANAGED:
        return True
    idle = standing.idle(now)
    return limits.reclaim_after is not None and idle >= limits.reclaim_after and not _kept_by_opener(standing)


def _kept_by_opener(standing: Standing) -> bool:
    return standing.tab.origin is TabOrigin.POPUP and standing.opener_in_use


def from_pool(all_standings: Sequence[Standing], order: TabOrder) -> Tab | None:
    """The pooled tab to hand over for this order, the one used last of its group; None where there is none."""
    pooled = [
        standing
        for standing in all_standings
        if standing.tab.pooled
        and standing.tab.group == order.group
        and standing.tab.state is TabState.READY
        and not standing.tab.has_opened
        and not standing.busy
    ]
    return max(pooled, key=_last_use).tab if pooled else None


def may_be_pooled(tab: Tab, tabs: Iterable[Tab], limits: BrowserLimits) -> bool:
    """Whether a tab that is given back goes to the pool of its group: READY, opened by the service, and room for it.

    One whose page has opened another does not: that one may hold its window by reference, and so would drive it.
    """
    if tab.state is not TabState.READY or tab.origin is not TabOrigin.MANAGED or not tab.group:
        return False
    if tab.pinned or tab.dialog is not None or tab.pooled or tab.has_opened:
        return False
    pooled = [other for other in tabs if other.pooled]
    in_group = sum(other.group == tab.group for other in pooled)
    return len(pooled) < limits.max_pooled_tab_count and in_group < limits.max_group_pooled_tab_count


def pooled(tab: Tab, now: datetime) -> Tab:
    """The tab as it waits in the pool: nobody's, and with nothing of the one who gave it back but its group."""
    return replace(
        tab,
        pooled=True,
        left_at=tab.uri,
        owner="",
        session="",
        lease="",
        labels={},
        shared_with=(),
        pinned=False,
        close_owed=CloseCause.NONE,
        last_active_time=now,
    )


def pool_excess(
    all_standings: Sequence[Standing], limits: BrowserLimits, now: datetime
) -> list[tuple[Tab, CloseCause]]:
    """Pooled tabs that have to close, with the cause: expired, not fit to be handed over, or the oldest in excess."""
    waiting = sorted((standing for standing in all_standings if standing.tab.pooled), key=_last_use)
    excess: list[tuple[Tab, CloseCause]] = []
    kept: list[Tab] = []
    for standing in reversed(waiting):
        in_group = sum(tab.group == standing.tab.group for tab in kept)
        if limits.pool_timeout is not None and standing.idle(now) > limits.pool_timeout:
            excess.append((standing.tab, CloseCause.IDLE))
        elif (
            standing.tab.has_opened
            or len(kept) >= limits.max_pooled_tab_count
            or in_group >= limits.max_group_pooled_tab_count
        ):
            excess.append((standing.tab, CloseCause.CAPACITY))
        else:
            kept.append(standing.tab)
    return excess[::-1]


def is_chosen(tab: Tab, order: TabsOrder, caller: Principal, now: datetime) -> bool:
    """Whether `CloseTabs` names the tab: one of the caller's own, or of anybody, that meets every criterion."""
    if not order.any_owner and (tab.pooled or tab.owner != caller.name):
        return False
    return (
        (not order.browser or tab.browser_name == order.browser)
        and (not order.group or tab.group == order.group)
        and (order.idle_duration is None or Standing(tab).idle(now) >= order.idle_duration)
    )


def skip_reason(standing: Standing, *, in_front: bool) -> SkipReason:
    """Why `CloseTabs` leaves the tab alone: the first that applies; NONE if it is closed."""
    if in_front:
        return SkipReason.FRONT
    if standing.tab.pinned:
        return SkipReason.PINNED
    if standing.busy:
        return SkipReason.BUSY
    return SkipReason.LEASED if standing.leased else SkipReason.NONE


def _last_use(standing: Standing) -> tuple[datetime, str]:
    return standing.tab.last_active_time, standing.tab.name
