"""Binding: the page of a target that is there already becomes that of its tab, after a connect, or as a popup."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import structlog

from tabmuxd.cdp.errors import CallTimeout, CdpError, TargetGone
from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.names import RandomBytes, new_id, tab_name
from tabmuxd.tabs import popups
from tabmuxd.tabs.owners import Owners
from tabmuxd.tabs.page import Page
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class Holder(Protocol):
    """Who holds the pages of a browser."""

    @property
    def pages(self) -> Mapping[str, Page]:
        """The pages that are held, by the names of their tabs."""
        ...

    @property
    def stopping(self) -> bool:
        """Whether nothing new is taken in any more."""
        ...

    async def attach(self, tab: str, target_id: str) -> Page:
        """Attach to the target of a tab; raises CdpError or BROWSER_UNREACHABLE."""
        ...

    def bound(self, page: Page) -> None:
        """The page was looked at, and its tab is READY."""
        ...

    def crashed(self, target_id: str) -> None:
        """The renderer of a target is gone."""
        ...


class Binding:
    """Attaches to targets of ours, and has each page held as soon as it answers. All runs on the loop."""

    def __init__(
        self, browser: str, log: Log, tasks: Tasks, owners: Owners, holder: Holder, *, random: RandomBytes
    ) -> None:
        """Nothing is bound yet."""
        self._browser = browser
        self._log = log
        self._tasks = tasks
        self._owners = owners
        self._holder = holder
        self._random = random

    async def bind(self, tab: str, target_id: str) -> None:
        """Attach to the target of a tab, and hold its page as soon as that answers, which nobody waits for."""
        try:
            page = await self._holder.attach(tab, target_id)
        except (CdpError, Refused) as error:
            _log.info("page not bound", tab=tab, error=type(error).__name__)
            return
        self._tasks.spawn(self._hold_once_prepared(page), f"bind {tab}")

    def claim_popups(self, pages: Iterable[TargetInfo]) -> None:
        """Take in what pages of ours opened while nobody listened, and what those opened in turn."""
        known = tuple(pages)
        while sum(self.claim_popup(info) for info in known):
            pass

    def claim_popup(self, info: TargetInfo) -> bool:
        """Make a page that one of our tabs has opened ours at once, so that it never counts as foreign."""
        opener = self._owners.opener_of(info)
        if not opener or self._holder.stopping:
            return False
        name = tab_name(self._browser, new_id(self._random))
        self._owners.own(info.target_id, name)
        # Recorded first, since the end of the page may be the next event; attached to at once, since a dialog that
        # opens before that is seen by nobody.
        self._tasks.spawn(self._record_popup(name, opener, info.target_id), f"popup {name}")
        self._tasks.spawn(self.bind(name, info.target_id), f"bind {name}")
        return True

    async def _record_popup(self, name: str, opener: str, target_id: str) -> None:
        recorded = False
        try:
            recorded = await self._log.change(
                lambda changes: popups.record_popup(changes, opener, name=name, target_id=target_id)
            )
        finally:
            if not recorded:
                self._owners.disown(target_id, name)

    async def _hold_once_prepared(self, page: Page) -> None:
        """Hold the page as soon as it answers: one that is busy now may be free later, and delays no other."""
        while page.usable and page.tab not in self._holder.pages:
            try:
                await page.prepare()
                await page.look()
            except CallTimeout:
                _log.info("page does not answer yet", tab=page.tab)
                continue
            except CdpError as error:
                _log.info("page not bound", tab=page.tab, error=type(error).__name__)
                if isinstance(error, TargetGone) and error.crashed:
                    # It crashed while nobody was attached: Chrome tells so anew (`ownership.md` B-10).
                    self._holder.crashed(page.session.target_id)
                await page.session.detach()
                return
            await self._make_ready(page)
            return
        if page.usable:
            await page.session.detach()  # the tab was brought back over another session meanwhile

    async def _make_ready(self, page: Page) -> None:
        """The page was looked at: it is held, and a popup that was still opening is recorded as READY."""
        target_id, uri = page.session.target_id, page.shown_uri
        if await self._log.change(lambda changes: popups.make_ready(changes, page.tab, target_id, uri)):
            self._holder.bound(page)
        else:
            await page.session.detach()
