"""Unfinished tabs: this process is at work on a target for them, or nobody is any more and they have to end."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import endings, rules
from tabmuxd.tabs.closing import Closing
from tabmuxd.tabs.endings import ServedHook
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Unfinished:
    """The tabs of one browser that are being opened or brought back. Changed on the loop only."""

    def __init__(
        self,
        browser: str,
        log: Log,
        tasks: Tasks,
        closing: Closing,
        served: ServedHook,
        *,
        lost: Callable[[str], None],
    ) -> None:
        """None yet; `lost` is told the name of each tab that is LOST again."""
        self._browser = browser
        self._log = log
        self._tasks = tasks
        self._closing = closing
        self._served = served
        self._lost = lost
        self._at_work: set[str] = set()

    def __contains__(self, tab: object) -> bool:
        """Whether this process is at work on the tab of this name."""
        return tab in self._at_work

    def __repr__(self) -> str:
        """On how many this process is at work."""
        return f"<Unfinished at_work={len(self._at_work)}>"

    def begin(self, tab: str) -> None:
        """This process is at work on putting a target behind the tab, and will settle its row."""
        self._at_work.add(tab)

    def finish(self, tab: str, *, may_close: bool) -> None:
        """The row is settled, or is now, if it `may_close`: it could not be while the browser was away."""
        self._at_work.discard(tab)
        row = self._log.live.tab(tab)
        if row is not None and rules.is_unfinished(row) and may_close:
            self._tasks.spawn(self.end(row), f"end {tab}")

    async def settle(self) -> None:
        """End what was begun to bring a tab back, could not be closed then, and nobody is at work on any more."""
        for row in tuple(self._log.live.tabs.values()):
            if row.browser_name == self._browser and row.state is TabState.RECOVERING and row.name not in self._at_work:
                await self.end(row)

    async def end(self, tab: Tab, cause: CloseCause = CloseCause.CLIENT, why: ChangeCause = ChangeCause.CLIENT) -> None:
        """Nobody goes on with it: it is closed if it was opening, else LOST again; quietly, if it cannot be."""
        try:
            if tab.state is TabState.RECOVERING:
                await self._lose(tab)
            else:
                await self._closing.close(tab, cause, why)
        except Exception as error:  # noqa: BLE001 - the row stays, and the next connect tries again
            _log.warning("unfinished tab not closed", tab=tab.name, error=type(error).__name__)

    async def _lose(self, tab: Tab) -> None:
        """What was made to bring the tab back is closed, and it is LOST again."""
        await self._closing.close_targets(tab)

        def decide(changes: Changes) -> None:
            now = changes.tab(tab.name)
            if now is not None and now.state is TabState.RECOVERING and now.marker == tab.marker:
                endings.lose_page(changes, now, TabState.LOST, ChangeCause.RECOVERY, self._served)

        await self._log.change(decide)
        self._lost(tab.name)
