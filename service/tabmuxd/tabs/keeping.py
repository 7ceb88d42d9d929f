"""Which tabs are kept and which may go: decisions over plain values, for jobs, limits and calls alike.

Whoever closes a tab judges it again right before, under its lock: what is decided here holds for one moment only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Final

from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState

LOST_TIMEOUT: Final = timedelta(minutes=10)

_WITH_TARGET: Final = frozenset({TabState.OPENING, TabState.READY, TabState.CRASHED, TabState.RECOVERING})


class SkipReason(IntEnum):
    """Why `CloseTabs` leaves a tab alone; numbers as in `CloseTabsOutcome.SkipReason`."""

    NONE = 0
    FRONT = 1
    PINNED = 2
    BUSY = 3
    LEASED = 4


@dataclass(frozen=True, slots=True)
class Standing:
    """One tab and what keeps it: the live lease that holds it, and whether calls are at work on it or wait for it.

    `opener_in_use`: it is a popup whose opener is held, serves a session, or is at work.
    """

    tab: Tab
    lease: Lease | None = None
    at_work: bool = False
    opener_in_use: bool = False

    @property
    def serves_turn(self) -> bool:
        """Whether the service itself holds it for an open turn."""
        return self.lease is not None and bool(self.lease.session)

    @property
    def busy(self) -> bool:
        """Whether it serves an open turn, is being opened or brought back, or a call is at work on it."""
        return self.serves_turn or self.at_work or self.tab.state in (TabState.OPENING, TabState.RECOVERING)

    @property
    def leased(self) -> bool:
        """Whether a client's lease holds it."""
        return self.lease is not None and not self.lease.session

    def idle(self, now: datetime) -> timedelta:
        """How long it has been without activity; never negative."""
        return max(timedelta(0), now - self.tab.last_active_time)


def counts_to_limit(tab: Tab) -> bool:
    """Whether the tab is one of those that `max_tab_count` limits."""
    return tab.origin in (TabOrigin.MANAGED, TabOrigin.POPUP) and tab.state in _WITH_TARGET


def may_go(standing: Standing) -> bool:
    """Whether the service may close the tab by itself at all: never one adopted, pinned, held or busy."""
    return (
        standing.tab.origin in (TabOrigin.MANAGED, TabOrigin.POPUP)
        and not standing.tab.pinned
        and not standing.leased
        and not standing.busy
        and not standing.opener_in_use
        and standing.tab.state is not TabState.CLOSED
    )


def is_idle(standing: Standing, limits: BrowserLimits, now: datetime) -> bool:
    """Whether idle clean-up closes the tab: unused for longer than the idle time, not in the pool."""
    return (
        limits.idle_timeout is not None
        and may_go(standing)
        and not standing.tab.pooled
        and standing.tab.state is TabState.READY
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


def room_needed(tabs: Iterable[Tab], limits: BrowserLimits) -> bool:
    """Whether one more tab would exceed `max_tab_count`."""
    return sum(map(counts_to_limit, tabs)) >= limits.max_tab_count


def make_room(standings: Sequence[Standing], caller: str, limits: BrowserLimits, now: datetime) -> Tab | None:
    """The tab to close so that this principal can open one; None if none may be closed.

    First the pooled tab unused for longest; else the one idle for longest of those past the idle time, the caller's own
    unused for `reclaim_after`, and those that the caller's sessions opened and that serve no open turn.
    """
    able = [standing for standing in standings if may_go(standing) and counts_to_limit(standing.tab)]
    pooled = [standing for standing in able if standing.tab.pooled]
    chosen = pooled or [standing for standing in able if _may_be_reclaimed(standing, caller, limits, now)]
    return min(chosen, key=_oldest_use).tab if chosen else None


def _may_be_reclaimed(standing: Standing, caller: str, limits: BrowserLimits, now: datetime) -> bool:
    idle = standing.idle(now)
    if limits.idle_timeout is not None and idle > limits.idle_timeout:
        return True
    if standing.tab.owner != caller:
        return False
    if standing.tab.session and standing.tab.origin is TabOrigin.MANAGED:
        return True
    return limits.reclaim_after is not None and idle >= limits.reclaim_after


def pool_excess(standings: Sequence[Standing], limits: BrowserLimits, now: datetime) -> list[tuple[Tab, CloseCause]]:
    """Pooled tabs that have to close, with the cause: above the limits the ones unused for longest, and the expired."""
    pooled = sorted((s for s in standings if s.tab.pooled and not s.busy), key=_oldest_use)
    excess: dict[str, tuple[Tab, CloseCause]] = {}
    for standing in pooled:
        if limits.pool_timeout is not None and standing.idle(now) > limits.pool_timeout:
            excess[standing.tab.name] = (standing.tab, CloseCause.IDLE)
    kept = [standing.tab for standing in pooled if standing.tab.name not in excess]
    for group in {tab.group for tab in kept}:
        members = [tab for tab in kept if tab.group == group]
        for tab in members[: max(0, len(members) - limits.max_group_pooled_tab_count)]:
            excess[tab.name] = (tab, CloseCause.CAPACITY)
    kept = [tab for tab in kept if tab.name not in excess]
    for tab in kept[: max(0, len(kept) - limits.max_pooled_tab_count)]:
        excess[tab.name] = (tab, CloseCause.CAPACITY)
    return list(excess.values())


def may_be_pooled(standing: Standing, standings: Sequence[Standing], limits: BrowserLimits) -> bool:
    """Whether a tab that is given back goes to the pool of its group: READY, opened by the service, and room for it."""
    tab = standing.tab
    if tab.state is not TabState.READY or tab.origin is not TabOrigin.MANAGED or tab.pinned or tab.dialog is not None:
        return False
    pooled = [other.tab for other in standings if other.tab.pooled]
    in_group = sum(other.group == tab.group for other in pooled)
    return len(pooled) < limits.max_pooled_tab_count and in_group < limits.max_group_pooled_tab_count


def skip_reason(standing: Standing, *, in_front: bool) -> SkipReason:
    """Why `CloseTabs` leaves the tab alone: the first that applies; NONE if it is closed."""
    if in_front:
        return SkipReason.FRONT
    if standing.tab.pinned:
        return SkipReason.PINNED
    if standing.busy:
        return SkipReason.BUSY
    return SkipReason.LEASED if standing.leased else SkipReason.NONE


def _oldest_use(standing: Standing) -> tuple[datetime, str]:
    return standing.tab.last_active_time, standing.tab.name
