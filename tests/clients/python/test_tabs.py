"""Tab handles say what was meant, and find tabs by a part of their name."""

from datetime import timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.client import Client
from tabmux.errors import AmbiguousNameError, TabmuxError
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    LOAD_MILESTONE_DOM_CONTENT_LOADED,
    ActivateTabRequest,
    ActivateTabResponse,
    CloseTabRequest,
    CloseTabResponse,
    CreateTabRequest,
    CreateTabResponse,
    EvaluateScriptRequest,
    EvaluateScriptResponse,
    GetTabRequest,
    GetTabResponse,
    ListTabsRequest,
    ListTabsResponse,
    Navigation,
    UpdateTabRequest,
    UpdateTabResponse,
)

from tests.clients.python.scripted import ScriptedServer

NAME = "browsers/main/tabs/k3v9x2m7qd"
TAB = Tab(name=NAME, state=Tab.STATE_READY)


def tabs_of(*ids: str) -> list[Tab]:
    """Tabs of those ids."""
    return [Tab(name=f"browsers/main/tabs/{id_}") for id_ in ids]


async def test_open(server: ScriptedServer, client: Client) -> None:
    """Opening passes on what was asked for, and gives a handle with the tab and its navigation."""
    navigation = Navigation(outcome=Navigation.OUTCOME_REACHED, http_status=404)
    server.script("CreateTab", [CreateTabResponse(tab=TAB, navigation=navigation)])
    tab = await client.open(
        "https://example.test/",
        browser="main",
        group="night",
        labels={"a": "b"},
        pinned=True,
        activate=True,
        until="dom",
        milestone_timeout=timedelta(seconds=2),
        wait_for_room=True,
    )
    (request,) = server.requests("CreateTab")
    assert (tab.name, tab.resource, tab.navigation) == (NAME, TAB, navigation)
    assert request == CreateTabRequest(
        parent="browsers/main",
        uri="https://example.test/",
        group="night",
        labels={"a": "b"},
        pinned=True,
        activate=True,
        until=LOAD_MILESTONE_DOM_CONTENT_LOADED,
        milestone_timeout=Duration(seconds=2),
        wait_for_room=True,
        request_id=request.request_id,
    )


async def test_blank_tab_has_no_navigation(server: ScriptedServer, client: Client) -> None:
    """A tab opened without an address has no navigation."""
    server.script("CreateTab", [CreateTabResponse(tab=TAB)])
    assert (await client.open()).navigation is None


async def test_handle(server: ScriptedServer, client: Client) -> None:
    """Each method of a handle makes its one call and keeps the tab as it then stands."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    server.script("ActivateTab", [ActivateTabResponse(tab=Tab(name=NAME, front=True))])
    server.script("UpdateTab", [UpdateTabResponse(tab=Tab(name=NAME, pinned=True))])
    server.script("CloseTab", [CloseTabResponse(tab=Tab(name=NAME, state=Tab.STATE_CLOSED))])
    tab = await client.tab(NAME)
    await tab.activate()
    await tab.pin()
    await tab.pin(False)
    await tab.label({"job": "7", "old": ""})
    await tab.update(group="")
    assert await tab.get() == TAB
    await tab.close(force=True)
    assert tab.resource.state == Tab.STATE_CLOSED
    assert [call.request for call in server.calls][1:] == [
        GetTabRequest(name=NAME),
        ActivateTabRequest(name=NAME),
        UpdateTabRequest(name=NAME, pinned=True),
        UpdateTabRequest(name=NAME, pinned=False),
        UpdateTabRequest(name=NAME, labels={"job": "7", "old": ""}),
        UpdateTabRequest(name=NAME, group=""),
        GetTabRequest(name=NAME),
        CloseTabRequest(name=NAME, force=True),
    ]


async def test_unset_is_not_sent(server: ScriptedServer, client: Client) -> None:
    """Unpinning says nothing about the group, and the other way round. Scenario CLI-05."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    server.script("UpdateTab", [UpdateTabResponse(tab=TAB)])
    tab = await client.tab(NAME)
    await tab.pin(False)
    (request,) = server.requests("UpdateTab")
    assert (request.HasField("pinned"), request.HasField("group")) == (True, False)


async def test_list_over_pages(server: ScriptedServer, client: Client) -> None:
    """A list is one iterator over all pages, whose requests differ in the token only."""
    server.script(
        "ListTabs",
        [ListTabsResponse(tabs=tabs_of("a", "b"), next_page_token="2")],
        [ListTabsResponse(next_page_token="3")],
        [ListTabsResponse(tabs=tabs_of("c"))],
    )
    listed = [tab.name async for tab in client.tabs(groups=["night"], labels={"k": "v"})]
    assert listed == [tab.name for tab in tabs_of("a", "b", "c")]
    assert server.requests("ListTabs") == [
        ListTabsRequest(groups=["night"], labels={"k": "v"}, page_token=token) for token in ("", "2", "3")
    ]


async def test_list_closed_and_foreign(server: ScriptedServer, client: Client) -> None:
    """Closed and foreign tabs are listed by asking for every state and origin."""
    server.script("ListTabs", [ListTabsResponse()])
    assert [tab async for tab in client.tabs(closed=True, foreign=True)] == []
    (request,) = server.requests("ListTabs")
    assert (list(request.states), list(request.origins)) == ([1, 2, 3, 4, 5, 6], [1, 2, 3, 4])


@pytest.mark.parametrize(("given", "asked"), [(NAME, NAME), ("k3v9x2m7qd", "browsers/-/tabs/k3v9x2m7qd")])
async def test_find_whole(server: ScriptedServer, client: Client, given: str, asked: str) -> None:
    """A name or a whole id is asked for, so that closed tabs are found too."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    assert (await client.tab(given)).resource == TAB
    assert server.requests("GetTab") == [GetTabRequest(name=asked)]


@pytest.mark.parametrize(("given", "found"), [("k", "k3v9x2m7qd"), ("m2a", "m2a"), ("m2b", "m2b1111111")])
async def test_find_by_beginning(server: ScriptedServer, client: Client, given: str, found: str) -> None:
    """The beginning of one id names that tab; an id that is the beginning of another names itself."""
    server.script("ListTabs", [ListTabsResponse(tabs=tabs_of("k3v9x2m7qd", "m2a", "m2a1111111", "m2b1111111"))])
    assert (await client.tab(given)).name == f"browsers/main/tabs/{found}"


async def test_ambiguous_beginning(server: ScriptedServer, client: Client) -> None:
    """A beginning that several ids have is refused with all of them."""
    server.script("ListTabs", [ListTabsResponse(tabs=tabs_of("k3", "k4", "m1"))])
    with pytest.raises(AmbiguousNameError) as caught:
        await client.tab("k")
    assert caught.value.candidates == ("browsers/main/tabs/k3", "browsers/main/tabs/k4")


@pytest.mark.parametrize("given", ["z", ""])
async def test_no_such_beginning(server: ScriptedServer, client: Client, given: str) -> None:
    """A beginning that no id has is TAB_NOT_FOUND, and so is nothing, although there is one tab."""
    server.script("ListTabs", [ListTabsResponse(tabs=tabs_of("k3"))])
    with pytest.raises(TabmuxError) as caught:
        await client.tab(given)
    assert (caught.value.reason, caught.value.code) == ("TAB_NOT_FOUND", "NOT_FOUND")


async def test_evaluate(server: ScriptedServer, client: Client) -> None:
    """A script is passed on with what was said of it, and its value comes as Python's; `None` for `undefined`."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    server.script(
        "EvaluateScript",
        [EvaluateScriptResponse(result_json='{"a":[-0,null]}', tab=TAB)],
        [EvaluateScriptResponse(tab=TAB)],
    )
    tab = await client.tab(NAME)
    value = await tab.evaluate("x", await_promise=True, result_timeout=timedelta(seconds=2), expected_generation=3)
    assert (value, await tab.evaluate("y")) == ({"a": [0, None]}, None)
    assert server.requests("EvaluateScript") == [
        EvaluateScriptRequest(
            name=NAME, script="x", await_promise=True, result_timeout=Duration(seconds=2), expected_generation=3
        ),
        EvaluateScriptRequest(name=NAME, script="y"),
    ]
