"""Opening a tab: row first, then a target at the marker address, then its address."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.orders import OpenedTab, TabOrder
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.tab import CloseCause, LoadMilestone, Navigation, NavigationOutcome, Tab, TabState
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.addresses import BLANK, marker_address
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.page import Page
from tabmuxd.tasks import outlasted

_CREATE_TIMEOUT: Final = 10.0

Ready = Callable[[Changes, Tab], Tab]
"""Run in the transaction that makes the tab READY, before it is recorded: binds it to what it is opened for."""


async def open_target(host: BrowserHost, log: Log, tab: Tab, order: TabOrder, *, uri: str, ready: Ready) -> OpenedTab:
    """Put a target behind a row that is OPENING, and take it to `uri`.

    The tab is READY once its document is committed; the answer comes at `order.until`. If that surely fails, nothing
    is left but the CLOSED row, and the reason is raised.
    """
    host.begin_opening(tab.name)
    made: list[str] = []
    try:
        page, navigation = await _open(host, log, tab, order, made, uri=uri, ready=ready)
    except BaseException as error:
        await asyncio.shield(_undo(host, tab.name, log, made))
        if isinstance(error, CdpError):
            raise with_outcome(faults.of_look(error, tab.name, host.name), "no") from error
        if isinstance(error, Refused):
            raise await of_closed(log, tab.name, error) from error
        raise
    finally:
        host.end_opening(tab.name)
    return await answer(log, page, navigation, order, uri=uri)


async def of_closed(log: Log, tab: str, refused: Refused) -> Refused:
    """What to tell of a tab that was refused to its opener, and is closed: nobody has to look what became of it."""
    if refused.reason is not Reason.OUTCOME_UNKNOWN:
        return refused
    record = await log.get_tab(tab)
    return (record and rules.is_there(record)) or refused


async def answer(
    log: Log, page: Page, navigation: Navigation, order: TabOrder, *, uri: str, from_pool: bool = False
) -> OpenedTab:
    """What there is to tell of a tab that has just become READY, at the milestone that was asked for."""
    with contextlib.suppress(Refused):
        navigation = await _follow(page, navigation, order)
    record = await log.get_tab(page.tab)
    assert record is not None  # noqa: S101 - rows of tabs that were just READY are not compacted
    return OpenedTab(record, navigation if uri != BLANK else None, from_pool=from_pool)


async def make_target(host: BrowserHost, tab: Tab, made: list[str]) -> str:
    """Open a target at the marker address of the row, and own it; its id is also put into `made`.

    Who is cancelled meanwhile waits for the reply: without its id only the next sweep would find the target. Raises
    CdpError.
    """
    targets = host.connected()

    async def make() -> str:
        target_id = await targets.create(marker_address(tab.name, tab.marker), background=True, timeout=_CREATE_TIMEOUT)
        made.append(target_id)
        host.own(target_id, tab.name)
        return target_id

    return await outlasted(asyncio.ensure_future(make()))


async def _open(
    host: BrowserHost, log: Log, tab: Tab, order: TabOrder, made: list[str], *, uri: str, ready: Ready
) -> tuple[Page, Navigation]:
    target_id = await make_target(host, tab, made)
    recorded = asyncio.ensure_future(log.change(lambda changes: _record_target(changes, tab.name, target_id)))
    try:
        page = await host.attach(tab.name, target_id)
        await page.prepare_first()
    finally:
        await asyncio.shield(recorded)
    ordered = asyncio.ensure_future(
        page.navigate(uri, until=LoadMilestone.COMMITTED, timeout=order.milestone_timeout.total_seconds())
    )
    host.begin_painting(page)
    navigation = await ordered
    # Without a document of its own it still shows the marker address.
    shown_uri = page.shown_uri or BLANK

    await asyncio.shield(log.change(lambda changes: make_ready(changes, tab.name, shown_uri, ready)))
    host.hold(page)
    host.arrived(page)
    return page, navigation


def make_ready(changes: Changes, name: str, shown_uri: str, ready: Ready) -> Tab:
    """Record that an OPENING tab is READY at this address, bound to what it is opened for; raises if it has ended."""
    now = changes.tab(name)
    if now is None or now.state is not TabState.OPENING:
        raise (now and rules.is_there(now)) or rules.unknown_tab(name)
    seen = replace(now, state=TabState.READY, last_active_time=changes.now, uri=shown_uri)
    return changes.record(ready(changes, seen), ChangeCause.CLIENT)


async def _follow(page: Page, navigation: Navigation, order: TabOrder) -> Navigation:
    document = page.documents.current
    if navigation.outcome is not NavigationOutcome.REACHED or document is None:
        return navigation
    if order.until > navigation.reached:
        navigation = await page.reach(document, order.until, timeout=order.milestone_timeout.total_seconds())
    return await page.with_status(navigation)


def _record_target(changes: Changes, name: str, target_id: str) -> None:
    tab = changes.tab(name)
    browser = changes.browser(tab.browser_name) if tab else None
    if tab is None or browser is None:
        raise rules.unknown_tab(name)
    if refused := rules.is_open(tab):
        raise refused
    changes.record(replace(tab, target_id=target_id, browser_generation=browser.generation), ChangeCause.CLIENT)


async def _undo(host: BrowserHost, name: str, log: Log, made: Iterable[str]) -> None:
    """Close what was begun; a target that cannot be closed now is found again by its row or its marker."""
    with contextlib.suppress(Refused):
        tab = await log.get_tab(name)
        if tab is not None and not tab.ended:
            await host.close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)
        # Of a tab that somebody closed before its target was known, the target is still there.
        for target_id in made:
            host.abandon(target_id, name)
            if target_id in host.connected().pages:
                await host.close_target(target_id)
