"""Conversations with web AI providers: sessions, and answers that are followed while they grow."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc

from tabmux.answer_text import AnswerMismatch, AnswerText
from tabmux.artifacts import uploaded
from tabmux.calls import Calls
from tabmux.durations import duration_of
from tabmux.errors import TabmuxError
from tabmux.names import checked_request_id, checked_session_id, new_request_id, new_session_id
from tabmux.prompts import Preamble, Said, prompt_of
from tabmux.sessions import DISPOSITIONS, Disposition, list_turns
from tabmux.statuses import turn_failed
from tabmux.streams import resumed
from tabmux.v1.session_pb2 import Session as SessionResource
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CreateSessionRequest,
    GetSessionRequest,
    GetTurnRequest,
    RecoverSessionRequest,
    RecoverSessionResponse,
    RetireSessionRequest,
    SendPromptRequest,
    StreamAnswerRequest,
    StreamAnswerResponse,
    UpdateSessionRequest,
)

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only

NEW_TAB: Final = "new"
FINAL_STATES = frozenset({Turn.STATE_SUCCEEDED, Turn.STATE_FAILED, Turn.STATE_CANCELLED})

# Rule A4: the server sends something every 15 s. Three times nothing means that the connection is dead.
_SILENCE_LIMIT = timedelta(seconds=45)


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """How an answer stands: `text`, all there is so far; `turn`, where it changed since the part before."""

    text: str
    turn: Turn | None


class Answer:
    """The answer to one prompt, named by its turn.

    To iterate follows it as it grows, over lost connections, to its end; to stop iterating stops nothing but that.
    Iterating again goes on with the text there is.
    """

    def __init__(self, service: "WebAiServiceAsyncStub", calls: Calls, name: str) -> None:
        self._service = service
        self._calls = calls
        self._content = b""
        self._ended: Turn | None = None
        self.name = name

    @property
    def text(self) -> str:
        """The text read so far."""
        return self._content.decode()

    async def __aiter__(self) -> AsyncGenerator[AnswerPart, None]:
        if self._ended is not None:
            yield AnswerPart(self.text, self._ended)
            return
        for began_anew in (False, True):
            try:
                async with aclosing(self._follow()) as parts:
                    async for part in parts:
                        yield part
            except AnswerMismatch as error:
                if began_anew:
                    raise TabmuxError(f"the answer of {self.name} cannot be rebuilt: {error}") from error
                self._content = b""
            else:
                return

    async def result(self) -> Turn:
        """Wait for the end and give the turn, with `answer_markdown`.

        Raises `TurnFailed`, which has the answer there was, if the turn failed or was cancelled.
        """
        async with aclosing(self.__aiter__()) as parts:
            async for _part in parts:
                pass
        if self._ended is None:
            raise AssertionError("an answer is followed to the end of its turn")
        if self._ended.state != Turn.STATE_SUCCEEDED:
            raise turn_failed(self._ended)
        return self._ended

    async def get(self) -> Turn:
        """The turn as it stands, with its answer if it has ended."""
        return (await self._calls.unary(self._service.GetTurn, GetTurnRequest(name=self.name))).turn

    async def cancel(self) -> Turn:
        """Stop the turn and keep the text there was; a turn that has ended is given as it is."""
        return (await self._calls.unary(self._service.CancelTurn, CancelTurnRequest(name=self.name))).turn

    async def _follow(self) -> AsyncGenerator[AnswerPart, None]:
        """Yield the answer from the text there is on; raises `AnswerMismatch` if that cannot be right."""
        text = AnswerText(self._content)

        def open_stream() -> grpc.aio.UnaryStreamCall[StreamAnswerRequest, StreamAnswerResponse]:
            request = StreamAnswerRequest(name=self.name)
            if text.size_bytes:
                request.known_size_bytes = text.size_bytes
                request.known_sha256 = text.sha256
            return self._calls.stream(self._service.StreamAnswer, request)

        async with aclosing(resumed(open_stream, _SILENCE_LIMIT)) as replies:
            async for reply in replies:
                changed = text.apply(reply.offset_bytes, reply.text, reply.size_bytes)
                self._content = text.content
                turn = reply.turn if reply.HasField("turn") else None
                if turn is not None and turn.state in FINAL_STATES:
                    if reply.sha256 != text.sha256:
                        raise AnswerMismatch("it does not have the hash that the service tells")
                    turn.answer_markdown = text.text
                    self._ended = turn
                if changed or turn is not None:
                    yield AnswerPart(text.text, turn)
                if self._ended is not None:
                    return
        raise AnswerMismatch("the stream ended before the turn did")


class Session:
    """One conversation with a provider.

    `created` tells whether the call that gave this handle made the session.
    """

    def __init__(self, service: "WebAiServiceAsyncStub", calls: Calls, name: str, *, created: bool = False) -> None:
        self._service = service
        self._calls = calls
        self.name = name
        self.created = created

    async def get(self) -> SessionResource:
        """The session as it stands."""
        return (await self._calls.unary(self._service.GetSession, GetSessionRequest(name=self.name))).session

    async def recover(self) -> RecoverSessionResponse:
        """Bring it back to its conversation if its tab is lost, closed or elsewhere; never sends a prompt."""
        return await self._calls.unary(self._service.RecoverSession, RecoverSessionRequest(name=self.name))

    async def ask(
        self,
        prompt: Said,
        *,
        preamble: Preamble | None = None,
        key: str | None = None,
        model: str = "",
        files: Sequence[str | Path] = (),
        release: bool = False,
        answer_timeout: timedelta | None = None,
    ) -> Answer:
        """Send a prompt, at most once, and give its answer to come.

        It is a text, sent as it is, or `PromptParts` that the service renders. `preamble="safety"` puts the provider's
        safety preamble before the first prompt of a conversation. The same `key` in the same session always names the
        same turn: 1 to 64 of `A-Z a-z 0-9 - _ . :`, made up if absent. `files` are names of uploaded artifacts, or
        paths, which are uploaded first. `release` gives the session's tab back after a success. `answer_timeout` is the
        service's own time for the turn; it outlives this program. Raises `TabmuxError`, `ValueError` for a key of
        another form, and `OSError` for a file that cannot be read.
        """
        request = SendPromptRequest(
            parent=self.name,
            prompt=prompt_of(prompt, preamble),
            attachments=await uploaded(self._service, self._calls, files),
            model=model,
            answer_timeout=duration_of(answer_timeout),
            request_id=new_request_id() if key is None else checked_request_id(key),
            release_tab=release,
        )
        turn = (await self._calls.unary(self._service.SendPrompt, request)).turn
        return Answer(self._service, self._calls, turn.name)

    def turns(self) -> AsyncGenerator[Turn, None]:
        """Its turns, oldest first, over all pages, without their answers."""
        return list_turns(self._service, self._calls, self.name)

    async def update(
        self,
        *,
        labels: Mapping[str, str] | None = None,
        ttl: timedelta | None = None,
        expected_revision: int = 0,
    ) -> SessionResource:
        """Set labels, of which one with an empty value is removed, or how long the session may go without a turn."""
        request = UpdateSessionRequest(
            name=self.name, expected_revision=expected_revision, labels=labels or {}, ttl=duration_of(ttl)
        )
        return (await self._calls.unary(self._service.UpdateSession, request)).session

    async def label(self, labels: Mapping[str, str]) -> SessionResource:
        """Set labels; one with an empty value is removed, others stay."""
        return await self.update(labels=labels)

    async def retire(self, tab: Disposition | None = None) -> SessionResource:
        """End the session for good, its open turn first; a retired one is given as it is.

        `tab` is what becomes of its tab: by default one that the session opened or got from the pool goes there, and
        any other stays. One that is pinned or held always stays.
        """
        request = RetireSessionRequest(name=self.name, tab_disposition=DISPOSITIONS[tab])
        return (await self._calls.unary(self._service.RetireSession, request)).session


async def start_session(
    service: "WebAiServiceAsyncStub",
    calls: Calls,
    provider: str,
    session_id: str | None,
    tab: str = NEW_TAB,
) -> Session:
    """Session of that id, made if there is none, in this `tab`; without an id a new one.

    Raises `TabmuxError`, and `ValueError` for an id of another form.
    """
    wanted = new_session_id() if session_id is None else checked_session_id(session_id)
    request = CreateSessionRequest(provider=provider, session_id=wanted)
    match tab:
        case "new":
            pass
        case "pooled":
            request.pooled_tab.SetInParent()
        case "front":
            request.front_tab.SetInParent()
        case _:
            request.tab = tab
    response = await calls.unary(service.CreateSession, request)
    return Session(service, calls, response.session.name, created=response.created)
