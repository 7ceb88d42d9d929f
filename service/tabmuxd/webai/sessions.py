"""Sessions as a whole: listed, changed, retired on request and when their time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, invalid_field, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.orders import SessionFilter, SessionUpdate
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import RetireCause, Session, TabDisposition, Turn
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai import retiring
from tabmuxd.webai.answers import Feeds
from tabmuxd.webai.owning import active, may_act_in, owned, unknown
from tabmuxd.webai.parting import Parting, parting

_MAX_LABELS: Final = 16

Cancel = Callable[[Principal, str], Awaitable[Turn]]
"""Ends an open turn for a caller, as `CancelTurn` does."""


class Sessions:
    """What is done with sessions, not in them."""

    def __init__(  # noqa: PLR0917 - the parts it is built of
        self, tabs: Tabs, log: Log, tasks: Tasks, feeds: Feeds, clock: Callable[[], datetime], cancel: Cancel
    ) -> None:
        """`clock` is that of the log."""
        self._tabs = tabs
        self._log = log
        self._tasks = tasks
        self._feeds = feeds
        self._clock = clock
        self._cancel = cancel

    def __repr__(self) -> str:
        """How many are not retired."""
        return f"<Sessions {len(self._log.live.sessions)}>"

    async def get(self, name: str) -> Session:
        """A session; SESSION_NOT_FOUND."""
        session = self._log.live.sessions.get(name) or await self._log.get_session(name)
        if session is None:
            raise unknown(name)
        return session

    async def list(self, wanted: SessionFilter, *, after: int, count: int) -> Sequence[tuple[int, Session]]:
        """At most `count` sessions created after the revision `after`, each with that of its creation, oldest first."""
        return await self._log.list_sessions(
            states=wanted.states, providers=wanted.providers, labels=wanted.labels, after=after, count=count
        )

    async def list_turns(self, session: str, *, after: int, count: int) -> Sequence[tuple[int, Turn]]:
        """As `list`, the turns of a session, without prompts and answers; SESSION_NOT_FOUND."""
        await self.get(session)
        listed = await self._log.list_turns(session, after=after, count=count)
        return [(created, self._with_size(turn)) for created, turn in listed]

    def _with_size(self, turn: Turn) -> Turn:
        return turn if turn.ended else replace(turn, answer_size_bytes=len(self._feeds.text(turn.name)))

    async def update(self, caller: Principal, update: SessionUpdate) -> Session:
        """Set labels or `ttl`; REVISION_MISMATCH, SESSION_RETIRED."""

        def decide(changes: Changes) -> Session:
            session = owned(changes, caller, update.name)
            after = updated(session, update)
            return session if after == session else changes.record(after, ChangeCause.CLIENT)

        return await self._log.change(decide)

    async def retire(self, caller: Principal, name: str, disposition: TabDisposition) -> Session:
        """End a session for good, its open turn first; one that is retired is given as it is."""
        session = await self.get(name)
        if refused := may_act_in(caller, session):
            raise refused
        # A task of its own: who goes away must not leave a session whose turn was ended for nothing.
        retirement = self._tasks.spawn(self._retire(caller, name, disposition), f"retire {name}", awaited=True)
        return await asyncio.shield(retirement)

    async def _retire(self, caller: Principal, name: str, disposition: TabDisposition) -> Session:
        while True:
            session = await self.get(name)
            if session.open_turn:
                await self._cancel(caller, session.open_turn)
                session = await self.get(name)  # a tab may have come for the turn until its end
            async with parting(self._tabs, session.tab, disposition, caller) as how:
                after = await self._log.change(partial(_retire, caller=caller, name=name, how=how))
            if after.ended:
                return after

    async def expire(self) -> int:
        """Retire the sessions whose time is over, each judged again in its step; gives how many."""
        now, count = self._clock(), 0
        for session in tuple(self._log.live.sessions.values()):
            if retiring.is_due(session, now):
                async with parting(self._tabs, session.tab) as how:
                    count += await self._log.change(partial(_expire, name=session.name, how=how))
        self._tabs.settle_owed()
        return count


def _retire(changes: Changes, caller: Principal, name: str, how: Parting) -> Session:
    """The session as RETIRED; as it is where another turn was begun meanwhile, or another tab came."""
    session = owned(changes, caller, name)
    if session.ended or session.open_turn or session.tab != how.tab:
        return session
    return retiring.retire(changes, session, RetireCause.CLIENT, how)


def _expire(changes: Changes, name: str, how: Parting) -> bool:
    session = changes.session(name)
    if session is None or session.tab != how.tab or not retiring.is_due(session, changes.now):
        return False
    retiring.retire(changes, session, RetireCause.EXPIRY, how)
    return True


def updated(session: Session, update: SessionUpdate) -> Session:
    """The session as `UpdateSession` asks; raises REVISION_MISMATCH, SESSION_RETIRED, INVALID_FIELD.

    Another `ttl` counts from where the one before did: the end of the last turn, or the creation.
    """
    if update.expected_revision not in (0, session.revision):
        raise refuse(
            Reason.REVISION_MISMATCH,
            f"{session.name} has revision {session.revision}, not {update.expected_revision}; nothing was changed.",
            resource=session.name,
            expected_revision=update.expected_revision,
            revision=session.revision,
        )
    active(session, session.name)
    labels = {key: value for key, value in {**session.labels, **update.labels}.items() if value}
    if len(labels) > _MAX_LABELS:
        raise invalid_field("labels", f"there would be more than {_MAX_LABELS}; nothing was changed", limit=_MAX_LABELS)
    ttl = session.ttl if update.ttl is None else update.ttl
    expire_time = None if session.expire_time is None else session.expire_time - session.ttl + ttl
    return replace(session, labels=labels, ttl=ttl, expire_time=expire_time)
