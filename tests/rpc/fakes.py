"""Scripted parts below the edge, and a real server over them."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, cast

import grpc
from google.rpc import status_pb2
from grpc_status import rpc_status
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmuxd.events.filters import WatchFilter
from tabmuxd.events.watch import WatchStart
from tabmuxd.resources.artifacts import UploadOrder
from tabmuxd.resources.browser import Browser, BrowserState, Ownership, TabCounts
from tabmuxd.resources.event import Progress
from tabmuxd.resources.imports import ImportOrder, ImportReport, SkipCause, SkippedRecord
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.orders import (
    AdoptOrder,
    ClosedTab,
    LeaseOrder,
    NavigationOrder,
    OpenedTab,
    PromptOrder,
    RecoveredSession,
    RecoveredTab,
    ScriptOrder,
    ScriptResult,
    SessionFilter,
    SessionOrder,
    SessionUpdate,
    TabFilter,
    TabOrder,
    TabsOrder,
    TabUpdate,
)
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.prompt import Prompt, RenderedPrompt
from tabmuxd.resources.provider import Provider, ProviderCapability
from tabmuxd.resources.provider_status import (
    ComposerState,
    Interstitial,
    ProviderLimit,
    ProviderProbe,
    ProviderStatus,
    SelectorFinding,
    SignIn,
)
from tabmuxd.resources.session import Artifact, Return, Session, SessionState, TabDisposition, Turn, TurnState
from tabmuxd.resources.session import Warning as TurnWarning
from tabmuxd.resources.tab import LoadMilestone, Navigation, NavigationOutcome, Strategy, Tab, TabOrigin, TabState
from tabmuxd.rpc.domain import Events, ServerInfo
from tabmuxd.rpc.server import RpcServer

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
HISTORY = "7a3c1f0e-0000-4000-8000-000000000001"
TAB = Tab(
    "browsers/main/tabs/k3v9x2m7qd", TabState.READY, TabOrigin.MANAGED, "local", NOW, NOW, revision=3, update_time=NOW
)
ARTIFACT = Artifact("artifacts/0123456789", "a.txt", "text/plain", 5, "0" * 64, NOW)
SESSION = Session(
    "sessions/s1", SessionState.ACTIVE, "chatgpt", "1", "local", NOW, NOW, browser="browsers/main", revision=4
)
TURN = Turn(
    "sessions/s1/turns/k3v9x2m7qd", TurnState.SUCCEEDED, "r1", "0" * 64, "1" * 64, NOW, NOW,
    answer_markdown="42", answer_size_bytes=2, revision=5,
)  # fmt: skip
LEASE = Lease(
    "leases/k3v9x2m7qd", TAB.name, LeaseTerms(), NOW + timedelta(seconds=30), 1, NOW, owner="local", revision=6
)
STATUS = ProviderStatus(
    "chatgpt", TAB.name, 1, "7", NOW,
    ready=True,
    sign_in=SignIn.SIGNED_IN,
    composer=ComposerState.USABLE,
    interstitial=Interstitial.NONE,
    limit=ProviderLimit("Limit reached.", NOW + timedelta(hours=2)),
    shown_model="Pro",
    conversation_uri="https://chatgpt.com/c/1?token=secret",
    warnings=(TurnWarning("error-shown", "The page shows an error."),),
)  # fmt: skip
PROBE = ProviderProbe(
    (SelectorFinding("page.send", "button", "Send", 3, 2, 1, "button#send", "none", "Go"),), 1, "7", NOW
)
NAVIGATION = Navigation(NavigationOutcome.REACHED, LoadMilestone.LOADED, 200)
BROWSER = Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED, generation=1)
COUNTS = TabCounts(managed_count=1)

Call = tuple[object, ...]


PROVIDER = Provider(
    id="chat",
    display_name="Chat",
    hosts=("chat.example",),
    start_uri="https://chat.example/",
    capabilities=(ProviderCapability.CONTINUATION, ProviderCapability.CANCELLATION),
    default_answer_timeout=timedelta(minutes=5),
    max_prompt_character_count=1000,
    descriptor_version="7",
    warnings=(TurnWarning("descriptor-broken", "m"),),
    models=("fast", "deep"),
)


@dataclass
class Below:
    """What the fakes were asked, and what they raise or wait for before they answer."""

    calls: list[Call] = field(default_factory=list)
    error: BaseException | None = None
    gate: asyncio.Event | None = None
    entered: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def asked(self, *call: object) -> None:
        self.calls.append(call)
        self.entered.set()
        if self.error is not None:
            raise self.error
        if self.gate is not None:
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise


@dataclass
class FakeLeases:
    """Leases that answer with `LEASE`, and lists with what they hold."""

    below: Below
    held: list[tuple[int, Lease]] = field(default_factory=lambda: [(1, LEASE)])

    async def acquire(self, caller: Principal, order: LeaseOrder) -> Lease:
        await self.below.asked("acquire", caller.name, order)
        return LEASE

    async def renew(self, caller: Principal, name: str) -> Lease:
        await self.below.asked("renew", caller.name, name)
        return LEASE

    async def release(self, caller: Principal, name: str) -> Lease:
        await self.below.asked("release", caller.name, name)
        return LEASE

    async def list(self, tab: str, *, after: int, count: int) -> Sequence[tuple[int, Lease]]:
        await self.below.asked("list_leases", tab, after, count)
        return [entry for entry in self.held if entry[0] > after][:count]


@dataclass
class FakeTabs:
    """Tabs that answer with `TAB`, and lists with what they hold."""

    below: Below
    tabs: list[tuple[int, Tab]] = field(default_factory=lambda: [(1, TAB)])
    opened: OpenedTab = field(default_factory=lambda: OpenedTab(TAB, NAVIGATION))
    foreign: list[tuple[str, str]] = field(default_factory=list)
    known: list[tuple[Browser, TabCounts]] = field(default_factory=lambda: [(BROWSER, COUNTS)])
    leases: FakeLeases = field(init=False)

    def __post_init__(self) -> None:
        self.leases = FakeLeases(self.below)

    async def create(self, caller: Principal, order: TabOrder) -> OpenedTab:
        await self.below.asked("create", caller.name, order)
        return self.opened

    async def adopt(self, caller: Principal, order: AdoptOrder) -> Tab:
        await self.below.asked("adopt", caller.name, order)
        return TAB

    async def get(self, name: str) -> Tab:
        await self.below.asked("get", name)
        return TAB

    async def list(self, tab_filter: TabFilter, *, after: int, count: int) -> Sequence[tuple[int, Tab]]:
        await self.below.asked("list", tab_filter, after, count)
        return [entry for entry in self.tabs if entry[0] > after][:count]

    async def foreign_targets(self, browser: str) -> Sequence[tuple[str, str]]:
        return [target for target in self.foreign if browser in ("", target[0])]

    async def update(self, caller: Principal, update: TabUpdate) -> Tab:
        await self.below.asked("update", caller.name, update)
        return TAB

    async def close(self, caller: Principal, name: str, *, lease: str, force: bool, pool: bool) -> Tab:
        await self.below.asked("close", caller.name, name, lease, force, pool)
        return TAB

    async def close_many(self, caller: Principal, order: TabsOrder) -> Sequence[ClosedTab]:
        await self.below.asked("close_many", caller.name, order)
        return [ClosedTab(TAB.name, timedelta(seconds=1))]

    async def activate(self, caller: Principal, name: str, *, lease: str) -> Tab:
        await self.below.asked("activate", caller.name, name, lease)
        return TAB

    async def check_health(self, name: str, *, timeout: timedelta) -> Tab:
        await self.below.asked("check_health", name, timeout)
        return TAB

    async def recover(self, caller: Principal, name: str, *, lease: str) -> RecoveredTab:
        await self.below.asked("recover", caller.name, name, lease)
        return RecoveredTab(TAB, Strategy.RELOADED)

    async def navigate(self, caller: Principal, order: NavigationOrder) -> tuple[Tab, Navigation]:
        await self.below.asked("navigate", caller.name, order)
        return TAB, NAVIGATION

    def browser(self, name: str) -> tuple[Browser, TabCounts]:
        self.below.calls.append(("browser", name))
        return BROWSER, COUNTS

    def browsers(self) -> Sequence[tuple[Browser, TabCounts]]:
        return self.known


@dataclass
class FakeScripts:
    """Scripts that give `1`."""

    below: Below

    async def evaluate(self, caller: Principal, order: ScriptOrder) -> ScriptResult:
        await self.below.asked("evaluate", caller.name, order)
        return ScriptResult(TAB, "1")


@dataclass(frozen=True)
class Part:
    offset_bytes: int
    text: str
    size_bytes: int
    turn: Turn | None = None
    sha256: str = ""


@dataclass
class FakeSessions:
    """Sessions that answer with `SESSION`, and lists with what they hold."""

    below: Below
    known: list[tuple[int, Session]] = field(default_factory=lambda: [(1, SESSION)])
    turns: list[tuple[int, Turn]] = field(default_factory=lambda: [(1, TURN)])

    async def get(self, name: str) -> Session:
        await self.below.asked("get_session", name)
        return SESSION

    async def list(self, wanted: SessionFilter, *, after: int, count: int) -> Sequence[tuple[int, Session]]:
        await self.below.asked("list_sessions", wanted, after, count)
        return [entry for entry in self.known if entry[0] > after][:count]

    async def list_turns(self, session: str, *, after: int, count: int) -> Sequence[tuple[int, Turn]]:
        await self.below.asked("list_turns", session, after, count)
        return [entry for entry in self.turns if entry[0] > after][:count]

    async def update(self, caller: Principal, update: SessionUpdate) -> Session:
        await self.below.asked("update_session", caller.name, update)
        return SESSION

    async def retire(self, caller: Principal, name: str, disposition: TabDisposition) -> Session:
        await self.below.asked("retire_session", caller.name, name, disposition)
        return SESSION


@dataclass
class FakeImports:
    """An import that takes what comes."""

    below: Below
    report: ImportReport = field(
        default_factory=lambda: ImportReport(1, 2, 1, (SkippedRecord(3, "id", SkipCause.STILL_LIVE),))
    )

    async def run(self, caller: Principal, order: ImportOrder, chunks: AsyncIterator[bytes]) -> ImportReport:
        self.below.entered.set()
        await self.below.asked("import", caller.name, order, b"".join([chunk async for chunk in chunks]))
        return self.report


@dataclass
class FakeArtifacts:
    """One file, `ARTIFACT`, whose bytes are those that were asked for last, or `abcde`."""

    below: Below

    async def upload(self, caller: Principal, order: UploadOrder, chunks: AsyncIterator[bytes]) -> Artifact:
        self.below.entered.set()
        await self.below.asked("upload", caller.name, order, b"".join([chunk async for chunk in chunks]))
        return ARTIFACT

    async def get(self, caller: Principal, name: str) -> Artifact:
        await self.below.asked("get_artifact", caller.name, name)
        return ARTIFACT

    async def read(self, artifact: Artifact, offset_bytes: int) -> AsyncGenerator[bytes, None]:
        await self.below.asked("read", artifact, offset_bytes)
        for chunk in (b"ab", b"cde"):
            yield chunk


@dataclass
class FakeOnlooker:
    """Looks that find `STATUS` and `PROBE`."""

    below: Below

    async def status(self, name: str) -> ProviderStatus:
        await self.below.asked("status", name)
        return STATUS

    async def probe(self, provider: str, name: str) -> ProviderProbe:
        await self.below.asked("probe", provider, name)
        return PROBE


@dataclass
class FakeWebAi:
    """Sessions and turns that answer with `SESSION` and `TURN`."""

    below: Below
    parts: list[Part] = field(default_factory=lambda: [Part(0, "4", 1, TURN), Part(1, "2", 2, TURN, "ab")])
    providers: list[Provider] = field(default_factory=lambda: [PROVIDER])
    sessions: FakeSessions = field(init=False)
    artifacts: FakeArtifacts = field(init=False)
    imports: FakeImports = field(init=False)
    onlooker: FakeOnlooker = field(init=False)

    def __post_init__(self) -> None:
        self.onlooker = FakeOnlooker(self.below)
        self.sessions = FakeSessions(self.below)
        self.imports = FakeImports(self.below)
        self.artifacts = FakeArtifacts(self.below)

    def list_providers(self) -> Sequence[Provider]:
        return self.providers

    def render_prompt(self, provider: str, prompt: Prompt) -> RenderedPrompt:
        self.below.calls.append(("render_prompt", provider, prompt))
        return RenderedPrompt("Warum?", (TurnWarning("part-empty", "m"),))

    async def create_session(self, caller: Principal, order: SessionOrder) -> tuple[Session, bool]:
        await self.below.asked("create_session", caller.name, order)
        return SESSION, True

    async def recover_session(self, caller: Principal, name: str) -> RecoveredSession:
        await self.below.asked("recover_session", caller.name, name)
        return RecoveredSession(SESSION, Return.NAVIGATED, TAB.name)

    async def send_prompt(self, caller: Principal, order: PromptOrder) -> Turn:
        await self.below.asked("send_prompt", caller.name, order)
        return TURN

    async def get_turn(self, name: str) -> Turn:
        self.below.calls.append(("get_turn", name))
        return TURN

    async def wait_turn(self, name: str, *, max_wait: timedelta, after_revision: int) -> Turn:
        await self.below.asked("wait_turn", name, max_wait, after_revision)
        return TURN

    async def stream_answer(self, name: str, *, known_size_bytes: int, known_sha256: str) -> AsyncGenerator[Part, None]:
        for part in self.parts:
            yield part
        await self.below.asked("stream_answer", name, known_size_bytes, known_sha256)

    async def cancel_turn(self, caller: Principal, name: str) -> Turn:
        await self.below.asked("cancel_turn", caller.name, name)
        return TURN


@dataclass
class FakeEvents:
    """A log whose watches give `replies`, and then wait."""

    below: Below
    replies: list[bytes] = field(default_factory=list)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    progress: Progress = field(default_factory=lambda: Progress(HISTORY, 9))
    open_count: int = 0
    first: Callable[[], object] = bool
    """Called just before the first reply."""

    async def watch(
        self, start: WatchStart, wanted: WatchFilter, *, bookmark_interval: timedelta
    ) -> AsyncGenerator[bytes, None]:
        self.open_count += 1
        try:
            self.first()
            for reply in self.replies:
                yield reply
            await self.below.asked("watch", start, wanted, bookmark_interval)
        finally:
            self.open_count -= 1
            self.closed.set()


def status_from(error: grpc.aio.AioRpcError) -> status_pb2.Status:
    """The status that a client gets with `error`."""
    status: status_pb2.Status = rpc_status.from_call(cast("grpc.Call", error))
    return status


@dataclass
class Served:
    """A server, what lies below it, and the stubs of a client."""

    socket: Path
    server: RpcServer
    below: Below
    tabs: FakeTabs
    web_ai: FakeWebAi
    events: FakeEvents
    channel: grpc.aio.Channel

    @property
    def tab_service(self) -> TabServiceAsyncStub:
        return TabServiceStub(self.channel)

    @property
    def web_ai_service(self) -> WebAiServiceAsyncStub:
        return WebAiServiceStub(self.channel)


@asynccontextmanager
async def serving(
    *,
    events: Events | None = None,
    max_watch_count: int = 256,
    max_principal_watch_count: int = 64,
    write_timeout: timedelta = timedelta(seconds=60),
) -> AsyncGenerator[Served]:
    """Serve fakes, but for real `events` if given, on a socket in a directory of its own."""
    below = Below()
    tabs, web_ai, fake_events = FakeTabs(below), FakeWebAi(below), FakeEvents(below)
    base = Path(tempfile.mkdtemp(prefix="tm"))
    socket = base / "state" / "tabmuxd.sock"
    try:
        async with (
            RpcServer(
                socket,
                ServerInfo("1.2.3"),
                tabs,
                FakeScripts(below),
                web_ai,
                events=events or fake_events,
                max_watch_count=max_watch_count,
                max_principal_watch_count=max_principal_watch_count,
                write_timeout=write_timeout,
            ) as server,
            grpc.aio.insecure_channel(f"unix://{socket}", options=[("grpc.http2.bdp_probe", 0)]) as channel,
        ):
            yield Served(socket, server, below, tabs, web_ai, fake_events, channel)
    finally:
        shutil.rmtree(base)
