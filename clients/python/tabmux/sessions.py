"""Sessions as a whole: listed, and retired when they were not used for long."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from tabmux.calls import Calls
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.web_ai_service_pb2 import (
    GetSessionRequest,
    ListSessionsRequest,
    ListTurnsRequest,
    RetireSessionRequest,
)

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only

Disposition = Literal["pool", "close", "keep"]

DISPOSITIONS: Mapping[Disposition | None, RetireSessionRequest.TabDisposition.ValueType] = MappingProxyType(
    {
        None: RetireSessionRequest.TAB_DISPOSITION_UNSPECIFIED,
        "pool": RetireSessionRequest.TAB_DISPOSITION_POOL,
        "close": RetireSessionRequest.TAB_DISPOSITION_CLOSE,
        "keep": RetireSessionRequest.TAB_DISPOSITION_KEEP,
    },
)
_STATES = tuple(value for value in Session.State.values() if value != Session.STATE_UNSPECIFIED)


async def list_sessions(
    service: "WebAiServiceAsyncStub",
    calls: Calls,
    *,
    providers: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    retired: bool = False,
) -> AsyncGenerator[Session, None]:
    """Yield sessions that match, oldest first, over all pages; retired ones only if asked for."""
    request = ListSessionsRequest(states=_STATES if retired else (), providers=providers, labels=labels or {})
    async for reply in calls.pages(service.ListSessions, request):
        for session in reply.sessions:
            yield session


async def list_turns(service: "WebAiServiceAsyncStub", calls: Calls, session: str) -> AsyncGenerator[Turn, None]:
    """Yield the turns of a session, oldest first, over all pages, without their answers."""
    request = ListTurnsRequest(parent=session)
    async for reply in calls.pages(service.ListTurns, request):
        for turn in reply.turns:
            yield turn


async def prune_sessions(
    service: "WebAiServiceAsyncStub", calls: Calls, *, owner: str, unused_since: datetime, dry_run: bool
) -> AsyncGenerator[Session, None]:
    """Retire the sessions of `owner` that have no open turn and were not active since then, and yield each.

    Each is looked at again right before. With `dry_run` those that would be retired are given, as they are.
    """
    chosen = [each async for each in list_sessions(service, calls) if _is_unused(each, owner, unused_since)]
    for session in chosen:
        if dry_run:
            yield session
            continue
        now = (await calls.unary(service.GetSession, GetSessionRequest(name=session.name))).session
        if _is_unused(now, owner, unused_since):
            yield (await calls.unary(service.RetireSession, RetireSessionRequest(name=session.name))).session


def unused_since(older_than: timedelta) -> datetime:
    """The time that is so long ago."""
    return datetime.now(UTC) - older_than


def _is_unused(session: Session, owner: str, since: datetime) -> bool:
    return (
        session.owner == owner
        and session.state != Session.STATE_RETIRED
        and not session.open_turn
        and session.last_active_time.ToDatetime(UTC) <= since
    )
