"""The pool of a group: a tab that was given back is looked at, loaded afresh, and handed over as if it were new."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Final

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.orders import OpenedTab, TabOrder
from tabmuxd.resources.tab import CloseCause, LoadMilestone, Navigation, NavigationOutcome, Tab
from tabmuxd.tabs import rules
from tabmuxd.tabs.addresses import BLANK
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.opening import Ready, answer, make_ready, of_closed
from tabmuxd.tabs.page import COMMAND_TIMEOUT, Page

_LEAVE_TIMEOUT: Final = 5.0
# The name of a window outlives its documents, and the next one could read it.
_FORGET_NAME: Final = {"expression": "window.name = ''", "silent": True}

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


async def hand_over(
    host: BrowserHost, log: Log, tab: Tab, order: TabOrder, *, uri: str, ready: Ready
) -> OpenedTab | None:
    """Load a tab afresh that was pooled and is its new owner's row, OPENING, by now.

    None where its page hangs, has crashed, has opened another, or shows another address than that at which it was given
    back: it is closed then, as it is when `uri` surely fails (NAVIGATION_FAILED).
    """
    host.begin_opening(tab.name)
    try:
        page = await _left(host, tab.name, tab.left_at)
        fit = await asyncio.shield(log.change(lambda changes: _is_nobodys(changes, tab.name)))
        if page is None or not fit:
            await _close(host, log, tab.name)
            await _go_on_unless_closed(log, tab.name)
            return None
        navigation = await _loaded(page, uri, order)
        await asyncio.shield(log.change(lambda changes: make_ready(changes, tab.name, page.shown_uri, ready)))
        host.arrived(page)
    except BaseException as error:
        await asyncio.shield(_close(host, log, tab.name))
        if isinstance(error, Refused):
            raise await of_closed(log, tab.name, error) from error
        raise
    finally:
        host.end_opening(tab.name)
    return await answer(log, page, navigation, order, uri=uri, from_pool=True)


async def _loaded(page: Page, uri: str, order: TabOrder) -> Navigation:
    """Take the blank page to `uri`; where a blank one is wanted, it is there."""
    if uri == BLANK:
        return Navigation(NavigationOutcome.REACHED)
    return await page.navigate(uri, until=LoadMilestone.COMMITTED, timeout=order.milestone_timeout.total_seconds())


async def _left(host: BrowserHost, tab: str, left_at: str) -> Page | None:
    """The page, once it has left the document that was given back; None where it is of no use any more."""
    try:
        page = await host.page(tab, timeout=COMMAND_TIMEOUT)
        if page.dialog is not None or page.shown_uri != left_at:
            return None
        await page.call("Page.getFrameTree")
        # Its own address again would only move within the document where just the fragment differs.
        navigation = await page.navigate(BLANK, until=LoadMilestone.COMMITTED, timeout=_LEAVE_TIMEOUT)
        await page.call("Runtime.evaluate", _FORGET_NAME)
    except (CdpError, Refused) as error:
        if isinstance(error, Refused) and error.reason is Reason.BROWSER_UNREACHABLE:
            raise
        _log.info("pooled tab of no use", tab=tab, error=type(error).__name__)
        return None
    return page if _arrived(navigation) else None


def _arrived(navigation: Navigation) -> bool:
    return navigation.outcome in (NavigationOutcome.REACHED, NavigationOutcome.SAME_DOCUMENT)


def _is_nobodys(changes: Changes, name: str) -> bool:
    """Whether no page that the earlier document opened holds the window; from now on what opens is the new owner's."""
    tab = changes.tab(name)
    # What was opened before the blank document came was told of before, so that it is recorded.
    if tab is None or tab.ended or tab.has_opened:
        return False
    changes.keep(replace(tab, left_at=""))
    return True


async def _go_on_unless_closed(log: Log, name: str) -> None:
    """Let another tab be taken; raises TAB_CLOSED if the new owner itself has closed this one meanwhile."""
    tab = await log.get_tab(name)
    if tab is not None and tab.close_cause is CloseCause.CLIENT and (refused := rules.is_open(tab)):
        raise refused


async def _close(host: BrowserHost, log: Log, name: str) -> None:
    """Close it; where that cannot be done now, the row is found again by its target."""
    tab = await log.get_tab(name)
    if tab is not None and not tab.ended:
        with contextlib.suppress(Refused):
            await host.close(tab, CloseCause.CAPACITY, ChangeCause.CAPACITY)
