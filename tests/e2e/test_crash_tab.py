"""The server is killed while it opens a tab; its browser is killed under it; it is asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import grpc.aio
import pytest
from tabmux.statuses import error_of_call
from tabmux.v1.event_pb2 import ChangeCause
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    CloseTabRequest,
    CreateTabRequest,
    ListTabsRequest,
    NavigateTabRequest,
    WatchTabsRequest,
)
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest

from tests.cdp.browsers import group_members, until
from tests.e2e.conversing import Conversation, end_of, text_of
from tests.e2e.crashing_server import crashing
from tests.e2e.person import person_at
from tests.e2e.serving import BROWSER, LIMIT, PlaygroundProcess, Server, browser_leaders, environment, serving
from tests.e2e.watching import Watching, watching

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(90)]


class Stream(Protocol):
    """A call that answers more than once."""

    async def read(self) -> object: ...


LONG = "{{plain=1 characters=4000 seconds=60 think=0.05}}"
# Has the form of a marker, and was made by somebody else.
FORGED_MARKER = f"about:blank#tabmux-{'0' * 26}-{'0' * 32}"


def create_request(playground: PlaygroundProcess) -> CreateTabRequest:
    """A request whose repeats get the tab of the first."""
    uri = f"http://textarea.localhost:{playground.port}/"
    return CreateTabRequest(parent=BROWSER, uri=uri, request_id=str(uuid4()))


@pytest.mark.parametrize(
    "moment", ["opening:before", "opening:after", "created:after", "target:after", "ready:before", "ready:after"]
)
async def test_killed_while_a_tab_opens(moment: str, state_directory: Path, playground: PlaygroundProcess) -> None:
    """CreateTab repeated after a crash leaves one tab, and no foreign page is touched (TAB-12, O-19, O-21, O-129)."""
    request = create_request(playground)
    async with serving(state_directory, playground.port, *crashing(moment)) as server:
        async with person_at(state_directory / "browsers" / "main") as person:
            foreign = await person.open(FORGED_MARKER)
        with pytest.raises(grpc.aio.AioRpcError) as cut:
            await server.tabs.CreateTab(request, timeout=LIMIT)
        assert cut.value.code() is grpc.StatusCode.UNAVAILABLE
        assert await server.ended() == -signal.SIGKILL, server.log()
        await server.restart()

        kept = [tab.name for tab in await server.list_tabs() if tab.state == Tab.STATE_READY]
        created = (await server.tabs.CreateTab(request, timeout=LIMIT)).tab
        tabs = await server.tabs_when(lambda tabs: len(tabs) == 1)
        browser = await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 1)

        assert kept == ([created.name] if moment == "ready:after" else [])
        assert [(tab.name, tab.state, tab.uri) for tab in tabs] == [(created.name, Tab.STATE_READY, request.uri)]
        assert await server.page_targets() == {created.target_id: request.uri, foreign: FORGED_MARKER}
        assert (browser.tab_counts.managed_count, browser.generation) == (1, 1)


async def test_repeated_while_the_rest_is_cleared_away(state_directory: Path, playground: PlaygroundProcess) -> None:
    """CreateTab repeated right after a restart gets a tab of use, not the rest of the first (O-19, O-21, O-25)."""
    request = create_request(playground)
    async with serving(state_directory, playground.port, *crashing("target:after")) as server:
        with pytest.raises(grpc.aio.AioRpcError):
            await server.tabs.CreateTab(request, timeout=LIMIT)
        await server.ended()
        await server.restart(*crashing(slow_close=2))

        first, second = await asyncio.gather(*(server.tabs.CreateTab(request, timeout=LIMIT) for _ in range(2)))

        assert (first.tab.name, first.tab.state) == (second.tab.name, Tab.STATE_READY)
        assert await server.page_targets() == {first.tab.target_id: request.uri}
        listed = await server.tabs.ListTabs(ListTabsRequest(states=[Tab.STATE_CLOSED]), timeout=LIMIT)
        assert [tab.close_cause for tab in listed.tabs] == [Tab.CLOSE_CAUSE_CLIENT]


@pytest.mark.parametrize("moment", ["target:after", "handed:after"])
async def test_killed_while_a_tab_is_handed_over(
    moment: str, state_directory: Path, playground: PlaygroundProcess
) -> None:
    """A hand-over repeated after a crash leaves one tab: the pooled one, or another in its place (O-45, O-129)."""
    uri = f"http://textarea.localhost:{playground.port}/"
    async with serving(state_directory, playground.port) as server:
        first = (await server.tabs.CreateTab(CreateTabRequest(uri=uri, group="g"), timeout=LIMIT)).tab
        await server.tabs.CloseTab(CloseTabRequest(name=first.name, pool=True), timeout=LIMIT)
        await server.restart(*crashing(moment))
        await server.page_targets()
        request = create_request(playground)
        request.MergeFrom(CreateTabRequest(group="g", from_pool=True, labels={"handed": "over"}))
        with pytest.raises(grpc.aio.AioRpcError):
            await server.tabs.CreateTab(request, timeout=LIMIT)
        assert await server.ended() == -signal.SIGKILL, server.log()
        await server.restart()

        created = (await server.tabs.CreateTab(request, timeout=LIMIT)).tab
        tabs = await server.tabs_when(lambda tabs: len(tabs) == 1)

        assert [(tab.name, tab.state, tab.owner, tab.pooled) for tab in tabs] == [
            (created.name, Tab.STATE_READY, "local", False)
        ]
        assert (created.name == first.name) is (moment == "handed:after")
        assert await server.page_targets() == {created.target_id: uri}


@pytest.mark.parametrize("moment", ["launch:before", "launch:after"])
async def test_killed_while_its_browser_starts(
    moment: str, state_directory: Path, playground: PlaygroundProcess
) -> None:
    """After a server killed while it launched its browser, the next one has one browser (PRO-02, PRO-06, O-117)."""
    server = Server(state_directory, playground.port)
    try:
        server.begin(*crashing(moment))
        assert await server.ended() == -signal.SIGKILL, server.log()
        await server.restart()
        assert browser_leaders(state_directory) == [server.browser_pid]
    finally:
        await server.close()


async def test_browser_killed_while_turns_run(server: Server, playground: PlaygroundProcess) -> None:
    """A killed browser is launched anew, and three turns go on in their tabs there (SES-06, O-25, O-116, O-144).

    A tab that nobody needs stays LOST, and no old target is taken for one of the new browser.
    """
    idle = (await server.tabs.CreateTab(create_request(playground), timeout=LIMIT)).tab
    conversations = [Conversation("{{plain=1 characters=600 seconds=12 think=0.05}}") for _ in range(3)]
    for conversation in conversations:
        await conversation.start(server)
    turns = [await conversation.send(server) for conversation in conversations]
    for turn in turns:
        await text_of(server, turn)
    killed = server.browser_pid
    before = {tab.name: tab for tab in await server.list_tabs()}

    async with watching_all(server) as watch:
        os.kill(killed, signal.SIGKILL)
        lost = await watch.until(lambda event: event.tab.name == idle.name and event.tab.state == Tab.STATE_LOST)
        await watch.until(lambda event: event.browser.generation == 2)
        for turn in turns:
            await end_of(server, turn)
        failed = [event for event in watch.events if event.turn.state == Turn.STATE_FAILED]
    ends = [await end_of(server, turn) for turn in turns]
    tabs = {tab.name: tab for tab in await server.list_tabs()}
    sessions = [await conversation.session(server) for conversation in conversations]
    assert (lost.cause, failed) == (ChangeCause.CHANGE_CAUSE_BROWSER, [])
    assert [(end.state, end.error.reason) for end in ends] == [(Turn.STATE_SUCCEEDED, "")] * 3
    assert [playground.prompts().count(conversation.text) for conversation in conversations] == [1, 1, 1]
    assert {name: (tab.state, tab.generation) for name, tab in tabs.items()} == {
        name: (Tab.STATE_LOST, 1) if name == idle.name else (Tab.STATE_READY, 2) for name in before
    }
    assert [(session.tab in before, session.recovery_count, session.close_count) for session in sessions] == [
        (True, 1, 1)
    ] * 3
    assert set(await server.page_targets()) == {tab.target_id for tab in tabs.values() if tab.name != idle.name}

    assert await server.terminate() == 0
    assert browser_leaders(server.state_directory) == []
    until(lambda: not group_members(killed))


async def test_browser_outlives_its_server(server: Server, playground: PlaygroundProcess) -> None:
    """A server takes its own browser back, with generation, tabs and turns as they were (PRO-02, O-6, O-129, O-143)."""
    idle = (await server.tabs.CreateTab(create_request(playground), timeout=LIMIT)).tab
    conversation = Conversation("{{plain=1 characters=600 seconds=4 think=0.05}}")
    await conversation.start(server)
    turn = await conversation.send(server)
    beginning = await text_of(server, turn)
    before, pid = await server.list_tabs(), server.browser_pid

    await server.kill()
    await server.start()

    ended = await end_of(server, turn)
    assert (server.browser_pid, (await server.browser()).generation) == (pid, 1)
    assert ended.answer_markdown.startswith(beginning)
    assert (ended.state, playground.prompts().count(conversation.text)) == (Turn.STATE_SUCCEEDED, 1)
    assert [(tab.name, tab.target_id, tab.generation) for tab in await server.list_tabs()] == [
        (tab.name, tab.target_id, tab.generation) for tab in before
    ]
    navigated = await server.tabs.NavigateTab(
        NavigateTabRequest(name=idle.name, uri="about:blank", expected_generation=idle.generation), timeout=LIMIT
    )
    assert navigated.tab.uri == "about:blank"


async def test_asked_to_end(server: Server) -> None:
    """A server asked to end tells watches DRAINING, ends its browser, keeps its records, says 0 (PRO-01, O-156)."""
    conversation = Conversation(LONG)
    await conversation.start(server)
    turn = await conversation.send(server)
    await text_of(server, turn)
    killed = server.browser_pid
    streams: list[Stream] = [
        server.ai.WatchSessions(WatchSessionsRequest(with_tabs=True)),
        server.tabs.WatchTabs(WatchTabsRequest()),
    ]
    for stream in streams:
        await stream.read()

    code, *reasons = await asyncio.gather(server.terminate(), *(end_of_stream(stream) for stream in streams))

    assert (code, reasons) == (0, ["DRAINING", "DRAINING"])
    assert (browser_leaders(server.state_directory), group_members(killed)) == ([], [])
    await server.start()
    await server.tabs_when(lambda tabs: [(tab.state, tab.generation) for tab in tabs] == [(Tab.STATE_READY, 2)])
    session = await conversation.session(server)
    assert (session.open_turn, session.recovery_count) == (turn.name, 1)
    assert len(await server.page_targets()) == 1


async def test_second_server_is_refused(server: Server) -> None:
    """A second server on one state directory ends with 3 and says so, while the first goes on (PRO-05, O-130)."""
    second = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tabmuxd", *server.arguments],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        env=environment(),
        check=False,
    )
    assert second.returncode == 3
    assert str(server.state_directory) in second.stderr
    created = await server.tabs.CreateTab(CreateTabRequest(parent=BROWSER), timeout=LIMIT)
    assert created.tab.state == Tab.STATE_READY


@contextlib.asynccontextmanager
async def watching_all(server: Server) -> AsyncGenerator[Watching, None]:
    """A watch of sessions and tabs from a snapshot on."""
    request = WatchSessionsRequest(with_tabs=True)
    request.start.snapshot.SetInParent()
    async with watching(server.ai.WatchSessions(request)) as watch:
        yield watch


async def end_of_stream(stream: Stream) -> str:
    """Reason that a stream ends with, whose first reply has been read."""
    try:
        async with asyncio.timeout(2 * LIMIT):
            while await stream.read() is not grpc.aio.EOF:
                pass
    except grpc.aio.AioRpcError as error:
        return error_of_call(error).reason
    return ""
