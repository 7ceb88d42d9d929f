"""Where sessions get their tabs and their turns: a tab that exists, the pool, the line at a provider, the way back."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    AcquireLeaseRequest,
    ActivateTabRequest,
    GetServerInfoRequest,
    ListTabsRequest,
    NavigateTabRequest,
    RecoverTabRequest,
    ReleaseLeaseRequest,
)
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CreateSessionRequest,
    FrontTab,
    GetSessionRequest,
    PooledTab,
    RecoverSessionRequest,
    RecoverSessionResponse,
    RetireSessionRequest,
    SendPromptRequest,
    WatchSessionsRequest,
)
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmuxd.playground.answers import answer_to

from tests.cdp.browsers import fresh_profile, running_chromium
from tests.e2e.conversing import PROVIDER, end_of
from tests.e2e.driving import closed, got, opened
from tests.e2e.person import Person
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server
from tests.e2e.watching import watching

SHORT = "{{plain=1 seconds=0.2 think=0.05}}"
LONG = "{{plain=1 seconds=60 think=0.05}}"
SUCCEEDED = Turn.STATE_SUCCEEDED

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


@pytest.fixture(scope="module")
def server_settings() -> str:
    """Two turns of a provider at once, and three tabs."""
    return "max_turn_count = 2\n[browsers.main]\nmax_tab_count = 3\n"


@dataclass(frozen=True)
class Talk:
    """One session, and where its prompts arrive."""

    server: Server
    name: str

    async def ask(self, prompt: str, *, answer_timeout: int = 60, release_tab: bool = False) -> Turn:
        """Send a prompt."""
        request = SendPromptRequest(parent=self.name, request_id=uuid4().hex, release_tab=release_tab)
        request.prompt.text = prompt
        request.answer_timeout.FromSeconds(answer_timeout)
        return (await self.server.ai.SendPrompt(request, timeout=LIMIT)).turn

    async def answer(self, prompt: str) -> Turn:
        """Send a prompt, and wait for the end."""
        return await end_of(self.server, await self.ask(prompt))

    async def session(self) -> Session:
        """The session as it stands."""
        return (await self.server.ai.GetSession(GetSessionRequest(name=self.name), timeout=LIMIT)).session

    async def recover(self) -> RecoverSessionResponse:
        """The session after RecoverSession."""
        return await self.server.ai.RecoverSession(RecoverSessionRequest(name=self.name), timeout=3 * LIMIT)


async def talk(server: Server, **fields: Fields) -> Talk:
    """A new session with this tab policy."""
    request = CreateSessionRequest(provider=PROVIDER, **fields)
    return Talk(server, (await server.ai.CreateSession(request, timeout=2 * LIMIT)).session.name)


def unique(directives: str = SHORT) -> str:
    """A prompt that occurs nowhere else."""
    return f"Prompt {uuid4().hex} {directives}"


def start_page(server: Server) -> str:
    """Where the provider's conversations begin."""
    return f"http://textarea.localhost:{server.playground_port}/"


async def cancel(server: Server, turn: Turn) -> None:
    """End a turn."""
    await server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)


# A tab that exists


async def test_named_tab(server: Server, playground: PlaygroundProcess) -> None:
    """A session takes the tab that is named, and no other session gets that; it goes on there (O-134, O-1, O-8).

    It is taken to the start page from elsewhere, and to a conversation that is asked for; when it closes, the session
    is parked, and the next prompt gets a tab of its own (O-141).
    """
    tab = await opened(server, "about:blank")
    one = await talk(server, tab=tab.name)
    taken = await got(server, tab)
    assert (taken.session, taken.uri, taken.target_id) == (one.name, start_page(server), tab.target_id)
    assert (await one.session()).tab == tab.name
    prompt = unique()
    turn = await one.answer(prompt)
    first = await one.session()
    assert (turn.state, turn.answer_markdown, first.tab) == (SUCCEEDED, answer_to(prompt), tab.name)
    assert list(await server.page_targets()) == [tab.target_id]

    refused = await refusal(talk(server, tab=tab.name))
    other: Any = WebAiServiceStub(server.channel("other"))
    stranger = other.CreateSession(CreateSessionRequest(provider=PROVIDER, tab=tab.name), timeout=LIMIT)
    assert (refused.reason, refused.metadata["session"]) == ("TAB_BUSY", one.name)
    assert await reason(stranger) == "NOT_OWNER"
    assert await reason(other.RecoverSession(RecoverSessionRequest(name=one.name), timeout=LIMIT)) == "NOT_OWNER"

    second = await opened(server, start_page(server))
    follower = await talk(server, tab=second.name, conversation_uri=first.conversation_uri)
    again = unique()
    assert (await follower.answer(again)).answer_markdown == answer_to(again)
    assert (await follower.session()).conversation_uri == first.conversation_uri
    await closed(server, second)
    assert (await follower.session()).tab == ""
    third = unique()
    assert (await follower.answer(third)).state == SUCCEEDED
    assert (await follower.session()).tab not in {"", second.name, tab.name}
    assert [playground.prompts().count(sent) for sent in (prompt, again, third)] == [1, 1, 1]


async def test_leased_tab(server: Server) -> None:
    """A tab that a client's lease holds is taken for no session, nor brought back for one (O-10, O-15, O-134)."""
    tab = await opened(server, start_page(server))
    acquire = AcquireLeaseRequest(tab=tab.name)
    first = (await server.tabs.AcquireLease(acquire, timeout=LIMIT)).lease
    assert await reason(talk(server, tab=tab.name)) == "LEASE_HELD"
    await server.tabs.ReleaseLease(ReleaseLeaseRequest(name=first.name), timeout=LIMIT)
    one = await talk(server, tab=tab.name)
    second = (await server.tabs.AcquireLease(acquire, timeout=LIMIT)).lease
    away = NavigateTabRequest(name=tab.name, uri="about:blank", lease=second.name)
    await server.tabs.NavigateTab(away, timeout=LIMIT)
    assert [await reason(one.recover()), await reason(one.ask(unique()))] == ["LEASE_HELD"] * 2
    assert (await got(server, tab)).uri == "about:blank"
    await server.tabs.ReleaseLease(ReleaseLeaseRequest(name=second.name), timeout=LIMIT)
    assert (await one.recover()).strategy == RecoverSessionResponse.STRATEGY_NAVIGATED
    assert (await got(server, tab)).uri == start_page(server)


async def test_front_tab(server: Server, person: Person) -> None:
    """A session takes the tab in front as it is, with its conversation; a foreign page is not touched (O-32, O-134)."""
    writer = await talk(server)
    await writer.answer(unique())
    conversation = (await writer.session()).conversation_uri
    tab = await opened(server, f"{conversation}?as=found", activate=True)
    one = await talk(server, front_tab=FrontTab())
    session = await one.session()
    assert (session.tab, session.conversation_uri) == (tab.name, conversation)
    assert (await got(server, tab)).uri == f"{conversation}?as=found"
    prompt = unique()
    assert (await one.answer(prompt)).answer_markdown == answer_to(prompt)

    elsewhere = await opened(server, "about:blank", activate=True)
    assert await reason(talk(server, front_tab=FrontTab())) == "PROVIDER_NOT_SHOWN"
    start = NavigateTabRequest(name=elsewhere.name, uri=start_page(server))
    await server.tabs.NavigateTab(start, timeout=LIMIT)
    wanted = {"front_tab": FrontTab(), "conversation_uri": conversation}
    assert await reason(talk(server, **wanted)) == "PROVIDER_CONVERSATION_CHANGED"
    assert (await got(server, elsewhere)).uri == start.uri

    theirs = await person.open_loaded(f"{start_page(server)}?theirs")
    await person.raise_page(theirs)
    foreign = await refusal(talk(server, front_tab=FrontTab()))
    assert (foreign.reason, foreign.metadata["target_id"]) == ("FOREIGN_TAB", theirs)
    await server.tabs.ActivateTab(ActivateTabRequest(name=elsewhere.name), timeout=LIMIT)
    assert (await (await talk(server, front_tab=FrontTab())).session()).tab == elsewhere.name
    await person.close(theirs)


# The pool


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=pytest.mark.long)])
async def test_pooled_tab(server: Server, playground: PlaygroundProcess, count: int) -> None:
    """Sessions of one group hand one tab on through the pool, each in a new chat of its own (LSE-07, LSE-08, O-136)."""
    prompt = unique()
    seen: list[tuple[str, str]] = []
    for _ in range(count):
        one = await talk(server, pooled_tab=PooledTab(group="handed-on"))
        assert (await one.session()).tab == ""
        turn = await end_of(server, await one.ask(prompt, release_tab=True))
        session = await one.session()
        assert (turn.state, turn.answer_markdown, session.tab) == (SUCCEEDED, answer_to(prompt), "")
        (tab,) = await server.list_tabs()
        assert (tab.pooled, list(await server.page_targets())) == (True, [tab.target_id])
        seen.append((tab.target_id, session.conversation_uri))
    assert len({target for target, _ in seen}) == 1
    assert len({conversation for _, conversation in seen}) == count
    assert playground.prompts().count(prompt) == count
    assert (await opened(server, from_pool=True, group="handed-on")).target_id == seen[0][0]  # to be closed


# The line at a provider


async def test_line(server: Server, playground: PlaygroundProcess) -> None:
    """At the provider's limit turns wait PENDING, and one begins when one ends, in order (O-141, LSE-11, SUB-21).

    Nothing is typed for one that waits, and no tab opened.
    """
    talks = [await talk(server) for _ in range(4)]
    prompts = [unique(LONG), unique(LONG), unique(), unique(LONG)]
    request = WatchSessionsRequest(bookmark_interval=Duration(seconds=1))
    async with watching(server.ai.WatchSessions(request)) as watch:
        turns = [await one.ask(prompt) for one, prompt in zip(talks, prompts, strict=True)]
        for turn in turns[:2]:
            await watch.until(lambda event, turn=turn: _is(event, turn, Turn.STATE_RUNNING))  # type: ignore[misc]
        assert [(await one.session()).tab != "" for one in talks] == [True, True, False, False]
        assert len(await server.page_targets()) == 2
        assert not set(prompts[2:]) & set(playground.prompts())

        await cancel(server, turns[0])
        third = await end_of(server, turns[2])
        await watch.until(lambda event: _is(event, turns[3], Turn.STATE_RUNNING))
        begun = [event.turn.name for event in watch.events if event.turn.state == Turn.STATE_SUBMITTING]
    assert (set(begun[:2]), begun[2:]) == ({turns[0].name, turns[1].name}, [turns[2].name, turns[3].name])
    assert (third.state, third.answer_markdown) == (SUCCEEDED, answer_to(prompts[2]))
    for turn in (turns[1], turns[3]):
        await cancel(server, turn)


def _is(event: Any, turn: Turn, state: Turn.State.ValueType) -> bool:  # noqa: ANN401 - an event
    return bool(event.turn.name == turn.name and event.turn.state == state)


async def test_room_holds_nobody_up(server: Server, playground: PlaygroundProcess) -> None:
    """Turns that wait for room are as many as may be at work, and one that has its tab goes all the same (O-141).

    Once there is room they go, the first first, and no more tabs were open than may be (O-43).
    """
    held = await opened(server, start_page(server))
    seated = await talk(server, tab=held.name)
    in_the_way = [await opened(server, pinned=True) for _ in range(2)]
    parked = [await talk(server) for _ in range(2)]
    prompts = [unique() for _ in parked]
    waiting = [await one.ask(prompt) for one, prompt in zip(parked, prompts, strict=True)]
    prompt = unique()
    assert (await seated.answer(prompt)).answer_markdown == answer_to(prompt)
    assert {tab.name for tab in await server.list_tabs()} == {held.name, *(tab.name for tab in in_the_way)}

    await closed(server, in_the_way[0], force=True)
    ends = [await end_of(server, turn) for turn in waiting]
    assert [end.state for end in ends] == [SUCCEEDED] * 2
    assert ends == sorted(ends, key=lambda end: end.end_time.ToNanoseconds())
    assert [playground.prompts().count(sent) for sent in prompts] == [1, 1]


@pytest.mark.long
async def test_out_of_time(server: Server, playground: PlaygroundProcess) -> None:
    """Past its time a turn that waits fails with what it waited for, and nothing was typed or opened for it (O-141)."""
    in_the_way = [await opened(server, pinned=True) for _ in range(3)]
    prompts = [unique() for _ in range(2)]
    parked = [await (await talk(server)).ask(prompt, answer_timeout=10) for prompt in prompts]
    without_room = [await end_of(server, turn) for turn in parked]
    for tab in in_the_way[:2]:
        await closed(server, tab, force=True)
    at_work = [await (await talk(server)).ask(unique(LONG)) for _ in range(2)]
    last = await talk(server)
    not_let_in = await end_of(server, await last.ask(unique(), answer_timeout=10))
    for turn in at_work:
        await cancel(server, turn)
    ends = [*without_room, not_let_in]
    assert [end.error.reason for end in ends] == ["TAB_CAPACITY", "TAB_CAPACITY", "TURN_CAPACITY"]
    assert {(end.error.metadata["page_touched"], end.error.metadata["retry"]) for end in ends} == {("no", "safe")}
    assert ((await last.session()).tab, set(prompts) & set(playground.prompts())) == ("", set())


async def test_restarted(server: Server, playground: PlaygroundProcess) -> None:
    """After a kill each open turn is settled once: answered meanwhile, or kept in its line in order (SES-07, O-143).

    Nobody watched when the answer was whole: its ENDED event comes with the next resume (SES-09, O-139, O-141).
    """
    _, before = await server.watch_since(None)
    talks = [await talk(server) for _ in range(4)]
    prompts = [unique("{{plain=1 seconds=2 think=0.05}}"), unique(LONG), unique(), unique()]
    request = WatchSessionsRequest(bookmark_interval=Duration(seconds=1))
    async with watching(server.ai.WatchSessions(request)) as watch:
        turns = [await one.ask(prompt) for one, prompt in zip(talks, prompts, strict=True)]
        for turn in turns[:2]:
            await watch.until(lambda event, turn=turn: _is(event, turn, Turn.STATE_RUNNING))  # type: ignore[misc]
    await server.kill()
    await server.start()
    ends = [await end_of(server, turn) for turn in (turns[0], turns[2], turns[3])]
    await cancel(server, turns[1])
    events, _ = await server.watch_since(before)
    ended = [event.turn.name for event in events if event.turn.state >= SUCCEEDED]
    begun = [event.turn.name for event in events if event.turn.state == Turn.STATE_SUBMITTING]
    assert [(end.state, end.answer_markdown) for end in ends] == [
        (SUCCEEDED, answer_to(prompts[number])) for number in (0, 2, 3)
    ]
    assert (set(begun[:2]), begun[2:]) == ({turns[0].name, turns[1].name}, [turns[2].name, turns[3].name])
    assert sorted(ended) == sorted(turn.name for turn in turns)
    assert [playground.prompts().count(prompt) for prompt in prompts] == [1, 1, 1, 1]


async def test_before_its_browser(state_directory: Path, playground: PlaygroundProcess) -> None:
    """A server that is up before its Chrome waits for it; a turn waits too, and nothing fails (SES-08, O-115)."""
    with fresh_profile() as profile:
        (state_directory / "tabmuxd.toml").write_text(f'[browsers.main]\naddress = "{profile}"\n')
        server = Server(state_directory, playground.port)
        try:
            server.begin()
            await server.tabs.GetServerInfo(GetServerInfoRequest(), wait_for_ready=True, timeout=2 * LIMIT)
            one, prompt = await talk(server), unique()
            assert await reason(one.recover()) == "BROWSER_UNREACHABLE"
            turn = await one.ask(prompt)
            with running_chromium(profile):
                end = await end_of(server, turn)
                await server.terminate()
        finally:
            await server.close()
    assert (end.state, end.answer_markdown, end.error.reason) == (SUCCEEDED, answer_to(prompt), "")


# The way back


async def test_recover_session(server: Server, person: Person, playground: PlaygroundProcess) -> None:
    """RecoverSession brings a session home from wherever it is, and sends no prompt (SES-01, SES-02, O-140, O-135)."""
    one = await talk(server)
    fresh = await one.recover()
    tab = fresh.session.tab
    assert (fresh.strategy, fresh.previous_tab) == (RecoverSessionResponse.STRATEGY_NEW_TAB, "")
    assert (await got(server, Tab(name=tab))).uri == start_page(server)
    prompt = unique()
    assert (await one.answer(prompt)).state == SUCCEEDED
    before = await one.session()
    assert before.tab == tab
    unchanged = await one.recover()
    assert (unchanged.strategy, unchanged.session) == (RecoverSessionResponse.STRATEGY_NONE, before)

    for elsewhere in ("about:blank", start_page(server)):
        page = await person.attach((await got(server, Tab(name=tab))).target_id)
        await person.call("Page.navigate", page, url=elsewhere)
        await server.tabs_when(lambda tabs, there=elsewhere: tabs[0].uri == there)  # type: ignore[misc]
        refused = await one.answer(unique())
        assert refused.error.reason in {"PROVIDER_NOT_SHOWN", "PROVIDER_CONVERSATION_CHANGED"}
        back = await one.recover()
        assert (back.strategy, back.previous_tab) == (RecoverSessionResponse.STRATEGY_NAVIGATED, tab)
        assert (await got(server, Tab(name=tab))).uri == before.conversation_uri

    page = await person.attach((await got(server, Tab(name=tab))).target_id)
    for offline in (True, False):
        conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        await person.call("Network.emulateNetworkConditions", page, **conditions)
        if offline:
            await person.call("Page.navigate", page, url=before.conversation_uri)
    assert (await one.recover()).strategy == RecoverSessionResponse.STRATEGY_NAVIGATED

    await person.close((await got(server, Tab(name=tab))).target_id)
    answering = asyncio.ensure_future(one.answer(unique()))
    recovering = asyncio.ensure_future(server.tabs.RecoverTab(RecoverTabRequest(name=tab), timeout=3 * LIMIT))
    sessions = [back.session.tab for back in await asyncio.gather(*(one.recover() for _ in range(4)))]
    third, recovered = await answering, await recovering
    now = await got(server, Tab(name=tab))
    assert (third.state, recovered.tab.name, sessions) == (SUCCEEDED, tab, [tab] * 4)
    assert (now.generation, now.recovery_count, now.uri) == (2, 1, before.conversation_uri)
    assert list(await server.page_targets()) == [now.target_id]
    after = await one.session()
    assert (after.recovery_count, after.close_count, after.state) == (1, 1, Session.STATE_ACTIVE)

    await closed(server, now)
    anew = await one.recover()
    assert (anew.strategy, anew.previous_tab) == (RecoverSessionResponse.STRATEGY_NEW_TAB, "")
    assert (await got(server, Tab(name=anew.session.tab))).uri == before.conversation_uri
    assert [sent for sent in playground.prompts() if sent == prompt] == [prompt]
    assert (await one.answer(unique())).state == SUCCEEDED
    assert (await one.session()).conversation_uri == before.conversation_uri


async def test_recover_in_vain(server: Server) -> None:
    """Without room it is TAB_CAPACITY at once; while a turn waits for a tab that gets it one (O-43, O-140).

    A retired session does not come back.
    """
    one = await talk(server)
    in_the_way = [await opened(server, pinned=True) for _ in range(3)]
    assert await reason(one.recover()) == "TAB_CAPACITY"
    turn = await one.ask(unique())
    refused = await refusal(one.recover())
    assert (refused.reason, refused.metadata["turn"]) == ("TURN_IN_PROGRESS", turn.name)
    await closed(server, in_the_way[0], force=True)
    assert (await end_of(server, turn)).state == SUCCEEDED
    await server.ai.RetireSession(RetireSessionRequest(name=one.name), timeout=LIMIT)
    assert await reason(one.recover()) == "SESSION_RETIRED"


async def test_no_address(server: Server, person: Person, playground: PlaygroundProcess) -> None:
    """A conversation whose address was never known is not gone on with in a fresh chat (SES-03, O-140)."""
    one = await talk(server)
    turn = await one.ask(unique("{{plain=1 commit=30}}"))
    request = WatchSessionsRequest(sessions=[one.name], bookmark_interval=Duration(seconds=1))
    request.start.snapshot.SetInParent()
    async with watching(server.ai.WatchSessions(request)) as watch:
        await watch.until(lambda event: event.turn.state == Turn.STATE_SUBMITTING)
    await person.close((await got(server, Tab(name=(await one.session()).tab))).target_id)
    lost = await end_of(server, turn)
    recovery = await refusal(one.recover())
    prompt = unique()
    again = await one.answer(prompt)
    assert [failure.metadata["cause"] for failure in (lost.error, recovery, again.error)] == ["no_address"] * 3
    assert [failure.reason for failure in (lost.error, recovery, again.error)] == ["RECOVERY_FAILED"] * 3
    assert (again.error.metadata["page_touched"], prompt in playground.prompts()) == ("no", False)
    listed = (await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)).tabs
    assert [tab.state for tab in listed] == [Tab.STATE_LOST]
