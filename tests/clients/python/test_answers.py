"""An answer is rebuilt exactly, whatever the page does to it and however often the stream is cut. Rules A1 to A7."""

import asyncio
import hashlib
from contextlib import aclosing
from datetime import timedelta

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tabmux.ai import Answer, AnswerPart
from tabmux.answer_text import AnswerMismatch, AnswerText
from tabmux.client import Client
from tabmux.errors import TabmuxError, TurnFailed
from tabmux.v1.error_reason_pb2 import Failure
from tabmux.v1.prompt_pb2 import Prompt, PromptParts
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CancelTurnResponse,
    CreateSessionRequest,
    CreateSessionResponse,
    GetSessionResponse,
    GetTurnResponse,
    SendPromptRequest,
    SendPromptResponse,
    StreamAnswerRequest,
    StreamAnswerResponse,
)

from tests.clients.python.scripted import Refuse, Script, ScriptedServer, Step, sha

NAME = "sessions/s/turns/t"
RUNNING = Turn(name=NAME, state=Turn.STATE_RUNNING)
DONE = Turn(name=NAME, state=Turn.STATE_SUCCEEDED)


def piece(offset: int, text: str, turn: Turn | None = None, whole: str | None = None) -> StreamAnswerResponse:
    """A reply that puts `text` at `offset`; the last one with the hash of the `whole` text."""
    size = offset + len(text.encode())
    return StreamAnswerResponse(
        offset_bytes=offset, text=text, size_bytes=size, turn=turn, sha256="" if whole is None else sha(whole)
    )


def ended(text: str, turn: Turn = DONE) -> Turn:
    """The turn as it ends, with its answer."""
    whole = Turn()
    whole.CopyFrom(turn)
    whole.answer_markdown = text
    return whole


async def collected(answer: Answer) -> list[AnswerPart]:
    """Everything that iterating gives."""
    async with aclosing(aiter(answer)) as parts, asyncio.timeout(20):
        return [part async for part in parts]


async def test_growth(server: ScriptedServer, client: Client) -> None:
    """The text so far comes with each change, the turn where it changed, and at the end with the answer."""
    server.script("StreamAnswer", [piece(0, "", RUNNING), piece(0, "Hé"), piece(3, "llo"), piece(6, "", DONE, "Héllo")])
    answer = client.answer(NAME)
    assert await collected(answer) == [
        AnswerPart("", RUNNING),
        AnswerPart("Hé", None),
        AnswerPart("Héllo", None),
        AnswerPart("Héllo", ended("Héllo")),
    ]
    assert (answer.text, await answer.result()) == ("Héllo", ended("Héllo"))
    assert await collected(answer) == [AnswerPart("Héllo", ended("Héllo"))]
    assert server.requests("StreamAnswer") == [StreamAnswerRequest(name=NAME)]


async def test_replacement_from_offset(server: ScriptedServer, client: Client) -> None:
    """A2: what the page rewrote is cut off at the offset, in bytes, and the new text put there."""
    server.script(
        "StreamAnswer",
        [piece(0, "naïve 🙂 x", RUNNING), piece(7, "🙃"), piece(2, "ah"), piece(4, "", DONE, "naah")],
    )
    texts = [part.text for part in await collected(client.answer(NAME))]
    assert texts == ["naïve 🙂 x", "naïve 🙃", "naah", "naah"]


async def test_sign_of_life_is_not_a_part(server: ScriptedServer, client: Client) -> None:
    """A4: a reply that changes nothing is not shown."""
    server.script("StreamAnswer", [piece(0, "a", RUNNING), piece(1, ""), piece(1, ""), piece(1, "", DONE, "a")])
    assert [part.text for part in await collected(client.answer(NAME))] == ["a", "a"]


async def test_resume_by_size_and_hash(server: ScriptedServer, client: Client) -> None:
    """A7: after a cut the reader tells size and hash of what it has, and goes on from there."""
    lost = Refuse(grpc.StatusCode.UNAVAILABLE)
    server.script(
        "StreamAnswer",
        [piece(0, "Zürich", RUNNING), lost],
        [lost],
        [piece(7, " liegt", RUNNING), piece(13, "", DONE, "Zürich liegt")],
    )
    assert (await client.answer(NAME).result()).answer_markdown == "Zürich liegt"
    known = StreamAnswerRequest(name=NAME, known_size_bytes=7, known_sha256=sha("Zürich"))
    assert server.requests("StreamAnswer") == [StreamAnswerRequest(name=NAME), known, known]


async def test_resume_of_a_text_that_changed(server: ScriptedServer, client: Client) -> None:
    """A7: if the text was rewritten meanwhile the stream begins at 0."""
    draining = Refuse(grpc.StatusCode.UNAVAILABLE, "DRAINING", retry_delay=timedelta(milliseconds=10))
    server.script(
        "StreamAnswer",
        [piece(0, "Zürich", RUNNING), draining],
        [piece(0, "Genf", RUNNING), piece(4, "", DONE, "Genf")],
    )
    assert [part.text for part in await collected(client.answer(NAME))] == ["Zürich", "Genf", "Genf"]


async def test_iteration_goes_on(server: ScriptedServer, client: Client) -> None:
    """Who stops iterating and begins again has lost nothing."""
    server.script(
        "StreamAnswer",
        [piece(0, "ab", RUNNING), asyncio.Event()],
        [piece(2, "c", RUNNING), piece(3, "", DONE, "abc")],
    )
    answer = client.answer(NAME)
    async with aclosing(aiter(answer)) as parts:
        assert await anext(parts) == AnswerPart("ab", RUNNING)
    assert (await answer.result()).answer_markdown == "abc"
    assert server.requests("StreamAnswer")[1].known_size_bytes == 2


@pytest.mark.parametrize(
    "broken",
    [
        [piece(5, "x")],
        [StreamAnswerResponse(offset_bytes=2, text="x", size_bytes=9)],
        [piece(1, "x")],  # inside the first letter
        [piece(2, "", DONE, "other")],
        [],
    ],
    ids=["beyond the end", "other size", "inside a character", "other hash", "ended early"],
)
async def test_text_that_does_not_fit(
    server: ScriptedServer, client: Client, broken: list[StreamAnswerResponse]
) -> None:
    """A reply that does not fit makes the reader begin anew once; then it raises instead of showing a wrong text."""
    first = piece(0, "é", RUNNING)
    server.script("StreamAnswer", [first, *broken], [first, piece(2, "", DONE, "é")])
    assert (await client.answer(NAME).result()).answer_markdown == "é"
    assert server.requests("StreamAnswer") == [StreamAnswerRequest(name=NAME)] * 2
    server.script("StreamAnswer", [first, *broken])
    with pytest.raises(TabmuxError, match="cannot be rebuilt"):
        await client.answer(NAME).result()


@pytest.mark.parametrize("state", [Turn.STATE_FAILED, Turn.STATE_CANCELLED])
async def test_turn_that_failed(server: ScriptedServer, client: Client, state: Turn.State.ValueType) -> None:
    """A turn that failed ends the iteration normally; its result raises, with the text there was."""
    turn = Turn(name=NAME, state=state)
    if state == Turn.STATE_FAILED:
        turn.error.CopyFrom(Failure(reason="ANSWER_STALLED", message="quiet"))
    server.script("StreamAnswer", [piece(0, "half", RUNNING), piece(4, "", turn, "half")])
    answer = client.answer(NAME)
    assert (await collected(answer))[-1] == AnswerPart("half", ended("half", turn))
    with pytest.raises(TurnFailed) as caught:
        await answer.result()
    assert (caught.value.reason, caught.value.text) == (turn.error.reason, "half")


async def test_refused_stream(server: ScriptedServer, client: Client) -> None:
    """What is not a lost connection is raised."""
    server.script("StreamAnswer", [Refuse(grpc.StatusCode.NOT_FOUND, "TURN_NOT_FOUND")])
    with pytest.raises(TabmuxError) as caught:
        await client.answer(NAME).result()
    assert caught.value.reason == "TURN_NOT_FOUND"


@pytest.mark.parametrize(
    ("key", "session", "session_id"),
    [
        ("job-7", None, "job-7"),
        ("Job:7", "standup", "standup"),
        ("Job:7", "sessions/standup", "standup"),
    ],
)
async def test_key(server: ScriptedServer, client: Client, key: str, session: str | None, session_id: str) -> None:
    """A key names the turn, and the session too unless that has a name: the same call finds the same turn."""
    server.script("CreateSession", [CreateSessionResponse(session=Session(name=f"sessions/{session_id}"))])
    server.script("SendPrompt", [SendPromptResponse(turn=RUNNING)])
    answer = await client.ask("chatgpt", "hi", key=key, session=session)
    assert answer.name == NAME
    assert server.requests("CreateSession") == [CreateSessionRequest(provider="chatgpt", session_id=session_id)]
    assert server.requests("SendPrompt") == [
        SendPromptRequest(parent=f"sessions/{session_id}", prompt=Prompt(text="hi"), request_id=key),
    ]


@pytest.mark.parametrize(
    ("key", "session"),
    [("Job:7", None), ("", None), ("a" * 65, "s"), ("a b", "s"), (None, "A")],
)
async def test_key_of_another_form(
    server: ScriptedServer, client: Client, key: str | None, session: str | None
) -> None:
    """A key or session id that cannot be one is refused before anything is sent for it."""
    server.script("CreateSession", [CreateSessionResponse(session=Session(name="sessions/s"))])
    with pytest.raises(ValueError, match="cannot be the"):
        await client.ask("chatgpt", "hi", key=key, session=session)
    assert server.requests("SendPrompt") == []


async def test_options_are_passed_on(server: ScriptedServer, client: Client) -> None:
    """Model, files, release and time are passed on as they are, also those that a server does not have yet."""
    server.script("SendPrompt", [SendPromptResponse(turn=RUNNING)])
    session = client.session("s")
    prompt = Prompt(parts=PromptParts(question="why"))
    await session.ask(
        prompt,
        key="k",
        model="fast",
        files=["artifacts/a"],
        release=True,
        answer_timeout=timedelta(minutes=2),
    )
    assert server.requests("SendPrompt") == [
        SendPromptRequest(
            parent="sessions/s",
            prompt=prompt,
            attachments=["artifacts/a"],
            model="fast",
            answer_timeout=Duration(seconds=120),
            request_id="k",
            release_tab=True,
        ),
    ]


async def test_session_handle(server: ScriptedServer, client: Client) -> None:
    """A session handle asks in that session, without making it, and reads it."""
    resource = Session(name="sessions/s", provider="chatgpt")
    server.script("GetSession", [GetSessionResponse(session=resource)])
    server.script("SendPrompt", [SendPromptResponse(turn=RUNNING)])
    session = client.session("sessions/s")
    assert (await client.ask("chatgpt", "hi", session=session)).name == NAME
    assert (await session.get(), server.requests("CreateSession")) == (resource, [])


async def test_cancel_and_get(server: ScriptedServer, client: Client) -> None:
    """An answer can be stopped and read by the name of its turn."""
    server.script("CancelTurn", [CancelTurnResponse(turn=Turn(name=NAME, state=Turn.STATE_CANCELLED))])
    server.script("GetTurn", [GetTurnResponse(turn=ended("abc"))])
    answer = client.answer(NAME)
    assert (await answer.cancel()).state == Turn.STATE_CANCELLED
    assert await answer.get() == ended("abc")
    assert server.requests("CancelTurn") == [CancelTurnRequest(name=NAME)]


letters = st.text(alphabet="aé🙂\n", max_size=6)


@st.composite
def histories(draw: st.DrawFn) -> list[str]:
    """Texts that an answer had one after another: mostly growth, now and then a change anywhere."""
    texts = [""]
    for cut, added, keep in draw(st.lists(st.tuples(st.floats(0, 1), letters, st.booleans()), min_size=1, max_size=8)):
        text = texts[-1]
        place = len(text) if keep else int(cut * len(text))
        texts.append(text[:place] + added)
    return texts


def stream_of(texts: list[str], request: StreamAnswerRequest) -> list[StreamAnswerResponse]:
    """Replies a service would give to a reader, one a text, each from the first byte that differs."""
    first = texts[0].encode()
    known = first[: request.known_size_bytes]
    fits = len(known) == request.known_size_bytes and hashlib.sha256(known).hexdigest() == request.known_sha256
    has = known.decode() if fits and request.known_size_bytes else ""
    replies = []
    for number, text in enumerate(texts):
        common = next((i for i, (a, b) in enumerate(zip(has, text, strict=False)) if a != b), min(len(has), len(text)))
        replies.append(piece(len(text[:common].encode()), text[common:], None if number else RUNNING))
        has = text
    return replies


@given(texts=histories(), cuts=st.lists(st.integers(0, 8), max_size=2))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_history_any_cut(server: ScriptedServer, client: Client, texts: list[str], cuts: list[int]) -> None:
    """Whatever an answer went through and wherever the stream was cut, the rebuilt text is the answer."""
    places = sorted(min(cut, len(texts) - 1) for cut in cuts)
    begins = [0, *places]
    lost = Refuse(grpc.StatusCode.UNAVAILABLE)

    def script(begin: int, end: int | None) -> Script:
        def run(request: Message) -> list[Step]:
            assert isinstance(request, StreamAnswerRequest)
            shown = stream_of(texts[begin : None if end is None else end + 1], request)
            return [*shown, lost] if end is not None else [*shown, final(texts[-1])]

        return run

    server.calls.clear()
    server.script("StreamAnswer", *(script(b, e) for b, e in zip(begins, [*places, None], strict=True)))
    answer = client.answer(NAME)
    assert (await answer.result()).answer_markdown == texts[-1]
    assert [request.known_sha256 for request in server.requests("StreamAnswer")] == [
        sha(text) if text else "" for text in ["", *(texts[place] for place in places)]
    ]


def final(text: str) -> StreamAnswerResponse:
    """The last reply of an answer."""
    return piece(len(text.encode()), "", DONE, text)


@given(texts=histories())
def test_bytes_and_characters(texts: list[str]) -> None:
    """After every reply the text is that of the page, its size and hash are of bytes, and it can be begun with."""
    text = AnswerText()
    for reply, page in zip(stream_of(texts, StreamAnswerRequest()), texts, strict=True):
        before = text.text
        assert text.apply(reply.offset_bytes, reply.text, reply.size_bytes) is (page != before)
        assert (text.text, text.size_bytes, text.sha256) == (page, len(page.encode()), sha(page))
        assert AnswerText(text.content).text == page


def test_misfit_changes_nothing() -> None:
    """A reply that does not fit leaves the text as it was."""
    text = AnswerText("é".encode())
    for misfit in ((1, "", 1), (3, "", 3), (0, "a", 2), (-1, "a", 0)):
        with pytest.raises(AnswerMismatch):
            text.apply(*misfit)
    assert text.text == "é"
