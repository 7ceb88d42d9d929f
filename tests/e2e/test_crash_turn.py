"""A turn whose server is killed, at each commit point, or whose page ignores it: it is settled once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import grpc.aio
import pytest
from tabmux.v1.event_pb2 import EventKind
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import GetTabRequest
from tabmux.v1.web_ai_service_pb2 import RetireSessionRequest

from tests.e2e.conversing import Conversation, end_of
from tests.e2e.killing import Mortal
from tests.e2e.serving import LIMIT, PlaygroundProcess, end_browsers

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(90),
]


@dataclass(frozen=True)
class Settled:
    """How a turn ended, its ends recorded, and how often its prompt was submitted to the page."""

    state: int
    reason: str
    page_touched: str
    end_count: int
    prompt_count: int


ANSWERED: Final = Settled(Turn.STATE_SUCCEEDED, "", "", 1, 1)
UNCONFIRMED: Final = Settled(Turn.STATE_FAILED, "SUBMIT_UNCONFIRMED", "unknown", 1, 0)


async def until_killed(server: Mortal, moment: str, conversation: Conversation) -> Turn | None:
    """Go through the conversation with a server that is killed at the moment; the turn, if its name was told."""
    turn: Turn | None = None
    server.kill_at(moment)
    try:
        await conversation.start(server)
        turn = await conversation.send(server)
        await end_of(server, turn)
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.UNAVAILABLE, error  # noqa: PT017 - how a call ends whose server dies
    await server.killed()
    return turn


@pytest.mark.parametrize(
    ("moment", "settled"),
    [
        pytest.param("session:before", ANSWERED, marks=pytest.mark.long),
        ("session:after", ANSWERED),
        ("pending:after", ANSWERED),
        pytest.param("opening:after", ANSWERED, marks=pytest.mark.long),
        pytest.param("created:after", ANSWERED, marks=pytest.mark.long),
        pytest.param("target:after", ANSWERED, marks=pytest.mark.long),
        pytest.param("ready:before", ANSWERED, marks=pytest.mark.long),
        ("ready:after", ANSWERED),
        ("type:before", ANSWERED),
        ("type:after", ANSWERED),
        pytest.param("submitting:before", ANSWERED, marks=pytest.mark.long),
        ("submitting:after", UNCONFIRMED),
        ("press:after", ANSWERED),
        pytest.param("running:before", ANSWERED, marks=pytest.mark.long),
        ("running:after", ANSWERED),
        pytest.param("end:before", ANSWERED, marks=pytest.mark.long),
        ("end:after", ANSWERED),
    ],
)
async def test_killed_at_commit_point(
    moment: str, settled: Settled, mortal: Mortal, playground: PlaygroundProcess
) -> None:
    """A turn whose server is killed is settled once (SUB-02, SUB-03, SES-07, O-129, O-132, O-133, O-143)."""
    conversation = Conversation()
    generation = (await mortal.browser()).generation
    _, before = await mortal.watch_since(None)
    told = await until_killed(mortal, moment, conversation)
    await mortal.revive(commit_wait=3 if settled == UNCONFIRMED else 0)

    created = await conversation.start(mortal)
    turn = await conversation.send(mortal)
    turn = await end_of(mortal, turn)
    again = await conversation.send(mortal)
    tabs = await mortal.tabs_when(lambda tabs: all(tab.state == Tab.STATE_READY for tab in tabs))
    events, _ = await mortal.watch_since(before)

    assert created == (moment == "session:before")
    assert {turn.name, again.name} == {turn.name if told is None else told.name}
    ends = [event for event in events if event.turn.name and event.kind == EventKind.EVENT_KIND_ENDED]
    failure = turn.error.metadata
    assert settled == Settled(
        turn.state,
        turn.error.reason,
        failure.get("page_touched", ""),
        len(ends),
        playground.prompts().count(conversation.text),
    )
    assert bool(turn.answer_markdown) == (settled == ANSWERED)
    session = await conversation.session(mortal)
    browser = await mortal.browser()
    counts = browser.tab_counts
    assert [(tab.name, tab.session, tab.lease) for tab in tabs] == [(session.tab, session.name, "")]
    assert (counts.managed_count, counts.lost_count, counts.foreign_count) == (1, 0, 0)
    assert list(await mortal.page_targets()) == [tab.target_id for tab in tabs]
    assert (session.open_turn, session.last_turn, browser.generation) == ("", turn.name, generation)


@pytest.mark.parametrize("moment", ["open:after", pytest.param("pick:after", marks=pytest.mark.long)])
async def test_killed_while_choosing(moment: str, mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A server that is killed while it chooses a model goes on, and sends the prompt once (SUB-02, SUB-17)."""
    conversation = Conversation(model="thorough")
    await until_killed(mortal, moment, conversation)
    await mortal.revive()

    turn = await end_of(mortal, await conversation.send(mortal))

    assert (turn.state, turn.error.reason, turn.model, turn.shown_model) == (
        Turn.STATE_SUCCEEDED,
        "",
        "thorough",
        "Thorough",
    )
    assert playground.prompts().count(conversation.text) == 1


async def test_next_prompt_after_unconfirmed(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """After a prompt that was typed and never pressed, the session takes the next one (SUB-03, SUB-08, O-132)."""
    conversation = Conversation()
    await until_killed(mortal, "press:before", conversation)
    await mortal.revive(commit_wait=6)
    unconfirmed = await end_of(mortal, await conversation.send(mortal))
    following = conversation.next()
    answered = await end_of(mortal, await following.send(mortal))

    assert (unconfirmed.error.reason, answered.error.reason) == ("SUBMIT_UNCONFIRMED", "")
    prompts = playground.prompts()
    assert (prompts.count(conversation.text), prompts.count(following.text)) == (0, 1)


async def test_press_ignored(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A page that ignores the press makes SUBMIT_UNCONFIRMED, nothing is pressed again (SUB-04, O-132)."""
    conversation = Conversation("{{press=ignore}}")
    await mortal.revive(commit_wait=3)
    await conversation.start(mortal)
    turn = await end_of(mortal, await conversation.send(mortal))
    assert (turn.state, turn.error.reason) == (Turn.STATE_FAILED, "SUBMIT_UNCONFIRMED")
    assert (turn.error.metadata["page_touched"], turn.error.metadata["retry"]) == ("unknown", "after-verify")
    assert conversation.text not in playground.prompts()
    assert not turn.HasField("submit_time")


async def test_killed_with_its_browser(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A turn whose server and browser are both gone goes on in its tab, in the next browser (SES-07, O-116, O-143)."""
    conversation = Conversation()
    generation = (await mortal.browser()).generation
    _, before = await mortal.watch_since(None)
    told = await until_killed(mortal, "running:after", conversation)
    end_browsers(mortal.state_directory)
    await mortal.revive()
    turn = await end_of(mortal, await conversation.send(mortal))
    events, _ = await mortal.watch_since(before)
    session, browser = await conversation.session(mortal), await mortal.browser()
    tabs = await mortal.list_tabs()

    assert told is not None
    ends = [event.turn.name for event in events if event.turn.name and event.kind == EventKind.EVENT_KIND_ENDED]
    assert (ends, turn.state, turn.error.reason) == ([told.name], Turn.STATE_SUCCEEDED, "")
    assert (session.open_turn, browser.generation) == ("", generation + 1)
    assert [(tab.name, tab.session, tab.state) for tab in tabs] == [(session.tab, session.name, Tab.STATE_READY)]
    assert [*await mortal.page_targets()] == [tab.target_id for tab in tabs]
    assert playground.prompts().count(conversation.text) == 1


@pytest.mark.parametrize("moment", ["end:before", "end:after"])
async def test_released_over_a_crash(mortal: Mortal, moment: str) -> None:
    """Killed around a success that gives the tab back, both happen or neither, at last both (O-142, O-143)."""
    conversation = Conversation(release=True)
    await until_killed(mortal, moment, conversation)
    await mortal.revive()

    turn = await end_of(mortal, await conversation.send(mortal))
    (tab,) = await mortal.tabs_when(lambda tabs: all(tab.state == Tab.STATE_READY for tab in tabs))

    session = await conversation.session(mortal)
    assert (turn.state, session.tab, session.state) == (Turn.STATE_SUCCEEDED, "", Session.STATE_ACTIVE)
    assert (tab.pooled, tab.session, tab.owner, tab.lease) == (True, "", "", "")


async def test_retired_over_a_crash(mortal: Mortal) -> None:
    """A tab whose session was retired is closed by the next server if it was not before (O-142, O-127)."""
    conversation = Conversation()
    await conversation.start(mortal)
    await end_of(mortal, await conversation.send(mortal))
    name = (await conversation.session(mortal)).tab
    request = RetireSessionRequest(
        name=f"sessions/{conversation.session_id}", tab_disposition=RetireSessionRequest.TAB_DISPOSITION_CLOSE
    )
    mortal.kill_at("retired:after")
    with pytest.raises(grpc.aio.AioRpcError):
        await mortal.ai.RetireSession(request, timeout=LIMIT)
    await mortal.killed()
    await mortal.revive()

    await mortal.tabs_when(lambda tabs: not tabs)

    closed = (await mortal.tabs.GetTab(GetTabRequest(name=name), timeout=LIMIT)).tab
    retired = (await mortal.ai.RetireSession(request, timeout=LIMIT)).session
    assert (closed.state, closed.close_cause) == (Tab.STATE_CLOSED, Tab.CLOSE_CAUSE_SESSION)
    assert (retired.state, retired.tab) == (Session.STATE_RETIRED, "")
