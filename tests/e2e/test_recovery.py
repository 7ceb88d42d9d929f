"""Tabs that lose their page, or whose page does not answer: looked at, brought back, given up."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.event_pb2 import ChangeCause, Event
from tabmux.v1.tab_pb2 import Tab, TabHealth
from tabmux.v1.tab_service_pb2 import (
    CheckTabHealthRequest,
    CloseTabRequest,
    NavigateTabRequest,
    RecoverTabRequest,
    RecoverTabResponse,
    UpdateTabRequest,
    WatchTabsRequest,
)
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from tests.e2e.driving import of, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import LIMIT, Server
from tests.e2e.watching import Watching, watching

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]

Fields: TypeAlias = Any
"""Fields of a request, by name."""

SOON, PATIENT = Duration(nanos=300_000_000), Duration(seconds=10)


async def recovered(server: Server, tab: Tab) -> RecoverTabResponse:
    """The tab after RecoverTab."""
    return await server.tabs.RecoverTab(RecoverTabRequest(name=tab.name), timeout=3 * LIMIT)


async def looked_at(server: Server, tab: Tab, timeout: Duration | None = None) -> Tab:
    """The tab after CheckTabHealth."""
    request = CheckTabHealthRequest(name=tab.name, probe_timeout=timeout)
    return (await server.tabs.CheckTabHealth(request, timeout=LIMIT)).tab


def all_tabs(server: Server) -> Any:  # noqa: ANN401 - a context manager
    """A watch of all tabs."""
    return watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=Duration(seconds=1))))


async def crash(server: Server, person: Person, tab: Tab) -> Event:
    """Kill the renderer, and wait until that is recorded."""
    session = await person.attach(tab.target_id)
    watch: Watching
    async with all_tabs(server) as watch:
        await person.send("Page.crash", session)
        return await watch.until(of(tab, Tab.STATE_CRASHED))


async def lose(server: Server, person: Person, tab: Tab) -> Event:
    """Close the page as a person would, and wait until that is recorded."""
    watch: Watching
    async with all_tabs(server) as watch:
        await person.close(tab.target_id)
        return await watch.until(of(tab, Tab.STATE_LOST))


# Health


async def test_health(server: Server, person: Person, pages: Pages) -> None:
    """CheckTabHealth answers with what it finds: ALIVE, UNRESPONSIVE, CRASHED or GONE (O-113, O-118)."""
    alive, hung, crashed, lost = [await opened(server, pages.at("/page")) for _ in range(4)]
    session = await person.attach(hung.target_id)
    await person.send("Runtime.evaluate", session, expression="for (;;);")
    await crash(server, person, crashed)
    await lose(server, person, lost)
    found = [await looked_at(server, tab, SOON if tab is hung else PATIENT) for tab in (alive, hung, crashed, lost)]
    assert [(tab.health.status, tab.health.visible, tab.health.HasField("latency")) for tab in found] == [
        (TabHealth.STATUS_ALIVE, True, True),
        (TabHealth.STATUS_UNRESPONSIVE, False, False),
        (TabHealth.STATUS_CRASHED, False, False),
        (TabHealth.STATUS_GONE, False, False),
    ]
    assert [tab.state for tab in found] == [Tab.STATE_READY, Tab.STATE_READY, Tab.STATE_CRASHED, Tab.STATE_LOST]
    assert [tab.last_active_time for tab in found[:2]] == [tab.last_active_time for tab in (alive, hung)]
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=hung.name), timeout=LIMIT)).tab
    assert closed.state == Tab.STATE_CLOSED
    assert (await looked_at(server, closed)).health.status == TabHealth.STATUS_GONE


async def test_health_changes_nothing(server: Server, person: Person, pages: Pages) -> None:
    """A look changes nothing in a page, also one that is guarded and has tampered with what is read (O-118)."""
    tab = await opened(server, pages.at("/guards-itself"))
    await server.tabs_when(lambda tabs: tabs[0].title == "Guarded")
    found = await looked_at(server, tab, PATIENT)
    again = await looked_at(server, tab, PATIENT)
    session = await person.attach(tab.target_id)
    assert await person.evaluate(session, "window.asked") == 0
    assert (found.health.status, again.health.status) == (TabHealth.STATUS_ALIVE, TabHealth.STATUS_ALIVE)
    assert (again.revision, again.last_active_time) == (found.revision, tab.last_active_time)


async def test_health_tells_of_the_title(server: Server, person: Person, pages: Pages) -> None:
    """A title that a script has set, of which the browser tells nobody, is recorded with a look (O-84, O-118)."""
    tab = await opened(server, pages.at("/page"))
    await person.evaluate(await person.attach(tab.target_id), "document.title = 'set by a script'")
    watch: Watching
    async with all_tabs(server) as watch:
        await looked_at(server, tab, PATIENT)
        await watch.until(lambda event: event.tab.name == tab.name and event.tab.title == "set by a script")


async def test_health_behind_a_dialog(server: Server, pages: Pages) -> None:
    """A page that a dialog holds up is UNRESPONSIVE at once, and RecoverTab dismisses the dialog (O-108, O-113)."""
    watch: Watching
    async with all_tabs(server) as watch:
        tab = await opened(server, pages.at("/alerts?kind=confirm"))
        await watch.until(lambda event: event.tab.name == tab.name and event.tab.HasField("dialog"))
    found = await looked_at(server, tab, Duration(seconds=10))
    assert (found.health.status, found.HasField("dialog")) == (TabHealth.STATUS_UNRESPONSIVE, True)
    back = await recovered(server, tab)
    assert back.strategy == RecoverTabResponse.STRATEGY_REATTACHED
    await server.tabs_when(lambda tabs: not any(each.HasField("dialog") for each in tabs))
    assert (await looked_at(server, tab, PATIENT)).health.status == TabHealth.STATUS_ALIVE


async def test_call_finds_it_hung(server: Server, person: Person, pages: Pages) -> None:
    """A call that finds a page hung tells watchers so; other tabs go on, and the page is closed at once (O-113)."""
    hung, other = await opened(server, pages.at("/page")), await opened(server, pages.at("/page"))
    session = await person.attach(hung.target_id)
    await person.send("Runtime.evaluate", session, expression="for (;;);")
    watch: Watching
    async with all_tabs(server) as watch:
        await looked_at(server, hung, SOON)
        event = await watch.until(lambda event: event.tab.health.status == TabHealth.STATUS_UNRESPONSIVE)
    assert (event.tab.name, event.tab.state) == (hung.name, Tab.STATE_READY)
    request = NavigateTabRequest(name=other.name, uri=pages.at("/page?title=other"))
    assert (await server.tabs.NavigateTab(request, timeout=LIMIT)).tab.uri == request.uri
    assert (await server.tabs.CloseTab(CloseTabRequest(name=hung.name), timeout=LIMIT)).tab.state == Tab.STATE_CLOSED


# RecoverTab


async def test_nothing_to_do(server: Server, pages: Pages) -> None:
    """A tab whose page answers is given as it is, and nothing is recorded; a closed one is TAB_CLOSED (O-111)."""
    tab = await opened(server, pages.at("/page"))
    hits = pages.hits["/page"]
    back = await recovered(server, tab)
    assert (back.strategy, back.tab.generation, back.tab.recovery_count) == (RecoverTabResponse.STRATEGY_NONE, 1, 0)
    assert pages.hits["/page"] == hits
    await server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)
    assert await reason(recovered(server, tab)) == "TAB_CLOSED"


async def test_crashed(server: Server, person: Person, pages: Pages) -> None:
    """A crashed page is loaded again in its own target: same generation, no second target (O-109, O-111, CON-05)."""
    tab = await opened(server, pages.at("/page?title=first"), labels={"a": "b"}, group="g")
    event = await crash(server, person, tab)
    step = server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri="about:blank"), timeout=LIMIT)
    refused = await refusal(step)
    back = await recovered(server, tab)
    assert (event.cause, refused.reason) == (ChangeCause.CHANGE_CAUSE_CRASH, "TAB_GONE")
    assert back.strategy == RecoverTabResponse.STRATEGY_RELOADED
    assert (back.tab.state, back.tab.target_id, back.tab.generation) == (Tab.STATE_READY, tab.target_id, 1)
    assert (back.tab.uri, back.tab.recovery_count, dict(back.tab.labels)) == (tab.uri, 1, {"a": "b"})
    assert list(await server.page_targets()) == [tab.target_id]
    request = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=second"), expected_generation=1)
    assert (await server.tabs.NavigateTab(request, timeout=LIMIT)).tab.uri == request.uri


async def test_lost(server: Server, person: Person, pages: Pages) -> None:
    """Five RecoverTab at once of a lost tab open one target: a new generation, all else stays (O-26, O-112, SES-02)."""
    tab = await opened(server, pages.at("/page"), labels={"a": "b"}, group="g")
    twin = await person.open_loaded(pages.at("/page"))
    await lose(server, person, tab)
    answers = await asyncio.gather(*(recovered(server, tab) for _ in range(5)))
    back = answers[0].tab
    assert {answer.strategy for answer in answers} <= {
        RecoverTabResponse.STRATEGY_REOPENED,
        RecoverTabResponse.STRATEGY_NONE,
    }
    assert (back.state, back.generation, back.recovery_count) == (Tab.STATE_READY, 2, 1)
    assert (back.uri, back.owner, back.group, dict(back.labels)) == (tab.uri, tab.owner, "g", {"a": "b"})
    assert await server.page_targets() == {back.target_id: tab.uri, twin: tab.uri}
    assert back.target_id not in {tab.target_id, twin}
    stale = NavigateTabRequest(name=tab.name, uri="about:blank", expected_generation=1)
    refused = await refusal(server.tabs.NavigateTab(stale, timeout=LIMIT))
    assert (refused.reason, refused.metadata["generation"]) == ("TAB_REPLACED", "2")
    history = await person.looks(back.target_id)
    assert (history.uri, history.history) == (tab.uri, 1)
    await person.close(twin)


async def test_hung(server: Server, person: Person, pages: Pages) -> None:
    """A page that hangs is stopped and loaded again in its own target (O-108, O-111)."""
    tab = await opened(server, pages.at("/page"))
    session = await person.attach(tab.target_id)
    await person.send("Runtime.evaluate", session, expression="for (;;);")
    back = await recovered(server, tab)
    assert back.strategy == RecoverTabResponse.STRATEGY_RELOADED
    assert (back.tab.target_id, back.tab.generation) == (tab.target_id, 1)
    assert (await looked_at(server, tab, PATIENT)).health.status == TabHealth.STATUS_ALIVE


async def test_not_owner(server: Server, pages: Pages) -> None:
    """RecoverTab of another's tab is NOT_OWNER; whoever may read looks at it (O-2)."""
    tab = await opened(server, pages.at("/page"))
    other: Any = TabServiceStub(server.channel("other"))
    assert await reason(other.RecoverTab(RecoverTabRequest(name=tab.name), timeout=LIMIT)) == "NOT_OWNER"
    looked = (await other.CheckTabHealth(CheckTabHealthRequest(name=tab.name), timeout=LIMIT)).tab
    assert looked.health.status == TabHealth.STATUS_ALIVE


# By itself


async def test_pinned(server: Server, person: Person, pages: Pages) -> None:
    """A pinned tab comes back by itself, crashed or lost, and is pinned still; another waits (O-111, O-51)."""
    pinned, other = await opened(server, pages.at("/page"), pinned=True), await opened(server, pages.at("/page"))
    await lose(server, person, other)
    await crash(server, person, pinned)
    tabs = await server.tabs_when(lambda tabs: _states(tabs) == {pinned.name: "READY", other.name: "LOST"})
    back = next(tab for tab in tabs if tab.name == pinned.name)
    assert (back.pinned, back.recovery_count, back.generation) == (True, 1, 1)
    watch: Watching
    async with all_tabs(server) as watch:
        await person.close(back.target_id)
        again = (await watch.until(lambda event: event.tab.generation == 2)).tab
        states = [event.tab.state for event in watch.events if event.tab.name == pinned.name]
    # A title may be told of later than the page was there.
    entered = [state for state, _ in itertools.groupby(states)]
    assert (again.pinned, again.state, again.recovery_count) == (True, Tab.STATE_READY, 2)
    assert entered[-3:] == [Tab.STATE_LOST, Tab.STATE_RECOVERING, Tab.STATE_READY]
    assert entered[:-3] in ([], [Tab.STATE_READY])
    assert list(await server.page_targets()) == [again.target_id]


async def test_pinned_late(server: Server, person: Person, pages: Pages) -> None:
    """A lost tab that is pinned comes back by itself from then on (O-111)."""
    tab = await opened(server, pages.at("/page"))
    await lose(server, person, tab)
    await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, pinned=True), timeout=LIMIT)
    await server.tabs_when(lambda tabs: _states(tabs) == {tab.name: "READY"})


def _states(tabs: Any) -> dict[str, str]:  # noqa: ANN401 - tabs
    return {tab.name: Tab.State.Name(tab.state).removeprefix("STATE_") for tab in tabs}
