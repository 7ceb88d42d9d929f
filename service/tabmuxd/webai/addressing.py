"""Addressing: a conversation that gets its address only after its answer is the session's, where that is certain.

The page proves it: its script saw the address come by itself after a prompt was pressed in that very document, as the
first one, and nobody touched the page in between. It does so over a restart of the server, and not in another document.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.session import FINAL_TURN_STATES, Session
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.samples import Sample, lookup_hash

# Providers were seen to take 15 s from the prompt on.
_LONGEST: Final = 30.0
_INTERVAL: Final = 2.0


def late_address(descriptor: Descriptor, session: Session, sample: Sample) -> tuple[str, str] | None:
    """The address that the session's conversation may have got, and the hash of the prompt that it has to begin with.

    None where it is not certain: the session knows another one or said nothing yet, the page was moved there by
    somebody, or is another document, or no prompt shows. `sample` has the texts of all turns.
    """
    uri = descriptor.conversation_of(sample.uri) if descriptor.is_at(sample.uri) else ""
    first = next((turn for turn in sample.turns if turn.role == "user"), None)
    if session.ended or session.conversation_uri or not session.prompted or not sample.brought:
        return None
    if not uri or len(uri) > MAX_ADDRESS_BYTES or first is None or not (first.text or "").strip():
        return None
    return uri, lookup_hash(first.text or "")


async def adopt(log: Log, descriptor: Descriptor, chat: ChatPage, name: str) -> bool:
    """Record that the page's address is that of the session's conversation; whether it is certain, and was.

    Raises CdpError, PageNotAnswering.
    """
    session = log.live.sessions.get(name)
    if session is None or session.tab != chat.page.tab or session.conversation_uri or not session.prompted:
        return False
    found = late_address(descriptor, session, await chat.look((), at_once=True))
    if found is None or not await log.has_turn(name, found[1], FINAL_TURN_STATES):
        return False
    return await log.change(
        partial(note_address, name=name, tab=chat.page.tab, uri=found[0], is_same=descriptor.same_conversation)
    )


def note_address(changes: Changes, name: str, tab: str, uri: str, is_same: Callable[[str, str], bool]) -> bool:
    """Record the address, unless the session has one or has left the tab, or another session has this one."""
    session = changes.session(name)
    if session is None or session.ended or session.tab != tab or session.conversation_uri or not session.prompted:
        return False
    if any(
        other.provider == session.provider and other.conversation_uri and is_same(uri, other.conversation_uri)
        for other in changes.sessions()
    ):
        return False
    changes.record(replace(session, conversation_uri=uri), ChangeCause.PAGE)
    return True


class Addressing:
    """Waits, after a turn, for the address that its conversation does not have yet."""

    def __init__(self, tabs: Tabs, log: Log, tasks: Tasks) -> None:
        """None is waited for."""
        self._tabs = tabs
        self._log = log
        self._tasks = tasks

    def expect(self, name: str, descriptor: Descriptor) -> None:
        """Wait for a while, beside everything else, if the session has a tab and was said something, but no address."""
        if self._awaits(name):
            self._tasks.spawn(self._follow(name, descriptor), f"address {name}")

    def _awaits(self, name: str) -> str:
        """The tab of a session that is at rest and has no address; else empty."""
        session = self._log.live.sessions.get(name)
        if session is None or session.open_turn or session.conversation_uri or not session.prompted:
            return ""
        return session.tab

    async def _follow(self, name: str, descriptor: Descriptor) -> None:
        with contextlib.suppress(TimeoutError, Refused):
            async with asyncio.timeout(_LONGEST):
                while tab := self._awaits(name):
                    page = await self._tabs.wait_for_page(tab, timeout=_INTERVAL)
                    chat = ChatPage(page, descriptor)
                    try:
                        if descriptor.conversation_of(page.shown_uri) and await self._adopt(name, descriptor, chat):
                            return
                        await chat.changed(_INTERVAL)
                    finally:
                        chat.close()

    async def _adopt(self, name: str, descriptor: Descriptor, chat: ChatPage) -> bool:
        # A turn takes its tab by the same line: nobody looks between its looks.
        async with self._tabs.if_free(chat.page.tab) as free:
            if not free or self._awaits(name) != chat.page.tab:
                return False
            try:
                return await adopt(self._log, descriptor, chat, name)
            except (CdpError, PageNotAnswering):
                return False
