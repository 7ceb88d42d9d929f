"""One browser: its connection, its targets, and the pages behind our tabs in it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from weakref import WeakSet

import structlog

from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.errors import CallTimeout, CdpError, TargetGone
from tabmuxd.cdp.link import BrowserIdentity, BrowserLink, BrowserSource
from tabmuxd.cdp.targets import TargetInfo, Targets
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserState, Ownership
from tabmuxd.resources.errors import Refused, cut
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, new_id, tab_name
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import endings, faults, popups, rules
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES, marker_address
from tabmuxd.tabs.dialogs import Dialogs
from tabmuxd.tabs.endings import ServedHook
from tabmuxd.tabs.noting import Notes
from tabmuxd.tabs.owners import Owners
from tabmuxd.tabs.page import COMMAND_TIMEOUT, OpenedDialog, Page
from tabmuxd.tasks import Tasks, outlasted

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HostOptions:
    """What the configuration says of one browser."""

    name: str
    ownership: Ownership
    limits: BrowserLimits = field(default_factory=BrowserLimits)


class BrowserHost:
    """Keeps what the store knows of a browser's tabs and what the browser has in step.

    All runs on the loop. A page is in `pages` exactly while a session is attached to the target of a READY or OPENING
    tab and its enables are confirmed.
    """

    def __init__(
        self,
        options: HostOptions,
        source: BrowserSource,
        log: Log,
        tasks: Tasks,
        served: ServedHook,
        *,
        random: RandomBytes,
    ) -> None:
        """Does nothing before `run`."""
        self.options = options
        self.name = options.name
        self.pages: dict[str, Page] = {}
        self.targets: Targets | None = None
        self.stopping = False
        self._log = log
        self._tasks = tasks
        self.served = served
        self._random = random
        self._owners = Owners(log)
        self._attached: WeakSet[Page] = WeakSet()
        self._opening: set[str] = set()
        self._closing: dict[str, asyncio.Task[Tab]] = {}
        self.lost: Callable[[str], None] = _nobody
        """Told the name of each tab that is CRASHED or LOST, as soon as that is recorded, and at each connect."""
        self.close_failed: Callable[[Tab, CloseCause], None] = _nobody
        """Told of each close that failed, with the cause that would have been recorded."""
        self.came_up: Callable[[], None] = _nobody
        """Told of each connection, once the tabs that are still there are known."""
        self.discarded: set[str] = set()
        """Names of READY tabs whose page the browser discarded: nothing answers until it is loaded again."""
        self.wanted: Callable[[str], None] = _nobody
        """Told the name of such a tab when somebody wants its page."""
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._notes = Notes(log, tasks, self._info_of)
        self._dialogs = Dialogs(log, tasks)
        self._link = BrowserLink(source, up=self._up, down=self._down)

    def __repr__(self) -> str:
        """Whether it is connected, and how many pages are held."""
        state = "connected" if self.targets else "away"
        return f"<BrowserHost {self.name} {state} pages={len(self.pages)}>"

    async def introduce(self) -> None:
        """Record the browser as UNREACHABLE, until it answers."""
        await self._log.change(self._introduce)

    async def run(self) -> None:
        """Keep connected until cancelled."""
        await self._link.run()

    async def stop(self) -> None:
        """Let go: a LAUNCHED browser is ended, an ATTACHED one keeps its tabs; records stay."""
        self.stopping = True
        self._notes.stop()
        await self._link.stop(end_browser=self.options.ownership is Ownership.LAUNCHED)

    def connected(self) -> Targets:
        """The targets of the live connection; BROWSER_UNREACHABLE while there is none."""
        targets = self.targets
        if targets is None or targets.closed:
            raise faults.unreachable(self.name)
        return targets

    def foreign_targets(self) -> list[str]:
        """Target ids of the pages that are not ours, sorted; empty while the browser is away."""
        return [] if self.targets is None else self._owners.foreign(self.targets.pages.values())

    async def page(self, tab: str, *, timeout: float, lost: bool = False) -> Page:
        """The live page behind a tab; waits up to `timeout` seconds while the tab opens or is bound again.

        With `lost` also while it is brought back. Raises TAB_GONE, TAB_CLOSED, BROWSER_UNREACHABLE or TAB_UNRESPONSIVE.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        while True:
            page = self.pages.get(tab)
            if page is not None and page.usable:
                return page
            record = self._log.live.tab(tab) or await self._log.get_tab(tab)
            if record is None:
                raise rules.unknown_tab(tab)
            left = deadline - asyncio.get_running_loop().time()
            refused = rules.is_there(record)
            if refused and (record.ended or not lost or left <= 0):
                raise refused
            self.connected()
            if left <= 0:
                raise faults.unresponsive(tab)
            if tab in self.discarded:
                self.wanted(tab)
            await asyncio.wait({self._moved}, timeout=left)

    async def front(self, *, adopting: bool = False) -> str | None:
        """Target id of the page that is certainly in front; None where that is not certain. BROWSER_UNREACHABLE.

        Foreign pages are attached to for it only where the page in front is about to be adopted (`adopting`).
        """
        may_attach = None if adopting else self._owners.__contains__
        try:
            return await self.connected().front(may_attach=may_attach, timeout=COMMAND_TIMEOUT)
        except CdpError as error:
            raise faults.unreachable(self.name) from error

    async def look(self) -> None:
        """Note the titles that scripts have set since they were told of; quietly, if the browser is away."""
        if self.targets is not None:
            with contextlib.suppress(CdpError):
                await self.targets.look_at_all(timeout=COMMAND_TIMEOUT)

    async def back(self) -> None:
        """Return once the browser is connected."""
        while self.targets is None:
            await asyncio.wait({self._moved})

    # Ownership of targets

    def own(self, target_id: str, tab: str) -> None:
        """From now on this target is the one behind the tab."""
        self._owners.own(target_id, tab)

    def tab_behind(self, target_id: str) -> str:
        """Name of the tab that this target is behind; empty for a foreign page, or none. BROWSER_UNREACHABLE."""
        info = self.connected().pages.get(target_id)
        return "" if info is None else self._owners.tab_behind(info)

    def hold(self, page: Page) -> None:
        """The page is prepared: calls may act on it."""
        self.pages[page.tab] = page
        self.discarded.discard(page.tab)
        self._move()

    def disown(self, target_id: str, tab: str) -> None:
        """The target is not behind the tab any more: its end is not that of the tab."""
        self._owners.disown(target_id, tab)

    def begin_opening(self, tab: str) -> None:
        """This process is at work on putting a target behind the tab, and will settle its row."""
        self._opening.add(tab)

    def begin_painting(self, page: Page) -> None:
        """The first address is ordered: the page paints from now on, and nobody waits for that."""
        # What becomes of the page meanwhile is recorded by its own event.
        self._tasks.spawn(page.paint(), f"paint {page.tab}", awaited=True)

    def arrived(self, page: Page) -> None:
        """The first document is there, and its status known: what served to open the page goes, and nobody waits."""
        self._tasks.spawn(page.tidy(), f"tidy {page.tab}")

    def end_opening(self, tab: str) -> None:
        """The row is settled, or is now: its target could not be closed while the browser was away."""
        self._opening.discard(tab)
        row = self._log.live.tab(tab)
        reachable = self.targets is not None and not self.targets.closed
        if row is not None and rules.is_unfinished(row) and reachable and not self.stopping:
            self._tasks.spawn(self._end_quietly(row), f"end {tab}")
        self._notes.note(tab)

    async def settle_unfinished(self) -> None:
        """End what was begun to bring a tab back, could not be closed then, and nobody is at work on any more."""
        for row in tuple(self._log.live.tabs.values()):
            if row.browser_name == self.name and row.state is TabState.RECOVERING and row.name not in self._opening:
                await self._end_quietly(row)

    async def attach(self, tab: str, target_id: str) -> Page:
        """Attach to the target of a tab; `prepare` comes next. Raises CdpError."""
        session = await self.connected().attach(target_id, timeout=COMMAND_TIMEOUT)
        page = Page(tab, self.name, session, self)
        self._attached.add(page)
        return page

    async def close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        """Close the target and record it; two calls at once do it once, and the first cause counts.

        CLOSED is recorded only after the target was seen gone. Raises BROWSER_UNREACHABLE if that could not be seen.
        Who is cancelled goes once the close has ended, since whoever comes next would get a tab that is going.
        """
        running = self._closing.get(tab.name)
        if running is None:
            running = self._tasks.spawn(self._close(tab, cause, why), f"close {tab.name}", awaited=True)
            self._closing[tab.name] = running
            running.add_done_callback(lambda _task: self._closing.pop(tab.name, None))
        return await outlasted(running)

    async def _close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        while not tab.ended:
            try:
                await self._close_targets(tab)
            except Refused as refused:
                await self._owe(tab, cause)
                raise faults.close_owed(self.name, tab.name) from refused
            tab = await self._log.change(partial(self._record_close, gone=tab, cause=cause, why=why))
        self.let_go(tab.name, "tab_gone")
        return tab

    async def _owe(self, tab: Tab, cause: CloseCause) -> None:
        """Keep in mind, over a restart too, that the tab has still to be closed."""

        def decide(changes: Changes) -> Tab | None:
            now = changes.tab(tab.name)
            return now if now is None or now.ended else changes.keep(replace(now, close_owed=cause))

        owed = await self._log.change(decide)
        if owed is not None and not owed.ended:
            self.close_failed(owed, cause)

    def _record_close(self, changes: Changes, gone: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        """The tab as CLOSED, its targets `gone`; as it is now, if others have come behind it meanwhile."""
        tab = changes.tab(gone.name)
        if tab is None:
            raise rules.unknown_tab(gone.name)
        if not tab.ended and rules.targets_of(tab) - rules.targets_of(gone):
            return tab
        return endings.close(changes, tab, cause, why, self.served)

    async def close_target(self, target_id: str) -> None:
        """Close one target that is ours, and see it gone; BROWSER_UNREACHABLE."""
        try:
            await self.connected().close(target_id, timeout=COMMAND_TIMEOUT)
        except CdpError as error:
            raise faults.unreachable(self.name) from error

    async def _close_targets(self, tab: Tab) -> None:
        """Close what is proven to be behind the tab, or on its way there; BROWSER_UNREACHABLE."""
        if tab.state is TabState.LOST:
            return
        found = (rules.targets_of(tab) | {self._marked(tab)}) - {""}
        if tab.state is TabState.RECOVERING:
            found &= self.connected().pages.keys()
        for target_id in sorted(found):
            if tab.state is TabState.RECOVERING:
                self.disown(target_id, tab.name)
            await self.close_target(target_id)

    def _marked(self, tab: Tab) -> str:
        """Target id for an unfinished row whose target was not recorded yet, found by its marker address alone.

        Raises BROWSER_UNREACHABLE where it cannot be looked for.
        """
        known = tab.target_id if tab.state is TabState.OPENING else tab.next_target_id
        if known or not rules.is_unfinished(tab):
            return ""
        address = marker_address(tab.name, tab.marker)
        found = [i.target_id for i in self.connected().pages.values() if i.uri == address and not i.opener_id]
        return found[0] if len(found) == 1 else ""

    # The link

    def _introduce(self, changes: Changes) -> None:
        known = changes.browser(self.name)
        # Tabs without a browser: its record cannot be read, so that none of their targets is taken for one of today.
        generation = max((tab.browser_generation for tab in changes.tabs(self.name)), default=0)
        wanted = replace(
            known or Browser(self.name, BrowserState.UNREACHABLE, self.options.ownership, generation=generation),
            state=BrowserState.UNREACHABLE,
            ownership=self.options.ownership,
            limits=self.options.limits,
        )
        if wanted != known:
            changes.record(wanted, ChangeCause.BROWSER)

    async def _up(self, connection: Connection, identity: BrowserIdentity) -> None:
        targets = Targets(
            connection,
            created=self._created,
            changed=self._changed,
            destroyed=self._destroyed,
            crashed=self._crashed,
            replaced=self._replaced,
        )
        await targets.discover(timeout=COMMAND_TIMEOUT)
        live = frozenset(targets.pages)
        kept = await self._log.change(lambda changes: self._reconcile(changes, identity, live))
        self.targets = targets
        self._owners.reset(kept)
        self._move()
        self.claim_popups()
        for target_id in self._owners.missing(targets.pages):
            self._destroyed(target_id)  # between the look and now
        await asyncio.gather(*(self._bind_again(tab) for tab in kept))
        self._move()
        for tab in tuple(self._log.live.tabs.values()):
            if tab.browser_name == self.name and tab.state in (TabState.CRASHED, TabState.LOST):
                self.lost(tab.name)
        self.came_up()

    def _reconcile(self, changes: Changes, identity: BrowserIdentity, live: frozenset[str]) -> list[Tab]:
        """Record what the browser is now; give the tabs that are still ours by target id and generation."""
        known = changes.browser(self.name) or Browser(self.name, BrowserState.UNREACHABLE, self.options.ownership)
        browser, another = rules.browser_after_connect(
            known,
            process_key=identity.process_key,
            product=identity.product,
            endpoint=identity.host_port,
            headless=identity.headless,
        )
        browser = changes.record(replace(browser, state=BrowserState.ACTIVE), ChangeCause.BROWSER)
        kept: list[Tab] = []
        for tab in changes.tabs(self.name):
            if (
                (tab.name in self._opening and not another)
                or (rules.is_unfinished(tab) and not another)
                or (tab.target_id in live and tab.browser_generation == browser.generation)
            ):
                kept.append(tab)
            else:
                why = ChangeCause.BROWSER if another else ChangeCause.PERSON
                endings.lose_page(changes, tab, TabState.LOST, why, self.served)
        return kept

    async def _bind_again(self, tab: Tab) -> None:
        if tab.name in self._opening:
            return
        if rules.is_unfinished(tab):
            # Who opened it, or brought it back, died with its server: what was made is found by proof, and ends.
            await self._end_quietly(tab)
        elif tab.state in (TabState.OPENING, TabState.READY):
            await self._bind(tab.name, tab.target_id)

    async def _bind(self, tab: str, target_id: str) -> None:
        """Attach to the target of a tab, and hold its page as soon as that answers."""
        try:
            page = await self.attach(tab, target_id)
        except (CdpError, Refused) as error:
            _log.info("page not bound", tab=tab, error=type(error).__name__)
            return
        self._tasks.spawn(self._hold_once_prepared(page), f"bind {tab}")

    async def _hold_once_prepared(self, page: Page) -> None:
        """Hold the page as soon as it answers: one that is busy now may be free later, and delays no other."""
        while page.usable and page.tab not in self.pages:
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
                    self._page_gone(page.session.target_id, "tab_crashed", TabState.CRASHED, ChangeCause.CRASH)
                return
            await self._make_ready(page)
            return
        if page.usable:
            await page.session.detach()  # the tab was brought back over another session meanwhile

    async def _make_ready(self, page: Page) -> None:
        """The page was looked at: hold it, and record a popup that was still opening as READY."""
        target_id, uri = page.session.target_id, page.shown_uri
        if await self._log.change(lambda changes: popups.make_ready(changes, page.tab, target_id, uri)):
            self.hold(page)
            self._notes.note(page.tab)
            row = self._log.live.tab(page.tab)
            if row is not None and row.dialog is not None and page.dialog is None:
                # Chrome dismisses a dialog when the one who saw it goes away.
                self._dialogs.changed(page, None)
        else:
            await page.session.detach()

    async def _end_quietly(
        self, tab: Tab, cause: CloseCause = CloseCause.CLIENT, why: ChangeCause = ChangeCause.CLIENT
    ) -> None:
        try:
            if tab.state is TabState.RECOVERING:
                await self._lose_unfinished(tab)
            else:
                await self.close(tab, cause, why)
        except Exception as error:  # noqa: BLE001 - the row stays, and the next connect tries again
            _log.warning("unfinished tab not closed", tab=tab.name, error=type(error).__name__)

    async def _lose_unfinished(self, tab: Tab) -> None:
        """Nobody goes on with bringing the tab back: what was made for it is closed, and it is LOST again."""
        await self._close_targets(tab)

        def decide(changes: Changes) -> None:
            now = changes.tab(tab.name)
            if now is not None and now.state is TabState.RECOVERING and now.marker == tab.marker:
                endings.lose_page(changes, now, TabState.LOST, ChangeCause.RECOVERY, self.served)

        await self._log.change(decide)
        self.lost(tab.name)

    async def _down(self, reason: str) -> None:
        self.targets = None
        self.discarded.clear()
        for page in tuple(self._attached):
            page.end("connection_lost")
        for tab in tuple(self.pages):
            self.let_go(tab, "connection_lost")
        self._move()
        if self.stopping:
            return
        _log.info("browser away", browser=self.name, reason=reason)
        await self._log.change(self._record_away)

    def _record_away(self, changes: Changes) -> None:
        browser = changes.browser(self.name)
        if browser is not None and browser.state is not BrowserState.UNREACHABLE:
            changes.record(replace(browser, state=BrowserState.UNREACHABLE), ChangeCause.BROWSER)

    # Target events: called on the loop, in order

    def _created(self, info: TargetInfo) -> None:
        """A new page is foreign until `own` says otherwise, unless the page of one of our tabs opened it."""
        if self.targets is not None:
            self._claim_popup(info)

    def claim_popups(self) -> None:
        """Take in what pages of ours opened while nobody listened, and what those opened in turn."""
        pages = self.connected().pages
        while sum(self._claim_popup(info) for info in tuple(pages.values())):
            pass

    def _claim_popup(self, info: TargetInfo) -> bool:
        """Make a page that one of our tabs has opened ours at once, so that it never counts as foreign."""
        opener = self._owners.opener_of(info)
        if not opener or self.stopping:
            return False
        name = tab_name(self.name, new_id(self._random))
        self._owners.own(info.target_id, name)
        # Recorded first, since the end of the page may be the next event; attached to at once, since a dialog that
        # opens before that is seen by nobody.
        self._tasks.spawn(self._record_popup(name, opener, info.target_id), f"popup {name}")
        self._tasks.spawn(self._bind(name, info.target_id), f"bind {name}")
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

    def _changed(self, info: TargetInfo) -> None:
        if tab := self._owners.tab_of(info.target_id):
            self._notes.note(tab)

    def _destroyed(self, target_id: str) -> None:
        self._page_gone(target_id, "tab_gone", TabState.LOST, ChangeCause.PERSON)

    def _crashed(self, target_id: str) -> None:
        self._page_gone(target_id, "tab_crashed", TabState.CRASHED, ChangeCause.CRASH)

    def _replaced(self, target_id: str, info: TargetInfo) -> None:
        """The browser has discarded a page of ours, and the evidence for what took its place is unique."""
        tab = self._owners.tab_of(target_id)
        if tab is None or self.stopping or tab in self._opening or tab in self._closing:
            self._destroyed(target_id)
            return
        self._owners.disown(target_id, tab)
        self._owners.own(info.target_id, tab)
        self.let_go(tab, "tab_gone")
        self.discarded.add(tab)
        self._tasks.spawn(self._record_discarded(tab, target_id, info.target_id), f"discarded {tab}")

    async def _record_discarded(self, name: str, target_id: str, next_target_id: str) -> None:
        def decide(changes: Changes) -> bool:
            tab = changes.tab(name)
            if tab is None or tab.state is not TabState.READY or tab.target_id != target_id:
                return False
            changes.record(rules.discarded(tab, next_target_id, changes.now), ChangeCause.BROWSER)
            return True

        if not await self._log.change(decide):
            self._owners.disown(next_target_id, name)

    def _page_gone(self, target_id: str, cause: str, state: TabState, why: ChangeCause) -> None:
        tab = self._owners.tab_of(target_id)
        if tab is None or self.stopping:
            return
        if state is TabState.LOST:
            self._owners.gone(target_id)
        self.let_go(tab, cause)
        if tab not in self._closing:
            self._tasks.spawn(self._record_gone(tab, target_id, state, why), f"{state.name} {tab}")

    async def _record_gone(self, name: str, target_id: str, state: TabState, why: ChangeCause) -> None:
        def decide(changes: Changes) -> Tab | None:
            tab = changes.tab(name)
            # Another target may be behind the tab meanwhile, or on its way there: who puts it there sees to that.
            if tab is None or tab.state is TabState.RECOVERING:
                return None
            if tab.state is TabState.OPENING and state is TabState.CRASHED:
                return tab
            if tab.state is TabState.OPENING or tab.target_id == target_id:
                endings.lose_page(changes, tab, state, why, self.served)
            return None

        opening = await self._log.change(decide)
        if opening is not None:
            # What has crashed is still a target, so it has to go before its row ends.
            await self._end_quietly(opening, CloseCause.OUTSIDE, why)
        self.lost(name)

    def let_go(self, tab: str, cause: str) -> None:
        """The tab has no page any more; `cause` as in `Page.end`."""
        page = self.pages.pop(tab, None)
        self.discarded.discard(tab)
        if page is not None:
            page.end(cause)
            if cause == "tab_crashed":
                self._tasks.spawn(page.session.detach(), f"detach from {tab}")
        self._notes.forget(tab)
        self._move()

    def _info_of(self, tab: Tab) -> TargetInfo | None:
        """What the browser says of the tab's target, unless it names another address than its document has.

        Chromium 156 tells the address of a navigation that is only ordered, such as one that a dialog holds up.
        """
        info = self.targets.pages.get(tab.target_id) if self.targets else None
        page = self.pages.get(tab.name)
        if info is None or page is None or page.shown_uri in ("", cut(info.uri, MAX_ADDRESS_BYTES)):
            return info
        return None

    # What a page tells

    def document_changed(self, page: Page) -> None:
        """Note the address; the title follows by the target's own events."""
        self._notes.note(page.tab)

    def title_settled(self, page: Page) -> None:
        """Ask the browser for the title; it is noted from the answer as from an event."""
        self._tasks.spawn(self._look(page), f"look at {page.tab}")

    async def _look(self, page: Page) -> None:
        if self.targets is not None:
            with contextlib.suppress(CdpError):
                await self.targets.look(page.session.target_id, timeout=COMMAND_TIMEOUT)

    def dialog_changed(self, page: Page, dialog: OpenedDialog | None) -> bool:
        """Record a dialog, or answer it where the tab's policy says so."""
        return self._dialogs.changed(page, dialog)

    def _move(self) -> None:
        if not self._moved.done():
            self._moved.set_result(None)
        self._moved = asyncio.get_running_loop().create_future()


def _nobody(*_what: object) -> None:
    """Nobody wants to know."""
