"""Answers of the hostile page: each is taken whole and once, or the turn ends with its true reason."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    SendPromptRequest,
    StreamAnswerRequest,
    StreamAnswerResponse,
)
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub

from tests.e2e.person import Person
from tests.e2e.serving import LIMIT, Server, ended
from tests.e2e.test_conversations import Talk
from tests.hostile.cases import GROUPS, LONG, Case, Ended
from tests.hostile.descriptors import describe
from tests.hostile.script import HELD, Answer, answer, grow, plain, show
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a case, each on a host of its own."""

    def write(directory: Path) -> None:
        describe(directory, site, provider="plain", host="plain.localhost")
        describe(directory, site, "no-address", provider="no-address", host="no-address.localhost")
        late = {"done_quiet": 4.0, "last_done_quiet": 4.0}
        describe(directory, site, provider="late", host="late.localhost", windows=late)
        for group in GROUPS.values():
            for name, case in group.items():
                describe(
                    directory,
                    site,
                    case.variant,
                    provider=name,
                    host=f"{name}.localhost",
                    page=case.page,
                    windows=case.windows,
                )

    return write


def unique() -> str:
    """A prompt that occurs nowhere else."""
    return f"Prompt {uuid4().hex}"


async def talk(server: Server, provider: str, conversation: str = "") -> Talk:
    """A new session, in a conversation that is there already if one is named."""
    request = CreateSessionRequest(provider=provider, conversation_uri=conversation)
    return Talk(server, (await server.ai.CreateSession(request, timeout=LIMIT)).session.name)


async def outcome(server: Server, site: Site, name: str, case: Case) -> Ended:
    """Go through a case."""
    conversation = ""
    if case.earlier:
        conversation = site.at(case.variant, site.begin(case.earlier), host=f"{name}.localhost")
    one = await talk(server, name, conversation)
    prompt = site.answer(unique(), case.answer)
    turn = await one.answer(prompt, answer_timeout=case.timeout)
    codes = tuple(warning.code for warning in turn.warnings)
    return Ended(turn.answer_markdown, turn.error.reason, codes, turn.state, len(site.received(prompt)))


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=pytest.mark.long if name in {"slow", "unusual"} else ()) for name in GROUPS]
)
async def test_cases(group: str, server: Server, site: Site) -> None:
    """Each answer is SUCCEEDED with all of it and no more, or ended with its true reason and what there was.

    (FIN-01, FIN-02, FIN-03, FIN-04, FIN-07, FIN-09, FIN-10, FIN-11, FIN-12, FIN-13, FIN-14, FIN-15, FIN-16, FIN-18,
    FIN-19, FIN-20, FIN-21, FIN-22, FIN-23, FIN-26, O-136, O-137)
    """
    cases = GROUPS[group]
    room = asyncio.Semaphore(8)

    async def go(name: str) -> Ended:
        async with room:
            return await outcome(server, site, name, cases[name])

    ends = await asyncio.gather(*(go(name) for name in cases))

    assert dict(zip(cases, ends, strict=True)) == {name: _at(case.ended, site) for name, case in cases.items()}


def _at(end: Ended, site: Site) -> Ended:
    return replace(end, text=end.text.replace("PORT", str(site.port)))


async def test_follow_up(server: Server, site: Site) -> None:
    """Prompts in one conversation get their own answers, each once (SUB-20, O-136)."""
    one = await talk(server, "nested")
    prompts = [unique() for _ in range(3)]
    for prompt in prompts:
        site.answer(prompt, plain(f"Answer to: {prompt}"))

    turns = [await one.answer(prompt) for prompt in prompts]

    assert [turn.answer_markdown for turn in turns] == [f"Answer to: {prompt}" for prompt in prompts]
    assert [len(site.received(prompt)) for prompt in prompts] == [1, 1, 1]


async def test_elsewhere_without_an_address(server: Server, site: Site, person: Person) -> None:
    """A conversation to which a person goes is never taken for the session's, also if that has no address yet (O-135).

    Nothing of it is taken, and the next prompt is not typed there (FIN-17).
    """
    other = site.at("no-address", site.begin([("Hello", "Not for you")]), host="no-address.localhost")
    one = await talk(server, "no-address")
    prompt = site.answer(unique(), answer(show(0.05), grow("half", 0.1, pieces=1), show(HELD)))
    turn = await one.ask(prompt)
    await one.text(turn)
    page = await person.attach((await one.tab()).target_id)
    await person.evaluate(page, f"location.href = '{other}'")
    await server.tabs_when(lambda tabs: any(tab.uri == other for tab in tabs))
    cancelled = await one.cancel(turn)
    session = await one.session()
    again = await one.answer(unique())

    assert (cancelled.state, cancelled.answer_markdown) == (Turn.STATE_CANCELLED, "half")
    assert session.conversation_uri == ""
    assert (again.error.reason, again.error.metadata["page_touched"]) == ("PROVIDER_CONVERSATION_CHANGED", "no")


@pytest.mark.long
async def test_last_look(server: Server, site: Site) -> None:
    """An answer whose mark comes shortly before its time is over is taken by one last, longer look (FIN-04)."""
    one = await talk(server, "late")
    await one.answer(unique())
    turn = await one.ask(site.answer(unique(), answer(grow(LONG, 8.0), show(0, stop=0, done=True))), answer_timeout=10)
    end = await one.end(turn)

    assert (end.state, end.answer_markdown, end.error.reason) == (Turn.STATE_SUCCEEDED, LONG, "")
    assert end.end_time.ToDatetime() > end.expire_time.ToDatetime()


async def test_frozen(server: Server, site: Site, person: Person) -> None:
    """A tab that is frozen in mid-answer, behind another one, is observed to its end, and does not fail (FIN-19)."""
    one, other = await talk(server, "plain"), await talk(server, "nested")
    await other.answer(unique())
    held = answer(grow(LONG[:300], 0.3), show(HELD), grow(LONG, 0.5), show(0, stop=0, done=True))
    prompt = site.answer(unique(), held)
    turn = await one.ask(prompt)
    await one.text(turn)
    await person.raise_page((await other.tab()).target_id)
    page = await person.attach((await one.tab()).target_id)
    async with one.watch() as watch:
        await person.call("Page.setWebLifecycleState", page, state="frozen")
        await watch.until(lambda event: event.turn.name == turn.name and event.turn.stalled)
    site.go_on(prompt)
    await person.call("Page.setWebLifecycleState", page, state="active")
    end = await one.end(turn)

    assert (end.state, end.answer_markdown, end.error.reason) == (Turn.STATE_SUCCEEDED, LONG, "")


# Streams


def _read(replies: list[StreamAnswerResponse]) -> tuple[str, list[tuple[int, bool]]]:
    """The text that a reader has in the end, and state and `stalled` of each turn told, by the rules A1, A2, A5, A6."""
    text = b""
    for reply in replies:
        assert 0 <= reply.offset_bytes <= len(text)
        text = text[: reply.offset_bytes] + reply.text.encode()
        assert reply.size_bytes == len(text)
        text.decode()
    finals = [reply.HasField("turn") and ended(reply.turn) for reply in replies]
    assert finals == [False] * (len(replies) - 1) + [True]
    assert replies[0].HasField("turn")
    assert [bool(reply.sha256) for reply in replies] == finals
    assert replies[-1].sha256 == hashlib.sha256(text).hexdigest()
    turns = [reply.turn for reply in replies if reply.HasField("turn")]
    assert [turn.revision for turn in turns] == sorted({turn.revision for turn in turns})
    return text.decode(), [(turn.state, turn.stalled) for turn in turns]


async def _stream(server: Server, turn: Turn, stalled: asyncio.Event | None = None) -> list[StreamAnswerResponse]:
    """All replies; tells when one has a turn that is stalled."""
    replies: list[StreamAnswerResponse] = []
    async for reply in server.ai.StreamAnswer(StreamAnswerRequest(name=turn.name), timeout=3 * LIMIT):
        replies.append(reply)
        if stalled is not None and reply.turn.stalled:
            stalled.set()
    return replies


async def test_many_readers(server: Server, site: Site) -> None:
    """Each of many readers is told when the answer stalls and goes on, and ends with its Markdown (A1 to A6, SES-10).

    What the page copies replaces what was streamed.
    """
    copied = f"**{LONG}**"
    held = answer(
        grow(LONG[:300], 0.3), show(HELD), grow(LONG, 0.2), show(0.4), show(0, copied=copied, stop=0, done=True)
    )
    prompt = site.answer(unique(), held)
    one = await talk(server, "copied")
    turn = await one.ask(prompt)
    stalls = [asyncio.Event() for _ in range(4)]
    readers = [asyncio.ensure_future(_stream(server, turn, stalled)) for stalled in stalls]
    async with asyncio.timeout(2 * LIMIT):
        for stalled in stalls:
            await stalled.wait()
    site.go_on(prompt)
    end = await one.end(turn)
    replies = [await reader for reader in readers]
    late = await _stream(server, turn)

    assert (end.state, end.answer_markdown) == (Turn.STATE_SUCCEEDED, copied)
    read = [_read(one_of) for one_of in replies]
    assert [text for text, _turns in read] == [copied] * 4
    running, quiet = (Turn.STATE_RUNNING, False), (Turn.STATE_RUNNING, True)
    for _text, turns in read:
        begins = turns.index(quiet)
        assert turns[begins - 1 : begins + 2] == [running, quiet, running]
        assert turns[-1] == (Turn.STATE_SUCCEEDED, False)
    assert _read(late) == (copied, [(Turn.STATE_SUCCEEDED, False)])
    assert len(late) == 1


# Cancelling

_ENDLESS = (grow(LONG, 30, pieces=60), show(0, stop=0, done=True))


_HALF = (grow(LONG[:300], 0.3), show(30), show(0, stop=0, done=True))


async def _cancelled(server: Server, site: Site, provider: str, told: Answer) -> tuple[list[str], int]:
    """Cancel an answer that is being written while others wait for it: its warnings, how often Stop was pressed."""
    one = await talk(server, provider)
    prompt = site.answer(unique(), told)
    turn = await one.ask(prompt)
    await one.text(turn)
    waiting = [asyncio.ensure_future(one.end(turn)) for _ in range(2)]
    reading = asyncio.ensure_future(_stream(server, turn))
    cancelled = await one.cancel(turn)
    shown = site.shown_of(prompt)

    assert cancelled.state == Turn.STATE_CANCELLED
    assert [await wait for wait in waiting] == [cancelled, cancelled]
    assert _read(await reading)[0] == cancelled.answer_markdown
    assert cancelled.answer_markdown
    assert LONG.startswith(cancelled.answer_markdown)
    assert cancelled.answer_markdown.rstrip() == shown.rstrip() or cancelled.warnings
    assert await one.cancel(turn) == cancelled
    return [warning.code for warning in cancelled.warnings], site.stop_presses(prompt)


async def test_cancelled(server: Server, site: Site) -> None:
    """Stop is pressed and seen to work, the text there was is kept, and all who wait go at once (O-138, FIN-05).

    Without a Stop, or with two that are alike, nothing is pressed, and the turn says that the page may write on.
    """
    at_once, slow, none, two, pause = await asyncio.gather(
        _cancelled(server, site, "long-way", answer(*_ENDLESS)),
        _cancelled(server, site, "pauses", answer(*_ENDLESS, stop_seconds=2.0)),
        _cancelled(server, site, "stop-never-shown", answer(show(0, stop=0), *_ENDLESS)),
        _cancelled(server, site, "at-once", answer(show(0, stop=2), *_ENDLESS)),
        _cancelled(server, site, "words", answer(*_HALF)),
    )

    assert (at_once, slow, pause) == (([], 1), ([], 1), ([], 1))
    assert (none, two) == ((["stop-unconfirmed"], 0), (["stop-unconfirmed"], 0))


async def test_nobody_waits(server: Server, site: Site) -> None:
    """A turn whose client has gone goes on to its end, and its answer is there later (O-139, SES-09)."""
    channel = server.channel()
    gone = Talk(server, (await talk(server, "plain")).name)
    request = SendPromptRequest(parent=gone.name, request_id=uuid4().hex)
    request.prompt.text = site.answer(unique(), answer(grow(LONG, 1.0), show(0, stop=0, done=True)))
    turn = (await WebAiServiceStub(channel).SendPrompt(request, timeout=LIMIT)).turn
    await channel.close()
    async with gone.watch() as watch:
        end = await watch.until(lambda event: event.turn.name == turn.name and ended(event.turn))

    assert end.turn.state == Turn.STATE_SUCCEEDED
    assert (await gone.end(turn)).answer_markdown == LONG
