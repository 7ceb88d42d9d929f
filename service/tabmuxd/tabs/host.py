"""One browser: its connection, its targets, and the pages behind our tabs in it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from weakref import WeakSet

import structlog

from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.errors import CdpError
from tabmuxd.cdp.link import BrowserIdentity, BrowserLink, BrowserSource
from tabmuxd.cdp.targets import TargetInfo, Targets
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import BrowserOptions, Ownership
from tabmuxd.resources.errors import cut
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import faults, reconciling, rules
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES
from tabmuxd.tabs.binding import Binding
from tabmuxd.tabs.closing import Closing
from tabmuxd.tabs.dialogs import Dialogs
from tabmuxd.tabs.endings import ServedHook
from tabmuxd.tabs.noting import Notes
from tabmuxd.tabs.owners import Owners
from tabmuxd.tabs.page import COMMAND_TIMEOUT, OpenedDialog, Page
from tabmuxd.tabs.unfinished import Unfinished
from tabmuxd.tasks import Tasks

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class BrowserHost:
    """Keeps what the store knows of a browser's tabs and what the browser has in step.

    All runs on the loop. A page is in `pages` exactly while a session is attached to the target of a READY or OPENING
    tab and its enables are confirmed.
    """

    def __init__(
        self,
        options: BrowserOptions,
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
        self._attached: WeakSet[Page] = WeakSet()
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
        self._owners = Owners(log)
        self._binding = Binding(self.name, log, tasks, self._owners, self, random=random)
        self._closing = Closing(
            self.name,
            log,
            tasks,
            self._owners,
            served,
            connected=self.connected,
            closed=lambda tab: self.let_go(tab, "tab_gone"),
            failed=lambda tab, cause: self.close_failed(tab, cause),  # noqa: PLW0108 - it is set later
        )
        self._unfinished = Unfinished(
            self.name,
            log,
            tasks,
            self._closing,
            served,
            lost=lambda tab: self.lost(tab),  # noqa: PLW0108 - as above
        )
        self._notes = Notes(log, tasks, self._info_of)
        self._dialogs = Dialogs(log, tasks)
        self._link = BrowserLink(source, up=self._up, down=self._down)

    def __repr__(self) -> str:
        """Whether it is connected, and how many pages are held."""
        state = "connected" if self.targets else "away"
        return f"<BrowserHost {self.name} {state} pages={len(self.pages)}>"

    async def introduce(self) -> None:
        """Record the browser as UNREACHABLE, until it answers."""
        await self._log.change(lambda changes: reconciling.introduce(changes, self.options))

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

    def bound(self, page: Page) -> None:
        """The page was looked at, and its tab is READY: hold it."""
        self.hold(page)
        self._notes.note(page.tab)
        self._dialogs.seen_again(page)

    def disown(self, target_id: str, tab: str) -> None:
        """The target was not the one behind the tab after all, and is not ours."""
        self._owners.disown(target_id, tab)

    def abandon(self, target_id: str, tab: str) -> None:
        """The target, which is ours, is not behind the tab any more: its end is not that of the tab."""
        self._owners.abandon(target_id, tab)

    def begin_opening(self, tab: str) -> None:
        """This process is at work on putting a target behind the tab, and will settle its row."""
        self._unfinished.begin(tab)

    def is_at_work_on(self, tab: str) -> bool:
        """Whether this process is at work on putting a target behind the tab."""
        return tab in self._unfinished

    def begin_painting(self, page: Page) -> None:
        """The first address is ordered: the page paints from now on, and nobody waits for that."""
        # What becomes of the page meanwhile is recorded by its own event.
        self._tasks.spawn(page.paint(), f"paint {page.tab}", awaited=True)

    def arrived(self, page: Page) -> None:
        """The first document is there, and its status known: what served to open the page goes, and nobody waits."""
        self._tasks.spawn(page.tidy(), f"tidy {page.tab}")

    def end_opening(self, tab: str) -> None:
        """The row is settled, or is now: its target could not be closed while the browser was away."""
        reachable = self.targets is not None and not self.targets.closed
        self._unfinished.finish(tab, may_close=reachable and not self.stopping)
        self._notes.note(tab)

    async def settle_unfinished(self) -> None:
        """End what was begun to bring a tab back, could not be closed then, and nobody is at work on any more."""
        await self._unfinished.settle()

    async def attach(self, tab: str, target_id: str) -> Page:
        """Attach to the target of a tab; `prepare` comes next. Raises CdpError."""
        session = await self.connected().attach(target_id, timeout=COMMAND_TIMEOUT)
        page = Page(tab, self.name, session, self)
        self._attached.add(page)
        return page

    async def close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        """Close the targets of the tab, and record it as CLOSED once they are gone; see `Closing.close`."""
        return await self._closing.close(tab, cause, why)

    async def close_target(self, target_id: str) -> None:
        """Close one target that is ours, and see it gone; BROWSER_UNREACHABLE."""
        await self._closing.close_target(target_id)

    # The link

    async def _up(self, connection: Connection, identity: BrowserIdentity) -> None:
        targets = Targets(
            connection,
            created=self._created,
            changed=self._changed,
            destroyed=self._destroyed,
            crashed=self.crashed,
            replaced=self._replaced,
        )
        await targets.discover(timeout=COMMAND_TIMEOUT)
        live = frozenset(targets.pages)
        kept = await self._log.change(
            lambda changes: reconciling.reconcile(
                changes, self.options, identity, live=live, opening=self._unfinished, served=self.served
            )
        )
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

    async def _bind_again(self, tab: Tab) -> None:
        if tab.name in self._unfinished:
            return
        if rules.is_unfinished(tab):
            # Who opened it, or brought it back, died with its server: what was made is found by proof, and ends.
            await self._unfinished.end(tab)
        elif tab.state in (TabState.OPENING, TabState.READY):
            await self._binding.bind(tab.name, tab.target_id)

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
        await self._log.change(lambda changes: reconciling.record_away(changes, self.name))

    # Target events: called on the loop, in order

    def _created(self, info: TargetInfo) -> None:
        """A new page is foreign until `own` says otherwise, unless the page of one of our tabs opened it."""
        if self.targets is not None:
            self._binding.claim_popup(info)

    def claim_popups(self) -> None:
        """Take in what pages of ours opened while nobody listened, and what those opened in turn."""
        if self.targets is not None:
            self._binding.claim_popups(self.targets.pages.values())

    def _changed(self, info: TargetInfo) -> None:
        if tab := self._owners.tab_of(info.target_id):
            self._notes.note(tab)

    def _destroyed(self, target_id: str) -> None:
        self._page_gone(target_id, "tab_gone", TabState.LOST, ChangeCause.PERSON)

    def crashed(self, target_id: str) -> None:
        """The renderer of a target of ours is gone."""
        self._page_gone(target_id, "tab_crashed", TabState.CRASHED, ChangeCause.CRASH)

    def _replaced(self, target_id: str, info: TargetInfo) -> None:
        """The browser has discarded a page of ours, and the evidence for what took its place is unique."""
        tab = self._owners.tab_of(target_id)
        if tab is None or self.stopping or tab in self._unfinished or tab in self._closing:
            self._destroyed(target_id)
            return
        self._owners.abandon(target_id, tab)
        self._owners.own(info.target_id, tab)
        self.let_go(tab, "tab_gone")
        self.discarded.add(tab)
        self._tasks.spawn(self._record_discarded(tab, target_id, info.target_id), f"discarded {tab}")

    async def _record_discarded(self, name: str, target_id: str, next_target_id: str) -> None:
        if not await self._log.change(
            lambda changes: reconciling.record_discarded(changes, name, target_id, next_target_id)
        ):
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
        opening = await self._log.change(
            lambda changes: reconciling.record_gone(changes, name, target_id, state, why=why, served=self.served)
        )
        if opening is not None:
            await self._unfinished.end(opening, CloseCause.OUTSIDE, why)
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
