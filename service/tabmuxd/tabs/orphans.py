"""Targets of ours that have outlived their tabs: found by proof, and closed; foreign ones are not looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.names import tab_name
from tabmuxd.resources.tab import CloseCause, Tab
from tabmuxd.tabs import owed_rules
from tabmuxd.tabs.addresses import marked_tab
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.owed import OwedCloses
from tabmuxd.tabs.owed_rules import OwedClose
from tabmuxd.tabs.page import COMMAND_TIMEOUT

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Orphans:
    """Looks, in rounds, whether every live target of ours has a tab that lives."""

    def __init__(self, hosts: Hosts, log: Log, owed: OwedCloses, clock: Callable[[], datetime]) -> None:
        """No round was made yet."""
        self._hosts = hosts
        self._log = log
        self._owed = owed
        self._clock = clock
        self.closed_count = 0

    def __repr__(self) -> str:
        """How many were closed since the start."""
        return f"<Orphans closed={self.closed_count}>"

    async def sweep(self) -> int:
        """Close what has outlived its tab, in every browser that is connected; gives how many."""
        return sum([await self.sweep_browser(host) for host in self._hosts])

    async def sweep_browser(self, host: BrowserHost) -> int:
        """As `sweep`, in one browser; a close that fails is owed."""
        if host.targets is None:
            return 0
        host.claim_popups()
        try:
            # What is in this list and was never recorded has its proof in no record: a target that is being opened.
            pages = await host.targets.fresh(timeout=COMMAND_TIMEOUT)
        except CdpError as error:
            _log.info("orphans not looked for", browser=host.name, error=type(error).__name__)
            return 0
        closed = 0
        for tab, info in await self._found(host, pages.values()):
            closed += await self._close(host, tab, info)
        if closed:
            self.closed_count += closed
            _log.warning("orphans closed", browser=host.name, count=closed)
        return closed

    async def _found(self, host: BrowserHost, pages: Iterable[TargetInfo]) -> list[tuple[Tab, TargetInfo]]:
        by_id = {info.target_id: info for info in pages}
        by_marker = {
            tab_name(host.name, tab_id): info for info in by_id.values() if (tab_id := marked_tab(info.uri)) is not None
        }
        known = [(tab, by_id[tab.target_id]) for tab in await self._log.tabs_behind(host.name, by_id)]
        marked = [(tab, info) for name, info in by_marker.items() if (tab := await self._log.get_tab(name)) is not None]
        generation = self._log.live.browsers[host.name].generation
        return [(tab, info) for tab, info in (*known, *marked) if owed_rules.is_orphan(tab, info, generation)]

    async def _close(self, host: BrowserHost, tab: Tab, info: TargetInfo) -> bool:
        if info.target_id not in host.connected().pages or self._owed.knows(tab.name):
            return False  # it is gone since the list was made, or tried again already
        generation = self._log.live.browsers[host.name].generation
        owed = OwedClose(tab.name, info.target_id, generation, CloseCause.NONE, self._clock())
        try:
            await host.close_target(info.target_id)
        except Refused:
            self._owed.owe(owed)
            return False
        return True
