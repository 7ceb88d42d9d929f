"""Requests of `WebAiService` about sessions as a whole, checked for form."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.errors import invalid_field
from tabmuxd.resources.imports import ImportOrder, ImportSource
from tabmuxd.resources.orders import SessionFilter, SessionUpdate
from tabmuxd.resources.session import SessionState, TabDisposition
from tabmuxd.rpc import fields

DEFAULT_TTL: Final = timedelta(days=30)
_LEAST_TTL: Final = timedelta(minutes=1)
_MOST_TTL: Final = timedelta(days=365)


def ttl(value: Duration) -> timedelta:
    """How long a session may go without a turn."""
    return fields.clamped("ttl", value, least=_LEAST_TTL, most=_MOST_TTL)


def session_filter(request: pb.ListSessionsRequest) -> SessionFilter:
    """`ListSessions`."""
    for index, provider in enumerate(request.providers):
        if not provider:
            raise invalid_field(f"providers[{index}]", "must be the id of a provider, such as chatgpt")
    return SessionFilter(
        states=fields.members("states", request.states, SessionState),
        providers=frozenset(request.providers),
        labels=fields.new_labels("labels", request.labels),
    )


def session_update(request: pb.UpdateSessionRequest) -> SessionUpdate:
    """`UpdateSession`; something must be set."""
    update = SessionUpdate(
        name=fields.session_name("name", request.name),
        expected_revision=fields.natural("expected_revision", request.expected_revision),
        labels=fields.label_changes("labels", request.labels),
        ttl=ttl(request.ttl) if request.HasField("ttl") else None,
    )
    if not update.labels and update.ttl is None:
        raise invalid_field("update", "set at least one of labels and ttl")
    return update


async def import_order(requests: AsyncIterator[pb.ImportSessionsRequest]) -> ImportOrder:
    """The first request of `ImportSessions`."""
    async for request in requests:
        if request.WhichOneof("part") == "info":
            info = request.info
            return ImportOrder(
                source=fields.member("info.source", info.source, ImportSource),
                browser=fields.first_browser("info.browser", info.browser),
                ttl=ttl(info.ttl) if info.HasField("ttl") else DEFAULT_TTL,
                dry_run=info.dry_run,
            )
        break
    raise invalid_field("info", "must be sent first")


def retired_session(request: pb.RetireSessionRequest) -> tuple[str, TabDisposition]:
    """`RetireSession`: name of the session, and what becomes of its tab."""
    return (
        fields.session_name("name", request.name),
        fields.choice("tab_disposition", request.tab_disposition, TabDisposition, TabDisposition.UNSPECIFIED),
    )
