"""The client: one connection to a tabmux server, and the handles that work over it."""

import os
import warnings
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc

from tabmux import ai, artifacts, imports, prompts, providers, sessions, tabs
from tabmux.ai import Answer, Session
from tabmux.calls import Calls
from tabmux.channel import open_channel
from tabmux.durations import duration_of
from tabmux.errors import TabmuxError
from tabmux.imports import Source
from tabmux.mirror import Mirror, mirrored
from tabmux.names import artifact_name, browser_name, checked_session_id, new_request_id, session_name
from tabmux.places import Place, find_authorization, find_place
from tabmux.prompts import Preamble, Said
from tabmux.tabs import MILESTONES, Milestone, Tab
from tabmux.v1.event_pb2 import EventKind, WatchProgress, WatchSnapshot, WatchStart
from tabmux.v1.provider_pb2 import Provider, ProviderStatus
from tabmux.v1.session_pb2 import Artifact
from tabmux.v1.session_pb2 import Session as SessionResource
from tabmux.v1.tab_pb2 import Tab as TabResource
from tabmux.v1.tab_service_pb2 import (
    CreateTabRequest,
    GetServerInfoRequest,
    GetServerInfoResponse,
    WatchTabsRequest,
    WatchTabsResponse,
)
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import (
    ImportSessionsResponse,
    ProbeProviderResponse,
    RenderPromptResponse,
    WatchSessionsRequest,
    WatchSessionsResponse,
)
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmux.versions import CompatibilityWarning, client_version, versions_fit
from tabmux.view import Change
from tabmux.watch import OpenWatch, WatchReply, WatchScope, silence_limit, watch_replies

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub  # exists for type checkers only
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub


class Client:
    """One caller's connection; `connect` makes it. `place` is where the server is, `info` what it said at first.

    All methods raise `TabmuxError` for what the service refuses, and belong to the event loop they were made in.
    """

    def __init__(self, place: Place, channel: grpc.aio.Channel, calls: Calls) -> None:
        self._channel = channel
        self._calls = calls
        self._watch_channel: grpc.aio.Channel | None = None
        self._tabs: TabServiceAsyncStub = TabServiceStub(channel)
        self._ai: WebAiServiceAsyncStub = WebAiServiceStub(channel)
        self.place = place
        self.info = GetServerInfoResponse()

    async def server_info(self, *, timeout: timedelta | None = None) -> GetServerInfoResponse:
        """What the server says about itself and the caller, now."""
        self.info = await self._calls.unary(self._tabs.GetServerInfo, GetServerInfoRequest(), timeout=timeout)
        return self.info

    async def open(
        self,
        uri: str = "",
        *,
        browser: str = "",
        group: str = "",
        labels: Mapping[str, str] | None = None,
        pinned: bool = False,
        activate: bool = False,
        until: Milestone = "loaded",
        milestone_timeout: timedelta | None = None,
        wait_for_room: bool = False,
    ) -> Tab:
        """Open a tab, in the background unless `activate`; its `navigation` tells how far the page came."""
        request = CreateTabRequest(
            parent=browser_name(browser),
            uri=uri,
            group=group,
            labels=labels or {},
            pinned=pinned,
            activate=activate,
            until=MILESTONES[until],
            milestone_timeout=duration_of(milestone_timeout),
            wait_for_room=wait_for_room,
            request_id=new_request_id(),
        )
        response = await self._calls.unary(self._tabs.CreateTab, request)
        navigation = response.navigation if response.HasField("navigation") else None
        return Tab(self._tabs, self._calls, response.tab, navigation)

    async def tab(self, name: str) -> Tab:
        """Tab by its name, its id, or any beginning of the id that only one open tab has.

        Raises `AmbiguousNameError` if several have it.
        """
        return Tab(self._tabs, self._calls, await tabs.find_tab(self._tabs, self._calls, name))

    def tabs(
        self,
        *,
        browser: str = "",
        groups: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        closed: bool = False,
        foreign: bool = False,
    ) -> AsyncGenerator[TabResource, None]:
        """Tabs that match, oldest first, over all pages; closed and foreign ones only if asked for."""
        return tabs.list_tabs(
            self._tabs,
            self._calls,
            browser=browser_name(browser),
            groups=groups,
            labels=labels,
            closed=closed,
            foreign=foreign,
        )

    async def ask(
        self,
        provider: str,
        prompt: Said,
        *,
        preamble: Preamble | None = None,
        key: str | None = None,
        session: str | Session | None = None,
        model: str = "",
        files: Sequence[str | Path] = (),
        release: bool = False,
        answer_timeout: timedelta | None = None,
    ) -> Answer:
        """Send a prompt, at most once, and give its answer to come.

        `session` is a conversation, by handle, name or id, which is made if there is none. `key` is a name of the
        caller's own for this prompt, such as a job's: the same call with the same key always finds the same turn, also
        after a crash of the caller. Without `session` it names the session as well, so it is 1 to 63 of `a-z 0-9 -`.
        For the rest see `Session.ask`. Raises `ValueError` for a key or id of another form.
        """
        if not isinstance(session, Session):
            session_id = session.removeprefix("sessions/") if session else None
            if session_id is None and key is not None:
                session_id = checked_session_id(key)
            session = await self.start_session(provider, session_id)
        return await session.ask(
            prompt,
            preamble=preamble,
            key=key,
            model=model,
            files=files,
            release=release,
            answer_timeout=answer_timeout,
        )

    async def render(self, provider: str, prompt: Said, *, preamble: Preamble | None = None) -> RenderPromptResponse:
        """The text that a prompt becomes as the first one of a conversation, with its size; nothing is sent."""
        return await prompts.render(self._ai, self._calls, provider, prompts.prompt_of(prompt, preamble))

    def providers(self) -> AsyncGenerator[Provider, None]:
        """The providers that the server has descriptors for, by id, over all pages."""
        return providers.list_providers(self._ai, self._calls)

    async def start_session(self, provider: str, session_id: str | None = None, *, tab: str = ai.NEW_TAB) -> Session:
        """Conversation of that id, made if there is none; without an id a new one. `created` tells which.

        `tab` is where one that is made begins: `new`, opened at its first prompt; `pooled`, as that, but drawn from the
        pool if there is one; `front`, the one in front of the browser; or the name of a tab that exists.
        """
        return await ai.start_session(self._ai, self._calls, provider, session_id, tab)

    def session(self, name: str) -> Session:
        """Handle of a conversation that exists, by its name or id; asks nobody whether it does."""
        return Session(self._ai, self._calls, session_name(name))

    def sessions(
        self,
        *,
        providers: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        retired: bool = False,
    ) -> AsyncGenerator[SessionResource, None]:
        """Sessions that match, oldest first, over all pages; retired ones only if asked for."""
        return sessions.list_sessions(self._ai, self._calls, providers=providers, labels=labels, retired=retired)

    def prune_sessions(self, older_than: timedelta, *, dry_run: bool = False) -> AsyncGenerator[SessionResource, None]:
        """Retire the caller's own sessions that have no open turn and were not active for so long, and yield each.

        With `dry_run` only those are given that would be retired.
        """
        return sessions.prune_sessions(
            self._ai,
            self._calls,
            owner=self.info.principal,
            unused_since=sessions.unused_since(older_than),
            dry_run=dry_run,
        )

    async def import_sessions(
        self,
        source: Source,
        file: Path | None = None,
        *,
        browser: str = "",
        ttl: timedelta | None = None,
        dry_run: bool = False,
        environment: Mapping[str, str] = os.environ,
    ) -> ImportSessionsResponse:
        """Import the conversations that another tool keeps in this file, or where it does by default.

        Safe to repeat: what was imported stays as it is. A default file that is not there is an empty import. Raises
        `OSError` for a file that cannot be read.
        """
        try:
            content = await imports.read_whole(file or imports.default_file(source, environment))
        except FileNotFoundError:
            if file is not None:
                raise
            return ImportSessionsResponse()
        return await imports.import_file(
            self._ai,
            self._calls,
            content,
            source=source,
            browser=browser_name(browser),
            ttl=ttl,
            dry_run=dry_run,
        )

    async def provider_status(self, tab: str) -> ProviderStatus:
        """What the tab of this name shows of the provider it is at; changes nothing there."""
        return await providers.provider_status(self._ai, self._calls, tab)

    async def probe_provider(self, provider: str, tab: str) -> ProbeProviderResponse:
        """What each selector of the provider's descriptor finds in the tab of this name; changes nothing there."""
        return await providers.probe_provider(self._ai, self._calls, provider, tab)

    async def upload(self, file: Path, *, name: str = "", media_type: str = "") -> Artifact:
        """Upload a file, to be sent with prompts for 24 hours; by default under its own name.

        Raises `OSError` for a file that cannot be read.
        """
        return await artifacts.upload(self._ai, self._calls, file, name=name, media_type=media_type)

    def artifact(self, name: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a file that was uploaded or that an answer carries, in pieces, checked at the end."""
        return artifacts.pieces(self._ai, self._calls, artifact_name(name))

    def answer(self, turn: str) -> Answer:
        """Answer of a turn that was sent before, by the turn's name: picks it up again."""
        return Answer(self._ai, self._calls, turn)

    def watch(
        self,
        *,
        scope: WatchScope = "everything",
        since: WatchProgress | None = None,
        snapshot: bool = False,
        names: Sequence[str] = (),
        kinds: Sequence[EventKind.ValueType] = (),
        bookmark_interval: timedelta | None = None,
    ) -> AsyncGenerator[WatchReply, None]:
        """Replies of a watch, without end: of tabs, of sessions and turns, or of everything in one order.

        It begins now, behind the place `since`, or with a `snapshot` of what exists. `names` are those of tabs or, in
        the other scopes, of sessions; none means all. A lost connection is opened again behind the last reply; a
        snapshot that was cut off begins anew, with `progress.revision` 0. Raises `TabmuxError` for what only the
        caller can decide: REVISION_COMPACTED, HISTORY_CHANGED, REVISION_IN_FUTURE, WATCH_CAPACITY.
        """
        if since is not None and snapshot:
            raise ValueError("a watch begins behind a place or with a snapshot, not both")
        start = WatchStart(resume=since) if since is not None else None
        if snapshot:
            start = WatchStart(snapshot=WatchSnapshot())
        open_watch = self._opener(scope, names, kinds, bookmark_interval)
        return watch_replies(open_watch, start, silence_limit(bookmark_interval))

    def mirror(
        self,
        *,
        scope: WatchScope = "everything",
        on_change: Callable[[Change], None] | None = None,
        on_gap: Callable[[TabmuxError], None] | None = None,
        bookmark_interval: timedelta | None = None,
    ) -> AbstractAsyncContextManager[Mirror]:
        """A live map of what exists: of tabs, of sessions and turns, or of everything in one order.

        Entering waits until it is whole. `on_change` is called on the loop for each change, in order, at first with all
        that exists; `on_gap`, with REVISION_COMPACTED or HISTORY_CHANGED, where changes were missed: what is found to
        differ follows. What they raise ends the mirror. Raises `TabmuxError` where the service refuses to be watched.
        """
        open_watch = self._opener(scope, (), (), bookmark_interval)
        return mirrored(open_watch, silence_limit(bookmark_interval), on_change, on_gap)

    def _opener(
        self,
        scope: WatchScope,
        names: Sequence[str],
        kinds: Sequence[EventKind.ValueType],
        bookmark_interval: timedelta | None,
    ) -> OpenWatch:
        """What opens a watch from a given place, over a channel of its own."""
        if self._watch_channel is None:
            self._watch_channel = open_channel(self.place, for_watch=True)
        channel = self._watch_channel
        interval = duration_of(bookmark_interval)

        def open_tabs(begin: WatchStart | None) -> grpc.aio.UnaryStreamCall[WatchTabsRequest, WatchTabsResponse]:
            stub: TabServiceAsyncStub = TabServiceStub(channel)
            request = WatchTabsRequest(start=begin, tabs=names, kinds=kinds, bookmark_interval=interval)
            return self._calls.stream(stub.WatchTabs, request)

        def open_sessions(
            begin: WatchStart | None,
        ) -> grpc.aio.UnaryStreamCall[WatchSessionsRequest, WatchSessionsResponse]:
            stub: WebAiServiceAsyncStub = WebAiServiceStub(channel)
            request = WatchSessionsRequest(
                start=begin,
                sessions=names,
                kinds=kinds,
                bookmark_interval=interval,
                with_tabs=scope == "everything",
            )
            return self._calls.stream(stub.WatchSessions, request)

        # Replies of both are alike: events and how far the watch has come.
        return cast("OpenWatch", open_tabs) if scope == "tabs" else open_sessions

    async def close(self) -> None:
        """Close the connection; open streams end. `connect` does it."""
        await self._channel.close()
        if self._watch_channel is not None:
            await self._watch_channel.close()


@asynccontextmanager
async def connect(
    address: str | None = None,
    token: str | None = None,
    as_: str | None = None,
    *,
    timeout: timedelta | None = None,
    patience: timedelta | None = None,
    environment: Mapping[str, str] = os.environ,
) -> AsyncGenerator[Client, None]:
    """Connect to the server, and close the connection at the end of the block.

    `address` is `unix:///PATH` or `HOST:PORT`; `token` a bearer token; `as_` the name of this program, on the Unix
    socket. What is absent is found as `tabmux.places` says. `timeout` replaces the deadlines of all unary calls;
    `patience` is how long to try to reach the server, 5 s if absent. Raises `PlaceError` if the place or the name
    cannot be used, and `TabmuxError` with code UNAVAILABLE if no server is reached.
    """
    place = find_place(address, environment)
    calls = Calls(find_authorization(place, token, as_, environment), f"python/{client_version()}", timeout=timeout)
    client = Client(place, open_channel(place), calls)
    try:
        info = await client.server_info(timeout=patience)
        if not versions_fit(client_version(), info.version):
            warnings.warn(
                f"client {client_version()} and server {info.version} were not made for each other",
                CompatibilityWarning,
                stacklevel=3,
            )
        yield client
    finally:
        await client.close()
