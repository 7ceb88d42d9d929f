"""Recording of titles and addresses: at most one recorded change of a tab in 250 ms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import cut
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES, is_marker, is_title_of_none
from tabmuxd.tasks import Tasks

_INTERVAL: Final = 0.25
_TITLE_BYTES: Final = 1024


class Notes:
    """Which tabs have a title or address to record; what is recorded is the newest, read when it is written."""

    def __init__(self, log: Log, tasks: Tasks, info_of: Callable[[Tab], TargetInfo | None]) -> None:
        """`info_of` gives what the browser says of a tab's target now."""
        self._log = log
        self._tasks = tasks
        self._info_of = info_of
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._recorded: dict[str, float] = {}
        self._writing: set[str] = set()
        self._changed_meanwhile: set[str] = set()
        self._stopped = False

    def note(self, tab: str) -> None:
        """Something about the tab's target has changed: record it at once, or when the interval is over."""
        if tab in self._waiting or self._stopped:
            return
        if tab in self._writing:
            self._changed_meanwhile.add(tab)
            return
        loop = asyncio.get_running_loop()
        due = self._recorded.get(tab, -_INTERVAL) + _INTERVAL
        self._waiting[tab] = loop.call_at(max(due, loop.time()), self._start, tab)

    def forget(self, tab: str) -> None:
        """The tab has no page any more."""
        if timer := self._waiting.pop(tab, None):
            timer.cancel()
        self._recorded.pop(tab, None)

    def stop(self) -> None:
        """Nothing is recorded any more but what is being written."""
        self._stopped = True
        for timer in self._waiting.values():
            timer.cancel()
        self._waiting.clear()

    def _start(self, tab: str) -> None:
        self._waiting.pop(tab, None)
        record = self._log.live.tab(tab)
        info = None if record is None else self._info_of(record)
        if record is not None and info is not None and record.state is TabState.READY:
            self._writing.add(tab)
            self._tasks.spawn(self._write(tab, info), f"note {tab}")

    async def _write(self, tab: str, info: TargetInfo) -> None:
        try:
            # Whether it is new is judged behind all that stands in line: the last step may not be written down yet.
            if await self._log.change(lambda changes: _record(changes, tab, info)):
                self._recorded[tab] = asyncio.get_running_loop().time()
        finally:
            self._writing.discard(tab)
            if tab in self._changed_meanwhile:
                self._changed_meanwhile.discard(tab)
                self.note(tab)


def _record(changes: Changes, name: str, info: TargetInfo) -> bool:
    """Record what is new of the tab; gives whether anything was."""
    tab = changes.tab(name)
    if tab is None or tab.state is not TabState.READY or tab.target_id != info.target_id:
        return False
    noted = with_info(tab, info)
    if noted == tab:
        return False
    changes.record(noted, ChangeCause.PAGE)
    return True


def with_info(tab: Tab, info: TargetInfo) -> Tab:
    """The tab with the title and address of its target, cut to their limits; a marker address is never shown."""
    if is_marker(info.uri) or is_marker(info.title):
        return tab
    title = "" if is_title_of_none(info.title, info.uri) else info.title
    return replace(tab, uri=cut(info.uri, MAX_ADDRESS_BYTES), title=cut(title, _TITLE_BYTES))
