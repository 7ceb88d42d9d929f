"""NavigateTab over a real server and a real browser: every outcome, dialogs, and what an error says of the page."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.event_pb2 import Event
from tabmux.v1.tab_pb2 import Dialog, Tab
from tabmux.v1.tab_service_pb2 import (
    CloseTabRequest,
    CreateTabRequest,
    LoadMilestone,
    NavigateTabRequest,
    NavigateTabResponse,
    Navigation,
    UpdateTabRequest,
    WatchTabsRequest,
)

from tests.e2e.driving import got, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person
from tests.e2e.refusals import advice, reason, refusal
from tests.e2e.serving import LIMIT, Server
from tests.e2e.watching import Watching, watching

LOADED = LoadMilestone.LOAD_MILESTONE_LOADED
PARSED = LoadMilestone.LOAD_MILESTONE_DOM_CONTENT_LOADED
COMMITTED = LoadMilestone.LOAD_MILESTONE_COMMITTED
QUICK = Duration(seconds=1)

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


async def went(server: Server, tab: Tab, uri: str, **fields: Fields) -> NavigateTabResponse:
    """What NavigateTab answers."""
    request = NavigateTabRequest(name=tab.name, uri=uri, **fields)
    return await server.tabs.NavigateTab(request, timeout=2 * LIMIT)


def watch_of(server: Server, tab: Tab) -> AbstractAsyncContextManager[Watching]:
    """A watch of this tab."""
    return watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[tab.name], bookmark_interval=QUICK)))


def has_dialog(event: Event) -> bool:
    """Whether the tab that is shown has a dialog."""
    return event.tab.HasField("dialog")


@pytest.mark.parametrize(
    ("path", "until", "navigation"),
    [
        ("/page", LOADED, Navigation(outcome=Navigation.OUTCOME_REACHED, reached=LOADED, http_status=200)),
        ("/404", LOADED, Navigation(outcome=Navigation.OUTCOME_REACHED, reached=LOADED, http_status=404)),
        ("/500", LOADED, Navigation(outcome=Navigation.OUTCOME_REACHED, reached=LOADED, http_status=500)),
        ("/never-loaded", PARSED, Navigation(outcome=Navigation.OUTCOME_REACHED, reached=PARSED, http_status=200)),
        ("/never-loaded", LOADED, Navigation(outcome=Navigation.OUTCOME_LOADING, reached=PARSED, http_status=200)),
        ("/never-parsed", PARSED, Navigation(outcome=Navigation.OUTCOME_LOADING, reached=COMMITTED, http_status=200)),
    ],
)
async def test_reached(
    server: Server, pages: Pages, path: str, until: LoadMilestone.ValueType, navigation: Navigation
) -> None:
    """The answer tells how far the new document came, and its HTTP status; an error page was reached (O-80, PAG-08)."""
    tab = await opened(server)
    answer = await went(server, tab, pages.at(path), until=until, milestone_timeout=Duration(seconds=2))
    assert answer.navigation == navigation
    assert (answer.tab.name, answer.tab.uri) == (tab.name, pages.at(path))


async def test_redirects(server: Server, pages: Pages) -> None:
    """`uri` is where redirects led, over another host too; the tab keeps its target and its generation (O-80)."""
    tab = await opened(server)
    there = pages.at("/page?title=there", "localhost")
    answer = await went(server, tab, pages.at(f"/redirect?to=/redirect%3Fto%3D{there.replace('?', '%253F')}"))
    assert answer.navigation.outcome == Navigation.OUTCOME_REACHED
    assert (answer.tab.uri, answer.tab.generation) == (there, 1)
    assert (await server.page_targets())[answer.tab.target_id] == there


async def test_title(server: Server, pages: Pages) -> None:
    """The title of the tab is that of the document, not its address (O-84)."""
    tab = await opened(server)
    async with watch_of(server, tab) as watch:
        await went(server, tab, pages.at("/page?title=Hello"))
        await watch.until(lambda event: event.tab.title == "Hello")


async def test_unconfirmed(server: Server, pages: Pages) -> None:
    """Without any answer in time the outcome is UNCONFIRMED; the tab tells what it shows and serves on (O-80, O-83)."""
    tab = await opened(server, pages.at("/page"))
    answer = await went(server, tab, pages.at("/never"), milestone_timeout=Duration(seconds=1))
    assert answer.navigation == Navigation(outcome=Navigation.OUTCOME_UNCONFIRMED)
    assert answer.tab.uri == pages.at("/page")
    assert (await went(server, tab, pages.at("/page?title=next"))).navigation.outcome == Navigation.OUTCOME_REACHED


async def test_same_document(server: Server, pages: Pages) -> None:
    """A change of the fragment loads nothing, and the address has it (O-80, O-84)."""
    tab = await opened(server, pages.at("/page"))
    hits = pages.hits["/page"]
    answer = await went(server, tab, pages.at("/page#part"))
    assert answer.navigation.outcome == Navigation.OUTCOME_SAME_DOCUMENT
    assert answer.navigation.reached == LoadMilestone.LOAD_MILESTONE_UNSPECIFIED
    assert answer.tab.uri == pages.at("/page#part")
    assert pages.hits["/page"] == hits


async def test_push_state(server: Server, person: Person, pages: Pages) -> None:
    """An address that the page makes by itself is recorded, and stays when another step does not leave it (O-84)."""
    tab = await opened(server, pages.at("/page"))
    session = await person.attach(tab.target_id)
    async with watch_of(server, tab) as watch:
        await person.evaluate(session, "history.pushState(null, '', '/pushed')")
        await watch.until(lambda event: event.tab.uri == pages.at("/pushed"))
    answer = await went(server, tab, pages.at("/204"))
    assert answer.navigation == Navigation(outcome=Navigation.OUTCOME_NO_DOCUMENT)
    assert answer.tab.uri == pages.at("/pushed")


@pytest.mark.parametrize("path", ["/204", "/download"])
async def test_no_document(server: Server, pages: Pages, path: str) -> None:
    """An address without a document leaves the tab at what it showed, without a status of another answer (O-80)."""
    tab = await opened(server, pages.at("/page"))
    answer = await went(server, tab, pages.at(path))
    assert answer.navigation == Navigation(outcome=Navigation.OUTCOME_NO_DOCUMENT)
    assert answer.tab.uri == pages.at("/page")


async def test_no_document_twice(server: Server, pages: Pages) -> None:
    """A tab that never had a document of its own stays at about:blank, and shows no marker (O-19, O-84)."""
    tab = await opened(server, pages.at("/204"))
    for _ in range(2):
        answer = await went(server, tab, pages.at("/204"))
        assert answer.tab.uri == "about:blank"


async def test_superseded(server: Server, person: Person, pages: Pages) -> None:
    """A person who goes elsewhere meanwhile supersedes the navigation, and `uri` says where (O-80)."""
    tab = await opened(server, pages.at("/page"))
    session = await person.attach(tab.target_id)
    async with watch_of(server, tab) as watch:
        going = asyncio.ensure_future(went(server, tab, pages.at("/never-loaded")))
        await watch.until(lambda event: event.tab.uri == pages.at("/never-loaded"))
        await person.call("Page.navigate", session, url=pages.at("/page?title=person"))
        answer = await going
    assert answer.navigation.outcome == Navigation.OUTCOME_SUPERSEDED
    assert answer.navigation.http_status == 0
    assert answer.tab.uri == pages.at("/page?title=person")


async def test_superseded_by_page(server: Server, pages: Pages) -> None:
    """A page that replaces itself supersedes the navigation (O-80)."""
    tab = await opened(server)
    answer = await went(server, tab, pages.at("/replaces-itself"), until=LOADED, milestone_timeout=Duration(seconds=10))
    assert answer.navigation.outcome == Navigation.OUTCOME_SUPERSEDED
    assert answer.tab.uri == pages.at("/never-loaded")


async def test_meta_refresh(server: Server, pages: Pages) -> None:
    """Where a page goes by itself is recorded from the tab's own target (O-84, O-144)."""
    tab = await opened(server)
    async with watch_of(server, tab) as watch:
        await went(server, tab, pages.at("/meta-refresh"), until=COMMITTED)
        await watch.until(lambda event: event.tab.uri == pages.at("/page?title=moved"))


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1/x?token=hidden", "http://nowhere.invalid/"])
async def test_failed(server: Server, uri: str) -> None:
    """A navigation that surely failed is NAVIGATION_FAILED with `net_error`; the tab lives on (O-72, O-80, O-81)."""
    tab = await opened(server)
    refused = await refusal(went(server, tab, uri))
    assert advice(refused) in {
        ("NAVIGATION_FAILED", "yes", "after-verify"),
        ("NAVIGATION_FAILED", "no", "after-verify"),
    }
    assert refused.metadata["net_error"] in {
        "net::ERR_UNSAFE_PORT",
        "net::ERR_NAME_NOT_RESOLVED",
        "net::ERR_CONNECTION_REFUSED",
    }
    assert "hidden" not in str(refused) + str(refused.metadata)
    assert (await got(server, tab)).state == Tab.STATE_READY
    assert (await went(server, tab, "about:blank")).navigation.outcome == Navigation.OUTCOME_REACHED


@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)", "JavaScript:alert(1)", "file:///etc/passwd", "chrome://version", "devtools://devtools",
        "view-source:http://127.0.0.1/", "about:settings", "blob:http://127.0.0.1/1", "ftp://127.0.0.1/",
        "//127.0.0.1/", "127.0.0.1", " http://127.0.0.1/", "http://127.0.0.1/\n", "java\tscript:alert(1)", "http://",
        "http:\\\\127.0.0.1", "http://[::1", "http://127.0.0.1:99999/", "about:blank#tabmux-0000000000-0",
    ],
)  # fmt: skip
async def test_not_allowed(server: Server, uri: str) -> None:
    """Only http, https, data and about:blank may be gone to; all else is refused before the page (SEC-04)."""
    tab = await opened(server)
    assert advice(await refusal(went(server, tab, uri))) == ("URI_NOT_ALLOWED", "no", "never")
    assert await reason(server.tabs.CreateTab(CreateTabRequest(uri=uri), timeout=LIMIT)) == "URI_NOT_ALLOWED"
    assert len(await server.page_targets()) == 1


async def test_replaced(server: Server, pages: Pages) -> None:
    """Another generation than expected is TAB_REPLACED with both, and nothing is done (O-85, TAB-20)."""
    tab = await opened(server, pages.at("/page"))
    refused = await refusal(went(server, tab, pages.at("/404"), expected_generation=2))
    assert advice(refused) == ("TAB_REPLACED", "no", "after-verify")
    assert (refused.metadata["expected_generation"], refused.metadata["generation"]) == ("2", "1")
    assert (await server.page_targets())[tab.target_id] == pages.at("/page")
    assert (await went(server, tab, pages.at("/404"), expected_generation=1)).navigation.http_status == 404


async def test_in_order(server: Server, pages: Pages) -> None:
    """Steps on one tab are done in order of arrival, one after another; another tab's do not wait (O-53, O-54)."""
    tab, other = await opened(server), await opened(server)
    async with watch_of(server, tab) as watch:
        slow = asyncio.ensure_future(
            went(server, tab, pages.at("/never-loaded"), milestone_timeout=Duration(seconds=6))
        )
        await watch.until(lambda event: event.tab.uri == pages.at("/never-loaded"))
        behind = asyncio.ensure_future(went(server, tab, pages.at("/page?title=behind")))
        assert (await went(server, other, pages.at("/page"))).navigation.outcome == Navigation.OUTCOME_REACHED
        assert (await got(server, tab)).uri == pages.at("/never-loaded")
        assert not slow.done()
        assert not behind.done()
        assert (await slow).navigation.outcome == Navigation.OUTCOME_LOADING
        assert (await behind).tab.uri == pages.at("/page?title=behind")


async def test_line_full(server: Server, pages: Pages) -> None:
    """Sixteen calls may wait for a tab; the next is CALL_CAPACITY at once, and safe to repeat (O-55, O-61, O-72)."""
    tab = await opened(server)
    async with watch_of(server, tab) as watch:
        first = asyncio.ensure_future(went(server, tab, pages.at("/never-loaded")))
        await watch.until(lambda event: event.tab.uri == pages.at("/never-loaded"))
        waiting = [asyncio.ensure_future(refusal(went(server, tab, pages.at("/page")))) for _ in range(20)]
        async with asyncio.timeout(LIMIT):
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        refused = {advice(task.result()) for task in done}
        assert refused == {("CALL_CAPACITY", "no", "safe")}
        closed = (await server.tabs.CloseTab(CloseTabRequest(name=tab.name, force=True), timeout=LIMIT)).tab
        assert closed.state == Tab.STATE_CLOSED
        reasons = [refused.reason for refused in await asyncio.gather(*waiting)]
        assert sorted(reasons) == ["CALL_CAPACITY"] * 4 + ["TAB_CLOSED"] * 16
        assert (await refusal(first)).reason == "OUTCOME_UNKNOWN"


async def test_busy_page(server: Server, pages: Pages) -> None:
    """A page that is busy for ever holds up nothing but itself, and closes when asked (CON-04, O-55, O-113)."""
    tab, other = await opened(server, pages.at("/busy")), await opened(server)
    stuck = asyncio.ensure_future(went(server, tab, pages.at("/page"), milestone_timeout=Duration(seconds=5)))
    assert (await went(server, other, pages.at("/page"))).navigation.outcome == Navigation.OUTCOME_REACHED
    assert (await got(server, tab)).state == Tab.STATE_READY
    await asyncio.wait({stuck})
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)).tab
    assert closed.state == Tab.STATE_CLOSED
    if (error := stuck.exception()) is not None:
        assert await reason(asyncio.shield(stuck)) in {"TAB_UNRESPONSIVE", "OUTCOME_UNKNOWN"}, error


# Dialogs


@pytest.mark.parametrize("kind", ["alert", "confirm", "prompt"])
async def test_dialog_reported(server: Server, pages: Pages, kind: str) -> None:
    """Under REPORT a dialog is in an event with its text; steps are DIALOG_OPEN, other tabs go on (O-104, PAG-02)."""
    tab, other = await opened(server), await opened(server)
    async with watch_of(server, tab) as watch:
        answer = await went(server, tab, pages.at(f"/alerts?kind={kind}&text=hello"))
        assert answer.navigation.outcome == Navigation.OUTCOME_LOADING
        event = await watch.until(has_dialog)
        assert (event.tab.dialog.kind, event.tab.dialog.message) == (
            Dialog.Kind.Value(f"KIND_{kind.upper()}"),
            "say hello",
        )
    assert advice(await refusal(went(server, tab, pages.at("/page")))) == ("DIALOG_OPEN", "no", "after-verify")
    assert (await went(server, other, pages.at("/page"))).navigation.outcome == Navigation.OUTCOME_REACHED
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)).tab
    assert closed.state == Tab.STATE_CLOSED
    assert not closed.HasField("dialog")


async def test_dialog_answered_by_person(server: Server, person: Person, pages: Pages) -> None:
    """A dialog that a person answers is gone from the tab, which goes on (O-106, B-6)."""
    tab = await opened(server)
    session = await person.attach(tab.target_id)
    await person.call("Page.enable", session)
    async with watch_of(server, tab) as watch:
        await went(server, tab, pages.at("/alerts"))
        shown = await watch.until(has_dialog)
        await person.call("Page.handleJavaScriptDialog", session, accept=True)
        await watch.until(lambda event: event.revision > shown.revision and not has_dialog(event))
    assert (await went(server, tab, pages.at("/page"))).navigation.outcome == Navigation.OUTCOME_REACHED


@pytest.mark.parametrize("policy", [Tab.DIALOG_POLICY_ACCEPT, Tab.DIALOG_POLICY_DISMISS])
@pytest.mark.parametrize("kind", ["alert", "confirm", "prompt"])
async def test_dialog_by_policy(server: Server, pages: Pages, policy: Tab.DialogPolicy.ValueType, kind: str) -> None:
    """Under ACCEPT and DISMISS a dialog is answered at once, and the step that raised it goes on (O-105)."""
    tab = await opened(server, dialog_policy=policy)
    answer = await went(server, tab, pages.at(f"/alerts?kind={kind}"))
    assert (answer.navigation.outcome, answer.navigation.reached) == (Navigation.OUTCOME_REACHED, LOADED)
    assert not answer.tab.HasField("dialog")
    created = await server.tabs.CreateTab(
        CreateTabRequest(uri=pages.at(f"/alerts?kind={kind}"), dialog_policy=policy), timeout=LIMIT
    )
    assert (created.navigation.outcome, created.navigation.reached) == (Navigation.OUTCOME_REACHED, LOADED)


async def test_dialog_at_creation(server: Server, pages: Pages) -> None:
    """A tab whose first script opens a dialog is there, LOADING, and its watchers see the dialog (O-103, O-104)."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=QUICK))) as watch:
        answer = await server.tabs.CreateTab(CreateTabRequest(uri=pages.at("/alerts")), timeout=LIMIT)
        assert (answer.tab.state, answer.navigation.outcome) == (Tab.STATE_READY, Navigation.OUTCOME_LOADING)
        await watch.until(has_dialog)
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=answer.tab.name), timeout=LIMIT)).tab
    assert closed.state == Tab.STATE_CLOSED


async def test_prompt_accepted(server: Server, pages: Pages) -> None:
    """Under ACCEPT a prompt is accepted with its default text (O-105)."""
    tab = await opened(server, dialog_policy=Tab.DIALOG_POLICY_ACCEPT)
    async with watch_of(server, tab) as watch:
        await went(server, tab, pages.at("/asks-for-text"))
        await watch.until(lambda event: event.tab.title == "answer: default text")


async def asks(server: Server, person: Person, pages: Pages, **fields: Fields) -> Tab:
    """A tab that asks before it is left, since a person has touched it."""
    tab = await opened(server, pages.at("/asks-before-it-is-left"), **fields)
    await person.touch(await person.attach(tab.target_id))
    return tab


async def test_before_unload_reported(server: Server, person: Person, pages: Pages) -> None:
    """Under REPORT a page that asks before it is left is DIALOG_OPEN, untouched; CloseTab closes it (O-107, PAG-09)."""
    tab = await asks(server, person, pages)
    async with watch_of(server, tab) as watch:
        refused = await refusal(went(server, tab, pages.at("/page")))
        assert advice(refused) == ("DIALOG_OPEN", "no", "after-verify")
        assert refused.metadata["kind"] in {"BEFORE_UNLOAD", "KIND_BEFORE_UNLOAD"}
        event = await watch.until(has_dialog)
        assert event.tab.dialog.kind == Dialog.KIND_BEFORE_UNLOAD
    assert (await got(server, tab)).uri == pages.at("/asks-before-it-is-left")
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)).tab
    assert closed.state == Tab.STATE_CLOSED


async def test_before_unload_accepted(server: Server, person: Person, pages: Pages) -> None:
    """Under ACCEPT the navigation goes on past a page that asks before it is left (O-105, O-107)."""
    tab = await asks(server, person, pages, dialog_policy=Tab.DIALOG_POLICY_ACCEPT)
    answer = await went(server, tab, pages.at("/page"))
    assert (answer.navigation.outcome, answer.tab.uri) == (Navigation.OUTCOME_REACHED, pages.at("/page"))


async def test_before_unload_refused(server: Server, person: Person, pages: Pages) -> None:
    """Under DISMISS the tab stays where it is, and the outcome says so (O-105, O-107, B-7)."""
    tab = await asks(server, person, pages, dialog_policy=Tab.DIALOG_POLICY_DISMISS)
    answer = await went(server, tab, pages.at("/page"))
    assert answer.navigation == Navigation(outcome=Navigation.OUTCOME_NO_DOCUMENT)
    assert answer.tab.uri == pages.at("/asks-before-it-is-left")


async def test_policy_changed(server: Server, pages: Pages) -> None:
    """A policy that is set later holds for the next dialog (O-105)."""
    tab = await opened(server)
    update = UpdateTabRequest(name=tab.name, dialog_policy=Tab.DIALOG_POLICY_ACCEPT)
    await server.tabs.UpdateTab(update, timeout=LIMIT)
    assert (await went(server, tab, pages.at("/alerts"))).navigation.outcome == Navigation.OUTCOME_REACHED
