"""Tabs: opened, read, changed, driven and closed for those who may."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserLimits, TabCounts
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, browser_of
from tabmuxd.resources.orders import (
    AdoptOrder,
    ClosedTab,
    NavigationOrder,
    OpenedTab,
    RecoveredTab,
    TabFilter,
    TabOrder,
    TabsOrder,
    TabUpdate,
)
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import CloseCause, LoadMilestone, Navigation, NavigationOutcome, Tab, TabState
from tabmuxd.tabs import endings, faults, keeping, rules
from tabmuxd.tabs.addresses import check_address
from tabmuxd.tabs.admission import Admission
from tabmuxd.tabs.adopting import Adoption
from tabmuxd.tabs.clearing import Clearing
from tabmuxd.tabs.driving import Driving
from tabmuxd.tabs.health import PROBE_TIMEOUT, Health
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lease_records import claim, driven, fence, grant, holder
from tabmuxd.tabs.lease_rules import Right
from tabmuxd.tabs.leases import Leases
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.looks import Looks
from tabmuxd.tabs.opening import Ready
from tabmuxd.tabs.orphans import Orphans
from tabmuxd.tabs.owed import OwedCloses
from tabmuxd.tabs.page import COMMAND_TIMEOUT, Page
from tabmuxd.tabs.recovery import Recovery
from tabmuxd.tabs.rights import Rights
from tabmuxd.tabs.room import Gate
from tabmuxd.tasks import Tasks

_PAGE_WAIT: Final = 10.0


class Tabs:
    """What the contract's `TabService` promises, over the browsers of this server."""

    def __init__(
        self,
        hosts: Hosts,
        log: Log,
        tasks: Tasks,
        random: RandomBytes,
        clock: Callable[[], datetime],
    ) -> None:
        """Nothing opens yet."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._lines = Lines()
        self._rights = Rights(log, clock)
        self.clearing = Clearing(hosts, log, self._lines, clock)
        self._adoption = Adoption(hosts, log, tasks, random)
        self._admission = Admission(hosts, log, tasks, random, self._lines, self.clearing)
        self._owed = OwedCloses(hosts, log, self._lines, tasks, clock)
        self.orphans = Orphans(hosts, log, self._owed, clock)
        self.leases = Leases(hosts, log, tasks, self._lines, random=random, clock=clock, tried_again=self._owed.knows)
        self._health = Health(hosts, log, tasks, self._lines, clock)
        self.looks = Looks(hosts, self._rights, self._health)
        self.driving = Driving(hosts, log, self._rights, self._lines, self._health)
        self.recovery = Recovery(hosts, log, tasks, self._health, random, clock)

        for host in hosts:
            host.came_up = partial(self._came_up, host)

    def __repr__(self) -> str:
        """What opens, what is at work, and what has still to be closed."""
        return f"<Tabs {self._admission} {self._lines} {self._owed} {self.orphans}>"

    def _came_up(self, host: BrowserHost) -> None:
        """A connection to a browser has begun: what has still to be closed in it is looked for."""
        self._owed.connected(host)
        self._tasks.spawn(self.orphans.sweep_browser(host), f"sweep {host.name}")

    # Reading

    @property
    def first_browser(self) -> str:
        """Name of the first browser configured: the one meant where a request names none."""
        return self._hosts.first.name

    def browser(self, name: str) -> tuple[Browser, TabCounts]:
        """A browser and its counts; BROWSER_NOT_FOUND."""
        host = self._hosts.named(name)
        browser = self._log.live.browsers[host.name]
        return browser, rules.counts(self._log.live.tabs.values(), name, len(host.foreign_targets()))

    def browsers(self) -> list[tuple[Browser, TabCounts]]:
        """All browsers that are configured, by name."""
        return [self.browser(name) for name in sorted(host.name for host in self._hosts)]

    async def get(self, name: str) -> Tab:
        """A tab, closed ones too; TAB_NOT_FOUND."""
        return await self._rights.tab(name)

    async def list(self, tab_filter: TabFilter, *, after: int, count: int) -> Sequence[tuple[int, Tab]]:
        """At most `count` tabs created after the revision `after`, each with that of its creation, oldest first."""
        self._hosts.chosen(tab_filter.browser)
        return await self._log.list_tabs(tab_filter, after=after, count=count)

    async def foreign_targets(self, browser: str) -> Sequence[tuple[str, str]]:
        """Browser and target id of each page that is not ours; an empty `browser` means all."""
        hosts = sorted(self._hosts.chosen(browser), key=lambda host: host.name)
        await asyncio.gather(*(host.look() for host in hosts))  # what is told of a new page may only be on its way
        return [(host.name, target_id) for host in hosts for target_id in host.foreign_targets()]

    # Opening

    async def create(self, caller: Principal, order: TabOrder) -> OpenedTab:
        """Open a tab for the caller; a repeat under one `request_id` gets the tab of the first, and its live lease.

        Cancelled, what has begun to open is opened all the same: a repeat finds it, and else it is closed as idle.
        """
        terms = order.lease_terms
        if terms is None:
            return await self._open_for(caller.name, order, lambda _changes, tab: tab, keep=True)
        name = self.leases.new_name()

        def leased(changes: Changes, tab: Tab) -> Tab:
            lease = grant(changes, tab, name, terms, owner=caller.name, request_id=order.request_id)
            return replace(tab, lease=lease.name)

        opened = await self._open_for(caller.name, order, leased, keep=True)
        lease = await self.leases.granted(name, opened.tab.name, caller.name, order.request_id)
        return replace(opened, lease=lease)

    async def open_for(self, owner: str, order: TabOrder, ready: Ready, gate: Gate | None = None) -> OpenedTab:
        """Open a tab for a session of `owner`; `ready` binds the two in the transaction that makes it READY.

        Cancelled, nothing is left of it. For the `gate` see `Admission.admit`.
        """
        return await self._open_for(owner, order, ready, keep=False, gate=gate)

    async def adopt(self, caller: Principal, order: AdoptOrder) -> Tab:
        """Take over a foreign page for the caller, as it is; as `Adoption.adopt`."""
        return await self._adoption.adopt(caller, order)

    async def _open_for(
        self, owner: str, order: TabOrder, ready: Ready, *, keep: bool, gate: Gate | None = None
    ) -> OpenedTab:
        """Open a tab, and bring it to the front if that was asked; `front` tells whether it is there."""
        opened = await self._admission.admit(owner, order, ready, keep=keep, gate=gate)
        if order.activate and not opened.repeated and opened.tab.state is TabState.READY:
            with contextlib.suppress(Refused):
                return replace(opened, tab=await self._bring_to_front(opened.tab, None))
        return opened

    # Changing and closing

    async def update(self, caller: Principal, update: TabUpdate) -> Tab:
        """Set labels, group, pin, dialog policy or sharing."""

        def decide(changes: Changes) -> Tab:
            tab = driven(changes, caller, update.name)
            after = rules.updated(tab, update, caller)
            return tab if after == tab else changes.record(after, ChangeCause.CLIENT)

        tab = await self._log.change(decide)
        self.recovery.notice(tab.name)
        return tab

    async def close(self, caller: Principal, name: str, *, lease: str, force: bool, pool: bool = False) -> Tab:
        """Close a tab for good, or put it in the `pool` if it can be; closing a closed one gives it as it is."""
        tab = await self.get(name)
        if refused := rules.may_drive(caller, tab):
            raise refused
        if tab.ended:
            return tab
        if force:
            # With a call at work on it, it is no tab for anybody else: what that has ordered may still come.
            async with self._lines.if_free(tab.name) as held:
                return await self._close(caller, tab.name, lease=lease, force=True, pool=pool and held)
        async with self._lines.turn(tab.name):
            return await self._close(caller, tab.name, lease=lease, force=False, pool=pool)

    async def _close(self, caller: Principal, name: str, *, lease: str, force: bool, pool: bool) -> Tab:
        host = self._hosts.of(name)

        # The last look is right before the command: once the target is gone, CLOSED is the truth, whoever holds it.
        def judge(changes: Changes) -> Tab:
            tab = driven(changes, caller, name)
            if tab.ended:
                return tab
            claimed, held = claim(changes, caller, lease), holder(changes, tab)
            if refused := rules.may_close(tab, held, claimed, changes.now, force=force):
                raise refused
            free = held is None or not held.session
            tabs, limits = changes.tabs(tab.browser_name), host.options.limits
            if pool and free and keeping.may_be_pooled(tab, tabs, limits):
                return endings.give_back(changes, tab, ChangeCause.CLIENT, host.served)
            return tab

        tab = await self._log.change(judge)
        if tab.ended or tab.pooled:
            return tab
        return await host.close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)

    async def close_many(self, caller: Principal, order: TabsOrder) -> Sequence[ClosedTab]:
        """Close the tabs that match; SCOPE_MISSING, BROWSER_NOT_FOUND and NO_FRONT_TAB before anything is closed."""
        return await self.clearing.close_many(caller, order)

    # Health and recovery

    async def check_health(self, name: str, *, timeout: timedelta = PROBE_TIMEOUT) -> Tab:
        """The tab with what a look at it found, whoever it belongs to and whatever is at work on it."""
        return await self._health.check(await self.get(name), timeout=timeout)

    async def recover(self, caller: Principal, name: str, *, lease: str) -> RecoveredTab:
        """Bring a tab back to use, in its turn; one whose page answers is given as it is.

        Raises RECOVERY_FAILED, TAB_CLOSED, TAB_CAPACITY.
        """
        right = await self._rights.judged(caller, name, lease, usable=rules.is_open, beside_turn=True)
        async with self._lines.turn(right.tab.name):
            await self._rights.judged(caller, name, lease, usable=rules.is_open, beside_turn=True)
            return await self.recovery.recover(right.tab.name, by_client=True)

    # Driving

    async def activate(self, caller: Principal, name: str, *, lease: str) -> Tab:
        """Bring a tab to the front; `front` tells what was seen in front afterwards."""
        right = await self._rights.judged(caller, name, lease)
        async with self._lines.turn(right.tab.name):
            right = await self._rights.judged(caller, name, lease)
            with self.driving.looking_after(right.tab.name):
                return await self._bring_to_front(right.tab, right)

    async def _bring_to_front(self, tab: Tab, right: Right | None) -> Tab:
        host = self._hosts.of(tab.name)
        page = await host.page(tab.name, timeout=_PAGE_WAIT)
        try:
            await host.connected().activate(page.session.target_id, timeout=COMMAND_TIMEOUT)
        except CdpError as error:
            raise faults.of_look(error, tab.name, host.name) from error
        front = await host.front()
        return await self._log.change(lambda changes: _record_front(changes, tab, front, right))

    async def navigate(self, caller: Principal, order: NavigationOrder) -> tuple[Tab, Navigation]:
        """Take a tab to an address; only a navigation that surely failed raises."""
        timeout = order.milestone_timeout.total_seconds()
        try:
            uri = check_address(order.uri)
        except Refused as refused:
            raise with_outcome(refused, "no") from refused
        held = self.driving.step(
            caller,
            order.name,
            lease=order.lease,
            expected_generation=order.expected_generation,
            seconds=timeout,
        )
        async with held as step:
            page = await self.driving.page(step)
            navigation = await page.navigate(uri, until=order.until, timeout=timeout)
            navigation = await page.with_status(navigation)
            return await self.driving.record(step, page), navigation

    async def front_tab(self, browser: str) -> str:
        """Name of the tab of ours that is in front; NO_FRONT_TAB where that is not certain, FOREIGN_TAB for no tab."""
        host = self._hosts.named(browser)
        front = await host.front()
        if front is None:
            raise refuse(
                Reason.NO_FRONT_TAB,
                f"It is not certain which page of {host.name} is in front; nothing was done. Name the tab, or activate"
                " one.",
                browser=host.name,
            )
        if name := host.tab_behind(front):
            return name
        raise refuse(
            Reason.FOREIGN_TAB,
            f"The page in front of {host.name} is somebody else's; nothing was done. Adopt it first, if that is right.",
            browser=host.name,
            target_id=front,
        )

    async def address(self, page: Page) -> str:
        """Address of the document that the page shows; empty where that could not be loaded.

        Raises TAB_GONE, TAB_UNRESPONSIVE, BROWSER_UNREACHABLE.
        """
        try:
            loaded = await page.look()
        except CdpError as error:
            raise faults.of_look(error, page.tab, page.browser) from error
        return page.shown_uri if loaded else ""

    async def show(self, name: str, whereto: Callable[[str], str], *, timeout: float) -> Page:
        """The page of a tab whose line the caller holds, gone to the address that `whereto` gives for the one shown.

        An empty one leaves it where it is. Raises as `Page.navigate` does, and what says why there is no page.
        """
        host = self._hosts.of(name)
        with self.driving.looking_after(name):
            page = await host.page(name, timeout=_PAGE_WAIT)
            if uri := whereto(await self.address(page)):
                uri = check_address(uri)
                navigation = await page.navigate(uri, until=LoadMilestone.DOM_CONTENT_LOADED, timeout=timeout)
                if navigation.outcome is NavigationOutcome.UNCONFIRMED:
                    raise faults.unresponsive(name)
        return page

    def turn(self, tab: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for the tab in its line of calls, and hold it; CALL_CAPACITY if too many wait."""
        return self._lines.turn(tab)

    def if_free(self, tab: str) -> contextlib.AbstractAsyncContextManager[bool]:
        """Hold the tab in its line if no call is at work on it; gives whether it is held."""
        return self._lines.if_free(tab)

    def limits_for(self, tab: str) -> BrowserLimits | None:
        """The limits of the browser that the tab of this name is in; None where that is not configured."""
        browser = browser_of(tab)
        return self._hosts.named(browser).options.limits if browser in self._hosts else None

    def settle_owed(self) -> None:
        """Begin to close the tabs that sessions gave up and that nobody is closing yet."""
        self._owed.settle(CloseCause.SESSION)

    async def wait_for_page(self, tab: str, *, timeout: float) -> Page:
        """The live page behind a tab, for an open turn: also one that is brought back; as `BrowserHost.page`."""
        return await self._hosts.of(tab).page(tab, timeout=timeout, lost=True)


def _record_front(changes: Changes, activated: Tab, front: str | None, right: Right | None) -> Tab:
    if right is not None:
        fence(changes, right, "yes")
    for tab in changes.tabs(activated.browser_name):
        in_front = front is not None and tab.target_id == front and tab.state is TabState.READY
        if tab.front != in_front:
            changes.record(replace(tab, front=in_front), ChangeCause.CLIENT)
    found = changes.tab(activated.name)
    return activated if found is None else changes.keep(replace(found, last_active_time=changes.now))
