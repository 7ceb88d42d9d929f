"""Putting a page behind a tab again: its own target loaded anew, or a new target, by proof at every step."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.tab import HealthStatus, LoadMilestone, NavigationOutcome, Tab, TabHealth, TabOrigin, TabState
from tabmuxd.tabs import endings, faults, rules
from tabmuxd.tabs.health import probe
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.opening import make_target
from tabmuxd.tabs.page import Page

_LOOK_TIMEOUT: Final = 2.0
_STOP_TIMEOUT: Final = 1.0
_RELOAD_TIMEOUT: Final = 10.0
_NAVIGATION_TIMEOUT: Final = 30.0
_COMMIT_PAUSE: Final = 0.05
_COMMITTED: Final = frozenset({NavigationOutcome.REACHED, NavigationOutcome.LOADING})


class Overtaken(Exception):
    """The tab was closed, or became something else, meanwhile: nothing of it was changed, and it is looked at again."""


async def answers(page: Page) -> bool:
    """Whether the page answers; a dialog that holds it up is dismissed first. Raises CdpError."""
    if page.dialog is not None:
        await page.answer_dialog(page.dialog, accept=False)
        page.dialog = None
    status, _latency, _visible = await probe(page, timeout=_LOOK_TIMEOUT)
    return status is HealthStatus.ALIVE


async def attach_again(host: BrowserHost, tab: Tab) -> Page | None:
    """A session of our own on the tab's target whose page answers without being loaded; None if it does not.

    Raises BROWSER_UNREACHABLE.
    """
    page: Page | None = None
    try:
        page = await host.attach(tab.name, tab.target_id)
        # The one asks for a crash to be told anew, which ends the other at once (`ownership.md` B-10).
        _enabled, (status, _latency, _visible) = await asyncio.gather(
            page.call("Inspector.enable", timeout=_LOOK_TIMEOUT), probe(page, timeout=_LOOK_TIMEOUT)
        )
        if status is HealthStatus.ALIVE and await page.look(timeout=_LOOK_TIMEOUT):
            await page.prepare()
            return page
    except CdpError:
        host.connected()
    if page is not None:
        await page.session.detach()
    return None


async def load_again(host: BrowserHost, tab: Tab, address: str) -> Page | None:
    """The tab's own target at the address, loaded anew; None where it cannot be had to load anything.

    By its address, not by `Page.reload`: that sends a form once more which the page was the answer to. Raises
    NAVIGATION_FAILED and BROWSER_UNREACHABLE.
    """
    page: Page | None = None
    try:
        if tab.state is TabState.READY and tab.name not in host.discarded:
            # Chromium 156: only over a session from before the hang, and only before a navigation is ordered.
            held = host.pages.get(tab.name)
            if held is None:
                return None
            await held.call("Runtime.terminateExecution", timeout=_STOP_TIMEOUT)
        page = await host.attach(tab.name, tab.target_id)
        await _load(page, address)
        await page.prepare()
    except CdpError:
        host.connected()
        if page is not None:
            await page.session.detach()
        return None
    except BaseException:
        if page is not None:
            await asyncio.shield(page.session.detach())
        raise
    return page


async def _load(page: Page, address: str) -> None:
    """Order the address, and return once its document is there; raises CdpError if it does not come in time."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _RELOAD_TIMEOUT
    reply = await page.call("Page.navigate", {"url": address}, timeout=_RELOAD_TIMEOUT)
    if reply.get("errorText"):
        raise _not_loaded(address, str(reply["errorText"]))
    loader_id = str(reply.get("loaderId", ""))
    while True:
        await page.look(timeout=deadline - loop.time(), again=True)
        document = page.documents.current
        if not loader_id or (document is not None and document.loader_id == loader_id):
            return
        await asyncio.sleep(_COMMIT_PAUSE)


def record_page(changes: Changes, tab: Tab, page: Page) -> Tab:
    """Record that the tab's own target is of use again; raises Overtaken if that has changed meanwhile."""
    now = changes.tab(tab.name)
    if now is None or (now.state, now.target_id) != (tab.state, tab.target_id):
        raise Overtaken
    health = TabHealth(HealthStatus.ALIVE, changes.now, None, visible=True)
    ready = replace(now, state=TabState.READY, uri=page.shown_uri or now.uri, dialog=None, health=health)
    return endings.come_back(changes, ready)


async def reopen(host: BrowserHost, log: Log, tab: Tab, address: str, *, marker: str) -> Tab:
    """Put a new target behind the tab, at the address; the old one is closed first.

    The row is RECOVERING with the marker before anything is made, and READY in one step with target id, generation and
    session. If that fails, nothing is left but the LOST row, and the reason is raised: TAB_CAPACITY,
    BROWSER_UNREACHABLE, NAVIGATION_FAILED, TAB_UNRESPONSIVE; or Overtaken.
    """
    host.begin_opening(tab.name)
    made: list[str] = []
    try:
        row = await log.change(lambda changes: _begin(changes, host, tab, marker))
        try:
            await _close_old(host, row)
            return await _put_behind(host, log, row, address, made)
        except BaseException as error:
            await asyncio.shield(_undo(host, log, row, made))
            if isinstance(error, CdpError):
                raise with_outcome(faults.of_look(error, tab.name, host.name), "no") from error
            raise
    finally:
        host.end_opening(tab.name)


def _begin(changes: Changes, host: BrowserHost, tab: Tab, marker: str) -> Tab:
    now = changes.tab(tab.name)
    if now is None or (now.state, now.target_id) != (tab.state, tab.target_id):
        raise Overtaken
    others = [other for other in changes.tabs(host.name) if other.name != now.name]
    if now.origin is not TabOrigin.ADOPTED and (refused := rules.has_room(others, host.name, host.options.limits)):
        raise refused
    # Its target id stays: what it names is closed next, and until then ours by proof.
    endings.leave(changes, now, ChangeCause.RECOVERY)
    begun = replace(rules.without_page(now, TabState.RECOVERING, changes.now), marker=marker)
    return changes.record(begun, ChangeCause.RECOVERY)


async def _close_old(host: BrowserHost, row: Tab) -> None:
    if row.target_id in host.connected().pages:
        host.abandon(row.target_id, row.name)
        host.let_go(row.name, "tab_gone")
        await host.close_target(row.target_id)


async def _put_behind(host: BrowserHost, log: Log, row: Tab, address: str, made: list[str]) -> Tab:
    generation = log.live.browsers[host.name].generation
    target_id = await make_target(host, row, made)
    noted = asyncio.ensure_future(log.change(lambda changes: _note_target(changes, row, target_id)))
    try:
        page = await host.attach(row.name, target_id)
        await page.prepare_first()
    finally:
        # Once it has left its marker address, only this proves that it is ours.
        await asyncio.shield(noted)
    ordered = asyncio.ensure_future(page.navigate(address, until=LoadMilestone.COMMITTED, timeout=_NAVIGATION_TIMEOUT))
    host.begin_painting(page)
    navigation = await ordered
    if navigation.outcome not in _COMMITTED or not page.shown_uri:
        raise faults.unresponsive(row.name)
    shown_uri = page.shown_uri

    def make_ready(changes: Changes) -> Tab:
        now = changes.tab(row.name)
        browser = changes.browser(host.name)
        if now is None or now.state is not TabState.RECOVERING or now.marker != row.marker:
            raise Overtaken
        if browser is None or browser.generation != generation:
            raise faults.unreachable(host.name)
        ready = replace(
            now,
            state=TabState.READY,
            target_id=target_id,
            next_target_id="",
            generation=now.generation + 1,
            browser_generation=generation,
            uri=shown_uri,
            health=None,
        )
        return endings.come_back(changes, ready)

    ready = await asyncio.shield(log.change(make_ready))
    host.hold(page)
    host.arrived(page)
    return ready


def _note_target(changes: Changes, row: Tab, target_id: str) -> None:
    now = changes.tab(row.name)
    if now is not None and now.state is TabState.RECOVERING and now.marker == row.marker:
        changes.keep(replace(now, next_target_id=target_id))


async def _undo(host: BrowserHost, log: Log, row: Tab, made: list[str]) -> None:
    """Close what was made and record that the tab is LOST; what cannot be closed now is found again by its row."""
    with contextlib.suppress(Refused):
        for target_id in made:
            host.abandon(target_id, row.name)
            await host.close_target(target_id)
        if row.target_id in host.connected().pages:
            return

        def decide(changes: Changes) -> None:
            now = changes.tab(row.name)
            if now is not None and now.state is TabState.RECOVERING and now.marker == row.marker:
                endings.lose_page(changes, now, TabState.LOST, ChangeCause.RECOVERY, host.served)

        await log.change(decide)


def _not_loaded(uri: str, net_error: str) -> Refused:
    refused = refuse(Reason.NAVIGATION_FAILED, f"The page did not load ({net_error}).", uri=uri, net_error=net_error)
    return with_outcome(refused, "yes")
