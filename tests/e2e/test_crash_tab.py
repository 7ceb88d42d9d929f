"""The server is killed while it opens a tab; its browser is killed under it; it is asked to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
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
from tests.e2e.killing import Mortal
from tests.e2e.person import person_at
from tests.e2e.serving import BROWSER, LIMIT, PlaygroundProcess, Server, browser_leaders, environment
from tests.e2e.watching import Watching, watching

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(90),
]


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
    "moment",
    [
        "opening:after",
        "target:after",
        "ready:after",
        *(pytest.param(one, marks=pytest.mark.long) for one in ("opening:before", "created:after", "ready:before")),
    ],
)
async def test_killed_while_a_tab_opens(moment: str, mortal: Mortal, playground: PlaygroundProcess) -> None:
    """CreateTab repeated after a crash leaves one tab, and no foreign page is touched (TAB-12, O-19, O-21, O-129)."""
    request = create_request(playground)
    generation = (await mortal.browser()).generation
    async with person_at(mortal.state_directory / "browsers" / "main") as person:
        foreign = await person.open(FORGED_MARKER)
    mortal.kill_at(moment)
    with pytest.raises(grpc.aio.AioRpcError) as cut:
        await mortal.tabs.CreateTab(request, timeout=LIMIT)
    assert cut.value.code() is grpc.StatusCode.UNAVAILABLE
    await mortal.killed()
    await mortal.revive()

    kept = [tab.name for tab in await mortal.list_tabs() if tab.state == Tab.STATE_READY]
    created = (await mortal.tabs.CreateTab(request, timeout=LIMIT)).tab
    tabs = await mortal.tabs_when(lambda tabs: len(tabs) == 1)
    browser = await mortal.browser_when(lambda browser: browser.tab_counts.foreign_count == 1)

    assert kept == ([created.name] if moment == "ready:after" else [])
    assert [(tab.name, tab.state, tab.uri) for tab in tabs] == [(created.name, Tab.STATE_READY, request.uri)]
    assert await mortal.page_targets() == {created.target_id: request.uri, foreign: FORGED_MARKER}
    assert (browser.tab_counts.managed_count, browser.generation) == (1, generation)


async def test_repeated_while_the_rest_is_cleared_away(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """CreateTab repeated right after a restart gets a tab of use, not the rest of the first (O-19, O-21, O-25)."""
    request = create_request(playground)
    closed_before = {tab.name for tab in await closed_tabs(mortal)}
    mortal.kill_at("target:after")
    with pytest.raises(grpc.aio.AioRpcError):
        await mortal.tabs.CreateTab(request, timeout=LIMIT)
    await mortal.killed()
    await mortal.revive(slow_close=2)

    first, second = await asyncio.gather(*(mortal.tabs.CreateTab(request, timeout=LIMIT) for _ in range(2)))

    assert (first.tab.name, first.tab.state) == (second.tab.name, Tab.STATE_READY)
    assert await mortal.page_targets() == {first.tab.target_id: request.uri}
    rest = [tab for tab in await closed_tabs(mortal) if tab.name not in closed_before]
    assert [tab.close_cause for tab in rest] == [Tab.CLOSE_CAUSE_CLIENT]


async def closed_tabs(server: Server) -> Sequence[Tab]:
    """The tabs that have closed, as far as they are kept."""
    request = ListTabsRequest(states=[Tab.STATE_CLOSED], page_size=500)
    return (await server.tabs.ListTabs(request, timeout=LIMIT)).tabs


@pytest.mark.parametrize("moment", ["target:after", "handed:after"])
async def test_killed_while_a_tab_is_handed_over(moment: str, mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A hand-over repeated after a crash leaves one tab: the pooled one, or another in its place (O-45, O-129)."""
    uri = f"http://textarea.localhost:{playground.port}/"
    first = (await mortal.tabs.CreateTab(CreateTabRequest(uri=uri, group="g"), timeout=LIMIT)).tab
    await mortal.tabs.CloseTab(CloseTabRequest(name=first.name, pool=True), timeout=LIMIT)
    request = create_request(playground)
    request.MergeFrom(CreateTabRequest(group="g", from_pool=True, labels={"handed": "over"}))
    mortal.kill_at(moment)
    with pytest.raises(grpc.aio.AioRpcError):
        await mortal.tabs.CreateTab(request, timeout=LIMIT)
    await mortal.killed()
    await mortal.revive()

    created = (await mortal.tabs.CreateTab(request, timeout=LIMIT)).tab
    tabs = await mortal.tabs_when(lambda tabs: len(tabs) == 1)

    assert [(tab.name, tab.state, tab.owner, tab.pooled) for tab in tabs] == [
        (created.name, Tab.STATE_READY, "local", False)
    ]
    assert (created.name == first.name) is (moment == "handed:after")
    assert await mortal.page_targets() == {created.target_id: uri}


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


async def test_browser_killed_while_turns_run(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A killed browser is launched anew, and three turns go on in their tabs there (SES-06, O-25, O-116, O-144).

    A tab that nobody needs stays LOST, and no old target is taken for one of the new browser.
    """
    idle = (await mortal.tabs.CreateTab(create_request(playground), timeout=LIMIT)).tab
    conversations = [Conversation("{{plain=1 characters=600 seconds=12 think=0.05}}") for _ in range(3)]
    for conversation in conversations:
        await conversation.start(mortal)
    turns = [await conversation.send(mortal) for conversation in conversations]
    for turn in turns:
        await text_of(mortal, turn)
    killed, generation = mortal.browser_pid, (await mortal.browser()).generation
    before = {tab.name: tab for tab in await mortal.list_tabs()}

    async with watching_all(mortal) as watch:
        os.kill(killed, signal.SIGKILL)
        lost = await watch.until(lambda event: event.tab.name == idle.name and event.tab.state == Tab.STATE_LOST)
        await watch.until(lambda event: event.browser.generation == generation + 1)
        for turn in turns:
            await end_of(mortal, turn)
        failed = [event for event in watch.events if event.turn.state == Turn.STATE_FAILED]
    ends = [await end_of(mortal, turn) for turn in turns]
    tabs = {tab.name: tab for tab in await mortal.list_tabs()}
    sessions = [await conversation.session(mortal) for conversation in conversations]
    assert (lost.cause, failed) == (ChangeCause.CHANGE_CAUSE_BROWSER, [])
    assert [(end.state, end.error.reason) for end in ends] == [(Turn.STATE_SUCCEEDED, "")] * 3
    assert [playground.prompts().count(conversation.text) for conversation in conversations] == [1, 1, 1]
    assert {name: (tab.state, tab.generation) for name, tab in tabs.items()} == {
        name: (Tab.STATE_LOST, 1) if name == idle.name else (Tab.STATE_READY, 2) for name in before
    }
    assert [(session.tab in before, session.recovery_count, session.close_count) for session in sessions] == [
        (True, 1, 1)
    ] * 3
    assert set(await mortal.page_targets()) == {tab.target_id for tab in tabs.values() if tab.name != idle.name}

    assert await mortal.terminate() == 0
    assert browser_leaders(mortal.state_directory) == []
    until(lambda: not group_members(killed))


async def test_browser_outlives_its_server(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A server takes its own browser back, with generation, tabs and turns as they were (PRO-02, O-6, O-129, O-143)."""
    idle = (await mortal.tabs.CreateTab(create_request(playground), timeout=LIMIT)).tab
    conversation = Conversation("{{plain=1 characters=600 seconds=4 think=0.05}}")
    await conversation.start(mortal)
    turn = await conversation.send(mortal)
    beginning = await text_of(mortal, turn)
    before, pid = await mortal.list_tabs(), mortal.browser_pid
    generation = (await mortal.browser()).generation

    await mortal.kill()
    await mortal.revive()

    ended = await end_of(mortal, turn)
    assert (mortal.browser_pid, (await mortal.browser()).generation) == (pid, generation)
    assert ended.answer_markdown.startswith(beginning)
    assert (ended.state, playground.prompts().count(conversation.text)) == (Turn.STATE_SUCCEEDED, 1)
    assert [(tab.name, tab.target_id, tab.generation) for tab in await mortal.list_tabs()] == [
        (tab.name, tab.target_id, tab.generation) for tab in before
    ]
    navigated = await mortal.tabs.NavigateTab(
        NavigateTabRequest(name=idle.name, uri="about:blank", expected_generation=idle.generation), timeout=LIMIT
    )
    assert navigated.tab.uri == "about:blank"


async def test_asked_to_end(mortal: Mortal) -> None:
    """A server asked to end tells watches DRAINING, ends its browser, keeps its records, says 0 (PRO-01, O-156)."""
    conversation = Conversation(LONG)
    await conversation.start(mortal)
    turn = await conversation.send(mortal)
    await text_of(mortal, turn)
    killed = mortal.browser_pid
    streams: list[Stream] = [
        mortal.ai.WatchSessions(WatchSessionsRequest(with_tabs=True)),
        mortal.tabs.WatchTabs(WatchTabsRequest()),
    ]
    for stream in streams:
        await stream.read()

    code, *reasons = await asyncio.gather(mortal.terminate(), *(end_of_stream(stream) for stream in streams))

    assert (code, reasons) == (0, ["DRAINING", "DRAINING"])
    assert (browser_leaders(mortal.state_directory), group_members(killed)) == ([], [])
    await mortal.revive()
    await mortal.tabs_when(lambda tabs: [(tab.state, tab.generation) for tab in tabs] == [(Tab.STATE_READY, 2)])
    session = await conversation.session(mortal)
    assert (session.open_turn, session.recovery_count) == (turn.name, 1)
    assert len(await mortal.page_targets()) == 1


async def test_second_server_is_refused(mortal: Mortal) -> None:
    """A second server on one state directory ends with 3 and says so, while the first goes on (PRO-05, O-130)."""
    second = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "tabmuxd", *mortal.arguments],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        env=environment(),
        check=False,
    )
    assert second.returncode == 3
    assert str(mortal.state_directory) in second.stderr
    created = await mortal.tabs.CreateTab(CreateTabRequest(parent=BROWSER), timeout=LIMIT)
    assert created.tab.state == Tab.STATE_READY


@contextlib.asynccontextmanager
async def watching_all(server: Server) -> AsyncGenerator[Watching, None]:
    """A watch of sessions and tabs from a snapshot on."""
    request = WatchSessionsRequest(with_tabs=True)
    request.start.snapshot.SetInParent()
    async with watching(server.ai.WatchSessions(request)) as watch:
        yield watch


async def end_of_stream(stream: Stream) -> str:
    """Reason that a stream ends with, whose first reply has been read; its status where it has none."""
    try:
        async with asyncio.timeout(2 * LIMIT):
            while await stream.read() is not grpc.aio.EOF:
                pass
    except grpc.aio.AioRpcError as error:
        return error_of_call(error).reason or f"{error.code()}: {error.details()}"
    return "OK"
