"""Tabs: opened, read, changed, driven and closed for those who may."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, TabCounts
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, browser_of, new_id, tab_name
from tabmuxd.resources.orders import NavigationOrder, OpenedTab, TabFilter, TabOrder, TabUpdate
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import CloseCause, Navigation, Tab, TabOrigin, TabState
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.addresses import check_address
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.opening import Ready, open_target
from tabmuxd.tabs.page import COMMAND_TIMEOUT, Page
from tabmuxd.tasks import Tasks

MAX_LINE: Final = 16
_CREATE_METHOD: Final = "CreateTab"
_REPEAT_WINDOW: Final = timedelta(hours=24)
_PAGE_WAIT: Final = 10.0


class Line:
    """The line of calls for one tab: one acts, at most 16 wait."""

    def __init__(self) -> None:
        """Empty."""
        self.lock = asyncio.Lock()
        self.waiting = 0


class Tabs:
    """What the contract's `TabService` promises, over the browsers of this server."""

    def __init__(
        self,
        hosts: Mapping[str, BrowserHost],
        log: Log,
        tasks: Tasks,
        random: RandomBytes,
        clock: Callable[[], datetime],
    ) -> None:
        """`hosts` by browser name, the first configured first."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._random = random
        self._clock = clock
        self._lines: dict[str, Line] = {}
        self._openings: dict[str, asyncio.Task[OpenedTab]] = {}

    def __repr__(self) -> str:
        """How many tabs open now, and how many have a line."""
        return f"<Tabs opening={len(self._openings)} lines={len(self._lines)}>"

    # Reading

    @property
    def first_browser(self) -> str:
        """Name of the first browser configured: the one meant where a request names none."""
        return next(iter(self._hosts))

    def browser(self, name: str) -> tuple[Browser, TabCounts]:
        """A browser and its counts; BROWSER_NOT_FOUND."""
        browser = self._log.live.browsers.get(name)
        host = self._hosts.get(name)
        if browser is None or host is None:
            raise _unknown_browser(name)
        return browser, rules.counts(self._log.live.tabs.values(), name, len(host.foreign_targets()))

    def browsers(self) -> list[tuple[Browser, TabCounts]]:
        """All browsers that are configured, by name."""
        return [self.browser(name) for name in sorted(self._hosts) if name in self._log.live.browsers]

    async def get(self, name: str) -> Tab:
        """A tab, closed ones too; TAB_NOT_FOUND."""
        tab = self._log.live.tab(name) or await self._log.get_tab(name)
        if tab is None:
            raise rules.unknown_tab(name)
        return tab

    async def list(self, tab_filter: TabFilter, *, after: int, count: int) -> Sequence[tuple[int, Tab]]:
        """At most `count` tabs created after the revision `after`, each with that of its creation, oldest first."""
        if tab_filter.browser and tab_filter.browser not in self._hosts:
            raise _unknown_browser(tab_filter.browser)
        return await self._log.list_tabs(tab_filter, after=after, count=count)

    def foreign_targets(self, browser: str) -> Sequence[tuple[str, str]]:
        """Browser and target id of each page that is not ours; an empty `browser` means all."""
        if browser and browser not in self._hosts:
            raise _unknown_browser(browser)
        return [
            (name, target_id)
            for name, host in sorted(self._hosts.items())
            if browser in ("", name)
            for target_id in host.foreign_targets()
        ]

    # Opening

    async def create(self, caller: Principal, order: TabOrder) -> OpenedTab:
        """Open a tab for the caller; a repeat under one `request_id` gets the tab of the first.

        Cancelled, the tab is opened all the same: a repeat finds it, and else it is closed as idle.
        """
        return await self.open_for(caller.name, order, lambda _changes, tab: tab)

    async def open_for(self, owner: str, order: TabOrder, ready: Ready) -> OpenedTab:
        """Open a tab for a session of `owner`; `ready` binds the two in the transaction that makes it READY."""
        opening = self._tasks.spawn(self._open_for(owner, order, ready), "open a tab", awaited=True)
        return await asyncio.shield(opening)

    async def _open_for(self, owner: str, order: TabOrder, ready: Ready) -> OpenedTab:
        """Open a tab, and bring it to the front if that was asked; `front` tells whether it is there."""
        task = await self._admit(owner, order, ready)
        if isinstance(task, OpenedTab):
            return task
        opened = await asyncio.shield(task)
        if order.activate and opened.tab.state is TabState.READY:
            with contextlib.suppress(Refused):
                return replace(opened, tab=await self._bring_to_front(opened.tab))
        return opened

    async def _admit(self, owner: str, order: TabOrder, ready: Ready) -> asyncio.Task[OpenedTab] | OpenedTab:
        uri = check_address(order.uri)
        host = self._host(order.browser)
        host.connected()
        while True:
            name = tab_name(host.name, new_id(self._random))
            marker = hashlib.sha256(self._random(32)).hexdigest()[:32]
            tab, made = await self._log.change(
                partial(self._insert, host=host, owner=owner, order=order, name=name, marker=marker)
            )
            if made:
                return self._begin(open_target(host, self._log, tab, order, uri=uri, ready=ready), tab.name)
            # Of two calls at once the one whose row it is was told first, so its task is there.
            running = self._openings.get(tab.name)
            if running is not None or tab.state is not TabState.OPENING:
                return running or OpenedTab(tab, None)
            # The rest of a call that died with its server: it ends, by proof, before this one begins anew.
            await host.close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)

    def _begin(self, opening: Coroutine[object, object, OpenedTab], tab: str) -> asyncio.Task[OpenedTab]:
        task = self._tasks.spawn(opening, f"open {tab}", awaited=True)
        self._openings[tab] = task
        task.add_done_callback(lambda _task: self._openings.pop(tab, None))
        return task

    def _insert(
        self, changes: Changes, *, host: BrowserHost, owner: str, order: TabOrder, name: str, marker: str
    ) -> tuple[Tab, bool]:
        if order.request_id and (known := self._repeat(changes, owner, order)):
            return known, False
        if refused := rules.has_room(changes.tabs(host.name), host.name, host.options.limits):
            raise refused
        tab = Tab(
            name=name,
            state=TabState.OPENING,
            origin=TabOrigin.MANAGED,
            owner=owner,
            create_time=changes.now,
            last_active_time=changes.now,
            group=order.group,
            pinned=order.pinned,
            labels=dict(order.labels),
            dialog_policy=order.dialog_policy,
            marker=marker,
        )
        tab = changes.record(tab, ChangeCause.CLIENT)
        if order.request_id:
            expire_time = changes.now + _REPEAT_WINDOW
            changes.remember_request(owner, _CREATE_METHOD, order.request_id, order.payload_sha256, name, expire_time)
        return tab, True

    def _repeat(self, changes: Changes, owner: str, order: TabOrder) -> Tab | None:
        """The tab that this request made before; None for a first request, or one that left no tab."""
        known = changes.request(owner, _CREATE_METHOD, order.request_id)
        if known is None:
            return None
        if known.payload_sha256 != order.payload_sha256:
            raise refuse(
                Reason.REQUEST_ID_REUSED,
                f"The request id {order.request_id} was used for another CreateTab; nothing was done.",
                request_id=order.request_id,
                resource=known.resource,
            )
        tab = changes.tab(known.resource)
        never_ready = tab is None or (tab.ended and not tab.uri)
        return None if never_ready else tab

    # Changing and closing

    async def update(self, caller: Principal, update: TabUpdate) -> Tab:
        """Set labels, group, pin, dialog policy or sharing."""

        def decide(changes: Changes) -> Tab:
            tab = _driven(changes, caller, update.name)
            after = rules.updated(tab, update, caller)
            return tab if after == tab else changes.record(after, ChangeCause.CLIENT)

        return await self._log.change(decide)

    async def close(self, caller: Principal, name: str, *, lease: str, force: bool) -> Tab:
        """Close a tab for good; closing a closed one gives it as it is."""
        tab = await self.get(name)
        if refused := rules.may_drive(caller, tab):
            raise refused
        if tab.ended:
            return tab
        if force:
            return await self._close(caller, tab.name, lease=lease, force=True)
        async with self._in_line(tab.name):
            return await self._close(caller, tab.name, lease=lease, force=False)

    async def _close(self, caller: Principal, name: str, *, lease: str, force: bool) -> Tab:
        def judge(changes: Changes) -> Tab:
            tab = _driven(changes, caller, name)
            refused = rules.may_close(tab, changes.lease_on(name), lease, changes.now, force=force)
            if refused and not tab.ended:
                raise refused
            return tab

        tab = await self._log.change(judge)
        if tab.ended:
            return tab
        return await self._hosts[tab.browser_name].close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)

    # Driving

    async def activate(self, caller: Principal, name: str, *, lease: str) -> Tab:
        """Bring a tab to the front; `front` tells what was seen in front afterwards."""
        tab = await self._judged(caller, name, lease)
        async with self._in_line(tab.name):
            return await self._bring_to_front(await self._judged(caller, name, lease))

    async def _bring_to_front(self, tab: Tab) -> Tab:
        host = self._hosts[tab.browser_name]
        page = await host.page(tab.name, timeout=_PAGE_WAIT)
        targets = host.connected()
        try:
            await targets.activate(page.session.target_id, timeout=COMMAND_TIMEOUT)
            front = await targets.front(timeout=COMMAND_TIMEOUT)
        except CdpError as error:
            raise faults.of_look(error, tab.name, host.name) from error
        return await self._log.change(lambda changes: _record_front(changes, tab, front))

    async def navigate(self, caller: Principal, order: NavigationOrder) -> tuple[Tab, Navigation]:
        """Take a tab to an address; only a navigation that surely failed raises."""
        try:
            uri = check_address(order.uri)
            tab = await self._judged(caller, order.name, order.lease)
            async with self._in_line(tab.name):
                tab = await self._judged(caller, order.name, order.lease)
                if refused := rules.has_generation(tab, order.expected_generation) or rules.has_no_dialog(tab):
                    raise refused
                host = self._hosts[tab.browser_name]
                timeout = order.milestone_timeout.total_seconds()
                page = await host.page(tab.name, timeout=timeout)
                navigation = await page.navigate(uri, until=order.until, timeout=timeout)
                navigation = await page.with_status(navigation)
                return await self._log.change(lambda changes: _record_visit(changes, tab, page)), navigation
        except Refused as refused:
            raise with_outcome(refused, faults.touched(refused)) from refused

    async def wait_for_page(self, tab: str, *, timeout: float) -> Page:
        """The live page behind a tab; as `BrowserHost.page`."""
        return await self._host(browser_of(tab)).page(tab, timeout=timeout)

    async def _judged(self, caller: Principal, name: str, lease: str) -> Tab:
        """The tab, if this caller may act on it now."""
        tab = await self.get(name)
        held = self._log.live.leases.get(tab.lease) if tab.lease else None
        refused = (
            rules.may_drive(caller, tab) or rules.is_there(tab) or rules.may_act_under(tab, held, lease, self._clock())
        )
        if refused:
            raise refused
        return tab

    @contextlib.asynccontextmanager
    async def _in_line(self, tab: str) -> AsyncGenerator[None]:
        line = self._lines.setdefault(tab, Line())
        if line.waiting > MAX_LINE:
            raise refuse(
                Reason.CALL_CAPACITY,
                f"{MAX_LINE} calls wait for {tab} already; this one was not begun. Repeat it later.",
                retry_after=1,
                tab=tab,
                cause="line_full",
            )
        line.waiting += 1
        try:
            async with line.lock:
                yield
        finally:
            line.waiting -= 1
            if line.waiting == 0:
                self._lines.pop(tab, None)

    def _host(self, browser: str) -> BrowserHost:
        host = self._hosts.get(browser or self.first_browser)
        if host is None:
            raise _unknown_browser(browser)
        return host


def _driven(changes: Changes, caller: Principal, name: str) -> Tab:
    tab = changes.tab(name)
    if tab is None:
        raise rules.unknown_tab(name)
    if refused := rules.may_drive(caller, tab):
        raise refused
    return tab


def _record_front(changes: Changes, activated: Tab, front: str | None) -> Tab:
    for tab in changes.tabs(activated.browser_name):
        in_front = front is not None and tab.target_id == front and tab.state is TabState.READY
        if tab.front != in_front:
            changes.record(replace(tab, front=in_front), ChangeCause.CLIENT)
    found = changes.tab(activated.name)
    return activated if found is None else changes.keep(replace(found, last_active_time=changes.now))


def _record_visit(changes: Changes, visited: Tab, page: Page) -> Tab:
    tab = changes.tab(visited.name)
    if tab is None or tab.state is not TabState.READY or not page.shown_uri:
        return tab or visited
    tab = changes.keep(replace(tab, last_active_time=changes.now))
    after = replace(tab, uri=page.shown_uri)
    return tab if after == tab else changes.record(after, ChangeCause.CLIENT)


def _unknown_browser(name: str) -> Refused:
    return refuse(
        Reason.BROWSER_NOT_FOUND, f"No browser {name} is configured; nothing was done. List the browsers.", browser=name
    )
