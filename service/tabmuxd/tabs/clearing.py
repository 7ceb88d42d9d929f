"""Closing tabs that nobody asked for by name: idle, in excess, overdue, in the way, or chosen by `CloseTabs`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Ownership
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.orders import ClosedTab, TabsOrder
from tabmuxd.resources.principal import Principal, Scope, scope_missing
from tabmuxd.resources.tab import CloseCause, SkipReason, Tab
from tabmuxd.tabs import endings, keeping
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.keeping import Standing
from tabmuxd.tabs.lines import Lines

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Wanted = Callable[[Standing, datetime], bool]
"""Whether a tab still has to go, as it stands now."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    tab: Tab
    cause: CloseCause
    wanted: Wanted


class Clearing:
    """Closes tabs one by one, each judged again at that moment, while no call can be at work on it."""

    def __init__(self, hosts: Hosts, log: Log, lines: Lines, clock: Callable[[], datetime]) -> None:
        """Closes nothing by itself."""
        self._hosts = hosts
        self._log = log
        self._lines = lines
        self._clock = clock

    # What the service decides by itself

    async def tidy(self) -> int:
        """Close what is idle, overdue, or too much in the pool; gives how many. One that cannot be closed stays."""
        closed = 0
        for host in self._hosts:
            for candidate in self._candidates(host):
                try:
                    closed += await self.close_if(candidate.tab, candidate.cause, candidate.wanted)
                except Refused as refused:
                    _log.info("tab not closed", tab=candidate.tab.name, reason=refused.reason.value)
        return closed

    def _candidates(self, host: BrowserHost) -> list[_Candidate]:
        standings, now = self.now(host)
        limits = host.options.limits
        chosen = [
            _Candidate(standing.tab, CloseCause.IDLE, lambda seen, when: keeping.is_idle(seen, limits, when))
            for standing in standings
            if keeping.is_idle(standing, limits, now)
        ]
        chosen += [
            _Candidate(standing.tab, _cause_of_loss(host, standing.tab, self._log), keeping.is_overdue)
            for standing in standings
            if keeping.is_overdue(standing, now)
        ]
        chosen += [
            _Candidate(tab, cause, lambda seen, _when: seen.tab.pooled and keeping.may_go(seen))
            for tab, cause in keeping.pool_excess(standings, limits, now)
        ]
        return chosen

    async def close_if(self, tab: Tab, cause: CloseCause, wanted: Wanted) -> bool:
        """Close the tab for the service itself if it is still `wanted` and nobody is at work on it; tells whether.

        Raises what `BrowserHost.close` raises.
        """
        host = self._hosts.of(tab.name)
        browser = self._log.live.browsers.get(host.name)
        if browser is not None and not browser.headless and _is_last_of_person(host, tab):
            return False
        async with self._lines.if_free(tab.name) as held:
            if not held or not await self._log.change(lambda changes: self._still(changes, host, tab.name, wanted)):
                return False
            await host.close(tab, cause, endings.CHANGE_CAUSES[cause])
        return True

    def _still(self, changes: Changes, host: BrowserHost, name: str, wanted: Wanted) -> bool:
        standing = self.standing(changes, host, name)
        return standing is not None and wanted(standing, changes.now)

    def standing(self, changes: Changes, host: BrowserHost, name: str) -> Standing | None:
        """The tab as it stands in this step; the caller holds its line, so no call is at work on it."""
        standings = keeping.standings(
            changes.tabs(host.name),
            changes.leases(),
            self._lines.at_work,
            host.options.limits,
            changes.now,
            changes.session,
        )
        found = next((standing for standing in standings if standing.tab.name == name), None)
        return found and replace(found, at_work=False)

    def now(self, host: BrowserHost) -> tuple[list[Standing], datetime]:
        """The tabs of a browser as they stand by what is published, and the time of that."""
        now, live = self._clock(), self._log.live
        own = [tab for tab in live.tabs.values() if tab.browser_name == host.name]
        leases, at_work = live.leases.values(), self._lines.at_work
        return keeping.standings(own, leases, at_work, host.options.limits, now, live.sessions.get), now

    # What a client asks for

    async def close_many(self, caller: Principal, order: TabsOrder) -> list[ClosedTab]:
        """Close the tabs that match, those without activity for longest first, and tell of each what was done.

        Raises SCOPE_MISSING, BROWSER_NOT_FOUND, and NO_FRONT_TAB before anything is closed.
        """
        if order.any_owner and not caller.admin:
            raise scope_missing(caller, "Closing tabs of any owner", {Scope.ADMIN})
        hosts = self._hosts.chosen(order.browser)
        fronts = {host.name: await self._front(host) for host in hosts} if order.keep_front else {}
        now = self._clock()
        chosen = sorted(
            (
                tab
                for tab in self._log.live.tabs.values()
                if tab.browser_name in self._hosts and keeping.is_chosen(tab, order, caller, now)
            ),
            key=lambda tab: (tab.last_active_time, tab.name),
        )
        work = (self._close_one(caller, order, tab, fronts.get(tab.browser_name), now) for tab in chosen)
        return [outcome for outcome in await asyncio.gather(*work) if outcome is not None]

    async def _front(self, host: BrowserHost) -> str | None:
        front = await host.front()
        if front is None and host.connected().pages and not self._log.live.browsers[host.name].headless:
            raise refuse(
                Reason.NO_FRONT_TAB,
                f"It is not certain which page of {host.name} is in front; nothing was closed. Name the tabs instead.",
                browser=host.name,
            )
        return front

    async def _close_one(
        self, caller: Principal, order: TabsOrder, tab: Tab, front: str | None, now: datetime
    ) -> ClosedTab | None:
        """What was done; None where the tab was gone or another's by the time it was looked at."""
        host = self._hosts.of(tab.name)
        idle = Standing(tab).idle(now)

        def judge(changes: Changes) -> SkipReason | None:
            standing = self.standing(changes, host, tab.name)
            if standing is None or not keeping.is_chosen(standing.tab, order, caller, changes.now):
                return None
            in_front = front is not None and standing.tab.target_id == front
            return keeping.skip_reason(replace(standing, at_work=not held), in_front=in_front)

        async with self._lines.if_free(tab.name) as held:
            skipped = await self._log.change(judge)
            if skipped is None:
                return None
            if skipped is SkipReason.NONE and not order.dry_run:
                try:
                    await host.close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)
                except Refused as refused:
                    return ClosedTab(tab.name, idle, error=refused.failure())
            return ClosedTab(tab.name, idle, skipped)


def _cause_of_loss(host: BrowserHost, tab: Tab, log: Log) -> CloseCause:
    browser = log.live.browsers.get(host.name)
    replaced = browser is not None and tab.browser_generation < browser.generation
    return CloseCause.BROWSER if replaced else CloseCause.OUTSIDE


def _is_last_of_person(host: BrowserHost, tab: Tab) -> bool:
    """Whether a person's browser with windows would end with the page of this tab, the only one there is (O-41)."""
    if host.options.ownership is not Ownership.ATTACHED or host.targets is None:
        return False
    return list(host.targets.pages) == [tab.target_id]
