"""What the edge asks of the parts below it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from tabmuxd.events.filters import WatchFilter
from tabmuxd.events.log import Log
from tabmuxd.events.watch import WatchStart, watch
from tabmuxd.resources.artifacts import UploadOrder
from tabmuxd.resources.browser import Browser, TabCounts
from tabmuxd.resources.event import Progress
from tabmuxd.resources.imports import ImportOrder, ImportReport
from tabmuxd.resources.lease import Lease
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
from tabmuxd.resources.provider import Provider
from tabmuxd.resources.provider_status import ProviderProbe, ProviderStatus
from tabmuxd.resources.session import Artifact, Session, TabDisposition, Turn
from tabmuxd.resources.tab import Navigation, Tab


class Answer(Protocol):
    """One part of an answer that grows, as `StreamAnswerResponse` has it."""

    @property
    def offset_bytes(self) -> int:
        """Where the text belongs."""
        ...

    @property
    def text(self) -> str:
        """What replaces everything from there on."""
        ...

    @property
    def size_bytes(self) -> int:
        """Size of the whole after this part."""
        ...

    @property
    def turn(self) -> Turn | None:
        """The turn, where it has changed."""
        ...

    @property
    def sha256(self) -> str:
        """Hash of the whole, in the last part only."""
        ...


class Leases(Protocol):
    """Leases of tabs."""

    async def acquire(self, caller: Principal, order: LeaseOrder) -> Lease:
        """Lease a tab."""
        ...

    async def renew(self, caller: Principal, name: str) -> Lease:
        """Extend a lease; raises LEASE_NOT_FOUND."""
        ...

    async def release(self, caller: Principal, name: str) -> Lease:
        """Give a lease back; raises LEASE_NOT_FOUND."""
        ...

    async def list(self, tab: str, *, after: int, count: int) -> Sequence[tuple[int, Lease]]:
        """At most `count` live leases with their revisions of creation, oldest first, from behind `after`."""
        ...


class Tabs(Protocol):
    """Tabs and browsers."""

    @property
    def leases(self) -> Leases:
        """Their leases."""
        ...

    async def create(self, caller: Principal, order: TabOrder) -> OpenedTab:
        """Open a tab."""
        ...

    async def adopt(self, caller: Principal, order: AdoptOrder) -> Tab:
        """Take over a foreign page."""
        ...

    async def get(self, name: str) -> Tab:
        """A tab, closed ones too; raises TAB_NOT_FOUND."""
        ...

    async def list(self, tab_filter: TabFilter, *, after: int, count: int) -> Sequence[tuple[int, Tab]]:
        """At most `count` tabs with their revisions of creation, oldest first, from behind the revision `after`."""
        ...

    async def foreign_targets(self, browser: str) -> Sequence[tuple[str, str]]:
        """Foreign pages as (browser name, target id), sorted; an empty `browser` means all."""
        ...

    async def update(self, caller: Principal, update: TabUpdate) -> Tab:
        """Set fields."""
        ...

    async def close(self, caller: Principal, name: str, *, lease: str, force: bool, pool: bool) -> Tab:
        """Close a tab, or put it in the pool."""
        ...

    async def close_many(self, caller: Principal, order: TabsOrder) -> Sequence[ClosedTab]:
        """Close the tabs that match."""
        ...

    async def activate(self, caller: Principal, name: str, *, lease: str) -> Tab:
        """Bring a tab to the front."""
        ...

    async def check_health(self, name: str, *, timeout: timedelta) -> Tab:
        """Look at a tab."""
        ...

    async def recover(self, caller: Principal, name: str, *, lease: str) -> RecoveredTab:
        """Bring a tab back to use."""
        ...

    async def navigate(self, caller: Principal, order: NavigationOrder) -> tuple[Tab, Navigation]:
        """Go to an address."""
        ...

    def browser(self, name: str) -> tuple[Browser, TabCounts]:
        """A browser; raises BROWSER_NOT_FOUND."""
        ...

    def browsers(self) -> Sequence[tuple[Browser, TabCounts]]:
        """All browsers, by name."""
        ...


class Scripts(Protocol):
    """Scripts of clients in pages."""

    async def evaluate(self, caller: Principal, order: ScriptOrder) -> ScriptResult:
        """Run a script in a page."""
        ...


class Sessions(Protocol):
    """Sessions as a whole."""

    async def get(self, name: str) -> Session:
        """A session; raises SESSION_NOT_FOUND."""
        ...

    async def list(self, wanted: SessionFilter, *, after: int, count: int) -> Sequence[tuple[int, Session]]:
        """At most `count` sessions with their revisions of creation, oldest first, from behind `after`."""
        ...

    async def list_turns(self, session: str, *, after: int, count: int) -> Sequence[tuple[int, Turn]]:
        """As `list`, the turns of a session without their answers; raises SESSION_NOT_FOUND."""
        ...

    async def update(self, caller: Principal, update: SessionUpdate) -> Session:
        """Set fields."""
        ...

    async def retire(self, caller: Principal, name: str, disposition: TabDisposition) -> Session:
        """End a session for good."""
        ...


class Imports(Protocol):
    """Conversations of other tools."""

    async def run(self, caller: Principal, order: ImportOrder, chunks: AsyncIterator[bytes]) -> ImportReport:
        """Import a file that comes in chunks."""
        ...


class Artifacts(Protocol):
    """Files that are kept for a while."""

    async def upload(self, caller: Principal, order: UploadOrder, chunks: AsyncIterator[bytes]) -> Artifact:
        """Keep a file that comes in chunks."""
        ...

    async def get(self, caller: Principal, name: str) -> Artifact:
        """A file that the caller may read; raises ARTIFACT_NOT_FOUND, NOT_OWNER."""
        ...

    def read(self, artifact: Artifact, offset_bytes: int) -> AsyncGenerator[bytes, None]:
        """Its bytes from an offset on."""
        ...


class Onlooker(Protocol):
    """What tabs show of providers."""

    async def status(self, name: str) -> ProviderStatus:
        """What a tab shows of the provider it is at."""
        ...

    async def probe(self, provider: str, name: str) -> ProviderProbe:
        """What each selector of a provider's descriptor finds in a tab."""
        ...


class WebAi(Protocol):
    """Sessions and turns."""

    @property
    def onlooker(self) -> Onlooker:
        """What looks at pages of providers."""
        ...

    @property
    def artifacts(self) -> Artifacts:
        """Its files."""
        ...

    @property
    def imports(self) -> Imports:
        """What imports sessions."""
        ...

    @property
    def sessions(self) -> Sessions:
        """Its sessions as a whole."""
        ...

    def render_prompt(self, provider: str, prompt: Prompt) -> RenderedPrompt:
        """A prompt as the first of a conversation would be sent."""
        ...

    def list_providers(self) -> Sequence[Provider]:
        """The providers there are, by id."""
        ...

    async def create_session(self, caller: Principal, order: SessionOrder) -> tuple[Session, bool]:
        """A session, and whether this call made it."""
        ...

    async def recover_session(self, caller: Principal, name: str) -> RecoveredSession:
        """Bring a session back to its conversation."""
        ...

    async def send_prompt(self, caller: Principal, order: PromptOrder) -> Turn:
        """Record a turn, or find the one with this request id."""
        ...

    async def get_turn(self, name: str) -> Turn:
        """A turn; raises TURN_NOT_FOUND."""
        ...

    async def wait_turn(self, name: str, *, max_wait: timedelta, after_revision: int) -> Turn:
        """A turn once it has ended or changed, or as it is when the time is over."""
        ...

    def stream_answer(self, name: str, *, known_size_bytes: int, known_sha256: str) -> AsyncGenerator[Answer, None]:
        """Parts of an answer until the turn has ended (A1 to A7)."""
        ...

    async def cancel_turn(self, caller: Principal, name: str) -> Turn:
        """Stop a turn."""
        ...


class Events(Protocol):
    """The event log."""

    @property
    def progress(self) -> Progress:
        """Where it stands now."""
        ...

    def watch(
        self, start: WatchStart, wanted: WatchFilter, *, bookmark_interval: timedelta
    ) -> AsyncGenerator[bytes, None]:
        """Finished replies of a watch, without an end (W1 to W12)."""
        ...


@dataclass(frozen=True, slots=True)
class LogEvents:
    """The event log as the edge reads it."""

    log: Log

    @property
    def progress(self) -> Progress:
        """Where it stands now."""
        return self.log.progress

    def watch(
        self, start: WatchStart, wanted: WatchFilter, *, bookmark_interval: timedelta
    ) -> AsyncGenerator[bytes, None]:
        """Finished replies of a watch, without an end."""
        return watch(self.log, start, wanted, bookmark_interval=bookmark_interval)


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What `GetServerInfo` tells of the server itself."""

    version: str
    disabled_methods: tuple[str, ...] = ()
