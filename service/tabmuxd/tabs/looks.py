"""Looks at the page of a tab: for everybody who may read, beside whatever is at work there, and without touching it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.tab import Tab
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.health import Health
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.rights import Rights

_PAGE_WAIT: Final = 3.0
_LOOK_TIME: Final = 8.0


class Looks:
    """A look needs no lease, waits in no line and is no activity."""

    def __init__(self, hosts: Hosts, rights: Rights, health: Health) -> None:
        """Nothing is looked at yet."""
        self._hosts = hosts
        self._rights = rights
        self._health = health

    @contextlib.asynccontextmanager
    async def at(self, name: str) -> AsyncGenerator[tuple[Tab, Page]]:
        """A tab and its page, to be read for a few seconds.

        What goes wrong meanwhile is raised as TAB_NOT_FOUND, TAB_CLOSED, TAB_GONE, TAB_UNRESPONSIVE, DIALOG_OPEN or
        BROWSER_UNREACHABLE.
        """
        tab = await self._rights.tab(name)
        if refused := rules.is_there(tab) or rules.has_no_dialog(tab):
            raise refused
        host = self._hosts.of(name)
        if name in host.discarded:
            # Whoever wants its page would have it loaded again.
            raise faults.unresponsive(name)
        page: Page | None = None
        try:
            async with asyncio.timeout(_LOOK_TIME):
                page = await host.page(name, timeout=_PAGE_WAIT)
                yield tab, page
        except TimeoutError as error:
            raise self._unanswered(name, page, faults.unresponsive(name)) from error
        except CdpError as error:
            raise self._unanswered(name, page, faults.of_look(error, name, host.name)) from error

    def _unanswered(self, name: str, page: Page | None, refused: Refused) -> Refused:
        """Why a page did not answer; watchers learn of one that is stuck at once."""
        if refused.reason is not Reason.TAB_UNRESPONSIVE:
            return refused
        if page is not None and page.dialog is not None:
            kind = page.dialog.kind.name
            return refuse(
                Reason.DIALOG_OPEN,
                f"A JavaScript dialog ({kind.lower()}) blocks the page of {name}.",
                tab=name,
                kind=kind,
            )
        self._health.check_soon(name)
        return refused
