"""One prompt to a chat page, as a client sends it that repeats everything under the same ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import uuid4

from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    GetSessionRequest,
    SendPromptRequest,
    StreamAnswerRequest,
    WaitTurnRequest,
)

from tests.e2e.serving import LIMIT, Server, ended

PROVIDER = "playground-textarea"
SHORT = "{{plain=1 characters=40 seconds=0.3 think=0.05}}"


@dataclass
class Conversation:
    """The ids of one session and its prompt, chosen once; the text occurs nowhere else."""

    directives: str = SHORT
    session_id: str = field(default_factory=lambda: f"crash-{uuid4().hex}")
    request_id: str = field(default_factory=lambda: uuid4().hex)
    text: str = ""
    release: bool = False
    model: str = ""

    def __post_init__(self) -> None:
        """Make the text."""
        self.text = self.text or f"Prompt {self.request_id} {self.directives}"

    def next(self) -> Conversation:
        """Another prompt in the same session, answered shortly."""
        return Conversation(SHORT, self.session_id)

    async def start(self, server: Server) -> bool:
        """Start the session, or find it; whether this call made it."""
        request = CreateSessionRequest(provider=PROVIDER, session_id=self.session_id)
        return (await server.ai.CreateSession(request, timeout=LIMIT)).created

    async def send(self, server: Server) -> Turn:
        """Send the prompt, or find its turn."""
        request = SendPromptRequest(
            parent=f"sessions/{self.session_id}",
            request_id=self.request_id,
            release_tab=self.release,
            model=self.model,
        )
        request.prompt.text = self.text
        return (await server.ai.SendPrompt(request, timeout=LIMIT)).turn

    async def session(self, server: Server) -> Session:
        """The session as it stands."""
        return (
            await server.ai.GetSession(GetSessionRequest(name=f"sessions/{self.session_id}"), timeout=LIMIT)
        ).session


async def text_of(server: Server, turn: Turn) -> str:
    """What there is of the answer once there is any."""
    call = server.ai.StreamAnswer(StreamAnswerRequest(name=turn.name), timeout=2 * LIMIT)
    try:
        async for reply in call:
            if reply.text:
                return reply.text
    finally:
        call.cancel()
    raise AssertionError("the answer ended without a text")


async def end_of(server: Server, turn: Turn) -> Turn:
    """The turn once it has its end."""
    request = WaitTurnRequest(name=turn.name)
    request.max_wait_duration.FromSeconds(int(2 * LIMIT))
    found = (await server.ai.WaitTurn(request, timeout=3 * LIMIT)).turn
    assert ended(found), f"the turn did not end: {found}"
    return found
