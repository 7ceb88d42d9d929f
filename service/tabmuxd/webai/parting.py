"""Parting: what becomes of a tab that a session gives up, at its end or after a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import LeaseEnd
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import Session, TabDisposition, TabSource
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin
from tabmuxd.tabs import endings, keeping, lease_records, rules
from tabmuxd.tabs.service import Tabs

_OWN: Final = frozenset({TabSource.OPENED, TabSource.POOLED})


class Fate(Enum):
    """What becomes of a tab."""

    STAYS = auto()
    POOLED = auto()
    CLOSES = auto()


@dataclass(frozen=True, slots=True)
class Parting:
    """How a session parts with the tab of this name: what was `asked` for, by whom, and what is known of the tab.

    `caller` is None where the service itself does it. `at_work`: a call is at work on the tab. `limits` are those of
    its browser, None where that is not configured any more.
    """

    tab: str
    asked: TabDisposition
    caller: Principal | None
    at_work: bool
    limits: BrowserLimits | None


@asynccontextmanager
async def parting(
    tabs: Tabs, tab: str, asked: TabDisposition = TabDisposition.UNSPECIFIED, caller: Principal | None = None
) -> AsyncGenerator[Parting]:
    """How to part with this tab, which no call begins to act on meanwhile; afterwards it is closed, if that is owed."""
    async with tabs.if_free(tab) as free:
        yield Parting(tab, asked, caller, at_work=not free, limits=tabs.limits_for(tab))
    tabs.settle_owed()


def fate_of(tab: Tab, source: TabSource, asked: TabDisposition, *, kept: bool, poolable: bool) -> Fate:
    """What becomes of a tab of this `source`; `kept` is whether somebody holds or uses it.

    What cannot go to the pool is closed, but for an adopted one: that is a person's.
    """
    if kept or tab.pinned or tab.pooled or asked is TabDisposition.KEEP:
        return Fate.STAYS
    if asked is TabDisposition.CLOSE:
        return Fate.CLOSES
    if asked is TabDisposition.UNSPECIFIED and source not in _OWN:
        return Fate.STAYS
    if poolable:
        return Fate.POOLED
    return Fate.STAYS if tab.origin is TabOrigin.ADOPTED else Fate.CLOSES


def give_up(changes: Changes, session: Session, how: Parting, cause: ChangeCause) -> None:
    """Record what becomes of the tab that `session` had until this step; the service's own lease on it ends.

    The caller records the session without it. A close is only recorded as owed, so that a crash does not lose it.
    """
    tab = changes.tab(session.tab) if session.tab else None
    if tab is None or tab.ended or tab.session != session.name:
        return
    lease = changes.holder(tab)
    if lease is not None and lease.session == session.name:
        lease_records.end(changes, lease, LeaseEnd.RELEASED, cause, besides=tab.name)
        tab = replace(tab, lease="", last_active_time=changes.now)
    free = replace(tab, session="")
    match fate_of(
        tab,
        session.tab_source,
        how.asked,
        kept=_is_kept(changes, tab, how),
        poolable=how.limits is not None and keeping.may_be_pooled(tab, changes.tabs(tab.browser_name), how.limits),
    ):
        case Fate.POOLED:
            endings.give_back(changes, free, cause, _served)
        case Fate.CLOSES:
            changes.record(replace(free, close_owed=CloseCause.SESSION), cause)
        case Fate.STAYS:
            changes.record(free, cause)


def _is_kept(changes: Changes, tab: Tab, how: Parting) -> bool:
    if tab.name != how.tab or how.at_work or how.limits is None or lease_records.holder(changes, tab) is not None:
        return True
    return how.caller is not None and rules.may_drive(how.caller, tab) is not None


def _served(_changes: Changes, tab: Tab, _refused: Refused, _cause: ChangeCause) -> None:
    raise AssertionError(f"{tab.name} serves no session any more")
