"""Bringing tabs back: once for all who ask, by itself where a tab serves a session or is pinned, never without end."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes
from tabmuxd.resources.orders import RecoveredTab
from tabmuxd.resources.tab import CloseCause, Strategy, Tab, TabOrigin, TabState
from tabmuxd.tabs import endings, faults, recovery_rules, reopening, rules
from tabmuxd.tabs.health import Health
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.recovery_rules import Attempts
from tabmuxd.tabs.reopening import Overtaken
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_OPENING_WAIT: Final = 20.0
_ROOM_PAUSE: Final = 5.0
# Nothing was tried: what hinders it lies elsewhere, and does not count as an attempt.
_NO_ATTEMPT: Final = frozenset(
    {
        Reason.BROWSER_UNREACHABLE,
        Reason.RECOVERY_FAILED,
        Reason.TAB_CAPACITY,
        Reason.TAB_CLOSED,
        Reason.TAB_NOT_FOUND,
    }
)


class Recovery:
    """Brings tabs back. One flight for each tab serves all who ask for it, and goes on when they are gone."""

    def __init__(  # noqa: PLR0917 - the parts it is built of
        self,
        hosts: Hosts,
        log: Log,
        tasks: Tasks,
        health: Health,
        random: RandomBytes,
        clock: Callable[[], datetime],
    ) -> None:
        """From now on hears of every tab that loses its page."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._health = health
        self._random = random
        self._clock = clock
        self._attempts: dict[str, Attempts] = {}
        self._flights: dict[str, asyncio.Task[RecoveredTab]] = {}
        self._returning: dict[str, asyncio.Task[None]] = {}
        for host in hosts:
            host.lost = self.notice
            host.wanted = self._revive

    def __repr__(self) -> str:
        """How many tabs are being brought back."""
        return f"<Recovery flights={len(self._flights)} returning={len(self._returning)}>"

    async def recover(self, name: str, *, by_client: bool) -> RecoveredTab:
        """The tab with a page that answers, and how it came back.

        Raises RECOVERY_FAILED, TAB_CLOSED, TAB_CAPACITY or BROWSER_UNREACHABLE.
        """
        flight = self._flights.get(name)
        if flight is None or flight.done():
            flight = self._flights[name] = self._tasks.spawn(
                self._fly(name, by_client=by_client), f"recover {name}", awaited=True
            )
        return await asyncio.shield(flight)

    def notice(self, name: str) -> None:
        """A tab is CRASHED or LOST, or was pinned while it was: bring it back if that is for the service to do."""
        tab = self._log.live.tab(name)
        if tab is not None and recovery_rules.comes_back_by_itself(tab):
            returning = self._returning.get(name)
            if returning is None or returning.done():
                self._returning[name] = self._tasks.spawn(self._bring_back(name), f"bring back {name}")

    def _revive(self, name: str) -> None:
        """Somebody wants the page of a tab that the browser discarded: load it again."""
        flight = self._flights.get(name)
        if flight is None or flight.done():
            self._tasks.spawn(self._revived(name), f"revive {name}")

    async def _revived(self, name: str) -> None:
        with contextlib.suppress(Refused):
            await self.recover(name, by_client=False)

    async def sweep(self) -> None:
        """Look at all tabs, and settle what was left half done; run every 30 s."""
        await self._health.sweep()
        for host in self._hosts:
            if host.targets is not None:
                await host.settle_unfinished()
        for kept in (self._attempts, self._flights, self._returning):
            for name in [name for name in kept if self._log.live.tab(name) is None]:
                del kept[name]

    async def _bring_back(self, name: str) -> None:
        """Bring the tab back, however long its browser is away or has no room; it is given up after a few attempts."""
        host = self._hosts.of(name)
        while (tab := self._log.live.tab(name)) is not None and recovery_rules.comes_back_by_itself(tab):
            try:
                await host.back()
                await self.recover(name, by_client=False)
            except Refused as refused:
                match refused.reason:
                    case Reason.RECOVERY_FAILED | Reason.TAB_CLOSED | Reason.TAB_NOT_FOUND:
                        return
                    case Reason.TAB_CAPACITY:
                        await asyncio.sleep(_ROOM_PAUSE)
                    case _:
                        await asyncio.sleep(recovery_rules.LEAST_PAUSE)

    async def _fly(self, name: str, *, by_client: bool) -> RecoveredTab:
        """Attempts until one succeeds, or there may be no more."""
        try:
            while True:
                recovered = await self._attempt(name, by_client=by_client)
                if recovered is not None:
                    self._health.check_soon(name)
                    return recovered
        except Refused as refused:
            if refused.reason is Reason.RECOVERY_FAILED:
                _log.warning("tab not brought back", tab=name, cause=refused.metadata.get("cause"))
                await self._give_up(name, refused)
            raise

    async def _attempt(self, name: str, *, by_client: bool) -> RecoveredTab | None:
        """One look, and one attempt where that is needed; None if it is to be looked at again."""
        tab = self._log.live.tab(name) or await self._log.get_tab(name)
        if tab is None:
            raise rules.unknown_tab(name)
        if tab.ended and (refused := rules.is_there(tab)):
            raise refused
        host = self._hosts.of(name)
        host.connected()
        try:
            return await self._found(host, tab) or await self._tried(host, tab, by_client=by_client)
        except Overtaken:
            return None

    async def _tried(self, host: BrowserHost, tab: Tab, *, by_client: bool) -> RecoveredTab | None:
        """One attempt, if there may be one more; None if it failed and there may be another."""
        attempts = self._attempts.get(tab.name, Attempts())
        if attempts.count(self._clock()) >= recovery_rules.MAX_ATTEMPTS:
            raise recovery_rules.failed(tab, attempts, self._clock())
        session = self._log.live.sessions.get(tab.session) if tab.session else None
        address = recovery_rules.way_back(tab, session)
        if not address:
            raise recovery_rules.no_address(tab)
        try:
            recovered = await self._brought_back(host, tab, address, by_client=by_client)
        except Refused as refused:
            if refused.reason in _NO_ATTEMPT:
                raise
            _log.info("attempt to bring a tab back failed", tab=tab.name, reason=refused.reason.value)
            attempts = self._attempts[tab.name] = attempts.after(self._clock(), success=False)
            if attempts.count(self._clock()) >= recovery_rules.MAX_ATTEMPTS:
                raise recovery_rules.failed(tab, attempts, self._clock()) from refused
            await asyncio.sleep(recovery_rules.pause_after(attempts))
            return None
        self._attempts[tab.name] = attempts.after(self._clock(), success=True)
        return recovered

    async def _found(self, host: BrowserHost, tab: Tab) -> RecoveredTab | None:
        """What needs no load: the page answers, or does so over another session; None where it does not."""
        if tab.state is TabState.OPENING:
            await host.page(tab.name, timeout=_OPENING_WAIT)
            return RecoveredTab(self._log.live.tab(tab.name) or tab, Strategy.NONE)
        if tab.state not in (TabState.READY, TabState.CRASHED):
            return None
        if tab.name in host.discarded:
            return None
        held = host.pages.get(tab.name)
        if held is not None and held.usable and tab.state is TabState.READY:
            had_dialog = held.dialog is not None
            try:
                if await reopening.answers(held):
                    return RecoveredTab(tab, Strategy.REATTACHED if had_dialog else Strategy.NONE)
            except CdpError as error:
                _log.info("page does not answer", tab=tab.name, error=type(error).__name__)
            if held.usable:
                return None  # another session would not be answered either
        page = await reopening.attach_again(host, tab)
        return None if page is None else await self._hold(host, tab, page, Strategy.REATTACHED)

    async def _brought_back(self, host: BrowserHost, tab: Tab, address: str, *, by_client: bool) -> RecoveredTab:
        """The tab with a page at the address: its own target's if that can be, else a new one's."""
        if tab.state is TabState.RECOVERING:
            raise faults.unresponsive(tab.name)  # what an earlier process left is being settled
        if tab.state in (TabState.READY, TabState.CRASHED):
            page = await reopening.load_again(host, tab, address)
            if page is not None:
                return await self._hold(host, tab, page, Strategy.RELOADED)
            if tab.origin is TabOrigin.ADOPTED and not by_client:
                raise faults.unresponsive(tab.name)  # only a client closes what was somebody else's
        marker = hashlib.sha256(self._random(32)).hexdigest()[:32]
        tab = await reopening.reopen(host, self._log, tab, address, marker=marker)
        return RecoveredTab(tab, Strategy.REOPENED)

    async def _hold(self, host: BrowserHost, tab: Tab, page: Page, strategy: Strategy) -> RecoveredTab:
        """Hold the page and record it; a page that was held before ends."""
        try:
            ready = await self._log.change(partial(reopening.record_page, tab=tab, page=page))
        except BaseException:
            await asyncio.shield(page.session.detach())
            raise
        before = host.pages.get(tab.name)
        host.let_go(tab.name, "tab_gone")
        if before is not None:
            await before.session.detach()
        host.hold(page)
        return RecoveredTab(ready, strategy)

    async def _give_up(self, name: str, refused: Refused) -> None:
        """What came back by itself does so no more: its session loses the tab, and it closes, unless it is kept."""
        host = self._hosts.of(name)

        def decide(changes: Changes) -> Tab | None:
            tab = changes.tab(name)
            if tab is None or not recovery_rules.comes_back_by_itself(tab):
                return None
            lease = changes.holder(tab)
            held = lease is not None and not lease.session
            tab = endings.give_up(changes, tab, refused, host.served)
            return None if tab.pinned or held or tab.origin is TabOrigin.ADOPTED else tab

        tab = await self._log.change(decide)
        if tab is not None:
            with contextlib.suppress(Refused):
                await host.close(tab, CloseCause.RECOVERY, ChangeCause.RECOVERY)
