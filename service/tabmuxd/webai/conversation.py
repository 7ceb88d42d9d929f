"""The conversation of an open turn: its session's page, found, waited for, and looked at."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from tabmuxd.artifacts.service import Artifacts
from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.names import RandomBytes, session_of
from tabmuxd.resources.session import FINAL_TURN_STATES, Session, Turn, TurnState
from tabmuxd.resources.tab import LoadMilestone, Tab
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import addressing, barriers, records, submission, whereabouts
from tabmuxd.webai.barriers import Barred
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.records import TabLost
from tabmuxd.webai.samples import Notices, OwnTurn, Sample, lookup_hash, notices, own_turn, without_old

FALLBACK: Final = 2.0
RETRY: Final = 0.5
_CLEAR_LOOKS: Final = 2
_RETURN_TIMEOUT: Final = 10.0
_NOT_ANSWERED: Final = frozenset({TurnState.FAILED, TurnState.CANCELLED})
# While a page is sought, nothing is typed: of a tab that was lost while it opened another one takes the place.
_WAITABLE: Final = frozenset(
    {
        Reason.BROWSER_UNREACHABLE,
        Reason.CALL_CAPACITY,
        Reason.OUTCOME_UNKNOWN,
        Reason.TAB_CAPACITY,
        Reason.TAB_CLOSED,
        Reason.TAB_GONE,
        Reason.TAB_UNRESPONSIVE,
        Reason.TURN_CAPACITY,
    }
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a runner works with."""

    tabs: Tabs
    log: Log
    random: RandomBytes
    clock: Callable[[], datetime]
    artifacts: Artifacts


class Conversation:
    """What an open turn is about, as the store and the page show it now."""

    def __init__(self, turn: str, descriptor: Descriptor, around: Surroundings) -> None:
        """No page is sought before the first look."""
        self.name = turn
        self.descriptor = descriptor
        self.around = around
        self.chat: ChatPage | None = None
        self.page_since = 0.0
        self.last_refusal: Refused | None = None
        self.own: OwnTurn | None = None
        self._old = Notices()

    def __repr__(self) -> str:
        """Of which turn."""
        return f"<Conversation of {self.name}>"

    def turn(self) -> Turn:
        """The turn as it is in the store; raises TurnEnded."""
        turn = self.around.log.live.turns.get(self.name)
        if turn is None:
            raise records.turn_ended(self.name)
        return turn

    def session(self) -> Session:
        """Its session; raises TurnEnded."""
        session = self.around.log.live.sessions.get(session_of(self.name))
        if session is None:
            raise records.turn_ended(self.name)
        return session

    async def change(self, decide: Callable[[Changes], T]) -> T:
        """Run `decide` in one transaction of the store."""
        return await self.around.log.change(decide)

    def tab_of(self, page: Page) -> Tab:
        """The tab as it stands with this page; TabLost where it has another, or none."""
        tab = self.around.log.live.tab(page.tab)
        if tab is None or tab.target_id != page.session.target_id:
            raise TabLost(page.tab)
        return tab

    def on(self, page: Page) -> ChatPage:
        """The page script in this page; that of an earlier page is let go."""
        if self.chat is None or self.chat.page is not page:
            self.drop_page()
            self.chat = ChatPage(page, self.descriptor)
            self.page_since = asyncio.get_running_loop().time()
        return self.chat

    def drop_page(self) -> None:
        """Listen to no page any more."""
        if self.chat is not None:
            self.chat.close()
            self.chat = None

    async def present(self) -> ChatPage:
        """The page that stands behind the session's tab now; raises TurnEnded where it has none."""
        session = self.session()
        if not session.tab:
            raise records.turn_ended(self.name)
        return self.on(await self.around.tabs.wait_for_page(session.tab, timeout=FALLBACK))

    async def look_here(
        self,
        chat: ChatPage,
        known: tuple[str, ...] | None,
        *,
        at_once: bool = False,
        focus: bool = False,
        ready_within: float = 0.0,
    ) -> Sample:
        """A look that is refused where the page shows anything but the session's conversation.

        Raises Barred where a person has to act first, PROVIDER_LIMITED where a limit keeps the prompt out.
        """
        sample = await self.look_past(chat, known, at_once=at_once, focus=focus, ready_within=ready_within)
        submitted = self.turn().step is not TurnState.PENDING
        where = partial(submission.where, self.descriptor, sample, tab=chat.page.tab, submitted=submitted)
        if refused := where(session=self.session()):
            # Its own address, where that came after the last answer, is none of another conversation.
            came_late = not submitted and await addressing.adopt(
                self.around.log, self.descriptor, chat, session_of(self.name)
            )
            if not came_late or where(session=self.session()):
                raise refused
        if not submitted:
            self._old = notices(sample)
            if sample.composer != "usable" and (refused := self.limited(sample)):
                raise refused
        return sample

    async def look_past(
        self,
        chat: ChatPage,
        known: tuple[str, ...] | None,
        *,
        at_once: bool = False,
        focus: bool = False,
        ready_within: float = 0.0,
    ) -> Sample:
        """A look at whatever is shown; raises Barred where a person has to act first. Sign-in hosts are not read."""
        tab = chat.page.tab
        if refused := barriers.at_address(self.descriptor, chat.page.shown_uri, tab):
            raise Barred(refused)
        sample = await chat.look(known, at_once=at_once, focus=focus, ready_within=ready_within)
        refused = barriers.at_address(self.descriptor, sample.uri, tab) or barriers.shown(self.descriptor, sample, tab)
        if refused:
            raise Barred(refused)
        return sample

    def is_barred(self) -> bool:
        """Whether the page is at a host that is not read."""
        return self.chat is not None and self.descriptor.barrier_at(self.chat.page.shown_uri) is not None

    def limited(self, sample: Sample) -> Refused | None:
        """PROVIDER_LIMITED where the page shows a limit."""
        return barriers.limited(self.descriptor, sample, self.session().tab, self.around.clock())

    async def was_left_behind(self, sample: Sample) -> bool:
        """Whether the composer holds the prompt of an earlier turn of the session that was not answered."""
        held = lookup_hash(sample.composer_text)
        return await self.around.log.has_turn(session_of(self.name), held, _NOT_ANSWERED)

    async def check_continuity(self, chat: ChatPage) -> None:
        """Raise PROVIDER_CONVERSATION_CHANGED where a conversation without an address is not the session's any more.

        Nothing but its prompts tells it from a fresh one: one of them has to show, if any ever did.
        """
        session = self.session()
        if session.conversation_uri or not session.prompted or not await self.around.log.has_shown_turn(session.name):
            return
        sample = await self.look_here(chat, (), at_once=True)
        for prompt in (turn.text for turn in reversed(sample.turns) if turn.role == "user" and turn.text):
            if await self.around.log.has_turn(session.name, lookup_hash(prompt), FINAL_TURN_STATES):
                return
        raise whereabouts.another(self.descriptor, session.name, chat.page.tab)

    async def see(
        self, turn: Turn, unseen: Callable[[], Awaitable[None]] | None = None
    ) -> tuple[Sample, OwnTurn | None]:
        """One look at the conversation, through the page that stands behind the tab now; waits while there is none.

        `unseen` is called after each look that the page did not answer.
        """
        while True:
            try:
                chat = await self.patiently(self.present)
                sample = await self.look_here(chat, turn.baseline)
            except Barred as barred:
                await self.blocked(barred)
                continue
            except (CdpError, PageNotAnswering):
                if unseen is not None:
                    await unseen()
                await asyncio.sleep(RETRY)
                continue
            sample, self._old = without_old(sample, self._old)
            own = own_turn(sample, turn.lookup_sha256, self.own)
            self.own = own or self.own
            return sample, own

    async def blocked(self, barred: Barred | None = None) -> None:
        """Record BLOCKED, unless it is recorded, wait until a person acted, and record what the turn goes on with.

        Nothing is typed or pressed meanwhile. Where the way led away from the conversation, it leads back once.
        """
        if barred is not None:
            await self.change(partial(records.block, name=self.name, refused=barred.refused))
        left, clear = barred is None, 0
        while clear < _CLEAR_LOOKS and self.session().tab:
            try:
                chat = await self.patiently(self.present)
                left = left or self._is_elsewhere(chat.page.shown_uri)
                sample = await self.look_past(chat, None)
                clear = clear + 1 if self.descriptor.is_at(sample.uri) and sample.ready else 0
            except Barred as other:
                clear = 0
                await self.change(partial(records.block, name=self.name, refused=other.refused))
            except records.TurnEnded:
                self.turn()  # raises where it has ended; else its tab is gone, and it goes on in another
                break
            except (CdpError, PageNotAnswering):
                clear = 0
            await asyncio.sleep(RETRY)
        if left and self.session().tab and self.chat is not None and self._is_elsewhere(self.chat.page.shown_uri):
            await self._return(self.chat.page)
        self.page_since = asyncio.get_running_loop().time()
        await self.change(partial(records.unblock, name=self.name))

    def _is_elsewhere(self, uri: str) -> bool:
        """Whether an address is not that of the session's conversation; with none, not that of a new one."""
        shown, own = self.descriptor.conversation_of(uri), self.session().conversation_uri
        if self.descriptor.is_at(uri) and self.descriptor.same_conversation(shown, own):
            return False
        return bool(own) or self.turn().step is TurnState.PENDING

    async def _return(self, page: Page) -> None:
        """Load the session's conversation again, where it is known, else a new one for a prompt that was not sent."""
        uri = self.session().conversation_uri or self.descriptor.start_uri
        with contextlib.suppress(Refused):
            await page.navigate(uri, until=LoadMilestone.DOM_CONTENT_LOADED, timeout=_RETURN_TIMEOUT)

    async def pause(self, seconds: float) -> None:
        """Wait until the page says that something changed, or `seconds` are over."""
        if self.chat is None:
            await asyncio.sleep(min(seconds, RETRY))
        else:
            await self.chat.changed(seconds)

    async def patiently(self, get: Callable[[], Awaitable[T]]) -> T:
        """What `get` gives, again and again while a browser is away, a tab is gone, or there is no room."""
        while True:
            try:
                self.turn()
                return await get()
            except Refused as refused:
                if refused.reason not in _WAITABLE:
                    raise
                self.last_refusal = refused
                await asyncio.sleep(RETRY)
