"""Somebody else's browser with somebody else's pages: left alone, whatever is asked, unless a person gives one away.

Every DevTools command that the server sends is written down by a relay.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.event_pb2 import ChangeCause
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    ActivateTabRequest,
    AdoptTabRequest,
    CloseTabRequest,
    CloseTabsRequest,
    CreateTabRequest,
    ListTabsRequest,
    NavigateTabRequest,
    RecoverTabRequest,
    UpdateTabRequest,
    WatchTabsRequest,
)

from tests.cdp.browsers import RunningChromium, fresh_profile
from tests.e2e.driving import got, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.refusals import reason, refusal
from tests.e2e.relay import Relay
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server, serving
from tests.e2e.watching import watching

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("cleared_afterwards"),
]


@pytest.fixture(scope="module")
def server_settings(relay: Relay) -> str:
    """Attached to somebody's browser, through the relay."""
    return f'[browsers.main]\naddress = "{relay.uri}"\nmax_tab_count = 3\n'


@pytest_asyncio.fixture(loop_scope="module")
async def person(chromium: RunningChromium) -> AsyncIterator[Person]:
    """The one whose browser it is."""
    async with person_at(chromium.profile) as person:
        yield person


async def adopted(server: Server, **fields: Fields) -> Tab:
    """The tab that AdoptTab gives."""
    return (await server.tabs.AdoptTab(AdoptTabRequest(**fields), timeout=2 * LIMIT)).tab


async def foreign(server: Server) -> list[str]:
    """Target ids of the pages that are not ours."""
    asked = ListTabsRequest(origins=[Tab.ORIGIN_FOREIGN])
    return [tab.target_id for tab in (await server.tabs.ListTabs(asked, timeout=LIMIT)).tabs]


async def with_dialog(person: Person, uri: str) -> str:
    """A page of the person that has a dialog open."""
    target_id = await person.open("about:blank")
    session = await person.attach(target_id)
    asked = person.event("Page.javascriptDialogOpening", session)
    await person.call("Page.enable", session)
    await person.send("Page.navigate", session, url=uri)
    async with asyncio.timeout(LIMIT):
        await asked
    return target_id


async def hung(person: Person, uri: str) -> str:
    """A page of the person that answers nothing any more."""
    target_id = await person.open_loaded(uri)
    session = await person.attach(target_id)
    await person.send("Runtime.evaluate", session, expression="for (;;);")
    await person.pages()  # answered behind the command above, which is with the page then
    await person.call("Target.detachFromTarget", sessionId=session)
    return target_id


# Seen


async def test_seen_at_once(server: Server, person: Person, pages: Pages, relay: Relay) -> None:
    """A page that is there is listed, though what the browser told of it is still on its way."""
    looks = relay.count("Target.getTargets")
    with relay.slow():
        target_id = await person.open_loaded(pages.at("/page?title=new"))
        listed = asyncio.ensure_future(foreign(server))
        looked = asyncio.ensure_future(relay.sent("Target.getTargets", times=looks + 1))
        await asyncio.wait((listed, looked), timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
        looked.cancel()
    assert await listed == [target_id]


# Left alone


async def test_left_alone(server: Server, person: Person, pages: Pages, relay: Relay) -> None:
    """Whatever calls run, no command names a foreign page or a session of one, hung and blocked ones included.

    (O-2, O-24, O-27, O-31, O-32, TAB-04.) Only ActivateTab and `activate` bring anything to the front.
    """
    plain = await person.open_loaded(pages.at("/page?title=private"))
    busy = await hung(person, pages.at("/page?title=busy"))
    blocked = await with_dialog(person, pages.at("/alerts"))
    before = await person.looks(plain)
    await person.raise_page(plain)
    assert sorted(await foreign(server)) == sorted([plain, busy, blocked])

    one, two, three = [await opened(server, pages.at(f"/page?title={n}"), group="g") for n in range(3)]
    assert await reason(server.tabs.CreateTab(CreateTabRequest(), timeout=LIMIT)) == "TAB_CAPACITY"
    await server.tabs.UpdateTab(UpdateTabRequest(name=one.name, labels={"a": "b"}, pinned=True), timeout=LIMIT)
    await server.tabs.NavigateTab(NavigateTabRequest(name=one.name, uri=pages.at("/page?title=x")), timeout=LIMIT)
    assert await person.front() == ["private"]
    assert relay.count("Target.activateTarget") == 0
    assert (await server.tabs.ActivateTab(ActivateTabRequest(name=one.name), timeout=LIMIT)).tab.front
    assert relay.count("Target.activateTarget") == 1
    for position in ("0", plain, f"browsers/main/tabs/{plain}"):
        step = NavigateTabRequest(name=position, uri="about:blank")
        assert await reason(server.tabs.NavigateTab(step, timeout=LIMIT)) == "INVALID_FIELD"
    await person.close(two.target_id)
    await server.tabs_when(lambda tabs: [tab.state for tab in tabs if tab.name == two.name] == [Tab.STATE_LOST])
    step = NavigateTabRequest(name=two.name, uri="about:blank")
    assert await reason(server.tabs.NavigateTab(step, timeout=LIMIT)) == "TAB_GONE"
    every = CloseTabsRequest(all=True, any_owner=True, keep_front=True)
    await server.tabs.CloseTabs(every, timeout=LIMIT)
    await server.tabs.CloseTab(CloseTabRequest(name=one.name, force=True), timeout=LIMIT)
    await server.restart()
    assert sorted(await foreign(server)) == sorted([plain, busy, blocked])
    assert await server.terminate() == 0
    await server.start()

    touched = {command.target_id for command in relay.commands} - {""}
    assert touched <= {one.target_id, two.target_id, three.target_id}
    assert relay.count("Target.activateTarget") == 1
    assert relay.count("Page.bringToFront") == relay.count("Browser.close") == 0
    assert await person.looks(plain) == before
    assert set(await person.pages()) == {plain, busy, blocked}


async def test_own_session(server: Server, pages: Pages, relay: Relay, person: Person) -> None:
    """Each page call goes over a session attached to exactly the target of its tab, the new one after it came back.

    (O-22, O-23, O-112, TAB-01.)
    """
    twins = [await opened(server, pages.at("/page?title=twin")) for _ in range(3)]
    relay.commands.clear()
    for number, tab in enumerate((*twins, *reversed(twins))):
        step = NavigateTabRequest(name=tab.name, uri=pages.at(f"/page?title={number}"))
        answer = (await server.tabs.NavigateTab(step, timeout=LIMIT)).tab
        assert (answer.name, answer.uri) == (tab.name, step.uri)
    sent = [command.target_id for command in relay.commands if command.method == "Page.navigate"]
    assert sent == [tab.target_id for tab in (*twins, *reversed(twins))]

    await person.close(twins[1].target_id)
    await server.tabs_when(lambda tabs: any(tab.state == Tab.STATE_LOST for tab in tabs))
    back = (await server.tabs.RecoverTab(RecoverTabRequest(name=twins[1].name), timeout=2 * LIMIT)).tab
    relay.commands.clear()
    await server.tabs.NavigateTab(NavigateTabRequest(name=back.name, uri=pages.at("/page")), timeout=LIMIT)
    sent = [command.target_id for command in relay.commands if command.method == "Page.navigate"]
    assert sent == [back.target_id]
    assert back.target_id != twins[1].target_id


async def test_blank_by_itself(server: Server, pages: Pages, relay: Relay, person: Person) -> None:
    """A tab that a person takes to about:blank is told of so; nothing is loaded or replaced (O-97, O-144)."""
    tab = await opened(server, pages.at("/page?title=mine"))
    relay.commands.clear()
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[tab.name]))) as watch:
        await person.call("Page.navigate", await person.attach(tab.target_id), url="about:blank")
        told = await watch.until(lambda event: event.tab.uri == "about:blank")
    assert (told.cause, told.tab.state, told.tab.target_id, told.tab.generation) == (
        ChangeCause.CHANGE_CAUSE_PAGE,
        Tab.STATE_READY,
        tab.target_id,
        tab.generation,
    )
    assert {"Page.navigate", "Page.reload", "Target.createTarget", "Target.closeTarget"}.isdisjoint(
        command.method for command in relay.commands
    )
    step = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=on"))
    assert (await server.tabs.NavigateTab(step, timeout=LIMIT)).tab.uri == step.uri


async def test_activate_asked(server: Server, person: Person, pages: Pages, relay: Relay) -> None:
    """A CreateTab that asks for the front is opened in the background, then brought there (O-18, O-27, TAB-19)."""
    await person.open_loaded(pages.at("/page?title=private"))
    tab = await opened(server, pages.at("/page?title=ours"), activate=True)
    assert tab.front
    assert await person.front() == ["ours"]
    assert relay.count("Target.activateTarget") == 1


# Given away


async def test_adopt(server: Server, person: Person, pages: Pages, relay: Relay) -> None:
    """A person gives a page away by its target id: it is a tab then, neither loaded nor raised (O-33, O-82)."""
    target_id = await person.open_loaded(pages.at("/page?title=mine"))
    behind = await person.open_loaded(pages.at("/page?title=other"))
    await person.raise_page(behind)
    session = await person.attach(target_id)
    await person.evaluate(session, "window.kept = 1")
    hits = pages.hits["/page"]
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=Duration(seconds=1)))) as watch:
        tab = await adopted(server, target_id=target_id, group="g", labels={"a": "b"})
        await watch.passed(tab.revision)
        assert [(event.tab.state, event.tab.origin) for event in watch.events if event.tab.name == tab.name] == [
            (Tab.STATE_READY, Tab.ORIGIN_ADOPTED)
        ]
    assert (tab.owner, tab.target_id, tab.generation, tab.opener) == ("local", target_id, 1, "")
    assert (tab.uri, tab.title) == (pages.at("/page?title=mine"), "mine")
    assert (tab.group, dict(tab.labels), tab.pinned) == ("g", {"a": "b"}, False)
    assert await person.evaluate(session, "window.kept") == 1
    assert (pages.hits["/page"], await person.front()) == (hits, ["other"])
    assert (relay.count("Page.navigate"), relay.count("Page.reload"), relay.count("Target.activateTarget")) == (0, 0, 0)
    counts = (await server.browser()).tab_counts
    assert (counts.adopted_count, counts.managed_count, counts.foreign_count) == (1, 0, 1)
    # Again, by id and as another owner: the same tab, unchanged.
    assert await adopted(server, target_id=target_id, group="other") == tab
    request = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=driven"))
    assert (await server.tabs.NavigateTab(request, timeout=LIMIT)).tab.uri == pages.at("/page?title=driven")
    closed = await server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)
    assert closed.tab.close_cause == Tab.CLOSE_CAUSE_CLIENT
    assert set(await person.pages()) == {behind}


async def test_adopt_at_once(server: Server, person: Person, pages: Pages) -> None:
    """Several who adopt one page at once get one tab (O-33)."""
    target_id = await person.open_loaded(pages.at("/page?title=mine"))
    tabs = await asyncio.gather(*(adopted(server, target_id=target_id) for _ in range(4)))
    assert {tab.name for tab in tabs} == {tabs[0].name}
    assert [tab.name for tab in await server.list_tabs()] == [tabs[0].name]


async def test_adopt_ours(server: Server, pages: Pages) -> None:
    """A target of ours is answered with its tab, unchanged, whoever owns it (O-33, TAB-25)."""
    tab = await opened(server, pages.at("/page?title=ours"), activate=True)
    seen = await got(server, tab)
    for fields in ({"target_id": tab.target_id}, {"front": True}):
        assert await adopted(server, group="x", **fields) == seen


async def test_adopt_front(server: Server, person: Person, pages: Pages) -> None:
    """The page in front is adopted where it is certain; with two windows it is not, and nothing is (O-33, TAB-25).

    That another page has its address and title does not matter.
    """
    await person.open_loaded(pages.at("/page?title=twin"))
    target_id = await person.open_loaded(pages.at("/page?title=twin"))
    await person.raise_page(target_id)
    tab = await adopted(server, front=True)
    assert (tab.target_id, tab.origin) == (target_id, Tab.ORIGIN_ADOPTED)
    await person.call("Target.createTarget", url=pages.at("/page?title=second"), newWindow=True)
    refused = await refusal(adopted(server, front=True))
    assert (refused.reason, refused.metadata) == ("NO_FRONT_TAB", {"browser": "browsers/main"})
    assert [tab.name for tab in await server.list_tabs()] == [tab.name]


async def test_adopt_refused(server: Server, person: Person, relay: Relay) -> None:
    """What is no page is TARGET_NOT_FOUND, a page of the browser URI_NOT_ALLOWED without its address (O-33, SEC-04).

    Neither gets a command.
    """
    unknown = await refusal(adopted(server, target_id="0" * 32))
    assert (unknown.reason, unknown.metadata) == (
        "TARGET_NOT_FOUND",
        {"browser": "browsers/main", "target_id": "0" * 32},
    )
    target_id = await person.open("chrome://version/?private")
    await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 1)
    await person.raise_page(target_id)
    for fields in ({"target_id": target_id}, {"front": True}):
        refused = await refusal(adopted(server, **fields))
        assert refused.reason == "URI_NOT_ALLOWED"
        assert "private" not in str(refused) + str(dict(refused.metadata))
    assert relay.methods_to(target_id) == []
    assert await foreign(server) == [target_id]


@pytest.mark.parametrize("kind", ["hung", "dialog"])
async def test_adopt_unresponsive(server: Server, person: Person, pages: Pages, kind: str) -> None:
    """A page that does not answer in time is TAB_UNRESPONSIVE, and foreign as before, with nothing attached (O-33)."""
    target_id = await (hung(person, pages.at("/page")) if kind == "hung" else with_dialog(person, pages.at("/alerts")))
    refused = await refusal(adopted(server, target_id=target_id))
    assert refused.reason == "TAB_UNRESPONSIVE"
    assert await foreign(server) == [target_id]
    assert await server.list_tabs() == []
    if kind == "hung":
        assert not (await person.pages())[target_id]["attached"]


async def test_adopted_opens(server: Server, person: Person, pages: Pages) -> None:
    """What the page of an adopted tab opens is foreign (O-101)."""
    tab = await adopted(server, target_id=await person.open_loaded(pages.at("/page?title=mine")))
    session = await person.attach(tab.target_id)
    await person.call("Runtime.evaluate", session, expression="window.open('/page?title=theirs')", userGesture=True)
    await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 1)
    assert [other.name for other in await server.list_tabs()] == [tab.name]


async def test_adopted_survives(server: Server, person: Person, pages: Pages) -> None:
    """An adopted tab is bound again after a restart, and stays when its server goes (O-34, O-82, O-129)."""
    target_id = await person.open_loaded(pages.at("/page?title=mine"))
    tab = await adopted(server, target_id=target_id)
    await server.kill()
    await server.start()
    again = await got(server, tab)
    assert (again.state, again.origin, again.target_id) == (Tab.STATE_READY, Tab.ORIGIN_ADOPTED, target_id)
    request = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=driven"))
    assert (await server.tabs.NavigateTab(request, timeout=LIMIT)).tab.target_id == target_id


# Two servers


async def test_two_servers(
    server: Server, playground: PlaygroundProcess, chromium: RunningChromium, person: Person, pages: Pages
) -> None:
    """On one ATTACHED browser the tabs of each of two servers are foreign to the other, and stay so (O-130)."""
    with fresh_profile() as directory:
        (directory / "tabmuxd.toml").write_text(f'[browsers.main]\naddress = "{chromium.uri}"\n')
        async with serving(directory, playground.port) as second:
            one = await opened(server, pages.at("/page?title=one"))
            two = await opened(second, pages.at("/page?title=two"))
            blank = await opened(second)
            await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 2)
            assert await foreign(server) == sorted([two.target_id, blank.target_id])
            assert await foreign(second) == [one.target_id]
            await second.tabs.CloseTabs(CloseTabsRequest(all=True, any_owner=True), timeout=LIMIT)
            assert set(await person.pages()) == {one.target_id}
            left = await opened(second, pages.at("/page?title=two"))
            await server.kill()
            await server.start()
            assert (await got(server, one)).state == Tab.STATE_READY
            assert set(await person.pages()) == {one.target_id, left.target_id}
