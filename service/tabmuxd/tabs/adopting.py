"""Adopting: a page that somebody else opened becomes a tab as it is, because a person says so."""

from __future__ import annotations

import asyncio
from typing import Final

from tabmuxd.cdp.errors import CallTimeout, CdpError, TargetGone
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, new_id, tab_name
from tabmuxd.resources.orders import AdoptOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import Tab, TabOrigin, TabState
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.addresses import check_adopted
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.noting import with_info
from tabmuxd.tabs.page import Page
from tabmuxd.tasks import Tasks

# Within the 10 s that a client waits for this call by default.
_TIMEOUT: Final = 8.0


class Adoption:
    """Makes foreign pages tabs, each once, however many ask for it."""

    def __init__(self, hosts: Hosts, log: Log, tasks: Tasks, random: RandomBytes) -> None:
        """Nothing is adopted by itself."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._random = random
        self._running: dict[str, asyncio.Task[Tab]] = {}

    def __repr__(self) -> str:
        """How many pages are being adopted."""
        return f"<Adoption running={len(self._running)}>"

    async def adopt(self, caller: Principal, order: AdoptOrder) -> Tab:
        """The tab of the page; a new one is the caller's, one that there is already stays as it is.

        Raises TARGET_NOT_FOUND, NO_FRONT_TAB, URI_NOT_ALLOWED, and TAB_UNRESPONSIVE for a page that does not answer in
        time; it is foreign then as before.
        """
        host = self._hosts.named(order.browser)
        target_id = order.target_id or await _front(host)
        if target_id not in host.connected().pages:
            await host.look()  # what the browser told of it may only be on its way
        if name := host.tab_behind(target_id):
            return await self._known(name)
        running = self._running.get(target_id)
        if running is None:
            running = self._tasks.spawn(self._adopt(host, target_id, caller, order), "adopt a page", awaited=True)
            self._running[target_id] = running
            running.add_done_callback(lambda _task: self._running.pop(target_id, None))
        return await asyncio.shield(running)

    async def _known(self, name: str) -> Tab:
        # Through the writer, since the row of a popup may only be on its way.
        tab = await self._log.change(lambda changes: changes.tab(name))
        if tab is None:
            raise rules.unknown_tab(name)
        return tab

    async def _adopt(self, host: BrowserHost, target_id: str, caller: Principal, order: AdoptOrder) -> Tab:
        field = "front" if order.front else "target_id"
        _check(host, target_id, field)
        name = tab_name(host.name, new_id(self._random))
        try:
            page = await host.attach(name, target_id)
        except CdpError as error:
            raise _refusal(error, host, target_id) from error
        kept = False
        try:
            async with asyncio.timeout(_TIMEOUT):
                await page.prepare()
                await page.look()
            _check(host, target_id, field)  # it may have gone elsewhere meanwhile
            tab = await self._record(host, page, caller, order)
            kept = True
        except TimeoutError as error:
            raise _unresponsive(host, target_id) from error
        except CdpError as error:
            raise _refusal(error, host, target_id) from error
        finally:
            if not kept:
                await asyncio.shield(page.session.detach())
        return tab

    async def _record(self, host: BrowserHost, page: Page, caller: Principal, order: AdoptOrder) -> Tab:
        target_id = page.session.target_id
        info = host.connected().pages.get(target_id)
        if info is None or not page.usable:
            raise _not_found(host, target_id)

        def decide(changes: Changes) -> Tab:
            browser = changes.browser(host.name)
            tab = Tab(
                name=page.tab,
                state=TabState.READY,
                origin=TabOrigin.ADOPTED,
                owner=caller.name,
                create_time=changes.now,
                last_active_time=changes.now,
                target_id=target_id,
                group=order.group,
                labels=dict(order.labels),
                browser_generation=browser.generation if browser else 0,
            )
            return changes.record(with_info(tab, info), ChangeCause.CLIENT)

        # In one step with the last look: what becomes of the page from now on is recorded behind this.
        host.own(target_id, page.tab)
        try:
            tab = await self._log.change(decide)
        except BaseException:
            host.disown(target_id, page.tab)
            raise
        if page.usable:
            host.hold(page)
        return tab


async def _front(host: BrowserHost) -> str:
    front = await host.front(adopting=True)
    if front is None:
        raise refuse(
            Reason.NO_FRONT_TAB,
            f"It is not certain which page of {host.name} is in front; nothing was adopted. Name its target.",
            browser=host.name,
        )
    return front


def _check(host: BrowserHost, target_id: str, field: str) -> None:
    """Raise TARGET_NOT_FOUND or URI_NOT_ALLOWED unless this is a page that may become a tab."""
    info = host.connected().pages.get(target_id)
    if info is None:
        raise _not_found(host, target_id)
    check_adopted(info.uri, field)


def _not_found(host: BrowserHost, target_id: str) -> Refused:
    return refuse(
        Reason.TARGET_NOT_FOUND,
        f"{host.name} has no page with this target id; nothing was adopted. List the foreign tabs.",
        browser=host.name,
        target_id=target_id,
    )


def _unresponsive(host: BrowserHost, target_id: str) -> Refused:
    return refuse(
        Reason.TAB_UNRESPONSIVE,
        f"The page does not answer, and was not adopted; it is as it was in {host.name}.",
        tab="",
        browser=host.name,
        target_id=target_id,
    )


def _refusal(error: CdpError, host: BrowserHost, target_id: str) -> Refused:
    match error:
        case TargetGone(crashed=False):
            return _not_found(host, target_id)
        case TargetGone() | CallTimeout():
            return _unresponsive(host, target_id)
        case _:
            return faults.unreachable(host.name)
