"""Tabs over a real server and a real browser: opened, listed, closed, lost and crashed."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, TypeAlias

import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.statuses import error_of_call
from tabmux.v1.event_pb2 import ChangeCause, EventKind
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    ActivateTabRequest,
    CloseTabRequest,
    CreateTabRequest,
    GetTabRequest,
    ListTabsRequest,
    LoadMilestone,
    NavigateTabRequest,
    Navigation,
    UpdateTabRequest,
    WatchTabsRequest,
)

from tests.cdp.browsers import fresh_profile, running_chromium
from tests.e2e.driving import closed, got, of, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.refusals import advice, reason, refusal
from tests.e2e.serving import BROWSER, LIMIT, PlaygroundProcess, Server, serving
from tests.e2e.watching import watching

QUICK = Duration(seconds=1)

PARSED = LoadMilestone.LOAD_MILESTONE_DOM_CONTENT_LOADED
Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


# Opening


@pytest.mark.parametrize(
    ("path", "until", "reached"),
    [
        ("/never-parsed", "COMMITTED", "COMMITTED"),
        ("/never-loaded", "DOM_CONTENT_LOADED", "DOM_CONTENT_LOADED"),
        ("/page", "LOADED", "LOADED"),
        ("/page", "UNSPECIFIED", "LOADED"),
    ],
)
async def test_create_until(server: Server, pages: Pages, path: str, until: str, reached: str) -> None:
    """CreateTab answers at the milestone asked for, though the later ones are never reached (PAG-07)."""
    milestone = LoadMilestone.Value(f"LOAD_MILESTONE_{until}")
    answer = await server.tabs.CreateTab(CreateTabRequest(uri=pages.at(path), until=milestone), timeout=LIMIT)
    assert answer.tab.state == Tab.STATE_READY
    assert answer.tab.uri == pages.at(path)
    assert answer.navigation.outcome == Navigation.OUTCOME_REACHED
    assert answer.navigation.reached >= LoadMilestone.Value(f"LOAD_MILESTONE_{reached}")


async def test_create_blank(server: Server) -> None:
    """A tab without an address is a READY page at about:blank, and stays it; nothing was navigated (O-96)."""
    answer = await server.tabs.CreateTab(CreateTabRequest(), timeout=LIMIT)
    assert (answer.tab.state, answer.tab.uri) == (Tab.STATE_READY, "about:blank")
    assert not answer.HasField("navigation")
    assert (await server.page_targets())[answer.tab.target_id] == "about:blank"


async def test_create_owner(server: Server, pages: Pages) -> None:
    """The answer tells owner, origin, generation, group, labels, pin and policy as they were asked for (O-1)."""
    tab = await opened(
        server, pages.at("/page"), group="g", labels={"a": "b"}, pinned=True, dialog_policy=Tab.DIALOG_POLICY_DISMISS
    )
    assert (tab.owner, tab.origin, tab.generation) == ("local", Tab.ORIGIN_MANAGED, 1)
    assert (tab.group, dict(tab.labels), tab.pinned) == ("g", {"a": "b"}, True)
    assert tab.dialog_policy == Tab.DIALOG_POLICY_DISMISS
    now = await got(server, tab)
    assert (now.name, now.owner, now.group, now.pinned) == (tab.name, tab.owner, tab.group, tab.pinned)
    assert now.revision >= tab.revision


@pytest.mark.parametrize("uri", ["http://127.0.0.1:1/", "http://nowhere.invalid/"])
async def test_create_failed(server: Server, uri: str) -> None:
    """An address that surely fails is NAVIGATION_FAILED, and no tab, target or count is left (O-20, TAB-15)."""
    before = (await server.page_targets(), (await server.browser()).tab_counts)
    refused = await refusal(server.tabs.CreateTab(CreateTabRequest(uri=uri), timeout=LIMIT))
    assert refused.reason == "NAVIGATION_FAILED"
    assert refused.metadata["net_error"].startswith("net::ERR_")
    assert refused.metadata["retry"] == "after-verify"
    assert (await server.page_targets(), (await server.browser()).tab_counts) == before
    assert not (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs


async def test_create_failed_again(server: Server, pages: Pages) -> None:
    """A request id whose tab failed to open may be used again, and then opens one (O-20, O-21)."""
    request_id = str(uuid.uuid4())
    request = CreateTabRequest(uri=pages.at("/empty"), request_id=request_id)
    assert await reason(server.tabs.CreateTab(request, timeout=LIMIT)) == "NAVIGATION_FAILED"
    assert await reason(server.tabs.CreateTab(request, timeout=LIMIT)) == "NAVIGATION_FAILED"
    assert pages.hits["/empty"] >= 2


@pytest.mark.parametrize(
    ("path", "outcome"),
    [("/204", Navigation.OUTCOME_NO_DOCUMENT), ("/download", Navigation.OUTCOME_NO_DOCUMENT)],
)
async def test_create_without_document(server: Server, pages: Pages, path: str, outcome: int) -> None:
    """An address without a document leaves a READY tab that tells what it really shows: about:blank (O-20, O-84)."""
    answer = await server.tabs.CreateTab(CreateTabRequest(uri=pages.at(path)), timeout=LIMIT)
    assert (answer.tab.state, answer.navigation.outcome) == (Tab.STATE_READY, outcome)
    assert answer.tab.uri == "about:blank"
    assert answer.navigation.http_status == 0


async def test_create_unconfirmed(server: Server, pages: Pages) -> None:
    """An address that does not answer in time leaves a READY tab, UNCONFIRMED, at about:blank (O-20, O-84)."""
    request = CreateTabRequest(uri=pages.at("/never"), milestone_timeout=Duration(seconds=1))
    answer = await server.tabs.CreateTab(request, timeout=LIMIT)
    assert (answer.tab.state, answer.navigation.outcome) == (Tab.STATE_READY, Navigation.OUTCOME_UNCONFIRMED)
    assert answer.tab.uri == "about:blank"


async def test_create_twice_at_once(server: Server, pages: Pages) -> None:
    """Two CreateTab at once under one request id, and a later one, name one tab; another id makes another (O-21)."""
    request = CreateTabRequest(uri=pages.at("/page"), request_id=str(uuid.uuid4()))
    first, second = await asyncio.gather(*(server.tabs.CreateTab(request, timeout=LIMIT) for _ in range(2)))
    later = await server.tabs.CreateTab(request, timeout=LIMIT)
    assert {first.tab.name, second.tab.name, later.tab.name} == {first.tab.name}
    other = CreateTabRequest(uri=pages.at("/page?title=other"), request_id=request.request_id)
    assert await reason(server.tabs.CreateTab(other, timeout=LIMIT)) == "REQUEST_ID_REUSED"
    assert len((await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs) == 1


async def test_create_many_at_once(server: Server, pages: Pages) -> None:
    """Twelve CreateTab at once give twelve READY tabs, each recorded once and at its own address (TAB-13, O-18)."""
    uris = [pages.at(f"/page?title=t{number}") for number in range(12)]
    tabs = await asyncio.gather(*(opened(server, uri) for uri in uris))
    assert [tab.uri for tab in tabs] == uris
    listed = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs
    assert {tab.name for tab in listed} == {tab.name for tab in tabs}
    targets = await server.page_targets()
    assert {tab.target_id: tab.uri for tab in tabs}.items() <= targets.items()
    assert all(tab.create_time.ToDatetime() <= tab.update_time.ToDatetime() for tab in tabs)


# Reading


async def test_list_filters(server: Server) -> None:
    """ListTabs gives the tabs that match every field that is set, oldest first."""
    one = await opened(server, group="a", labels={"k": "1"})
    two = await opened(server, group="b", labels={"k": "1", "l": "2"})
    gone = await closed(server, await opened(server, group="a"))

    async def names(**fields: Fields) -> list[str]:
        listed = await server.tabs.ListTabs(ListTabsRequest(**fields), timeout=LIMIT)
        return [tab.name for tab in listed.tabs]

    assert await names() == [one.name, two.name]
    assert await names(parent="browsers/-") == [one.name, two.name]
    assert await names(groups=["a"]) == [one.name]
    assert await names(groups=["a", "b"], labels={"k": "1"}) == [one.name, two.name]
    assert await names(labels={"k": "1", "l": "2"}) == [two.name]
    assert (await names(states=[Tab.STATE_CLOSED], groups=["a"]))[-1:] == [gone.name]
    assert await names(origins=[Tab.ORIGIN_POPUP]) == []
    unknown = server.tabs.ListTabs(ListTabsRequest(parent="browsers/unknown"), timeout=LIMIT)
    assert await reason(unknown) == "BROWSER_NOT_FOUND"


async def test_list_pages(server: Server) -> None:
    """Pages hold every tab once, in order, also while others close; a token fits its own request only (STO-08)."""
    tabs = [await opened(server) for _ in range(5)]
    seen: list[str] = []
    token = ""
    while True:
        page = await server.tabs.ListTabs(ListTabsRequest(page_size=2, page_token=token), timeout=LIMIT)
        seen += [tab.name for tab in page.tabs]
        if len(seen) == 2:
            await closed(server, tabs[0])
        token = page.next_page_token
        if not token:
            break
        other = server.tabs.ListTabs(ListTabsRequest(page_token=token, groups=["x"]), timeout=LIMIT)
        assert await reason(other) == "INVALID_FIELD"
    assert seen == [tab.name for tab in tabs]


async def test_list_foreign(server: Server, person: Person, pages: Pages) -> None:
    """A foreign page is listed only if asked for, as its target id and nothing else, and counted (O-31, TAB-04)."""
    target_id = await person.open(pages.at("/page?title=private"))
    try:
        ours = await opened(server)
        assert [tab.name for tab in (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs] == [ours.name]
        asked = ListTabsRequest(origins=[Tab.ORIGIN_FOREIGN])
        listed = (await server.tabs.ListTabs(asked, timeout=LIMIT)).tabs
        assert Tab(origin=Tab.ORIGIN_FOREIGN, target_id=target_id) in list(listed)
        assert all(tab == Tab(origin=Tab.ORIGIN_FOREIGN, target_id=tab.target_id) for tab in listed)
        assert (await server.browser()).tab_counts.foreign_count == len(listed)
    finally:
        await person.close(target_id)


# Closing


async def test_close(server: Server, pages: Pages) -> None:
    """A closed tab stays readable with time and cause, refuses steps, and closes again with success (O-36, O-122)."""
    tab = await opened(server, pages.at("/page"))
    gone = await closed(server, tab)
    assert (gone.state, gone.close_cause) == (Tab.STATE_CLOSED, Tab.CLOSE_CAUSE_CLIENT)
    assert gone.HasField("close_time")
    assert tab.target_id not in await server.page_targets()
    assert await closed(server, tab) == gone == await got(server, tab)
    step = server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=pages.at("/page")), timeout=LIMIT)
    assert advice(await refusal(step)) == ("TAB_CLOSED", "no", "never")
    assert (
        await reason(server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, group="g"), timeout=LIMIT)) == "TAB_CLOSED"
    )
    unknown = f"{BROWSER}/tabs/{'0' * 10}"
    assert await reason(server.tabs.GetTab(GetTabRequest(name=unknown), timeout=LIMIT)) == "TAB_NOT_FOUND"
    assert await reason(server.tabs.CloseTab(CloseTabRequest(name=unknown), timeout=LIMIT)) == "TAB_NOT_FOUND"


async def test_close_at_once(server: Server) -> None:
    """Several CloseTab at once, gentle and forced, all succeed, and one end is recorded (O-37, O-147)."""
    tab = await opened(server)
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[tab.name], bookmark_interval=QUICK))) as watch:
        answers = await asyncio.gather(*(closed(server, tab, force=number % 2 == 0) for number in range(6)))
        assert all(answer == answers[0] for answer in answers)
        await watch.passed(answers[0].revision)
        assert [event.kind for event in watch.events] == [EventKind.EVENT_KIND_ENDED]


async def test_close_pinned(server: Server) -> None:
    """A pinned tab closes only by force, or once it is unpinned (O-38, O-51, TAB-07)."""
    tab = await opened(server, pinned=True)
    assert await reason(server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)) == "TAB_PINNED"
    await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, pinned=False), timeout=LIMIT)
    assert (await closed(server, tab)).state == Tab.STATE_CLOSED
    forced = await opened(server, pinned=True)
    assert (await closed(server, forced, force=True)).state == Tab.STATE_CLOSED


async def test_close_last(server: Server) -> None:
    """Without any page left the browser lives on, and the next tab opens (O-40, TAB-17)."""
    await closed(server, await opened(server))
    assert await server.page_targets() == {}
    assert (await opened(server)).state == Tab.STATE_READY
    assert (await server.browser()).generation == 1


async def test_update(server: Server) -> None:
    """UpdateTab changes what it names, refuses a revision that has passed, and records nothing for nothing."""
    tab = await opened(server, labels={"a": "1", "b": "2"}, group="g")
    request = UpdateTabRequest(name=tab.name, expected_revision=tab.revision, labels={"a": "", "c": "3"}, group="")
    changed = (await server.tabs.UpdateTab(request, timeout=LIMIT)).tab
    assert (dict(changed.labels), changed.group) == ({"b": "2", "c": "3"}, "")
    refused = await refusal(server.tabs.UpdateTab(request, timeout=LIMIT))
    assert refused.reason == "REVISION_MISMATCH"
    assert refused.metadata["revision"] == str(changed.revision)
    same = UpdateTabRequest(name=tab.name, labels={"c": "3"})
    assert (await server.tabs.UpdateTab(same, timeout=LIMIT)).tab.revision == changed.revision
    assert await reason(server.tabs.UpdateTab(UpdateTabRequest(name=tab.name), timeout=LIMIT)) == "INVALID_FIELD"


# Endings from outside


async def test_closed_outside(server: Server, person: Person, pages: Pages) -> None:
    """A tab that a person closes is LOST without any call, the cause says so, and a call answers TAB_GONE.

    No target is made or touched in its place; a new tab works at once (O-24, O-25, O-26, O-144, TAB-03, TAB-06).
    """
    tab = await opened(server, pages.at("/page"))
    twin = await person.open(pages.at("/page"))
    try:
        async with watching(server.tabs.WatchTabs(WatchTabsRequest())) as watch:
            await person.close(tab.target_id)
            event = await watch.until(of(tab, Tab.STATE_LOST))
        assert event.cause == ChangeCause.CHANGE_CAUSE_PERSON
        targets = await server.page_targets()
        step = server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=pages.at("/page")), timeout=LIMIT)
        assert advice(await refusal(step)) == ("TAB_GONE", "no", "after-verify")
        assert await server.page_targets() == targets
        assert (await server.browser()).tab_counts.lost_count == 1
        assert (await opened(server, pages.at("/page"))).state == Tab.STATE_READY
        assert (await closed(server, tab)).state == Tab.STATE_CLOSED
    finally:
        await person.close(twin)


async def test_closes_itself(server: Server, pages: Pages) -> None:
    """A tab whose page closes itself is LOST, and watchers know (O-25, O-144)."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest())) as watch:
        tab = await opened(server, pages.at("/closes-itself"))
        await watch.until(of(tab, Tab.STATE_LOST))


async def test_crash(server: Server, person: Person, pages: Pages) -> None:
    """A renderer's crash is known from its event; calls answer TAB_GONE at once, and CloseTab works (O-109, CON-05)."""
    tab = await opened(server, pages.at("/page"))
    other = await opened(server, pages.at("/page"))
    async with watching(server.tabs.WatchTabs(WatchTabsRequest())) as watch:
        session = await person.attach(tab.target_id)
        await person.send("Page.crash", session)
        event = await watch.until(of(tab, Tab.STATE_CRASHED))
    assert event.cause == ChangeCause.CHANGE_CAUSE_CRASH
    step = server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=pages.at("/page")), timeout=LIMIT)
    refused = await refusal(step)
    assert (refused.reason, refused.metadata["state"]) == ("TAB_GONE", "CRASHED")
    assert (await got(server, other)).state == Tab.STATE_READY
    assert (await closed(server, tab)).state == Tab.STATE_CLOSED
    assert tab.target_id not in await server.page_targets()


async def test_crash_in_call(server: Server, person: Person, pages: Pages) -> None:
    """A navigation under way when the renderer crashes or the tab closes ends at once, as unknown (O-38, O-109)."""
    for end in ("crash", "close", "force"):
        tab = await opened(server, pages.at("/page"))
        session = await person.attach(tab.target_id)
        request = NavigateTabRequest(name=tab.name, uri=pages.at("/never-loaded"))
        async with watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[tab.name], bookmark_interval=QUICK))) as watch:
            step = asyncio.ensure_future(refusal(server.tabs.NavigateTab(request, timeout=2 * LIMIT)))
            await watch.until(lambda event: event.tab.title == "Waiting")
        match end:
            case "crash":
                await person.send("Page.crash", session)
            case "close":
                await person.close(tab.target_id)
            case _:
                await closed(server, tab, force=True)
        async with asyncio.timeout(LIMIT):
            refused = await step
        assert advice(refused) == ("OUTCOME_UNKNOWN", "unknown", "after-verify")
        assert refused.metadata["cause"] == ("tab_crashed" if end == "crash" else "tab_gone")


# In front


async def test_activate(server: Server, person: Person, pages: Pages) -> None:
    """ActivateTab and `activate` bring a tab to the front and tell what was seen there; nothing else does (TAB-19)."""
    first = await opened(server, pages.at("/page?title=first"), activate=True)
    assert first.front
    assert await person.front() == ["first"]
    second = await opened(server, pages.at("/page?title=second"))
    assert await person.front() == ["first"]
    raised = (await server.tabs.ActivateTab(ActivateTabRequest(name=second.name), timeout=LIMIT)).tab
    assert raised.front
    assert await person.front() == ["second"]
    assert not (await got(server, first)).front


async def test_foreign_untouched(server: Server, person: Person, pages: Pages) -> None:
    """A person's page in front stays there and as it is, whatever is done beside it; nobody attaches to it.

    O-27, O-31, O-32, O-35, O-40, TAB-04.
    """
    foreign = await person.open_loaded(pages.at("/page?title=mine"))
    try:
        before = await person.looks(foreign)
        await person.raise_page(foreign)
        await person.watch_attaches()
        person.attached.clear()
        tab = await opened(server, pages.at("/page?title=mine"))
        await server.tabs.NavigateTab(
            NavigateTabRequest(name=tab.name, uri=pages.at("/never-loaded"), until=PARSED), timeout=LIMIT
        )
        assert await reason(server.tabs.CreateTab(CreateTabRequest(uri="http://127.0.0.1:1/"), timeout=LIMIT))
        await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, pinned=True), timeout=LIMIT)
        await server.tabs.ListTabs(ListTabsRequest(origins=[Tab.ORIGIN_FOREIGN]), timeout=LIMIT)
        await closed(server, tab, force=True)
        assert await person.front() == ["mine"]
        assert foreign not in person.attached
        assert tab.target_id in person.attached
        assert await person.looks(foreign) == before
    finally:
        await person.close(foreign)


# What the page changes by itself


async def test_twins(server: Server, pages: Pages) -> None:
    """Of two tabs with equal address and title a step on one changes only that one (O-22, O-84, TAB-01)."""
    one, two = [await opened(server, pages.at("/page")) for _ in range(2)]
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[one.name], bookmark_interval=QUICK))) as watch:
        request = NavigateTabRequest(name=two.name, uri=pages.at("/page?title=other"))
        answer = await server.tabs.NavigateTab(request, timeout=LIMIT)
        assert (answer.tab.name, answer.tab.uri) == (two.name, pages.at("/page?title=other"))
        targets = await server.page_targets()
        assert (targets[one.target_id], targets[two.target_id]) == (pages.at("/page"), pages.at("/page?title=other"))
        await watch.passed(answer.tab.revision)
        # A look at the tab may be recorded.
        assert [event for event in watch.events if event.tab.uri != pages.at("/page")] == []
    assert (await got(server, one)).uri == pages.at("/page")


async def test_titles_merged(server: Server, pages: Pages) -> None:
    """A title that changes thirty times in a moment is recorded a few times, and the last one surely."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest())) as watch:
        tab = await opened(server, pages.at("/changes-title?count=30&every=5"))
        last = await watch.until(lambda event: event.tab.name == tab.name and event.tab.title == "30")
        shown = [event for event in watch.events if event.tab.name == tab.name and event.tab.state == Tab.STATE_READY]
    begin = shown[0].record_time.ToNanoseconds()
    quarters = (last.record_time.ToNanoseconds() - begin) // 250_000_000
    assert len(shown) <= quarters + 3
    assert last.cause == ChangeCause.CHANGE_CAUSE_PAGE


async def test_marker_is_never_shown(server: Server, person: Person, pages: Pages) -> None:
    """The marker that proves a target is ours stands in no event, list, page or history (O-19)."""
    request = WatchTabsRequest()
    request.start.snapshot.SetInParent()
    async with watching(server.tabs.WatchTabs(request)) as watch:
        tabs = [
            await opened(server),
            await opened(server, pages.at("/page")),
            await opened(server, pages.at("/204")),
            await opened(server, pages.at("/never"), milestone_timeout=Duration(seconds=1)),
        ]
        assert await reason(server.tabs.CreateTab(CreateTabRequest(uri=pages.at("/empty")), timeout=LIMIT))
        for tab in tabs:
            assert "tabmux-" not in str(await got(server, tab))
        progress = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).progress
        await watch.passed(progress.revision)
        assert "tabmux-" not in "".join(str(event) for event in watch.events)
    assert "tabmux-" not in server.log()
    assert (await person.looks(tabs[0].target_id)).history == 1
    assert (await person.looks(tabs[1].target_id)).history == 1


# Servers of their own


async def test_capacity(playground: PlaygroundProcess) -> None:
    """At the limit CreateTab is TAB_CAPACITY before anything is opened; foreign pages do not count (O-43, TAB-24)."""
    with fresh_profile() as directory:
        (directory / "tabmuxd.toml").write_text("[browsers.main]\nmax_tab_count = 3\n")
        async with serving(directory, playground.port) as server, person_at(directory / "browsers" / "main") as person:
            await person.open("about:blank")
            answers = await asyncio.gather(*(_tried(server) for _ in range(8)))
            assert sorted(answers) == ["OK"] * 3 + ["TAB_CAPACITY"] * 5
            assert len(await server.page_targets()) == 4
            listed = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs
            await closed(server, listed[0])
            assert await _tried(server) == "OK"
            refused = await refusal(server.tabs.CreateTab(CreateTabRequest(), timeout=LIMIT))
            assert (refused.reason, refused.metadata["limit"]) == ("TAB_CAPACITY", "3")
            assert refused.retry_delay is not None


async def _tried(server: Server) -> str:
    """OK, or the reason why not."""
    try:
        await server.tabs.CreateTab(CreateTabRequest(), timeout=LIMIT)
    except grpc.aio.AioRpcError as error:
        return error_of_call(error).reason
    return "OK"


async def test_attached(playground: PlaygroundProcess, pages: Pages) -> None:
    """The end of a server leaves an ATTACHED browser, its foreign pages and our tabs as they are (O-32, PRO-03)."""
    with fresh_profile() as directory, fresh_profile() as profile, running_chromium(profile) as chromium:
        (directory / "tabmuxd.toml").write_text(f'[browsers.main]\naddress = "{chromium.uri}"\n')
        async with person_at(profile) as person:
            foreign = await person.open_loaded(pages.at("/page?title=mine"))
            before = await person.looks(foreign)
            await person.watch_attaches()
            person.attached.clear()
            async with serving(directory, playground.port) as server:
                tab = await opened(server, pages.at("/page?title=ours"))
                assert await server.terminate() == 0
                assert foreign not in person.attached
                assert await person.looks(foreign) == before
                assert {foreign, tab.target_id} <= set(await person.pages())
                await server.start()
                assert (await got(server, tab)).state == Tab.STATE_READY
                request = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=again"))
                answer = await server.tabs.NavigateTab(request, timeout=LIMIT)
                assert answer.tab.target_id == tab.target_id
                assert answer.tab.generation == tab.generation
