"""Conversations with the local chat pages, over a real server and a real browser."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.event_pb2 import ChangeCause
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import CloseTabRequest, GetTabRequest, NavigateTabRequest
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CreateSessionRequest,
    GetSessionRequest,
    GetTurnRequest,
    SendPromptRequest,
    StreamAnswerRequest,
    WaitTurnRequest,
    WatchSessionsRequest,
)
from tabmuxd.playground.answers import answer_to

from tests.e2e.person import Person
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server, ended
from tests.e2e.watching import Watching, watching

PROVIDERS = ("playground-textarea", "playground-editor", "playground-shadow")
TEXTAREA = PROVIDERS[0]
SHORT = "{{plain=1 seconds=0.3 think=0.05}}"
LONG = "{{plain=1 seconds=60 think=0.05}}"

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


@dataclass(frozen=True)
class Talk:
    """One session."""

    server: Server
    name: str

    async def ask(
        self,
        text: str,
        *,
        request_id: str = "",
        answer_timeout: int = 60,
        attachments: Sequence[str] = (),
        model: str = "",
    ) -> Turn:
        """Send a prompt."""
        request = SendPromptRequest(
            parent=self.name, request_id=request_id or uuid4().hex, attachments=attachments, model=model
        )
        request.prompt.text = text
        request.answer_timeout.FromSeconds(answer_timeout)
        return (await self.server.ai.SendPrompt(request, timeout=LIMIT)).turn

    async def answer(self, text: str, **fields: Fields) -> Turn:
        """Send a prompt, and wait for the end."""
        return await self.end(await self.ask(text, **fields))

    async def end(self, turn: Turn) -> Turn:
        """The turn once it has ended."""
        request = WaitTurnRequest(name=turn.name, max_wait_duration=Duration(seconds=60))
        found = (await self.server.ai.WaitTurn(request, timeout=4 * LIMIT)).turn
        assert ended(found), found
        return found

    async def text(self, turn: Turn) -> str:
        """What there is of an answer once there is any."""
        call = self.server.ai.StreamAnswer(StreamAnswerRequest(name=turn.name), timeout=2 * LIMIT)
        async for reply in call:
            if reply.text:
                call.cancel()
                return reply.text
        raise AssertionError("it ended without a text")

    async def cancel(self, turn: Turn, *, timeout: float = LIMIT) -> Turn:
        """Cancel a turn."""
        return (await self.server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=timeout)).turn

    async def session(self) -> Session:
        """The session as it stands."""
        return (await self.server.ai.GetSession(GetSessionRequest(name=self.name), timeout=LIMIT)).session

    async def tab(self) -> Tab:
        """The session's tab as it stands."""
        name = (await self.session()).tab
        return (await self.server.tabs.GetTab(GetTabRequest(name=name), timeout=LIMIT)).tab

    def watch(self) -> AbstractAsyncContextManager[Watching]:
        """A watch of session and turns."""
        request = WatchSessionsRequest(sessions=[self.name], bookmark_interval=Duration(seconds=1))
        request.start.snapshot.SetInParent()
        return watching(self.server.ai.WatchSessions(request))

    def watch_all(self) -> AbstractAsyncContextManager[Watching]:
        """A watch of session, turns, tab and lease."""
        request = WatchSessionsRequest(sessions=[self.name], with_tabs=True, bookmark_interval=Duration(seconds=1))
        request.start.snapshot.SetInParent()
        return watching(self.server.ai.WatchSessions(request))

    async def when(self, turn: Turn, state: Turn.State.ValueType) -> None:
        """Return once the turn is or was in this state."""
        async with self.watch() as watch:
            await watch.until(lambda event: event.turn.name == turn.name and event.turn.state >= state)


async def talk(server: Server, provider: str = TEXTAREA) -> Talk:
    """A new session."""
    answer = await server.ai.CreateSession(CreateSessionRequest(provider=provider), timeout=LIMIT)
    return Talk(server, answer.session.name)


def unique(directives: str = SHORT) -> str:
    """A prompt that occurs nowhere else."""
    return f"Prompt {uuid4().hex} {directives}"


# Prompts


async def test_three_at_once(server: Server) -> None:
    """Three providers are asked at once in three tabs behind one another; each answers its own prompt (SUB-01)."""
    talks = [await talk(server, provider) for provider in PROVIDERS]
    prompts = [unique() for _ in talks]
    turns = await asyncio.gather(*(one.answer(prompt) for one, prompt in zip(talks, prompts, strict=True)))
    assert [(turn.state, turn.answer_markdown) for turn in turns] == [
        (Turn.STATE_SUCCEEDED, answer_to(prompt)) for prompt in prompts
    ]
    assert all(turn.completion.done_mark for turn in turns)
    assert len({(await one.session()).tab for one in talks}) == 3


PROMPTS = {
    "lines": "one\ntwo\n\n\tthree   four\nfive",
    "emoji": "👩‍👩‍👧‍👦 e\u0301 ﷽ 🏳️‍🌈 \U0001f600",
    "rtl": "שלום עולם \u202eabc\u202c مرحبا",
    "slash": "/command and @name",
    "markup": "<b>bold</b> <script>alert(1)</script> & `code` **x** \\n ${1}",
    "quotes": "'\"`´‘’“”\\",
    "long": "0123456789 é" * 5000,
    "awkward": "\u00a0non\u00a0breaking\u2028separator\u200bzero",
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(text, id=name, marks=[] if name in {"lines", "long", "awkward"} else pytest.mark.long)
        for name, text in PROMPTS.items()
    ],
)
async def test_prompts(server: Server, playground: PlaygroundProcess, provider: str, text: str) -> None:
    """Exactly the text of the prompt is sent, once, whatever is in it (SUB-06, SUB-07)."""
    prompt = f"{text} {unique()}"
    turn = await (await talk(server, provider)).answer(prompt)
    assert turn.state == Turn.STATE_SUCCEEDED, turn.error
    mark = prompt[-60:]
    assert [sent for sent in playground.prompts() if sent.endswith(mark)] == [prompt]
    assert turn.answer_markdown == answer_to(prompt)
    assert turn.prompt_sha256 == hashlib.sha256(prompt.encode()).hexdigest()


@pytest.mark.parametrize("text", ["{0}\r\nwindows {1}", "  {0} blanks around {1}\n\n", "nul\u0000 {0} bell\u0007 {1}"])
async def test_odd_prompts(server: Server, playground: PlaygroundProcess, text: str) -> None:
    """A prompt that a page may not be able to hold as it is is sent but for line ends, or refused before the press."""
    prompt = text.format(uuid4().hex, SHORT)
    one = await talk(server)
    turn = await one.answer(prompt)
    sent = [found for found in playground.prompts() if prompt.split()[1] in found or prompt.split()[0] in found]
    if turn.state == Turn.STATE_SUCCEEDED:
        assert sent == [prompt.replace("\r\n", "\n")]
    else:
        assert (turn.error.reason, turn.error.metadata["page_touched"]) == ("PROVIDER_COMPOSER_UNUSABLE", "no")
        assert sent == []
        assert (await one.answer(unique())).state == Turn.STATE_SUCCEEDED


async def test_follow_up(server: Server, playground: PlaygroundProcess) -> None:
    """A second prompt goes to the same conversation, and gets its own answer, also an equal one (SUB-16, SUB-20)."""
    one = await talk(server)
    prompt = unique()
    first = await one.answer(prompt)
    before = await one.session()
    second = await one.answer(prompt)
    third = await one.answer(unique())
    after = await one.session()
    assert [turn.state for turn in (first, second, third)] == [Turn.STATE_SUCCEEDED] * 3
    assert first.answer_markdown == second.answer_markdown != third.answer_markdown
    assert (before.tab, before.conversation_uri) == (after.tab, after.conversation_uri)
    assert (after.last_turn, after.open_turn, after.close_count) == (third.name, "", 0)
    assert playground.prompts().count(prompt) == 2


async def test_request_id(server: Server, playground: PlaygroundProcess) -> None:
    """The same request id is the same turn, also at once and after its end; another text is refused (O-133)."""
    one = await talk(server)
    prompt = unique()
    turns = await asyncio.gather(*(one.ask(prompt, request_id="same") for _ in range(5)))
    assert {turn.name for turn in turns} == {turns[0].name}
    end = await one.end(turns[0])
    assert await one.ask(prompt, request_id="same") == end
    assert await reason(one.ask(unique(), request_id="same")) == "REQUEST_ID_REUSED"
    assert playground.prompts().count(prompt) == 1


async def test_in_progress(server: Server) -> None:
    """Two prompts at once are one turn and one TURN_IN_PROGRESS, which names the turn (SUB-15, O-133)."""
    one = await talk(server)
    answers = await asyncio.gather(*(one.ask(unique(LONG)) for _ in range(2)), return_exceptions=True)
    turn = next(answer for answer in answers if isinstance(answer, Turn))
    refused = await refusal(one.ask(unique()))
    assert (refused.reason, refused.metadata["turn"]) == ("TURN_IN_PROGRESS", turn.name)
    assert sum(isinstance(answer, Turn) for answer in answers) == 1
    await one.cancel(turn)
    assert (await one.answer(unique())).state == Turn.STATE_SUCCEEDED


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_draft(server: Server, person: Person, playground: PlaygroundProcess, provider: str) -> None:
    """A draft that somebody left is never sent along nor deleted: PROVIDER_COMPOSER_UNUSABLE (SUB-08)."""
    one = await talk(server, provider)
    await one.answer(unique())
    page = await person.attach((await one.tab()).target_id)
    box = "(document.querySelector('chat-app')?.shadowRoot ?? document).querySelector('#prompt')"
    await person.evaluate(page, f"{box}.focus()")
    await person.call("Input.insertText", page, text="Dear diary")
    prompt = unique()
    turn = await one.answer(prompt)
    assert (turn.state, turn.error.reason) == (Turn.STATE_FAILED, "PROVIDER_COMPOSER_UNUSABLE")
    assert (turn.error.metadata["cause"], turn.error.metadata["page_touched"]) == ("occupied", "no")
    assert "Dear diary" in await person.evaluate(page, f"{box}.value ?? {box}.innerText")
    assert prompt not in playground.prompts()
    assert "diary" not in str(turn)


# Answers


@pytest.mark.parametrize(
    "directives",
    [
        "{{plain=1 seconds=1 pause=3}}",
        "{{plain=1 seconds=1 stop_gap=3}}",
        "{{plain=1 seconds=1 placeholder=1}}",
        pytest.param("{{plain=1 seconds=1 commit=3}}", marks=pytest.mark.long),
        pytest.param("{{plain=1 seconds=1 think=3}}", marks=pytest.mark.long),
        "{{plain=1 seconds=0 think=0}}",
        "{{characters=1 seconds=0.2}}",
        "{{characters=60000 seconds=1}}",
    ],
)
async def test_whole(server: Server, directives: str) -> None:
    """An answer is whole, whatever silences are in it (FIN-01, FIN-02, FIN-03, FIN-11, FIN-12, FIN-20)."""
    prompt = unique(directives)
    turn = await (await talk(server)).answer(prompt)
    assert (turn.state, turn.error.reason) == (Turn.STATE_SUCCEEDED, "")
    assert turn.answer_markdown == answer_to(prompt)
    assert turn.answer_size_bytes == len(answer_to(prompt).encode())


async def test_failure_banner(server: Server) -> None:
    """An error banner is PROVIDER_FAILED and never the answer; a late one leaves the text there was (FIN-07)."""
    one = await talk(server)
    turn = await one.answer(unique("{{plain=1 seconds=0.3 fail=banner}}"))
    assert (turn.state, turn.error.reason, turn.answer_markdown) == (Turn.STATE_FAILED, "PROVIDER_FAILED", "")
    assert turn.error.metadata["page_touched"] == "yes"
    prompt = unique("{{plain=1 seconds=0.5 fail=late}}")
    late = await (await talk(server)).answer(prompt)
    assert (late.state, late.error.reason) == (Turn.STATE_FAILED, "PROVIDER_FAILED")
    assert late.answer_markdown
    assert answer_to(prompt).startswith(late.answer_markdown)


@pytest.mark.parametrize(
    "directives",
    ["{{plain=1 seconds=1 fail=cut}}", pytest.param("{{plain=1 seconds=1 done=never}}", marks=pytest.mark.long)],
)
async def test_without_finished_mark(server: Server, directives: str) -> None:
    """Quiet text without its finished mark stays RUNNING, and ends in time with that text (O-137, FIN-04)."""
    prompt = unique(directives)
    one = await talk(server)
    turn = await one.ask(prompt, answer_timeout=1)
    assert turn.expire_time.ToNanoseconds() - turn.create_time.ToNanoseconds() == 10 * 10**9
    end = await one.end(turn)
    assert (end.state, end.error.reason) == (Turn.STATE_FAILED, "ANSWER_TIMEOUT")
    assert end.answer_markdown
    assert answer_to(prompt).startswith(end.answer_markdown)
    assert end.error.metadata["page_touched"] == "yes"


async def test_wait_runs_out(server: Server) -> None:
    """A wait whose time is over gives the turn as it is; one above a revision ends with the next change (FIN-06)."""
    one = await talk(server)
    turn = await one.ask(unique(LONG))
    await one.when(turn, Turn.STATE_RUNNING)
    request = WaitTurnRequest(name=turn.name, max_wait_duration=Duration(nanos=1))
    now = (await server.ai.WaitTurn(request, timeout=LIMIT)).turn
    assert now.state == Turn.STATE_RUNNING
    waiting = asyncio.ensure_future(
        server.ai.WaitTurn(WaitTurnRequest(name=turn.name, after_revision=now.revision), timeout=2 * LIMIT)
    )
    cancelled = await one.cancel(turn)
    assert (await waiting).turn == cancelled


# Cancelling


async def test_cancel_running(server: Server) -> None:
    """A running answer is stopped in the page, and its text kept; cancelling again gives the turn as it is (FIN-05)."""
    one = await talk(server)
    prompt = unique(LONG)
    turn = await one.ask(prompt)
    await one.text(turn)
    cancelled = await one.cancel(turn)
    assert (cancelled.state, list(cancelled.warnings)) == (Turn.STATE_CANCELLED, [])
    assert cancelled.answer_markdown
    assert answer_to(prompt).startswith(cancelled.answer_markdown)
    assert await one.cancel(turn) == cancelled
    assert (await one.answer(unique())).state == Turn.STATE_SUCCEEDED


async def test_cancel_early(server: Server) -> None:
    """A turn that is cancelled at once, or before the page shows it, ends CANCELLED, and the next prompt works."""
    one = await talk(server)
    prompt = unique(LONG)
    turn = await one.ask(prompt)
    assert (await one.cancel(turn)).state == Turn.STATE_CANCELLED
    slow = await one.ask(unique("{{plain=1 commit=30}}"))
    await one.when(slow, Turn.STATE_SUBMITTING)
    cancelled = await one.cancel(slow)
    assert cancelled.state == Turn.STATE_CANCELLED
    assert (await one.session()).open_turn == ""


async def test_cancel_unconfirmed(server: Server, person: Person) -> None:
    """Where the page is not seen to stop, the turn is CANCELLED with the warning `stop-unconfirmed`."""
    one = await talk(server)
    turn = await one.ask(unique(LONG))
    await one.text(turn)
    page = await person.attach((await one.tab()).target_id)
    await person.send("Runtime.evaluate", page, expression="for (;;);")
    cancelled = await one.cancel(turn, timeout=2 * LIMIT)
    assert cancelled.state == Turn.STATE_CANCELLED
    assert [warning.code for warning in cancelled.warnings] == ["stop-unconfirmed"]


async def test_cancel_given_up(server: Server) -> None:
    """A CancelTurn whose client goes away in the middle still ends the turn (O-138, O-139)."""
    one = await talk(server)
    turn = await one.ask(unique(LONG))
    await one.text(turn)
    call = server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=0.02)
    await asyncio.gather(call, return_exceptions=True)
    assert (await one.cancel(turn)).state == Turn.STATE_CANCELLED


async def test_cancel_twice_at_once(server: Server) -> None:
    """Several CancelTurn at once all answer with the cancelled turn, and a repeat of the prompt does not revive it."""
    one = await talk(server)
    prompt = unique(LONG)
    turn = await one.ask(prompt, request_id="r")
    await one.text(turn)
    cancels = [asyncio.ensure_future(one.cancel(turn)) for _ in range(4)]
    await one.ask(prompt, request_id="r")
    cancelled = await asyncio.gather(*cancels)
    assert {one.state for one in cancelled} == {Turn.STATE_CANCELLED}
    assert all(each == cancelled[0] for each in cancelled)


# Streams


async def test_stream_resumed(server: Server) -> None:
    """A reader that is cut off at every reply and resumes has the whole answer at the end, by rules A1 to A7."""
    one = await talk(server)
    prompt = unique("{{seconds=3 characters=3000}} é€😀")
    turn = await one.ask(prompt)
    text = b""
    cuts = 0
    while True:
        known = hashlib.sha256(text).hexdigest() if text else ""
        request = StreamAnswerRequest(name=turn.name, known_size_bytes=len(text), known_sha256=known)
        call = server.ai.StreamAnswer(request, timeout=2 * LIMIT)
        read = 0
        last = None
        async for reply in call:
            assert reply.offset_bytes <= len(text)
            text = text[: reply.offset_bytes] + reply.text.encode()
            assert len(text) == reply.size_bytes
            text.decode()
            assert read or reply.HasField("turn")
            last = reply
            read += 1
            if read == 2 and not reply.sha256:
                call.cancel()
                break
        if last is not None and last.sha256:
            break
        cuts += 1
    assert cuts > 3
    assert ended(last.turn)
    assert text.decode() == answer_to(prompt) == (await one.end(turn)).answer_markdown
    assert last.sha256 == hashlib.sha256(text).hexdigest()


# What persons and others do meanwhile


async def test_another_conversation(server: Server, person: Person, playground: PlaygroundProcess) -> None:
    """A person who takes the tab elsewhere in mid-answer: PROVIDER_CONVERSATION_CHANGED, text kept (O-135, FIN-17).

    The next prompt is not typed there either.
    """
    other, one = await talk(server), await talk(server)
    await other.answer(unique())
    turn = await one.ask(unique(LONG))
    await one.text(turn)
    page = await person.attach((await one.tab()).target_id)
    await person.call("Page.navigate", page, url=(await other.session()).conversation_uri)
    end = await one.end(turn)
    assert (end.state, end.error.reason) == (Turn.STATE_FAILED, "PROVIDER_CONVERSATION_CHANGED")
    assert end.answer_markdown
    assert end.error.metadata["page_touched"] == "yes"
    prompt = unique()
    again = await one.answer(prompt)
    assert (again.state, again.error.reason) == (Turn.STATE_FAILED, "PROVIDER_CONVERSATION_CHANGED")
    assert again.error.metadata["page_touched"] == "no"
    assert prompt not in playground.prompts()


async def test_elsewhere(server: Server, person: Person) -> None:
    """A tab that a person takes away from the provider: PROVIDER_NOT_SHOWN, nothing is typed."""
    one = await talk(server)
    await one.answer(unique())
    page = await person.attach((await one.tab()).target_id)
    await person.call("Page.navigate", page, url="about:blank")
    turn = await one.answer(unique())
    assert (turn.state, turn.error.reason) == (Turn.STATE_FAILED, "PROVIDER_NOT_SHOWN")


async def test_reloaded(server: Server, person: Person) -> None:
    """A reload in mid-answer is no failure: the page script is put in again, and the answer is whole (FIN-18)."""
    one = await talk(server)
    prompt = unique("{{plain=1 seconds=4}}")
    turn = await one.ask(prompt)
    await one.text(turn)
    page = await person.attach((await one.tab()).target_id)
    await person.call("Page.reload", page)
    end = await one.end(turn)
    assert (end.state, end.answer_markdown) == (Turn.STATE_SUCCEEDED, answer_to(prompt))


async def test_driven_meanwhile(server: Server) -> None:
    """While a turn is open its tab is held: NavigateTab is LEASE_HELD, CloseTab TAB_BUSY (O-15, O-38, TAB-07).

    By force it closes at once; the turn fails with TAB_CLOSED and its text, and the next prompt gets a new tab.
    """
    one = await talk(server)
    prompt = unique(LONG)
    turn = await one.ask(prompt)
    await one.text(turn)
    tab = await one.tab()
    assert tab.session == one.name
    assert tab.lease
    step = server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri="about:blank"), timeout=LIMIT)
    refused = await refusal(step)
    assert (refused.reason, refused.metadata["page_touched"]) == ("LEASE_HELD", "no")
    assert await reason(server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=LIMIT)) == "TAB_BUSY"
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=tab.name, force=True), timeout=LIMIT)).tab
    assert (closed.state, closed.session, closed.lease) == (Tab.STATE_CLOSED, "", "")
    end = await one.end(turn)
    assert (end.state, end.error.reason) == (Turn.STATE_FAILED, "TAB_CLOSED")
    assert end.answer_markdown
    parked = await one.session()
    assert (parked.tab, parked.open_turn, parked.close_count) == ("", "", 1)
    await asyncio.to_thread(PlaygroundProcess(server.playground_port).stop_answer, prompt)
    again = await one.answer(unique())
    assert again.state == Turn.STATE_SUCCEEDED
    assert (await one.session()).conversation_uri == parked.conversation_uri


async def test_closed_by_person(server: Server, person: Person, playground: PlaygroundProcess) -> None:
    """A tab that a person closes in mid-answer comes back at its conversation with its answer (TAB-06, SES-01).

    The same tab, one generation on, under the same lease; one prompt and one target; the next prompt works too.
    """
    one = await talk(server)
    prompt = unique("{{plain=1 seconds=4}}")
    turn = await one.ask(prompt)
    await one.text(turn)
    tab = await one.tab()
    async with one.watch_all() as watch:
        await person.close(tab.target_id)
        lost = await watch.until(lambda event: event.tab.state == Tab.STATE_LOST)
        away = await watch.until(lambda event: event.session.state == Session.STATE_RECOVERING)
        ready = (await watch.until(lambda event: event.tab.generation == tab.generation + 1)).tab
    end = await one.end(turn)
    after = await one.session()
    assert (lost.cause, lost.tab.session, lost.tab.lease) == (ChangeCause.CHANGE_CAUSE_PERSON, one.name, tab.lease)
    assert (away.session.tab, away.session.open_turn, away.session.close_count) == (tab.name, turn.name, 1)
    assert (ready.name, ready.state, ready.session, ready.lease) == (tab.name, Tab.STATE_READY, one.name, tab.lease)
    assert (end.state, end.answer_markdown, end.error.reason) == (Turn.STATE_SUCCEEDED, answer_to(prompt), "")
    assert (after.state, after.tab, after.recovery_count) == (Session.STATE_ACTIVE, tab.name, 1)
    assert playground.prompts().count(prompt) == 1
    # Another turn of this module may still be at work in a page of its own.
    targets = await server.page_targets()
    assert (ready.target_id in targets, tab.target_id in targets) == (True, False)
    next_prompt = unique()
    again = await one.answer(next_prompt)
    assert (again.state, again.answer_markdown) == (Turn.STATE_SUCCEEDED, answer_to(next_prompt))


async def test_crashed(server: Server, person: Person, playground: PlaygroundProcess) -> None:
    """A renderer that crashes in mid-answer is loaded again in its own target, and the answer is found (SES-05)."""
    one = await talk(server)
    prompt = unique("{{plain=1 seconds=4}}")
    turn = await one.ask(prompt)
    await one.text(turn)
    tab = await one.tab()
    page = await person.attach(tab.target_id)
    async with one.watch_all() as watch:
        await person.send("Page.crash", page)
        crashed = await watch.until(lambda event: event.tab.state == Tab.STATE_CRASHED)
        ready = (await watch.until(lambda event: event.tab.recovery_count == 1)).tab
    end = await one.end(turn)
    assert crashed.cause == ChangeCause.CHANGE_CAUSE_CRASH
    assert (ready.state, ready.target_id, ready.generation) == (Tab.STATE_READY, tab.target_id, tab.generation)
    assert (end.state, end.answer_markdown) == (Turn.STATE_SUCCEEDED, answer_to(prompt))
    assert playground.prompts().count(prompt) == 1
    assert (await one.session()).recovery_count == 1


async def test_closed_before_it_has_an_address(server: Server, person: Person) -> None:
    """A conversation that has no address yet is not brought back: `no_address`, and no fresh chat (SES-03, O-140)."""
    one = await talk(server)
    prompt = unique("{{plain=1 commit=30}}")
    turn = await one.ask(prompt)
    await one.when(turn, Turn.STATE_SUBMITTING)
    tab = await one.tab()
    await person.close(tab.target_id)
    end = await one.end(turn)
    after = await one.session()
    assert (end.state, end.error.reason, end.error.metadata["cause"]) == (
        Turn.STATE_FAILED,
        "RECOVERY_FAILED",
        "no_address",
    )
    assert (end.error.metadata["page_touched"], end.error.metadata["retry"]) == ("unknown", "after-verify")
    assert (after.tab, after.open_turn, after.state) == ("", "", Session.STATE_ACTIVE)
    assert [(each.state, each.session, each.lease) for each in await server.list_tabs()] == [(Tab.STATE_LOST, "", "")]
    assert await server.page_targets() == {}


async def test_parked(server: Server) -> None:
    """A tab that is closed between turns parks its session; the next prompt goes on in its conversation (O-141)."""
    one = await talk(server)
    await one.answer(unique())
    before = await one.session()
    await server.tabs.CloseTab(CloseTabRequest(name=before.tab), timeout=LIMIT)
    assert (await one.session()).tab == ""
    assert (await one.answer(unique())).state == Turn.STATE_SUCCEEDED
    after = await one.session()
    assert (after.conversation_uri, after.owner) == (before.conversation_uri, before.owner)
    assert after.tab not in {"", before.tab}


# Requests


async def test_refused(server: Server) -> None:
    """What cannot be sent is refused with its reason, and no turn is recorded (SEC-05, SEC-08)."""
    unknown = server.ai.CreateSession(CreateSessionRequest(provider="nobody"), timeout=LIMIT)
    assert await reason(unknown) == "PROVIDER_NOT_FOUND"
    port = server.playground_port
    for uri in (
        f"http://textarea.localhost:{port}/", f"http://user@textarea.localhost:{port}/c/0123456789ab",
        f"http://textarea.localhost.evil:{port}/c/0123456789ab", "http://textarea.localhost/c/0123456789ab",
        f"http://textarea.localhost:{port}/c/../c/0123456789ab", f"http://textarea.localhost:{port}/c%2f0123456789ab",
    ):  # fmt: skip
        request = CreateSessionRequest(provider=TEXTAREA, conversation_uri=uri)
        assert await reason(server.ai.CreateSession(request, timeout=LIMIT)) == "URI_NOT_ALLOWED", uri
    one = await talk(server)
    for text in ("", "  \n\t "):
        assert await reason(one.ask(text)) == "INVALID_FIELD"
    assert await reason(one.ask("x" * (1024 * 1024 + 1))) == "INVALID_FIELD"
    assert await reason(one.ask("x", request_id="no blanks")) == "INVALID_FIELD"
    assert (await one.session()).last_turn == ""
    missing = server.ai.GetTurn(GetTurnRequest(name=f"{one.name}/turns/0000000000"), timeout=LIMIT)
    assert await reason(missing) == "TURN_NOT_FOUND"


async def test_session_id(server: Server) -> None:
    """One session id five times at once is one session, made once; with another provider REQUEST_ID_REUSED (SES-13)."""
    request = CreateSessionRequest(provider=TEXTAREA, session_id=f"s-{uuid4().hex}")
    answers = await asyncio.gather(*(server.ai.CreateSession(request, timeout=LIMIT) for _ in range(5)))
    assert sorted(answer.created for answer in answers) == [False] * 4 + [True]
    assert all(answer.session == answers[0].session for answer in answers)
    request.provider = PROVIDERS[1]
    assert await reason(server.ai.CreateSession(request, timeout=LIMIT)) == "REQUEST_ID_REUSED"
