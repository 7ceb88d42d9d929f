"""JavaScript dialogs: recorded, or answered at once where the tab's policy says so, and dismissed after 2 minutes."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Final

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import Dialog, DialogPolicy, Tab, TabOrigin
from tabmuxd.tabs.page import OpenedDialog, Page
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_PATIENCE: Final = 120.0


class Dialogs:
    """What becomes of the dialogs of our tabs in one browser; those of others are never seen."""

    def __init__(self, log: Log, tasks: Tasks) -> None:
        """None is open."""
        self._log = log
        self._tasks = tasks

    def changed(self, page: Page, dialog: OpenedDialog | None) -> bool:
        """A dialog opened, or closed (None): recorded, or answered by the policy; gives whether it is answered."""
        tab = self._log.live.tab(page.tab)
        if dialog is not None and tab is None:
            self._tasks.spawn(self._once_recorded(page, dialog), f"dialog {page.tab}")
            return False
        if dialog is None or tab is None or tab.dialog_policy is DialogPolicy.REPORT:
            self._tasks.spawn(self._report(page, dialog), f"dialog {page.tab}")
            return False
        accept = tab.dialog_policy is DialogPolicy.ACCEPT
        self._tasks.spawn(self._answer(page, dialog, accept=accept), f"answer {page.tab}")
        return True

    def seen_again(self, page: Page) -> None:
        """A session of our own is attached again: a dialog that it does not see is there no more."""
        row = self._log.live.tab(page.tab)
        if row is not None and row.dialog is not None and page.dialog is None:
            # Chrome dismisses a dialog when the one who saw it goes away.
            self.changed(page, None)

    async def _once_recorded(self, page: Page, dialog: OpenedDialog) -> None:
        """As `changed`, for a popup whose row is being written."""
        if await self._log.change(lambda changes: changes.tab(page.tab)):
            self.changed(page, dialog)

    async def _answer(self, page: Page, dialog: OpenedDialog, *, accept: bool) -> None:
        try:
            await page.answer_dialog(dialog, accept=accept)
        except CdpError as error:
            _log.info("dialog not answered", tab=page.tab, error=type(error).__name__)
            if page.usable:
                page.hold_up(dialog)
                await self._report(page, dialog)

    async def _report(self, page: Page, dialog: OpenedDialog | None) -> None:
        def decide(changes: Changes) -> Tab | None:
            tab = changes.tab(page.tab)
            if tab is None or tab.ended or (dialog is None and tab.dialog is None):
                return tab
            shown = (
                Dialog(dialog.kind, dialog.message, dialog.default_prompt_text, changes.now)
                if dialog is not None
                else None
            )
            return changes.record(replace(tab, dialog=shown), ChangeCause.PAGE)

        tab = await self._log.change(decide)
        if dialog is not None and tab is not None and tab.origin is not TabOrigin.ADOPTED:
            await asyncio.sleep(_PATIENCE)
            if page.dialog is dialog:
                with contextlib.suppress(CdpError):  # the page is gone, or its dialog
                    await page.answer_dialog(dialog, accept=False)
