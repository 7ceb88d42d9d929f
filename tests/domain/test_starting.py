"""Sessions that begin in a tab that exists: whose, where it is taken, and what keeps it from that."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.orders import SessionOrder, TabPolicy
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import Session, TabSource
from tabmuxd.resources.tab import CloseCause, Dialog, DialogKind, Tab, TabOrigin, TabState
from tabmuxd.tabs import rules
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai.starting import Starting

from tests.domain.values import (
    ADMIN,
    FRIEND,
    LEASE,
    NOW,
    OWNER,
    SESSION,
    STRANGER,
    TAB,
    chat_session,
    held,
    playground,
    ready_tab,
)

_HERE = "http://textarea.localhost:8000"
_START, _ONE, _OTHER = f"{_HERE}/", f"{_HERE}/c/0123456789ab", f"{_HERE}/c/ba9876543210"
_NAMED = SessionOrder("playground-textarea", session_id="s", policy=TabPolicy.NAMED, tab=TAB, group="g")
_FRONT = replace(_NAMED, policy=TabPolicy.FRONT, tab="")


@dataclass
class Target:
    """What a page is attached to."""

    target_id: str = "T"


@dataclass
class ShownPage:
    """The page behind the tab."""

    shown_uri: str
    tab: str = TAB
    session: Target = field(default_factory=Target)
    usable: bool = True


@dataclass
class OneTab:
    """Tabs of which there is one, with its page and its line; which address it was sent to, and where that led."""

    log: Log
    page: ShownPage
    leads_to: str = ""
    in_front: str = TAB
    sent_to: list[str] = field(default_factory=list)
    line: asyncio.Lock = field(default_factory=asyncio.Lock)
    first_browser: str = "browsers/main"

    async def get(self, name: str) -> Tab:
        """The tab."""
        tab = await self.log.get_tab(name)
        if tab is None:
            raise rules.unknown_tab(name)
        return tab

    @contextlib.asynccontextmanager
    async def turn(self, _tab: str) -> AsyncGenerator[None]:
        """Its line."""
        async with self.line:
            yield

    async def front_tab(self, browser: str) -> str:
        """The one in front, if any is for certain."""
        if not self.in_front:
            raise refuse(Reason.NO_FRONT_TAB, "m", browser=browser)
        return self.in_front

    async def show(self, _name: str, whereto: Callable[[str], str], *, timeout: float) -> Page:
        """Go there."""
        del timeout
        await asyncio.sleep(0)
        if uri := whereto(self.page.shown_uri):
            self.sent_to.append(uri)
            self.page.shown_uri = self.leads_to or uri
        return cast("Page", self.page)


@dataclass
class World:
    """One READY tab of `local/a`, shared with `local/b`, at the provider's start page."""

    log: Log
    tabs: OneTab
    starting: Starting

    async def start(self, order: SessionOrder = _NAMED, caller: Principal = OWNER) -> tuple[Session, bool]:
        """Begin a session."""
        return await self.starting.start(caller, order, playground())

    async def refused(self, order: SessionOrder = _NAMED, caller: Principal = OWNER) -> Refused:
        """Why none begins; nothing is recorded then."""
        before = self.log.live
        with pytest.raises(Refused) as raised:
            await self.start(order, caller)
        assert self.log.live == before
        return raised.value

    async def change(self, **fields: Any) -> None:  # noqa: ANN401 - fields of a tab, by name
        """Something happens to the tab."""
        await self.log.change(lambda changes: changes.record(replace(_tab(changes), **fields)))


def _tab(changes: Changes) -> Tab:
    tab = changes.tab(TAB)
    assert tab is not None
    return tab


@pytest.fixture
async def world() -> AsyncGenerator[World]:
    """A world."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    async with Log(directory / "t.sqlite3", clock=lambda: NOW) as log:
        await log.change(lambda changes: changes.record(replace(ready_tab(), target_id="T")))
        tabs = OneTab(log, ShownPage(_START))
        yield World(log, tabs, Starting(cast("Tabs", tabs), log, bytes))
    shutil.rmtree(directory)


@pytest.mark.parametrize("order", [_NAMED, _FRONT], ids=["named", "front"])
@pytest.mark.parametrize(("shown", "conversation"), [(_START, ""), (_ONE, _ONE)])
async def test_begins(world: World, order: SessionOrder, shown: str, conversation: str) -> None:
    """A session takes a tab where it is, with the conversation that it shows; both name each other (O-134).

    Both are recorded in one step, the tab stays its owner's, and nothing is loaded.
    """
    world.tabs.page.shown_uri = shown
    head = world.log.progress.revision

    session, created = await world.start(order)

    tab = world.log.live.tabs[TAB]
    assert (session, created) == (world.log.live.sessions[SESSION], True)
    assert (session.tab, session.tab_source, session.conversation_uri) == (TAB, TabSource.TAKEN, conversation)
    assert (tab.session, tab.lease, tab.owner, tab.uri, tab.last_active_time) == (SESSION, "", "local/a", shown, NOW)
    assert (session.owner, session.browser, session.expire_time) == ("local/a", "browsers/main", NOW + session.ttl)
    assert (world.tabs.sent_to, world.log.progress.revision) == ([], head + 2)


@pytest.mark.parametrize(
    ("shown", "wanted", "sent_to"),
    [
        ("https://example.com/", "", [_START]),
        ("https://example.com/", _ONE, [_ONE]),
        (_OTHER, _ONE, [_ONE]),
        (_ONE, _ONE, []),
        (_ONE, f"{_ONE}?x=1", []),
    ],
)
async def test_taken_there(world: World, shown: str, wanted: str, sent_to: list[str]) -> None:
    """A tab that is named goes to the conversation wanted, or to the start page from elsewhere, once (O-134)."""
    world.tabs.page.shown_uri = shown
    session, _ = await world.start(replace(_NAMED, conversation_uri=wanted))
    assert world.tabs.sent_to == sent_to
    assert session.conversation_uri == (_ONE if wanted else "")


@pytest.mark.parametrize(
    ("order", "shown", "leads_to", "reason"),
    [
        (_FRONT, "https://example.com/", "", "PROVIDER_NOT_SHOWN"),
        (replace(_FRONT, conversation_uri=_ONE), _OTHER, "", "PROVIDER_CONVERSATION_CHANGED"),
        (replace(_FRONT, conversation_uri=_ONE), _START, "", "PROVIDER_CONVERSATION_CHANGED"),
        (_NAMED, "about:blank", "https://elsewhere.example/", "PROVIDER_NOT_SHOWN"),
        (replace(_NAMED, conversation_uri=_ONE), _OTHER, _START, "PROVIDER_CONVERSATION_CHANGED"),
    ],
)
async def test_shows_something_else(world: World, order: SessionOrder, shown: str, leads_to: str, reason: str) -> None:
    """No session begins in a tab that shows something else; one in front is not taken anywhere (O-134, O-135)."""
    world.tabs.page.shown_uri, world.tabs.leads_to = shown, leads_to
    assert (await world.refused(order)).reason.value == reason
    assert world.tabs.sent_to == ([] if order.policy is TabPolicy.FRONT else [order.conversation_uri or _START])


_DIALOG = Dialog(DialogKind.ALERT, "", "", NOW)


@pytest.mark.parametrize(
    ("fields", "order", "caller", "reason"),
    [
        ({}, _NAMED, STRANGER, "NOT_OWNER"),
        ({"session": "sessions/x"}, _NAMED, STRANGER, "NOT_OWNER"),
        ({"state": TabState.CLOSED, "close_cause": CloseCause.IDLE}, _NAMED, OWNER, "TAB_CLOSED"),
        ({"state": TabState.LOST}, _NAMED, OWNER, "TAB_GONE"),
        ({"session": "sessions/x"}, _NAMED, ADMIN, "TAB_BUSY"),
        ({"session": "sessions/x"}, _FRONT, OWNER, "TAB_BUSY"),
        ({"lease": LEASE}, _NAMED, OWNER, "LEASE_HELD"),
        ({"lease": LEASE}, _FRONT, ADMIN, "LEASE_HELD"),
        ({"dialog": _DIALOG}, _NAMED, OWNER, "DIALOG_OPEN"),
        ({"pooled": True, "owner": ""}, _NAMED, ADMIN, "NOT_OWNER"),
        ({}, replace(_NAMED, browser="browsers/other"), OWNER, "INVALID_FIELD"),
        ({}, replace(_NAMED, tab=f"{TAB[:-1]}8"), OWNER, "TAB_NOT_FOUND"),
        ({}, replace(_NAMED, conversation_uri="https://example.com/"), OWNER, "URI_NOT_ALLOWED"),
        ({"target_id": "another"}, _NAMED, OWNER, "TAB_GONE"),
    ],
)
async def test_refused(
    world: World, fields: dict[str, Any], order: SessionOrder, caller: Principal, reason: str
) -> None:
    """Of a tab that is another's, gone, busy or held nothing is touched, and nothing is recorded (O-2, O-15, O-134)."""
    await world.log.change(lambda changes: changes.record(held(seconds=30)))
    await world.change(**fields)
    assert (await world.refused(order, caller)).reason.value == reason
    assert world.tabs.sent_to == []


async def test_sharer(world: World) -> None:
    """Who a tab is shared with may begin a session in it, which is theirs, and the tab its owner's (O-1, O-3)."""
    session, _ = await world.start(caller=FRIEND)
    assert (session.owner, world.log.live.tabs[TAB].owner) == ("local/b", "local/a")


async def test_adopted(world: World) -> None:
    """An adopted tab is taken as it is (O-34)."""
    await world.change(origin=TabOrigin.ADOPTED)
    assert (await world.start(_FRONT))[1]
    assert world.tabs.sent_to == []


async def test_no_front(world: World) -> None:
    """Where it is not certain what is in front no session begins (O-33)."""
    world.tabs.in_front = ""
    assert (await world.refused(_FRONT)).reason is Reason.NO_FRONT_TAB


@pytest.mark.parametrize("order", [_NAMED, _FRONT], ids=["named", "front"])
async def test_repeated(world: World, order: SessionOrder) -> None:
    """Five calls of one session id make one session, and take its tab once (O-133, O-134, SES-13)."""
    world.tabs.page.shown_uri = _START if order is _FRONT else "about:blank"
    answers = await asyncio.gather(*(world.start(order) for _ in range(5)))
    assert sorted(created for _, created in answers) == [False] * 4 + [True]
    assert {session.name for session, _ in answers} == {SESSION}
    assert len(world.tabs.sent_to) == (order is _NAMED)
    world.tabs.page.shown_uri = "about:blank"
    assert (await world.start(order))[1] is False
    assert len(world.tabs.sent_to) == (order is _NAMED)


async def test_two_for_one_tab(world: World) -> None:
    """Of two sessions that want one tab at once one gets it, and the other TAB_BUSY with that one's name (O-134)."""
    orders = [replace(_NAMED, session_id=name) for name in ("x", "y")]
    answers = await asyncio.gather(*(world.start(order) for order in orders), return_exceptions=True)
    refused = next(answer for answer in answers if isinstance(answer, Refused))
    (name,) = world.log.live.sessions
    assert (refused.reason, refused.metadata) == (Reason.TAB_BUSY, {"tab": TAB, "session": name, "turn": ""})
    assert sum(isinstance(answer, tuple) for answer in answers) == 1


async def test_anothers_id(world: World) -> None:
    """A session id that another has is NOT_OWNER, and the tab is left alone (O-8, SES-13)."""
    await world.log.change(lambda changes: changes.record(chat_session()))
    assert (await world.refused(caller=FRIEND)).reason is Reason.NOT_OWNER
    assert (await world.refused(replace(_NAMED, provider="other"))).reason is Reason.REQUEST_ID_REUSED
