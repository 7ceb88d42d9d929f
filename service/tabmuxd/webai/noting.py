"""Noting: title and address of a turn's conversation go into its session, a title at most once in 250 ms."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from tabmuxd.resources.errors import cut
from tabmuxd.resources.session import Session
from tabmuxd.webai import records
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.samples import Sample

_INTERVAL: Final = 0.25

Noted = tuple[str, str]
"""Address, empty where the page shows none of a conversation, and title."""


class Noting:
    """What one turn's looks found of its conversation. The newest is kept until it is recorded: `waiting`."""

    def __init__(self, conversation: Conversation) -> None:
        """Nothing is noted yet."""
        self.waiting: Noted | None = None
        self._conversation = conversation
        self._recorded = -_INTERVAL

    async def note(self, sample: Sample, *, is_own: bool) -> None:
        """Record what is new in this look, or with one of the next; `is_own`: the own prompt shows there."""
        conversation, now = self._conversation, asyncio.get_running_loop().time()
        session = conversation.session()
        if not (is_own or session.conversation_uri):
            return  # a person may have gone to another one, whose address is not this session's
        noted = conversation.descriptor.conversation_of(sample.uri), cut(sample.title, records.MAX_TITLE_BYTES)
        self.waiting = noted if _is_news(noted, session) else None
        # Without the address the session cannot come back to its conversation: that does not wait.
        if self.waiting and (_has_new_address(noted, session) or now >= self._recorded + _INTERVAL):
            self._recorded = now
            await conversation.change(
                partial(records.note_conversation, name=conversation.name, uri=noted[0], title=noted[1])
            )
            self.waiting = None


def _is_news(noted: Noted, session: Session) -> bool:
    return noted[1] != session.title or _has_new_address(noted, session)


def _has_new_address(noted: Noted, session: Session) -> bool:
    return bool(noted[0]) and not session.conversation_uri
