"""Who may do what with whose tab and session, over a real server: `local`, `local/a` and `local/b`."""

from __future__ import annotations

from typing import Any, TypeAlias

import grpc.aio
import pytest
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    ActivateTabRequest,
    AdoptTabRequest,
    CloseTabRequest,
    CreateTabRequest,
    GetServerInfoRequest,
    GetTabRequest,
    ListTabsRequest,
    NavigateTabRequest,
    UpdateTabRequest,
)
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CreateSessionRequest,
    GetTurnRequest,
    SendPromptRequest,
)
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub

from tests.e2e.pages import Pages
from tests.e2e.refusals import advice, reason, refusal
from tests.e2e.serving import LIMIT, Server

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


class Caller:
    """A program of this name."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.tabs: Any = TabServiceStub(channel)
        self.ai: Any = WebAiServiceStub(channel)

    async def opened(self, uri: str = "", **fields: Fields) -> Tab:
        return (await self.tabs.CreateTab(CreateTabRequest(uri=uri, **fields), timeout=2 * LIMIT)).tab

    async def got(self, tab: Tab) -> Tab:
        return (await self.tabs.GetTab(GetTabRequest(name=tab.name), timeout=LIMIT)).tab

    async def updated(self, tab: Tab, **fields: Fields) -> Tab:
        return (await self.tabs.UpdateTab(UpdateTabRequest(name=tab.name, **fields), timeout=LIMIT)).tab

    def steps(self, tab: Tab, uri: str) -> dict[str, Any]:
        """A call of each kind that only those may make who may drive the tab; none is made before it is awaited."""
        return {
            "NavigateTab": lambda: self.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=uri), timeout=LIMIT),
            "ActivateTab": lambda: self.tabs.ActivateTab(ActivateTabRequest(name=tab.name), timeout=LIMIT),
            "UpdateTab": lambda: self.tabs.UpdateTab(UpdateTabRequest(name=tab.name, group="mine"), timeout=LIMIT),
            "CloseTab": lambda: self.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT),
            "CloseTab by force": lambda: self.tabs.CloseTab(CloseTabRequest(name=tab.name, force=True), timeout=LIMIT),
        }


@pytest.fixture
def person(server: Server) -> Caller:
    """`local`, with every scope."""
    return Caller(server.channel())


@pytest.fixture
def a(server: Server) -> Caller:
    """`local/a`."""
    return Caller(server.channel("a"))


@pytest.fixture
def b(server: Server) -> Caller:
    """`local/b`."""
    return Caller(server.channel("b"))


async def test_principals(person: Caller, a: Caller) -> None:
    """Without a name a caller is `local` with every scope; with one it is `local/NAME` without `admin` (O-7)."""
    infos = [await caller.tabs.GetServerInfo(GetServerInfoRequest(), timeout=LIMIT) for caller in (person, a)]
    assert [(info.principal, list(info.scopes)) for info in infos] == [
        ("local", ["admin", "ai", "drive", "read"]),
        ("local/a", ["ai", "drive", "read"]),
    ]
    adopt = a.tabs.AdoptTab(AdoptTabRequest(front=True), timeout=LIMIT)
    assert await reason(adopt) == "SCOPE_MISSING"


@pytest.mark.parametrize(
    "value",
    [
        "Bearer abc.def",
        "Local ",
        "Local A",
        "Local a b",
        "local a",
        "Basic eDp5",
        "Local a/b",
        "Local " + "a" * 64,
        "x",
    ],
)
async def test_malformed_authorization(server: Server, value: str) -> None:
    """Anything but `Local NAME` is TOKEN_INVALID, does nothing, and is not repeated in the answer (O-7, O-150)."""
    stub: Any = TabServiceStub(server.channel())
    refused = await refusal(stub.CreateTab(CreateTabRequest(), metadata=(("authorization", value),), timeout=LIMIT))
    assert refused.reason == "TOKEN_INVALID"
    assert "abc.def" not in str(refused) + str(dict(refused.metadata)) + server.log()


async def test_name_twice(server: Server) -> None:
    """Two names at once are TOKEN_INVALID (O-7)."""
    stub: Any = TabServiceStub(server.channel())
    metadata = (("authorization", "Local a"), ("authorization", "Local b"))
    assert await reason(stub.GetServerInfo(GetServerInfoRequest(), metadata=metadata, timeout=LIMIT)) == "TOKEN_INVALID"


async def test_owner(server: Server, a: Caller, b: Caller, pages: Pages) -> None:
    """A tab belongs to whoever opened it; nobody else drives it, and a refusal tells nothing of the page (O-1, O-2).

    Nothing reaches the target, nothing is recorded, and reading is open to all.
    """
    tab = await a.opened(pages.at("/page?title=Private+title"))
    assert tab.owner == "local/a"
    targets = await server.page_targets()
    before = await b.got(tab)
    for name, step in b.steps(tab, pages.at("/404")).items():
        refused = await refusal(step())
        assert refused.reason == "NOT_OWNER", name
        told = str(refused) + str(dict(refused.metadata))
        assert "Private" not in told, name
        assert "/page" not in told, name
    refused = await refusal(b.steps(tab, pages.at("/404"))["NavigateTab"]())
    assert advice(refused) == ("NOT_OWNER", "no", "never")
    assert await server.page_targets() == targets
    after = await b.got(tab)
    # Nothing but the title that the page brings after it was opened.
    after.title, after.revision = before.title, before.revision
    after.update_time.CopyFrom(before.update_time)
    assert after == before
    assert pages.hits["/404"] == 0


async def test_owner_before_all_else(a: Caller, b: Caller) -> None:
    """That a tab is another's is told before that it is closed, pinned, or has another generation (precedence)."""
    tab = await a.opened(pinned=True)
    await a.steps(tab, "")["CloseTab by force"]()
    for step in b.steps(tab, "about:blank").values():
        assert await reason(step()) == "NOT_OWNER"


async def test_sharing(a: Caller, b: Caller, pages: Pages) -> None:
    """Whom the owner shares a tab with may do all but share it on, until it is taken back (O-3)."""
    tab = await a.opened(pages.at("/page"))
    assert list((await a.updated(tab, share_with=["local/c"])).shared_with) == ["local/c"]
    assert list((await a.updated(tab, share_with=["local/b"])).shared_with) == ["local/c", "local/b"]
    answer = await b.steps(tab, pages.at("/page?title=by+b"))["NavigateTab"]()
    assert answer.tab.uri == pages.at("/page?title=by+b")
    assert (await b.steps(tab, "")["ActivateTab"]()).tab.front
    assert (await b.steps(tab, "")["UpdateTab"]()).tab.group == "mine"
    assert await reason(b.tabs.UpdateTab(UpdateTabRequest(name=tab.name, share_with=["local/d"]))) == "NOT_OWNER"
    assert await reason(b.tabs.UpdateTab(UpdateTabRequest(name=tab.name, unshare_with=["local/c"]))) == "NOT_OWNER"
    shown = await a.updated(tab, unshare_with=["local/b"])
    assert (shown.owner, list(shown.shared_with)) == ("local/a", ["local/c"])
    for step in b.steps(tab, "about:blank").values():
        assert await reason(step()) == "NOT_OWNER"


async def test_shared_may_close(a: Caller, b: Caller) -> None:
    """Whom a tab is shared with may close it (O-3)."""
    tab = await a.opened()
    await a.updated(tab, share_with=["local/b"])
    assert (await b.steps(tab, "")["CloseTab"]()).tab.state == Tab.STATE_CLOSED


async def test_admin(person: Caller, a: Caller, pages: Pages) -> None:
    """`local` may drive, share and close every tab of ours, and the tab stays its owner's (O-5)."""
    tab = await a.opened(pages.at("/page"))
    assert (await person.updated(tab, share_with=["local/b"])).owner == "local/a"
    assert (await person.steps(tab, pages.at("/page?title=x"))["NavigateTab"]()).tab.owner == "local/a"
    assert (await person.steps(tab, "")["CloseTab"]()).tab.state == Tab.STATE_CLOSED


async def test_a_does_not_own_persons(person: Caller, a: Caller) -> None:
    """A program that names itself does not drive what the person opened (O-2, O-7)."""
    tab = await person.opened()
    for step in a.steps(tab, "about:blank").values():
        assert await reason(step()) == "NOT_OWNER"


async def test_request_ids_are_of_one_caller(a: Caller, b: Caller) -> None:
    """One request id of two callers is two requests: neither gets the other's tab (O-21)."""
    request_id = "0f0e0d0c-0b0a-4908-8706-050403020100"
    one, two = await a.opened(request_id=request_id), await b.opened(request_id=request_id)
    assert (one.owner, two.owner) == ("local/a", "local/b")
    assert one.name != two.name


async def test_channel_ends(server: Server, a: Caller) -> None:
    """The end of a connection ends nothing: under the same name the tab is there and may be driven (O-6)."""
    tab = await a.opened()
    channel = server.channel("a")
    await channel.close()
    again = Caller(server.channel("a"))
    assert (await again.steps(tab, "about:blank")["NavigateTab"]()).tab.name == tab.name


@pytest.mark.parametrize(
    "name", ["", "1", "0", "browsers/main/tabs/1", "browsers/main/tabs/", "A" * 32, "browsers/main"]
)
async def test_no_default_tab(server: Server, a: Caller, name: str) -> None:
    """No name, a position or a target id is INVALID_FIELD: there is no current tab (O-9, O-29)."""
    tab = await a.opened()
    before = await server.page_targets()
    for bad in (name, tab.target_id):
        named = Tab(name=bad)
        assert await reason(a.tabs.GetTab(GetTabRequest(name=bad), timeout=LIMIT)) == "INVALID_FIELD"
        for step in a.steps(named, "about:blank").values():
            assert await reason(step()) == "INVALID_FIELD"
    assert await server.page_targets() == before


async def test_sessions(a: Caller, b: Caller, person: Caller) -> None:
    """A session is its owner's: nobody else sends in it, cancels it or takes its id; its tab is the owner's (O-1, O-8).

    Sharing the tab does not share the session; `local` may cancel.
    """
    request = CreateSessionRequest(provider="playground-textarea", session_id="of-a")
    session = (await a.ai.CreateSession(request, timeout=LIMIT)).session
    assert session.owner == "local/a"
    assert await reason(b.ai.CreateSession(request, timeout=LIMIT)) == "NOT_OWNER"
    prompt = SendPromptRequest(parent=session.name, request_id="1")
    prompt.prompt.text = "{{seconds=60}} from a"
    assert await reason(b.ai.SendPrompt(prompt, timeout=LIMIT)) == "NOT_OWNER"
    turn = (await a.ai.SendPrompt(prompt, timeout=LIMIT)).turn
    assert await reason(b.ai.SendPrompt(prompt, timeout=LIMIT)) == "NOT_OWNER"
    assert await reason(b.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)) == "NOT_OWNER"
    assert (await b.ai.GetTurn(GetTurnRequest(name=turn.name), timeout=LIMIT)).turn.name == turn.name
    cancelled = (await person.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)).turn
    assert cancelled.state == cancelled.STATE_CANCELLED
    for tab in (await a.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs:
        assert tab.owner == "local/a"
