"""Closing: the targets that are proven to be behind a tab go first, and then its row ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tabmuxd.cdp.errors import CdpError
from tabmuxd.cdp.targets import Targets
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import endings, faults, rules
from tabmuxd.tabs.addresses import marker_address
from tabmuxd.tabs.endings import ServedHook
from tabmuxd.tabs.owners import Owners
from tabmuxd.tabs.page import COMMAND_TIMEOUT
from tabmuxd.tasks import Tasks, outlasted


class Closing:
    """Closes the tabs of one browser, each once, however many ask for it. All runs on the loop."""

    def __init__(
        self,
        browser: str,
        log: Log,
        tasks: Tasks,
        owners: Owners,
        served: ServedHook,
        *,
        connected: Callable[[], Targets],
        closed: Callable[[str], None],
        failed: Callable[[Tab, CloseCause], None],
    ) -> None:
        """`connected` gives the targets or raises BROWSER_UNREACHABLE; `closed` is told the name of each closed tab.

        `failed` is told of each close that failed, with the cause that would have been recorded.
        """
        self._browser = browser
        self._log = log
        self._tasks = tasks
        self._owners = owners
        self._served = served
        self._connected = connected
        self._closed = closed
        self._failed = failed
        self._running: dict[str, asyncio.Task[Tab]] = {}

    def __contains__(self, tab: str) -> bool:
        """Whether the tab of this name is being closed."""
        return tab in self._running

    def __repr__(self) -> str:
        """How many are being closed."""
        return f"<Closing running={len(self._running)}>"

    async def close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        """Close the target and record it; two calls at once do it once, and the first cause counts.

        CLOSED is recorded only after the target was seen gone. Raises BROWSER_UNREACHABLE if that could not be seen.
        Who is cancelled goes once the close has ended, since whoever comes next would get a tab that is going.
        """
        running = self._running.get(tab.name)
        if running is None:
            running = self._tasks.spawn(self._close(tab, cause, why), f"close {tab.name}", awaited=True)
            self._running[tab.name] = running
            running.add_done_callback(lambda _task: self._running.pop(tab.name, None))
        return await outlasted(running)

    async def close_targets(self, tab: Tab) -> None:
        """Close what is proven to be behind the tab, or on its way there; BROWSER_UNREACHABLE."""
        if tab.state is TabState.LOST:
            return
        found = (rules.targets_of(tab) | {self._marked(tab)}) - {""}
        if tab.state is TabState.RECOVERING:
            found &= self._connected().pages.keys()
        for target_id in sorted(found):
            if tab.state is TabState.RECOVERING:
                self._owners.abandon(target_id, tab.name)
            await self.close_target(target_id)

    async def close_target(self, target_id: str) -> None:
        """Close one target that is ours, and see it gone; BROWSER_UNREACHABLE."""
        try:
            await self._connected().close(target_id, timeout=COMMAND_TIMEOUT)
        except CdpError as error:
            raise faults.unreachable(self._browser) from error

    async def _close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        while not tab.ended:
            try:
                await self.close_targets(tab)
            except Refused as refused:
                await self._owe(tab, cause)
                raise faults.close_owed(self._browser, tab.name) from refused
            tab = await self._log.change(partial(self._record, gone=tab, cause=cause, why=why))
        self._closed(tab.name)
        return tab

    async def _owe(self, tab: Tab, cause: CloseCause) -> None:
        """Keep in mind, over a restart too, that the tab has still to be closed."""

        def decide(changes: Changes) -> Tab | None:
            now = changes.tab(tab.name)
            return now if now is None or now.ended else changes.keep(replace(now, close_owed=cause))

        owed = await self._log.change(decide)
        if owed is not None and not owed.ended:
            self._failed(owed, cause)

    def _record(self, changes: Changes, gone: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        """The tab as CLOSED, its targets `gone`; as it is now, if others have come behind it meanwhile."""
        tab = changes.tab(gone.name)
        if tab is None:
            raise rules.unknown_tab(gone.name)
        if not tab.ended and rules.targets_of(tab) - rules.targets_of(gone):
            return tab
        return endings.close(changes, tab, cause, why, self._served)

    def _marked(self, tab: Tab) -> str:
        """Target id for an unfinished row whose target was not recorded yet, found by its marker address alone.

        Raises BROWSER_UNREACHABLE where it cannot be looked for.
        """
        known = tab.target_id if tab.state is TabState.OPENING else tab.next_target_id
        if known or not rules.is_unfinished(tab):
            return ""
        address = marker_address(tab.name, tab.marker)
        found = [i.target_id for i in self._connected().pages.values() if i.uri == address and not i.opener_id]
        return found[0] if len(found) == 1 else ""
