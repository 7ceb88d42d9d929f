"""Values that tests of rules start from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tabmuxd.resources.errors import Refused
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.principal import Principal, Scope
from tabmuxd.resources.session import Session, SessionState
from tabmuxd.resources.tab import Tab, TabOrigin, TabState
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.rendering import Terms
from tabmuxd.webai.samples import Sample

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
TAB = "browsers/main/tabs/0123456789"
SESSION = "sessions/s"
LEASE = "leases/l"
OWNER = Principal("local/a", frozenset({Scope.DRIVE}))
FRIEND = Principal("local/b", frozenset({Scope.DRIVE}))
STRANGER = Principal("local/c", frozenset({Scope.DRIVE, Scope.AI, Scope.READ}))
ADMIN = Principal("local", frozenset(Scope))
TERMS = Terms("playground-textarea", 100_000)


def ready_tab() -> Tab:
    """A READY tab of `local/a`, shared with `local/b`."""
    return Tab(
        TAB,
        TabState.READY,
        TabOrigin.MANAGED,
        "local/a",
        NOW,
        NOW,
        uri="https://secret.example/?q=1",
        title="Secret title",
        generation=3,
        shared_with=("local/b",),
        revision=9,
    )


def held(name: str = LEASE, *, session: str = "", seconds: float = 30) -> Lease:
    """A lease on that tab: of `local/a`, or of the service for a session."""
    owner = "" if session else "local/a"
    return Lease(name, TAB, LeaseTerms(), NOW + timedelta(seconds=seconds), 1, NOW, session=session, owner=owner)


def chat_session(conversation: str = "") -> Session:
    """A session with the playground's text area."""
    return Session(
        SESSION,
        SessionState.ACTIVE,
        "playground-textarea",
        "1",
        "local/a",
        NOW,
        NOW,
        "browsers/main",
        conversation_uri=conversation,
    )


def playground() -> Descriptor:
    """The descriptor of the playground's text area on port 8000."""
    return descriptor.load("playground-textarea", {"port": "8000"})


def sample() -> Sample:
    """A look at a chat page that is ready for a prompt: an empty text area, one send control, no turns."""
    return Sample(
        uri="http://textarea.localhost:8000/",
        title="Playground",
        ready=True,
        composer="usable",
        composer_text="",
        composer_exact=True,
        send_count=1,
        stop=False,
        failure="",
        turns=(),
        frames=1,
        touch="7-9 0",
    )


def told(refused: object) -> str | None:
    """The reason of a refusal, with its cause where it has one; None where nothing was refused."""
    if not isinstance(refused, Refused):
        return None
    cause = refused.metadata.get("cause")
    return f"{refused.reason}:{cause}" if cause else refused.reason.value
