"""The conversation of an open turn: its session's page, found, waited for, and looked at."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.names import RandomBytes, session_of
from tabmuxd.resources.session import Session, Turn, TurnState
from tabmuxd.resources.tab import Tab
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import records, submission
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.records import TabLost
from tabmuxd.webai.samples import OwnTurn, Sample, own_turn

FALLBACK: Final = 2.0
RETRY: Final = 0.5
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

    async def look_here(self, chat: ChatPage, known: tuple[str, ...]) -> Sample:
        """A look that is refused where the page shows anything but the session's conversation."""
        sample = await chat.look(known)
        submitted = self.turn().state is not TurnState.PENDING
        if refused := submission.where(self.descriptor, sample, self.session(), chat.page.tab, submitted=submitted):
            raise refused
        return sample

    async def see(self, turn: Turn) -> tuple[Sample, OwnTurn | None]:
        """One look at the conversation, through the page that stands behind the tab now; waits while there is none."""
        while True:
            try:
                chat = await self.patiently(self.present)
                sample = await self.look_here(chat, turn.baseline)
                return sample, own_turn(sample, turn.lookup_sha256)
            except (CdpError, PageNotAnswering):
                await asyncio.sleep(RETRY)

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
