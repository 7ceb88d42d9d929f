"""Returning: a session whose tab is lost, closed or elsewhere comes back to its conversation because somebody asks."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace
from functools import partial
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.orders import RecoveredSession
from tabmuxd.resources.session import Return, Session, TurnState
from tabmuxd.resources.tab import Strategy, Tab, TabState
from tabmuxd.tabs import lease_records, lease_rules, rules
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai import addressing, barriers, owning, records, whereabouts
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.conversation import RETRY
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.records import TabLost

_PAGE_TIMEOUT: Final = 10.0
_READY_TIMEOUT: Final = 5.0
_NAVIGATION_TIMEOUT: Final = 20.0
# Its tab is closed, or another one got for it, while it is looked at: how often that is followed.
_ROUNDS: Final = 4
_TAB_IS_GONE: Final = frozenset({Reason.TAB_CLOSED, Reason.TAB_NOT_FOUND})


class Returning:
    """Brings sessions back: once for all who ask, who may go away meanwhile. No prompt is ever sent for it."""

    def __init__(self, tabs: Tabs, log: Log, tasks: Tasks) -> None:
        """None is on its way."""
        self._tabs = tabs
        self._log = log
        self._tasks = tasks
        self._flights: dict[str, asyncio.Task[RecoveredSession]] = {}

    def __repr__(self) -> str:
        """How many are on their way."""
        return f"<Returning flights={len(self._flights)}>"

    async def recover(self, session: Session, descriptor: Descriptor) -> RecoveredSession:
        """The session where it belongs; one that is there is given unchanged.

        Raises SESSION_RETIRED, RECOVERY_FAILED, TAB_CAPACITY, BROWSER_UNREACHABLE; where its tab would have to be taken
        elsewhere or got, also TURN_IN_PROGRESS and LEASE_HELD, and what the page shows in place of the conversation.
        """
        name = session.name
        flight = self._flights.get(name)
        if flight is None:
            work = self._fly(name, descriptor, previous_tab=session.tab)
            flight = self._flights[name] = self._tasks.spawn(work, f"recover {name}", awaited=True)
            flight.add_done_callback(lambda _task: self._flights.pop(name, None))
        return await asyncio.shield(flight)

    async def _fly(self, name: str, descriptor: Descriptor, *, previous_tab: str) -> RecoveredSession:
        done = Return.NONE
        for _ in range(_ROUNDS):
            session = await self._session(name)
            try:
                step = await self._tab_back(session) if session.tab else await self._open(session, descriptor)
                if step is None:
                    continue
                done = max(done, step)
                session = await self._session(name)
                done = max(done, await self._home(session, descriptor))
            except TabLost:
                continue
            return RecoveredSession(await self._session(name), done, previous_tab)
        raise whereabouts.given_up(await self._session(name), _ROUNDS)

    async def _session(self, name: str) -> Session:
        return owning.active(self._log.live.sessions.get(name) or await self._log.get_session(name), name)

    async def _tab_back(self, session: Session) -> Return | None:
        """Have the session's tab with a page that answers; None if the tab has closed meanwhile.

        One that a client holds, and that has its page, is left to the client.
        """
        try:
            async with self._tabs.turn(session.tab):
                if await self._log.change(partial(_is_clients, tab=session.tab)):
                    return Return.NONE
                recovered = await self._tabs.recovery.recover(session.tab, by_client=False)
        except Refused as refused:
            if refused.reason in _TAB_IS_GONE:
                return None
            raise
        return Return.NONE if recovered.strategy is Strategy.NONE else Return.TAB_RECOVERED

    async def _open(self, session: Session, descriptor: Descriptor) -> Return:
        """Get a parked session a tab at its conversation, or at the start page before its first prompt."""
        if session.open_turn:
            raise records.in_progress(session)  # which gets it a tab itself
        order = whereabouts.order_of_tab(descriptor, session)
        await self._tabs.open_for(
            session.owner, order, lambda changes, tab: records.bind_idle(changes, session.name, tab)
        )
        return Return.NEW_TAB

    async def _home(self, session: Session, descriptor: Descriptor) -> Return:
        """Have the session's tab at its conversation. Raises TabLost if it has another tab meanwhile, or none."""
        if not session.tab:
            raise TabLost(session.name)
        page = await self._tabs.wait_for_page(session.tab, timeout=_PAGE_TIMEOUT)
        shown = await self._tabs.address(page)
        turn = self._log.live.turns.get(session.open_turn) if session.open_turn else None
        if turn is not None:
            submitted = turn.step is not TurnState.PENDING
            if whereabouts.is_home(descriptor, session, shown, submitted=submitted):
                return Return.NONE
            raise records.in_progress(session)  # which finds that its page is elsewhere
        await _check_way(page, descriptor)
        if whereabouts.is_home(descriptor, session, shown):
            return Return.NONE
        if await self._came_late(page, session, descriptor):
            return Return.NONE
        uri = whereabouts.home_or_refusal(descriptor, session)
        async with self._tabs.turn(session.tab):
            await self._log.change(partial(_may_move, name=session.name, tab=session.tab))
            page = await self._tabs.show(
                session.tab,
                lambda shown: "" if whereabouts.is_home(descriptor, session, shown) else uri,
                timeout=_NAVIGATION_TIMEOUT,
            )
            await _check_way(page, descriptor)
            await self._log.change(partial(_arrived, name=session.name, page=page, descriptor=descriptor))
        return Return.NAVIGATED

    async def _came_late(self, page: Page, session: Session, descriptor: Descriptor) -> bool:
        """Whether the page is at the session's conversation, whose address came after its last answer."""
        chat = ChatPage(page, descriptor)
        try:
            async with self._tabs.turn(session.tab):
                return await addressing.adopt(self._log, descriptor, chat, session.name)
        except (CdpError, PageNotAnswering):
            return False
        finally:
            chat.close()


async def _check_way(page: Page, descriptor: Descriptor) -> None:
    """Raise what a person has to see to in this page, which is left as it is: sign-in, challenge, or consent."""
    if refused := barriers.at_address(descriptor, page.shown_uri, page.tab):
        raise refused
    if not descriptor.is_at(page.shown_uri):
        return
    chat = ChatPage(page, descriptor)
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_TIMEOUT):
                while not await _is_ready(chat, descriptor):
                    await chat.changed(RETRY)
    finally:
        chat.close()


async def _is_ready(chat: ChatPage, descriptor: Descriptor) -> bool:
    """Whether the page shows all that it will; raises what a person has to see to."""
    try:
        sample = await chat.look(())
    except (CdpError, PageNotAnswering):
        return False
    if refused := barriers.shown(descriptor, sample, chat.page.tab):
        raise refused
    return sample.ready


# On the store's thread


def _is_clients(changes: Changes, tab: str) -> bool:
    """Whether a client's lease holds a tab that has its page."""
    found = changes.tab(tab)
    held = lease_records.holder(changes, found) if found is not None else None
    return found is not None and found.state is TabState.READY and held is not None and not held.session


def _may_move(changes: Changes, name: str, tab: str) -> tuple[Session, Tab]:
    """Raise what keeps the session's tab from being taken elsewhere."""
    session = owning.active(changes.session(name), name)
    found = changes.tab(tab)
    if session.tab != tab or found is None or found.session != name:
        raise TabLost(tab)
    if session.open_turn:
        raise records.in_progress(session)
    if refused := rules.is_there(found):
        raise refused
    if (held := lease_records.holder(changes, found)) is not None:
        raise lease_rules.is_held(tab, held, changes.now)
    if refused := rules.has_no_dialog(found):
        raise refused
    return session, found


def _arrived(changes: Changes, name: str, page: Page, descriptor: Descriptor) -> None:
    """Record that the session's tab is at the conversation; raises what says that the page shows something else."""
    session, tab = _may_move(changes, name, page.tab)
    if tab.state is not TabState.READY or tab.target_id != page.session.target_id:
        raise rules.gone(tab)
    if not descriptor.is_at(page.shown_uri):
        raise whereabouts.not_shown(descriptor, tab.name)
    if not whereabouts.is_home(descriptor, session, page.shown_uri):
        raise whereabouts.another(descriptor, name, tab.name)
    if tab.uri != page.shown_uri:
        changes.record(replace(tab, uri=page.shown_uri, last_active_time=changes.now), ChangeCause.RECOVERY)
