"""Room, pool and clean-up in a real browser that takes three tabs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    CloseTabRequest,
    CloseTabsOutcome,
    CloseTabsRequest,
    CloseTabsResponse,
    CreateTabRequest,
    CreateTabResponse,
    ListTabsRequest,
    NavigateTabRequest,
    UpdateTabRequest,
    WatchTabsRequest,
)
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import CancelTurnRequest

from tests.cdp.browsers import fresh_profile
from tests.e2e.conversing import Conversation, end_of
from tests.e2e.driving import close_all, got
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import BROWSER, LIMIT, PlaygroundProcess, Server, serving
from tests.e2e.watching import Call, watching

Fields: TypeAlias = Any

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(90)]

OUTCOME = CloseTabsOutcome


@pytest.fixture(scope="module")
def server_settings() -> str:
    """Three tabs are the limit, and nobody's tab is taken."""
    return """
[browsers.main]
max_tab_count = 3
reclaim_after = "never"
idle_timeout = "10m"
"""


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _closed_afterwards(server: Server) -> AsyncIterator[None]:
    yield
    await server.tabs.CloseTabs(CloseTabsRequest(all=True, any_owner=True), timeout=LIMIT)  # pooled ones too
    await close_all(server)


async def created(server: Server, uri: str = "", **fields: Fields) -> CreateTabResponse:
    """The answer to CreateTab."""
    return await server.tabs.CreateTab(CreateTabRequest(uri=uri, **fields), timeout=2 * LIMIT)


async def given_back(server: Server, tab: Tab, **fields: Fields) -> Tab:
    """The tab after CloseTab with `pool`."""
    return (await server.tabs.CloseTab(CloseTabRequest(name=tab.name, pool=True, **fields), timeout=LIMIT)).tab


async def closed_many(server: Server, **fields: Fields) -> list[tuple[str, int, int]]:
    """Tab, action and skip reason of each outcome of CloseTabs."""
    answer: CloseTabsResponse = await server.tabs.CloseTabs(CloseTabsRequest(**fields), timeout=LIMIT)
    return [(each.tab, each.action, each.skip_reason) for each in answer.outcomes]


def watch_of(server: Server) -> Call:
    """A watch of the browser and all its tabs."""
    return server.tabs.WatchTabs(WatchTabsRequest(parent=BROWSER))


# Room


async def test_full_at_once(server: Server) -> None:
    """Of 20 opens at once 3 are carried out, and 17 are TAB_CAPACITY before anything is opened (O-43, TAB-24)."""
    calls = [asyncio.ensure_future(created(server)) for _ in range(20)]
    await asyncio.wait(calls)
    opened = [call.result().tab for call in calls if call.exception() is None]
    refused = [await reason(call) for call in calls if call.exception() is not None]
    assert refused == ["TAB_CAPACITY"] * 17
    assert await server.page_targets() == {tab.target_id: "about:blank" for tab in opened}
    assert (await server.browser()).tab_counts.managed_count == 3


async def test_line(server: Server) -> None:
    """Room goes to those who wait in order of arrival; who is cancelled leaves the line (O-43)."""
    tabs = [(await created(server)).tab for _ in range(3)]
    waiting = [asyncio.ensure_future(created(server, wait_for_room=True, group=f"g{number}")) for number in range(3)]
    await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)  # a call later: those above are in line
    waiting[1].cancel()
    await asyncio.wait({waiting[1]})
    async with watching(watch_of(server)) as watch:
        await server.tabs.CloseTab(CloseTabRequest(name=tabs[0].name), timeout=LIMIT)
        await asyncio.wait({waiting[0]})
        assert await reason(created(server)) == "TAB_CAPACITY"
        await server.tabs.CloseTab(CloseTabRequest(name=tabs[1].name), timeout=LIMIT)
        await asyncio.wait({waiting[2]})
        await watch.until(lambda event: event.tab.name == waiting[2].result().tab.name and event.tab.state == 2)
    assert [waiting[number].result().tab.group for number in (0, 2)] == ["g0", "g2"]
    assert len(await server.page_targets()) == 3
    assert (await server.browser()).tab_counts.managed_count == 3


async def test_line_repeated(server: Server) -> None:
    """Two that wait for room under one request id get one tab, and both answers name it (O-21, O-43)."""
    tabs = [(await created(server)).tab for _ in range(3)]
    request_id = str(uuid4())
    waiting = [asyncio.ensure_future(created(server, wait_for_room=True, request_id=request_id)) for _ in range(2)]
    await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)  # a call later: those above are in line
    await server.tabs.CloseTab(CloseTabRequest(name=tabs[0].name), timeout=LIMIT)
    answers = await asyncio.gather(*waiting)
    assert answers[0].tab.name == answers[1].tab.name
    assert len(await server.page_targets()) == 3


async def test_line_until_deadline(server: Server) -> None:
    """Who waits for room is told TAB_CAPACITY shortly before the deadline, and no row or target is left (O-43)."""
    tabs = [(await created(server)).tab for _ in range(3)]
    request = CreateTabRequest(wait_for_room=True)
    assert await reason(server.tabs.CreateTab(request, timeout=1.5)) == "TAB_CAPACITY"
    listed = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs
    assert [tab.name for tab in listed] == [tab.name for tab in tabs]
    assert len(await server.page_targets()) == 3


async def test_pooled_makes_room(server: Server) -> None:
    """At the limit the pooled tab unused for longest closes (CAPACITY), and a new one opens (O-42, TAB-10)."""
    tabs = [(await created(server, group="g")).tab for _ in range(3)]
    for tab in tabs[:2]:
        assert (await given_back(server, tab)).pooled
    new = (await created(server, group="h")).tab
    assert [(await got(server, tab)).close_cause for tab in tabs] == [Tab.CLOSE_CAUSE_CAPACITY, 0, 0]
    assert set(await server.page_targets()) == {tabs[1].target_id, tabs[2].target_id, new.target_id}


async def test_sessions_make_room(server: Server, playground: PlaygroundProcess) -> None:
    """The tab of a session without an open turn closes to make room, and the session is parked (O-42, O-141)."""
    conversation = Conversation()
    await conversation.start(server)
    turn = await end_of(server, await conversation.send(server))
    assert turn.state == Turn.STATE_SUCCEEDED
    session = await conversation.session(server)
    others = [(await created(server)).tab for _ in range(3)]
    assert (await got(server, Tab(name=session.tab))).close_cause == Tab.CLOSE_CAUSE_CAPACITY
    assert (await conversation.session(server)).tab == ""
    again = await (following := conversation.next()).send(server)
    await server.tabs.CloseTab(CloseTabRequest(name=others[0].name), timeout=LIMIT)
    assert (await end_of(server, again)).state == Turn.STATE_SUCCEEDED
    assert [playground.prompts().count(each.text) for each in (conversation, following)] == [1, 1]


async def test_cancelled_while_it_opens(server: Server) -> None:
    """A turn that is cancelled while its tab opens has left no page once CancelTurn answers (O-57, O-128)."""
    for _ in range(6):
        conversation = Conversation("{{seconds=60}}")
        await conversation.start(server)
        async with watching(watch_of(server)) as watch:
            turn = await conversation.send(server)
            await watch.until(lambda event: event.tab.state == Tab.STATE_OPENING)
            await server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)
        listed = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs
        assert set(await server.page_targets()) == {tab.target_id for tab in listed}


# Pool


@pytest.mark.parametrize("count", [5, pytest.param(20, marks=pytest.mark.long)])
async def test_rounds(server: Server, pages: Pages, count: int) -> None:
    """A tab is given back and handed over many times, loaded afresh each time: always the same page (O-45, LSE-07)."""
    before = pages.hits["/page"]
    first = (await created(server, pages.at("/page"), group="g")).tab
    rounds = []
    answer = CreateTabResponse(tab=first)
    for number in range(count):
        pooled = await given_back(server, answer.tab)
        label = {"round": str(number)}
        answer = await created(server, pages.at("/page"), group="g", from_pool=True, labels=label)
        rounds.append((pooled.pooled, pooled.owner, answer.from_pool, answer.tab.name, dict(answer.tab.labels)))
        assert list(await server.page_targets()) == [first.target_id]
    assert rounds == [(True, "", True, first.name, {"round": str(number)}) for number in range(count)]
    assert pages.hits["/page"] - before == count + 1
    assert (answer.tab.owner, answer.tab.state, answer.tab.generation) == ("local", Tab.STATE_READY, 1)


async def test_nobody_drives_a_pooled_tab(server: Server, pages: Pages) -> None:
    """A pooled tab is nobody's: NOT_OWNER for all, `admin` too; two takers get two tabs (O-45, LSE-01)."""
    tab = (await created(server, pages.at("/page"), group="g", pinned=False)).tab
    await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, share_with=["local/b"]), timeout=LIMIT)
    pooled = await given_back(server, tab)
    assert (list(pooled.shared_with), pooled.owner, pooled.group) == ([], "", "g")
    drive = NavigateTabRequest(name=tab.name, uri="about:blank")
    update = UpdateTabRequest(name=tab.name, pinned=True)
    assert await reason(server.tabs.NavigateTab(drive, timeout=LIMIT)) == "NOT_OWNER"
    assert await reason(server.tabs.UpdateTab(update, timeout=LIMIT)) == "NOT_OWNER"
    a, b = (TabServiceStub(server.channel(name)) for name in ("a", "b"))
    request = CreateTabRequest(group="g", from_pool=True, uri=pages.at("/page?title=mine"))
    answers = await asyncio.gather(a.CreateTab(request, timeout=LIMIT), b.CreateTab(request, timeout=LIMIT))
    assert sorted(answer.from_pool for answer in answers) == [False, True]
    assert {answer.tab.owner for answer in answers} == {"local/a", "local/b"}
    assert len({answer.tab.target_id for answer in answers}) == 2


@pytest.mark.parametrize("harm", ["moved", "crashed", "hung", "dialog"])
async def test_unfit(server: Server, pages: Pages, person: Person, harm: str) -> None:
    """A pooled tab that hangs, has crashed, asks something or shows another page is not handed over (O-46)."""
    tab = (await created(server, pages.at("/page"), group="g")).tab
    assert (await given_back(server, tab)).pooled
    session = await person.attach(tab.target_id)
    async with watching(watch_of(server)) as watch:
        match harm:
            case "moved":
                await person.call("Page.navigate", session, url=pages.at("/page?title=elsewhere"))
                await watch.until(lambda event: event.tab.name == tab.name and "elsewhere" in event.tab.title)
            case "crashed":
                await person.send("Page.crash", session)
                await watch.until(lambda event: event.tab.state == Tab.STATE_CRASHED)
            case "hung":
                await person.send("Runtime.evaluate", session, expression="for (;;);")
                await person.pages()  # answered behind the command above, which is with the page then
            case _:
                await person.send("Runtime.evaluate", session, expression="alert(1)")
                await watch.until(lambda event: event.tab.HasField("dialog"))
    answer = await created(server, pages.at("/page"), group="g", from_pool=True)
    old = await got(server, tab)
    assert (answer.from_pool, answer.tab.state) == (False, Tab.STATE_READY)
    if harm == "crashed":
        assert old.state == Tab.STATE_CRASHED
    else:
        assert (old.state, old.close_cause) == (Tab.STATE_CLOSED, Tab.CLOSE_CAUSE_CAPACITY)
        assert list(await server.page_targets()) == [answer.tab.target_id]


async def test_repeated_after_giving_back(server: Server, pages: Pages) -> None:
    """A CreateTab repeated after its tab was given back is TAB_CLOSED, whoever has the tab now (O-2, O-21, O-45)."""
    a, b = (TabServiceStub(server.channel(name)) for name in ("a", "b"))
    request = CreateTabRequest(uri=pages.at("/page"), group="g", request_id=str(uuid4()), activate=True)
    tab = (await a.CreateTab(request, timeout=LIMIT)).tab
    await a.CloseTab(CloseTabRequest(name=tab.name, pool=True), timeout=LIMIT)
    pooled = await got(server, tab)
    assert await reason(a.CreateTab(request, timeout=LIMIT)) == "TAB_CLOSED"
    assert (pooled.pooled, await got(server, tab)) == (True, pooled)
    taken = (await b.CreateTab(CreateTabRequest(group="g", from_pool=True), timeout=LIMIT)).tab
    assert (taken.name, taken.owner) == (tab.name, "local/b")
    refused = await refusal(a.CreateTab(request, timeout=LIMIT))
    assert (refused.reason, pages.at("/") in str(refused)) == ("TAB_CLOSED", False)
    assert await got(server, tab) == taken


async def test_opened_others(server: Server, pages: Pages, person: Person) -> None:
    """A tab whose page has opened another is closed rather than pooled: that one holds it by reference (O-2, O-45)."""
    a = TabServiceStub(server.channel("a"))
    tab = (await a.CreateTab(CreateTabRequest(uri=pages.at("/opens-popup"), group="g"), timeout=LIMIT)).tab
    async with watching(watch_of(server)) as watch:
        await person.touch(await person.attach(tab.target_id))
        popup = (await watch.until(lambda event: event.tab.opener == tab.name and event.tab.state == 2)).tab
    await a.CloseTab(CloseTabRequest(name=popup.name), timeout=LIMIT)
    closed = (await a.CloseTab(CloseTabRequest(name=tab.name, pool=True), timeout=LIMIT)).tab
    assert (closed.state, closed.pooled) == (Tab.STATE_CLOSED, False)
    answer = await created(server, group="g", from_pool=True)
    assert answer.from_pool is False


async def test_forced_into_the_pool(server: Server, pages: Pages) -> None:
    """A tab that serves an open turn, or that a call is at work on, is closed by force, not pooled (O-38, O-45)."""
    conversation = Conversation("{{seconds=60}}")
    await conversation.start(server)
    tab = (await created(server, group="g")).tab
    async with watching(watch_of(server)) as watch:
        turn = await conversation.send(server)
        of_turn = (await watch.until(lambda event: event.tab.session and event.tab.lease)).tab
        uri = pages.at("/never-loaded")
        going = asyncio.ensure_future(
            server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=uri), timeout=LIMIT)
        )
        await watch.until(lambda event: event.tab.uri == uri)
    closed = [await given_back(server, each, force=True) for each in (tab, of_turn)]
    assert [(each.state, each.pooled) for each in closed] == [(Tab.STATE_CLOSED, False)] * 2
    assert await reason(going) == "OUTCOME_UNKNOWN"
    assert (await end_of(server, turn)).error.reason == "TAB_CLOSED"


async def test_window_name(server: Server, pages: Pages, person: Person) -> None:
    """What a page has left in the name and the history of its window is gone at the hand-over (O-45, O-91)."""
    tab = (await created(server, pages.at("/page"), group="g")).tab
    session = await person.attach(tab.target_id)
    async with watching(watch_of(server)) as watch:
        # One after another, and seen: a page that moves while it is pooled is handed to nobody.
        await person.evaluate(session, "window.name = 'left behind'; history.pushState(1, '', '/page?title=again')")
        moved = await watch.until(lambda event: event.tab.uri == pages.at("/page?title=again"))
        await person.evaluate(session, "history.replaceState(1, '', '/page')")
        await watch.until(lambda event: event.revision > moved.revision and event.tab.uri == pages.at("/page"))
        assert (await given_back(server, tab)).pooled
    answer = await created(server, pages.at("/page?title=new"), group="g", from_pool=True)
    assert answer.from_pool
    assert await person.evaluate(session, "[window.name, history.length].join()") == ",1"


async def test_not_pooled(server: Server) -> None:
    """A tab without a group is closed rather than pooled, and a repeated close tells so (O-47)."""
    tab = (await created(server)).tab
    closed = await given_back(server, tab)
    assert (closed.state, closed.pooled, await given_back(server, tab)) == (Tab.STATE_CLOSED, False, closed)


# CloseTabs


async def test_close_many(server: Server, person: Person, pages: Pages) -> None:
    """CloseTabs closes what matches of the caller's own, tells why it leaves the rest; foreign ones stay (O-39)."""
    foreign = await person.open_loaded(pages.at("/page?title=theirs"))
    a = TabServiceStub(server.channel("a"))
    request = CreateTabRequest(group="g")
    mine = [(await created(server, group="g")).tab, (await created(server, group="g", pinned=True)).tab]
    theirs = (await a.CreateTab(request, timeout=LIMIT)).tab
    every = [
        (mine[0].name, OUTCOME.ACTION_CLOSED, 0),
        (mine[1].name, OUTCOME.ACTION_SKIPPED, OUTCOME.SKIP_REASON_PINNED),
    ]
    assert await closed_many(server, group="g", dry_run=True) == every
    assert await closed_many(server, group="h") == []
    assert await closed_many(server, all=True, idle_duration=Duration(seconds=3600)) == []
    assert (await got(server, mine[0])).state == Tab.STATE_READY
    assert await closed_many(server, all=True) == every
    assert (await got(server, mine[0])).close_cause == Tab.CLOSE_CAUSE_CLIENT
    take_all = CloseTabsRequest(all=True, any_owner=True)
    assert await reason(a.CloseTabs(take_all, timeout=LIMIT)) == "SCOPE_MISSING"
    assert await reason(a.CloseTabs(CloseTabsRequest(), timeout=LIMIT)) == "INVALID_FIELD"
    assert (await got(server, theirs)).state == Tab.STATE_READY
    assert await closed_many(server, parent=BROWSER, group="g", any_owner=True) == [
        (mine[1].name, OUTCOME.ACTION_SKIPPED, OUTCOME.SKIP_REASON_PINNED),
        (theirs.name, OUTCOME.ACTION_CLOSED, 0),
    ]
    assert await server.page_targets() == {
        mine[1].target_id: "about:blank",
        foreign: pages.at("/page?title=theirs"),
    }
    await person.close(foreign)


async def test_close_many_busy(server: Server, pages: Pages) -> None:
    """CloseTabs leaves alone a tab that serves an open turn, or that a call is at work on (O-39, TAB-09)."""
    conversation = Conversation("{{seconds=60}}")
    await conversation.start(server)
    tab = (await created(server)).tab
    async with watching(watch_of(server)) as watch:
        turn = await conversation.send(server)
        serving_tab = (await watch.until(lambda event: event.tab.session and event.tab.lease)).tab
        going = asyncio.ensure_future(
            server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=pages.at("/never-loaded")), timeout=LIMIT)
        )
        await watch.until(lambda event: "never-loaded" in event.tab.uri)
    outcomes = await closed_many(server, all=True)
    assert sorted(outcomes) == sorted(
        (name, OUTCOME.ACTION_SKIPPED, OUTCOME.SKIP_REASON_BUSY) for name in (tab.name, serving_tab.name)
    )
    going.cancel()
    await asyncio.wait({going})
    await server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)


# Idling


async def test_idling(playground: PlaygroundProcess, pages: Pages) -> None:
    """Idle tabs close with cause IDLE; pinned ones and those of a person stay (O-48, O-49, O-51, TAB-04, TAB-11)."""
    with fresh_profile() as directory:
        (directory / "tabmuxd.toml").write_text('[browsers.main]\nidle_timeout = "2s"\n')
        async with serving(directory, playground.port) as server:
            pinned = (await created(server, pages.at("/page"), pinned=True)).tab
            async with person_at(directory / "browsers" / "main") as person, watching(watch_of(server)) as watch:
                foreign = await person.open_loaded(pages.at("/page"))
                idle = (await created(server, pages.at("/page"))).tab
                await watch.until(lambda event: event.tab.name == idle.name and event.tab.state == Tab.STATE_CLOSED)
                assert (await got(server, idle)).close_cause == Tab.CLOSE_CAUSE_IDLE
                assert set(await server.page_targets()) == {pinned.target_id, foreign}
