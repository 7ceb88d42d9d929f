"""`WebAiService`: each method converts, makes one call below, and converts back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.principal import Principal
from tabmuxd.rpc import fields
from tabmuxd.rpc.artifact_requests import artifact_part, upload_order
from tabmuxd.rpc.chunks import chunks_of
from tabmuxd.rpc.domain import Events, WebAi
from tabmuxd.rpc.drain import Drain
from tabmuxd.rpc.listing import providers_page, sessions_page, turns_page
from tabmuxd.rpc.pages import page_of
from tabmuxd.rpc.prompt_requests import rendered_prompt
from tabmuxd.rpc.session_requests import import_order, retired_session, session_filter, session_update
from tabmuxd.rpc.watch_requests import sessions_watch
from tabmuxd.rpc.watches import OpenWatch, WatchSlots
from tabmuxd.rpc.web_ai_requests import known_answer, prompt_order, provider_id, session_order, turn_wait
from tabmuxd.wire import (
    artifact_message,
    import_message,
    provider_probe_message,
    provider_status_message,
    session_message,
    turn_message,
    warning_message,
)


class WebAiService:
    """Holds conversations with web AI providers in tabs.

    A method of the contract that is missing here is not built: the gate answers so.
    """

    def __init__(self, web_ai: WebAi, events: Events, slots: WatchSlots, drain: Drain) -> None:
        self._web_ai = web_ai
        self._events = events
        self._slots = slots
        self._drain = drain

    async def RenderPrompt(self, request: pb.RenderPromptRequest, caller: Principal) -> pb.RenderPromptResponse:
        """Render a prompt as `SendPrompt` would."""
        rendered = self._web_ai.render_prompt(*rendered_prompt(request))
        return pb.RenderPromptResponse(
            text=rendered.text,
            character_count=rendered.character_count,
            sha256=rendered.sha256,
            warnings=[warning_message(warning) for warning in rendered.warnings],
        )

    async def ListProviders(self, request: pb.ListProvidersRequest, caller: Principal) -> pb.ListProvidersResponse:
        """List the providers that the server has descriptors for, by id."""
        return providers_page(self._web_ai.list_providers(), page_of(request, self._events.progress))

    async def GetProviderStatus(
        self, request: pb.GetProviderStatusRequest, caller: Principal
    ) -> pb.GetProviderStatusResponse:
        """Tell what a tab shows of a provider; everybody who reads may look."""
        status = await self._web_ai.onlooker.status(fields.tab_name("tab", request.tab))
        return pb.GetProviderStatusResponse(status=provider_status_message(status))

    async def ProbeProvider(self, request: pb.ProbeProviderRequest, caller: Principal) -> pb.ProbeProviderResponse:
        """Tell what each selector of a descriptor finds in a tab."""
        tab = fields.tab_name("tab", request.tab)
        return provider_probe_message(await self._web_ai.onlooker.probe(provider_id(request.provider), tab))

    async def CreateSession(self, request: pb.CreateSessionRequest, caller: Principal) -> pb.CreateSessionResponse:
        """Start a session, or find the caller's own of that id."""
        session, created = await self._web_ai.create_session(caller, session_order(request))
        return pb.CreateSessionResponse(session=session_message(session), created=created)

    async def GetSession(self, request: pb.GetSessionRequest, caller: Principal) -> pb.GetSessionResponse:
        """Get a session."""
        session = await self._web_ai.sessions.get(fields.session_name("name", request.name))
        return pb.GetSessionResponse(session=session_message(session))

    async def RecoverSession(self, request: pb.RecoverSessionRequest, caller: Principal) -> pb.RecoverSessionResponse:
        """Bring a session back to its conversation; never sends a prompt."""
        recovered = await self._web_ai.recover_session(caller, fields.session_name("name", request.name))
        return pb.RecoverSessionResponse(
            session=session_message(recovered.session),
            strategy=pb.RecoverSessionResponse.Strategy.ValueType(recovered.strategy),
            previous_tab=recovered.previous_tab,
        )

    async def ListSessions(self, request: pb.ListSessionsRequest, caller: Principal) -> pb.ListSessionsResponse:
        """List sessions, oldest first."""
        wanted = session_filter(request)
        return await sessions_page(self._web_ai.sessions, wanted, page_of(request, self._events.progress))

    async def UpdateSession(self, request: pb.UpdateSessionRequest, caller: Principal) -> pb.UpdateSessionResponse:
        """Set labels or `ttl`."""
        session = await self._web_ai.sessions.update(caller, session_update(request))
        return pb.UpdateSessionResponse(session=session_message(session))

    async def RetireSession(self, request: pb.RetireSessionRequest, caller: Principal) -> pb.RetireSessionResponse:
        """End a session for good."""
        name, disposition = retired_session(request)
        session = await self._web_ai.sessions.retire(caller, name, disposition)
        return pb.RetireSessionResponse(session=session_message(session))

    async def ImportSessions(
        self, requests: AsyncIterator[pb.ImportSessionsRequest], caller: Principal
    ) -> pb.ImportSessionsResponse:
        """Import conversations from the file of another tool, which comes in chunks."""
        async with aclosing(self._drain.each_unless_begun(requests)) as parts:
            order = await import_order(parts)
            async with aclosing(chunks_of(parts)) as chunks:
                return import_message(await self._web_ai.imports.run(caller, order, chunks))

    async def UploadArtifact(
        self, requests: AsyncIterator[pb.UploadArtifactRequest], caller: Principal
    ) -> pb.UploadArtifactResponse:
        """Keep a file for a while, which comes in chunks."""
        async with aclosing(self._drain.each_unless_begun(requests)) as parts:
            order = await upload_order(parts)
            async with aclosing(chunks_of(parts)) as chunks:
                artifact = await self._web_ai.artifacts.upload(caller, order, chunks)
        return pb.UploadArtifactResponse(artifact=artifact_message(artifact))

    async def ReadArtifact(
        self, request: pb.ReadArtifactRequest, caller: Principal
    ) -> AsyncGenerator[pb.ReadArtifactResponse, None]:
        """Read a file, from an offset on."""
        name, offset_bytes = artifact_part(request)
        artifact = await self._web_ai.artifacts.get(caller, name)
        async with aclosing(self._web_ai.artifacts.read(artifact, offset_bytes)) as chunks:
            yield pb.ReadArtifactResponse(artifact=artifact_message(artifact))
            async for chunk in chunks:
                yield pb.ReadArtifactResponse(chunk=chunk)

    async def SendPrompt(self, request: pb.SendPromptRequest, caller: Principal) -> pb.SendPromptResponse:
        """Record a turn and return at once."""
        turn = await self._web_ai.send_prompt(caller, prompt_order(request))
        return pb.SendPromptResponse(turn=turn_message(turn, with_answer=True))

    async def GetTurn(self, request: pb.GetTurnRequest, caller: Principal) -> pb.GetTurnResponse:
        """Get a turn, with its answer."""
        turn = await self._web_ai.get_turn(fields.turn_name("name", request.name))
        return pb.GetTurnResponse(turn=turn_message(turn, with_answer=True))

    async def ListTurns(self, request: pb.ListTurnsRequest, caller: Principal) -> pb.ListTurnsResponse:
        """List the turns of a session, oldest first, without their answers."""
        session = fields.session_name("parent", request.parent)
        return await turns_page(self._web_ai.sessions, session, page_of(request, self._events.progress))

    async def WaitTurn(self, request: pb.WaitTurnRequest, caller: Principal) -> pb.WaitTurnResponse:
        """Wait for a turn to end or to change; when draining begins, answer with it as it is."""
        wait = turn_wait(request)
        turn = await self._drain.unless_begun(
            self._web_ai.wait_turn(wait.name, max_wait=wait.max_wait, after_revision=wait.after_revision)
        )
        if turn is None:
            turn = await self._web_ai.get_turn(wait.name)
        return pb.WaitTurnResponse(turn=turn_message(turn, with_answer=True))

    async def CancelTurn(self, request: pb.CancelTurnRequest, caller: Principal) -> pb.CancelTurnResponse:
        """Stop a turn and keep the text there was."""
        turn = await self._web_ai.cancel_turn(caller, fields.turn_name("name", request.name))
        return pb.CancelTurnResponse(turn=turn_message(turn, with_answer=True))

    async def StreamAnswer(
        self, request: pb.StreamAnswerRequest, caller: Principal
    ) -> AsyncGenerator[pb.StreamAnswerResponse, None]:
        """Show the answer as it grows (A1 to A7)."""
        known = known_answer(request)
        parts = self._web_ai.stream_answer(known.name, known_size_bytes=known.size_bytes, known_sha256=known.sha256)
        async with aclosing(parts):
            async for part in parts:
                yield pb.StreamAnswerResponse(
                    offset_bytes=part.offset_bytes,
                    text=part.text,
                    size_bytes=part.size_bytes,
                    turn=None if part.turn is None else turn_message(part.turn, with_answer=False),
                    sha256=part.sha256,
                )

    def WatchSessions(self, request: pb.WatchSessionsRequest, caller: Principal) -> OpenWatch:
        """Follow changes of sessions and turns, and of all else if asked; gives finished replies."""
        order = sessions_watch(request)
        return self._slots.holding(
            caller.name,
            self._events.watch(order.start, order.wanted, bookmark_interval=order.bookmark_interval),
        )
