"""Starting a session: got or made, with a tab that comes at the first turn, or in one that exists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, invalid_field, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, browser_of, new_id, session_name
from tabmuxd.resources.orders import SessionOrder, TabPolicy
from tabmuxd.resources.principal import Principal, not_owner
from tabmuxd.resources.session import Session, SessionState, TabSource
from tabmuxd.resources.tab import TabState
from tabmuxd.tabs import rules
from tabmuxd.tabs.lease_records import driven, holder
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import whereabouts
from tabmuxd.webai.providers.descriptor import Descriptor

# Within the 15 s that a client waits for this call by default.
_NAVIGATION_TIMEOUT: Final = 10.0


@dataclass(frozen=True, slots=True)
class _Start:
    """A session that is asked for: `name` may be known, `conversation` is empty where the request names none."""

    caller: Principal
    order: SessionOrder
    descriptor: Descriptor
    name: str
    conversation: str


class Starting:
    """Makes sessions, each once, whoever asks how often."""

    def __init__(self, tabs: Tabs, log: Log, random: RandomBytes) -> None:
        """None is made yet."""
        self._tabs = tabs
        self._log = log
        self._random = random

    async def start(self, caller: Principal, order: SessionOrder, descriptor: Descriptor) -> tuple[Session, bool]:
        """A new session, or the caller's own of that id as it is; tells whether this call made it.

        Raises URI_NOT_ALLOWED, NOT_OWNER, REQUEST_ID_REUSED; for a tab that exists, which is as it was then, or only
        was taken to the address wanted, also what the contract lists for it.
        """
        conversation = _conversation(order, descriptor)
        name = session_name(order.session_id or new_id(self._random))
        start = _Start(caller, order, descriptor, name, conversation)
        match order.policy:
            case TabPolicy.NEW | TabPolicy.POOLED:
                browser = order.browser or self._tabs.first_browser
                self._tabs.browser(browser)
                return await self._log.change(partial(_without_tab, start=start, browser=browser))
            case TabPolicy.NAMED:
                return await self._in_tab(start, order.tab)
            case TabPolicy.FRONT:
                if known := await self._known(start):
                    return known, False
                return await self._in_tab(start, await self._tabs.front_tab(order.browser))

    async def _in_tab(self, start: _Start, named: str) -> tuple[Session, bool]:
        if known := await self._known(start):
            return known, False
        tab = await self._tabs.get(named)
        await self._log.change(partial(_check, start=start, tab=tab.name))
        async with self._tabs.turn(tab.name):
            # Of two calls at once the second finds the session here, and leaves its tab alone.
            if known := await self._known(start):
                return known, False
            await self._log.change(partial(_check, start=start, tab=tab.name))
            page = await self._tabs.show(tab.name, partial(_whereto, start), timeout=_NAVIGATION_TIMEOUT)
            return await self._log.change(partial(_with_tab, start=start, page=page))

    async def _known(self, start: _Start) -> Session | None:
        """The session, if the caller has it already; NOT_OWNER, REQUEST_ID_REUSED."""
        if not start.order.session_id:
            return None
        known = await self._log.get_session(start.name)
        return known and _found(known, start)


def _conversation(order: SessionOrder, descriptor: Descriptor) -> str:
    if not order.conversation_uri:
        return ""
    if conversation := descriptor.conversation_of(order.conversation_uri):
        return conversation
    raise refuse(
        Reason.URI_NOT_ALLOWED,
        f"conversation_uri: this is not the address of a conversation at {descriptor.id}.",
        field="conversation_uri",
        host="",
        rule="conversation-of-provider",
    )


def _whereto(start: _Start, shown_uri: str) -> str:
    if start.order.policy is TabPolicy.FRONT:
        return ""
    return whereabouts.way(start.descriptor, start.conversation, shown_uri)


# On the store's thread


def _without_tab(changes: Changes, start: _Start, browser: str) -> tuple[Session, bool]:
    known = changes.session(start.name)
    if known is not None:
        return _found(known, start), False
    return changes.record(_session(changes, start, browser), ChangeCause.CLIENT), True


def _check(changes: Changes, start: _Start, tab: str) -> None:
    """Raise what keeps the session from beginning in this tab."""
    found = driven(changes, start.caller, tab)
    browser = start.order.browser
    if browser and browser != browser_of(found.name):
        raise invalid_field("browser", f"must be that of the tab, {browser_of(found.name)}, or empty; nothing was done")
    serving = changes.session(found.session) if found.session else None
    turn = serving.open_turn if serving else ""
    if refused := rules.may_take(start.caller, found, holder(changes, found), turn, changes.now):
        raise refused


def _with_tab(changes: Changes, start: _Start, page: Page) -> tuple[Session, bool]:
    """Record the session and its tab, each bound to the other, as they stand at this moment."""
    known = changes.session(start.name)
    if known is not None:
        return _found(known, start), False
    _check(changes, start, page.tab)
    tab = changes.tab(page.tab)
    if tab is None or tab.state is not TabState.READY or tab.target_id != page.session.target_id or not page.usable:
        raise rules.gone(tab) if tab else rules.unknown_tab(page.tab)
    conversation = whereabouts.begins_at(
        start.descriptor, start.conversation, page.shown_uri, session=start.name, tab=tab.name
    )
    begun = replace(
        _session(changes, start, tab.browser_name),
        tab=tab.name,
        tab_source=TabSource.TAKEN,
        conversation_uri=conversation,
    )
    session = changes.record(begun, ChangeCause.CLIENT)
    seen = replace(tab, uri=page.shown_uri, session=session.name, last_active_time=changes.now)
    changes.record(seen, ChangeCause.CLIENT)
    return session, True


def _session(changes: Changes, start: _Start, browser: str) -> Session:
    order = start.order
    return Session(
        name=start.name,
        state=SessionState.ACTIVE,
        provider=order.provider,
        descriptor_version=start.descriptor.version,
        owner=start.caller.name,
        create_time=changes.now,
        last_active_time=changes.now,
        browser=browser,
        conversation_uri=start.conversation,
        labels=dict(order.labels),
        ttl=order.ttl,
        expire_time=changes.now + order.ttl,
        new_tab_group=order.group,
        new_tab_activate=order.activate,
        new_tab_pooled=order.policy is TabPolicy.POOLED,
    )


def _found(known: Session, start: _Start) -> Session:
    if known.owner != start.caller.name:
        raise not_owner(known.name, known.owner)
    if known.provider != start.order.provider:
        raise refuse(
            Reason.REQUEST_ID_REUSED,
            f"{known.name} is a session with {known.provider}, not {start.order.provider}; nothing was done.",
            request_id=known.name,
            resource=known.name,
        )
    return known
