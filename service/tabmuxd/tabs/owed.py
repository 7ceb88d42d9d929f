"""Closes that failed: they stay owed, and are tried again until they are done, or not wanted any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.names import browser_of
from tabmuxd.resources.tab import CloseCause, Tab
from tabmuxd.tabs import endings, owed_rules, rules
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.owed_rules import OwedClose
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Sleep = Callable[[float], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class OwedStatistics:
    """How many closes are owed now; how often one was tried again, done and given up since the start."""

    owed_count: int
    attempt_count: int
    done_count: int
    given_up_count: int


class OwedCloses:
    """One task for each tab whose close is owed, or target that has outlived its tab. All runs on the loop."""

    def __init__(
        self,
        hosts: Hosts,
        log: Log,
        lines: Lines,
        tasks: Tasks,
        clock: Callable[[], datetime],
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Nothing is owed; the hosts tell of closes that fail."""
        self._hosts = hosts
        self._log = log
        self._lines = lines
        self._tasks = tasks
        self._clock = clock
        self._sleep = sleep
        self._owed: set[str] = set()
        self._given_up: set[str] = set()
        self._connected = {host.name: asyncio.Event() for host in hosts}
        self._attempt_count = 0
        self._done_count = 0
        self._given_up_count = 0
        for host in hosts:
            host.close_failed = self._close_failed

    def __repr__(self) -> str:
        """How much is owed, and what was done."""
        return f"<OwedCloses {self.statistics()}>"

    def statistics(self) -> OwedStatistics:
        """How much is owed, and what was done."""
        return OwedStatistics(len(self._owed), self._attempt_count, self._done_count, self._given_up_count)

    def owe(self, close: OwedClose) -> None:
        """Try this close again, first after a second; nothing happens if it is owed already, or was given up."""
        self._begin(close, failures=1)

    def connected(self, host: BrowserHost) -> None:
        """A connection to the browser has begun: what is owed in it is tried at once."""
        self._connected[host.name].set()
        self._connected[host.name] = asyncio.Event()
        for tab in tuple(self._log.live.tabs.values()):
            if tab.browser_name == host.name and tab.close_owed is not CloseCause.NONE:
                self._begin(owed_rules.owed_for(tab, tab.close_owed, self._clock()), failures=0)

    def settle(self, cause: CloseCause) -> None:
        """Try at once those closes that are owed for this cause, and that are not tried yet."""
        for tab in tuple(self._log.live.tabs.values()):
            if tab.close_owed is cause and tab.browser_name in self._hosts:
                self._begin(owed_rules.owed_for(tab, cause, self._clock()), failures=0)

    def knows(self, tab: str) -> bool:
        """Whether a close is owed for this tab, or was given up."""
        return tab in self._owed or tab in self._given_up

    def _close_failed(self, tab: Tab, cause: CloseCause) -> None:
        self._given_up.discard(tab.name)
        self.owe(owed_rules.owed_for(tab, cause, self._clock()))

    def _begin(self, close: OwedClose, *, failures: int) -> None:
        if not self.knows(close.tab):
            self._owed.add(close.tab)
            self._tasks.spawn(self._pursue(close, failures), f"owed close of {close.tab}")

    async def _pursue(self, close: OwedClose, failures: int) -> None:
        host = self._hosts.of(close.tab)
        waited = timedelta(0)
        try:
            while True:
                if failures:
                    pause = owed_rules.pause_after(failures)
                    await self._rest(host, pause)
                    waited += pause
                while host.targets is None:
                    await self._connected[host.name].wait()
                self._attempt_count += 1
                if await self._attempt(host, close):
                    return
                if waited >= owed_rules.GIVE_UP_AFTER:
                    await self._give_up(close)
                    return
                failures += 1
        finally:
            self._owed.discard(close.tab)

    async def _rest(self, host: BrowserHost, pause: timedelta) -> None:
        """Wait so long, or until the browser is connected anew."""
        resting = [asyncio.ensure_future(self._sleep(pause.total_seconds()))]
        resting.append(asyncio.ensure_future(self._connected[host.name].wait()))
        try:
            await asyncio.wait(resting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in resting:
                each.cancel()

    async def _attempt(self, host: BrowserHost, close: OwedClose) -> bool:
        """Close it, if it is still owed; gives whether it is owed no more."""
        if close.cause is CloseCause.NONE:
            return await self._close_orphan(host, close)
        async with self._lines.if_free(close.tab) as held:
            tab = await self._log.change(lambda changes: _still_owed(changes, close))
            if tab is None:
                return True
            # Of a page that nobody opens any more every call is in vain: it only keeps those behind it waiting.
            if not held and (rules.has_page(tab) or host.is_at_work_on(tab.name)):
                return False
            try:
                await host.close(tab, close.cause, endings.CHANGE_CAUSES[close.cause])
            except Refused:
                return False
        self._done(close)
        return True

    async def _close_orphan(self, host: BrowserHost, close: OwedClose) -> bool:
        if self._log.live.browsers[host.name].generation != close.generation:
            return True  # the target went with its browser process
        try:
            await host.close_target(close.target_id)
        except Refused:
            return False
        self._done(close)
        return True

    def _done(self, close: OwedClose) -> None:
        self._done_count += 1
        _log.info("owed close done", tab=close.tab)

    async def _give_up(self, close: OwedClose) -> None:
        self._given_up.add(close.tab)
        self._given_up_count += 1
        _log.error("owed close given up", tab=close.tab, alarm=True)
        await self._log.change(lambda changes: _forget(changes, close))


def _still_owed(changes: Changes, close: OwedClose) -> Tab | None:
    """The tab, if its close is still owed; else it is forgotten."""
    tab = changes.tab(close.tab)
    browser = changes.browser(browser_of(close.tab))
    if owed_rules.is_still_owed(close, tab, browser.generation if browser else 0):
        return tab
    _forget(changes, close)
    return None


def _forget(changes: Changes, close: OwedClose) -> None:
    tab = changes.tab(close.tab)
    if tab is not None and not tab.ended and tab.close_owed is close.cause is not CloseCause.NONE:
        changes.keep(replace(tab, close_owed=CloseCause.NONE))
