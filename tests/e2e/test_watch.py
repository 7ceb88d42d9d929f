"""Watches over a real server: where they begin, what they show, and that they lose nothing when they are cut."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.event_pb2 import Event, EventKind, WatchProgress
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    CloseTabRequest,
    CreateTabRequest,
    GetTabRequest,
    ListTabsRequest,
    UpdateTabRequest,
    WatchTabsRequest,
    WatchTabsResponse,
)
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    SendPromptRequest,
    WaitTurnRequest,
    WatchSessionsRequest,
)

from tests.cdp.browsers import fresh_profile
from tests.e2e.driving import opened
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import BROWSER, LIMIT, PlaygroundProcess, Server, serving
from tests.e2e.watching import watching

QUICK = Duration(seconds=1)
CHANGES = 500
CUTS = 20

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]


async def labelled(server: Server, tab: Tab, value: str) -> Tab:
    """The tab after one recorded change."""
    return (await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, labels={"n": value}), timeout=LIMIT)).tab


def request_from(
    progress: WatchProgress | None = None, *, snapshot: bool = False, **fields: Fields
) -> WatchTabsRequest:
    """A watch that begins now, from a snapshot, or behind a place."""
    request = WatchTabsRequest(bookmark_interval=QUICK, **fields)
    if snapshot:
        request.start.snapshot.SetInParent()
    if progress is not None:
        request.start.resume.CopyFrom(progress)
    return request


async def shown_after(server: Server, progress: WatchProgress, last: int) -> list[Event]:
    """Every event behind a place up to a revision, read in one go."""
    async with watching(server.tabs.WatchTabs(request_from(progress))) as watch:
        await watch.passed(last)
        return [event for event in watch.events if event.revision <= last]


async def test_now(server: Server) -> None:
    """A watch from now tells its place at once, then each change in order with the whole tab (W1, W2, W3, W10)."""
    tab = await opened(server)
    async with watching(server.tabs.WatchTabs(request_from(tabs=[tab.name]))) as watch:
        assert (list(watch.replies[0].events), watch.replies[0].progress.revision >= tab.revision) == ([], True)
        changed = [await labelled(server, tab, str(number)) for number in range(5)]
        closed = (await server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)).tab
        await watch.passed(closed.revision)
        assert [event.tab for event in watch.events] == [*changed, closed]
        assert [event.revision for event in watch.events] == [each.revision for each in (*changed, closed)]
        assert [event.kind for event in watch.events] == [EventKind.EVENT_KIND_UPDATED] * 5 + [
            EventKind.EVENT_KIND_ENDED
        ]


async def test_snapshot(server: Server) -> None:
    """A snapshot shows what has not ended, once, then its place, then changes (W7)."""
    kept = [await opened(server) for _ in range(3)]
    gone = await opened(server)
    await server.tabs.CloseTab(CloseTabRequest(name=gone.name), timeout=LIMIT)
    async with watching(server.tabs.WatchTabs(request_from(snapshot=True))) as watch:
        changed = await labelled(server, kept[0], "after")
        await watch.passed(changed.revision)
        existing = [event for event in watch.events if event.kind == EventKind.EVENT_KIND_EXISTING]
        assert {event.tab.name for event in existing if event.HasField("tab")} == {tab.name for tab in kept}
        assert [event.browser.name for event in existing if event.HasField("browser")] == [BROWSER]
        first = next(reply for reply in watch.replies if reply.progress.revision)
        assert list(first.events) == []
        assert watch.events[-1].tab == changed


async def test_filters(server: Server) -> None:
    """A watch shows only what it asked for, and its place moves on although nothing matched (W8, W9)."""
    one, two = await opened(server), await opened(server)
    ended = request_from(kinds=[EventKind.EVENT_KIND_ENDED])
    async with (
        watching(server.tabs.WatchTabs(request_from(tabs=[one.name]))) as of_one,
        watching(server.tabs.WatchTabs(ended)) as of_ends,
        watching(server.tabs.WatchTabs(request_from(parent=BROWSER))) as of_browser,
    ):
        changed = await labelled(server, two, "x")
        await of_one.passed(changed.revision)
        await of_ends.passed(changed.revision)
        closed = (await server.tabs.CloseTab(CloseTabRequest(name=one.name), timeout=LIMIT)).tab
        for watch in (of_one, of_ends, of_browser):
            await watch.passed(closed.revision)
        assert [event.tab for event in of_one.events] == [closed]
        assert [event.tab for event in of_ends.events] == [closed]
        assert [event.tab for event in of_browser.events] == [changed, closed]


async def test_cut_and_resumed(server: Server) -> None:
    """Of 500 changes a watcher that is cut twenty times and resumes sees each once, in order (W4, W6, WAT-01)."""
    tab = await opened(server)
    begin = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).progress
    written: list[int] = []

    async def write() -> None:
        written.extend([(await labelled(server, tab, str(number))).revision for number in range(CHANGES)])

    writing = asyncio.ensure_future(write())
    seen: list[Event] = []
    place = begin
    cuts = 0
    async with asyncio.timeout(100):
        while not writing.done() or place.revision < written[-1]:
            channel = server.channel()
            call = channel.unary_stream(
                "/tabmux.v1.TabService/WatchTabs",
                request_serializer=WatchTabsRequest.SerializeToString,
                response_deserializer=WatchTabsResponse.FromString,
            )(request_from(place))
            async for reply in call:
                seen += reply.events
                place = reply.progress
                # Cut at moments that the changes decide, not a clock.
                if cuts < CUTS and len(seen) >= (cuts + 1) * CHANGES // (CUTS + 2):
                    cuts += 1
                    break
                if writing.done() and place.revision >= written[-1]:
                    break
            await channel.close()
    await writing
    revisions = [event.revision for event in seen]
    assert cuts == CUTS
    assert revisions == sorted(set(revisions))
    # A look at the tab may be recorded in between.
    labels = ["", *(event.tab.labels.get("n", "") for event in seen)]
    changed = [event.revision for event, before, now in zip(seen, labels, labels[1:], strict=False) if now != before]
    assert changed == written
    assert seen == (await shown_after(server, begin, place.revision))


async def test_own_writes(server: Server) -> None:
    """A watch that has passed the revision of an answer has shown it (W11)."""
    async with watching(server.tabs.WatchTabs(request_from())) as watch:
        tabs = await asyncio.gather(*(opened(server) for _ in range(4)))
        changed = await asyncio.gather(*(labelled(server, tab, "w11") for tab in tabs))
        for answer in (*tabs, *changed):
            await watch.passed(answer.revision)
            shown = [event.tab.revision for event in watch.events if event.tab.name == answer.name]
            assert max(shown) >= answer.revision
            assert answer.revision in {event.revision for event in watch.events}


async def test_sessions_with_tabs(server: Server) -> None:
    """One stream shows browser, tab, lease, session and turn in one order, and no answer; a session's only its own."""
    whole = WatchSessionsRequest(with_tabs=True, bookmark_interval=QUICK)
    async with watching(server.ai.WatchSessions(whole)) as all_of_it:
        created = await server.ai.CreateSession(CreateSessionRequest(provider="playground-textarea"), timeout=LIMIT)
        session = created.session
        stranger = await opened(server)
        own = WatchSessionsRequest(with_tabs=True, sessions=[session.name], bookmark_interval=QUICK)
        async with watching(server.ai.WatchSessions(own)) as of_session:
            request = SendPromptRequest(parent=session.name, request_id="1")
            request.prompt.text = "{{plain=1 seconds=0.3}} watched"
            turn = (await server.ai.SendPrompt(request, timeout=LIMIT)).turn
            wait = WaitTurnRequest(name=turn.name, max_wait_duration=Duration(seconds=60))
            end = (await server.ai.WaitTurn(wait, timeout=90)).turn
            last = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).progress.revision
            await all_of_it.passed(last)
            await of_session.passed(last)
    kinds = {event.WhichOneof("resource") for event in all_of_it.events}
    assert {"tab", "lease", "session", "turn"} <= kinds
    revisions = [event.revision for event in all_of_it.events]
    assert revisions == sorted(set(revisions))
    states = [event.turn.state for event in of_session.events if event.HasField("turn")]
    assert states == [Turn.STATE_PENDING, Turn.STATE_SUBMITTING, Turn.STATE_RUNNING, Turn.STATE_SUCCEEDED]
    ends = [event for event in of_session.events if event.kind == EventKind.EVENT_KIND_ENDED and event.HasField("turn")]
    assert [event.turn.revision for event in ends] == [end.revision]
    assert not any(event.turn.answer_markdown for event in all_of_it.events)
    shown_tabs = {event.tab.name for event in of_session.events if event.HasField("tab")}
    assert stranger.name not in shown_tabs
    assert len(shown_tabs) == 1
    assert {event.kind for event in of_session.events if event.HasField("lease")} == {
        EventKind.EVENT_KIND_CREATED,
        EventKind.EVENT_KIND_ENDED,
    }


async def test_refused_start(server: Server) -> None:
    """A place of another history, or one that is not there yet, is refused with its reason (WAT-03)."""
    now = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).progress

    async def read(progress: WatchProgress) -> None:
        async for _ in server.tabs.WatchTabs(request_from(progress), timeout=LIMIT):
            return

    other = WatchProgress(history_id="another", revision=now.revision)
    assert await reason(read(other)) == "HISTORY_CHANGED"
    ahead = WatchProgress(history_id=now.history_id, revision=now.revision + 10_000)
    assert await reason(read(ahead)) == "REVISION_IN_FUTURE"


async def test_nothing_for_refusals(server: Server) -> None:
    """A call that is refused, a read and a second close record nothing (O-146)."""
    tab = await opened(server, pinned=True)
    async with watching(server.tabs.WatchTabs(request_from())) as watch:
        assert await reason(server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)) == "TAB_PINNED"
        assert (await refusal(server.tabs.CreateTab(CreateTabRequest(uri="file:///"), timeout=LIMIT))).reason
        await server.tabs.GetTab(GetTabRequest(name=tab.name), timeout=LIMIT)
        changed = await labelled(server, tab, "only")
        await watch.passed(changed.revision)
        assert [event.tab for event in watch.events] == [changed]


async def test_across_restart(playground: PlaygroundProcess) -> None:
    """A watcher that resumes after the server was killed and started again misses nothing (W6, O-6, O-129, WAT-03)."""
    with fresh_profile() as directory:
        async with serving(directory, playground.port) as server:
            tab = await opened(server)
            async with watching(server.tabs.WatchTabs(request_from())) as watch:
                written = [await labelled(server, tab, str(number)) for number in range(20)]
                await watch.passed(written[4].revision)
                place = next(
                    reply.progress for reply in watch.replies if reply.progress.revision >= written[4].revision
                )
            await server.restart()
            written += [await labelled(server, tab, str(number)) for number in range(20, 30)]
            events = await shown_after(server, place, written[-1].revision)
    revisions = [event.revision for event in events]
    assert revisions == list(range(place.revision + 1, written[-1].revision + 1))
    assert [
        event.tab for event in events if event.HasField("tab") and event.revision in {w.revision for w in written}
    ] == [each for each in written if each.revision > place.revision]
