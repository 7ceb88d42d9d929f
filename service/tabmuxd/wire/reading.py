"""Messages of the contract as resources; what a message does not tell has its default."""

from __future__ import annotations

from datetime import datetime, timedelta

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from tabmux.v1 import browser_pb2, error_reason_pb2, event_pb2, lease_pb2, session_pb2, tab_pb2, tab_service_pb2

from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserState, Ownership, TabCounts
from tabmuxd.resources.errors import Failure
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Progress, Resource
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.session import (
    Artifact,
    CompletionEvidence,
    RetireCause,
    Session,
    SessionState,
    Turn,
    TurnState,
    Warning,  # noqa: A004 - the contract's word
)
from tabmuxd.resources.tab import (
    CloseCause,
    Dialog,
    DialogKind,
    DialogPolicy,
    HealthStatus,
    LoadMilestone,
    Navigation,
    NavigationOutcome,
    Tab,
    TabHealth,
    TabOrigin,
    TabState,
)
from tabmuxd.wire.times import span_of, time_of


def browser_from(message: browser_pb2.Browser) -> Browser:
    """The browser a message tells of, without its counts."""
    limits = message.limits
    return Browser(
        name=message.name,
        state=BrowserState(message.state),
        ownership=Ownership(message.ownership),
        product=message.product,
        endpoint=message.endpoint,
        headless=message.headless,
        generation=message.generation,
        limits=BrowserLimits(
            max_tab_count=limits.max_tab_count,
            max_pooled_tab_count=limits.max_pooled_tab_count,
            max_group_pooled_tab_count=limits.max_group_pooled_tab_count,
            idle_timeout=_span(limits.idle_timeout, present=limits.HasField("idle_timeout")),
            pool_timeout=_span(limits.pool_timeout, present=limits.HasField("pool_timeout")),
            reclaim_after=_span(limits.reclaim_after, present=limits.HasField("reclaim_after")),
        ),
        revision=message.revision,
        update_time=_time(message.update_time, present=message.HasField("update_time")),
    )


def counts_from(message: browser_pb2.TabCounts) -> TabCounts:
    """The counts a message tells."""
    return TabCounts(
        managed_count=message.managed_count,
        popup_count=message.popup_count,
        adopted_count=message.adopted_count,
        lost_count=message.lost_count,
        foreign_count=message.foreign_count,
        pooled_count=message.pooled_count,
    )


def tab_from(message: tab_pb2.Tab) -> Tab:
    """The tab a message tells of, one of ours; raises ValueError for a foreign one, which has no state."""
    return Tab(
        name=message.name,
        state=TabState(message.state),
        origin=TabOrigin(message.origin),
        owner=message.owner,
        create_time=time_of(message.create_time),
        last_active_time=time_of(message.last_active_time),
        opener=message.opener,
        target_id=message.target_id,
        generation=message.generation,
        uri=message.uri,
        title=message.title,
        group=message.group,
        pinned=message.pinned,
        labels=dict(message.labels),
        dialog_policy=DialogPolicy(message.dialog_policy),
        session=message.session,
        lease=message.lease,
        pooled=message.pooled,
        front=message.front,
        health=_health(message.health) if message.HasField("health") else None,
        dialog=_dialog(message.dialog) if message.HasField("dialog") else None,
        recovery_count=message.recovery_count,
        close_cause=CloseCause(message.close_cause),
        close_time=_time(message.close_time, present=message.HasField("close_time")),
        shared_with=tuple(message.shared_with),
        revision=message.revision,
        update_time=_time(message.update_time, present=message.HasField("update_time")),
    )


def navigation_from(message: tab_service_pb2.Navigation) -> Navigation:
    """What a message tells of a navigation."""
    return Navigation(NavigationOutcome(message.outcome), LoadMilestone(message.reached), message.http_status)


def lease_from(message: lease_pb2.Lease) -> Lease:
    """The lease a message tells of; it has no `update_time`."""
    terms = message.terms
    return Lease(
        name=message.name,
        tab=message.tab,
        terms=LeaseTerms(ttl=span_of(terms.ttl), holder=terms.holder, close_on_expiry=terms.close_on_expiry),
        expire_time=time_of(message.expire_time),
        fencing_token=message.fencing_token,
        create_time=time_of(message.create_time),
        session=message.session,
        owner=message.owner,
        end_time=_time(message.end_time, present=message.HasField("end_time")),
        revision=message.revision,
    )


def session_from(message: session_pb2.Session) -> Session:
    """The session a message tells of; the message does not name its browser."""
    return Session(
        name=message.name,
        state=SessionState(message.state),
        provider=message.provider,
        descriptor_version=message.descriptor_version,
        owner=message.owner,
        create_time=time_of(message.create_time),
        last_active_time=time_of(message.last_active_time),
        browser="",
        tab=message.tab,
        conversation_uri=message.conversation_uri,
        open_turn=message.open_turn,
        labels=dict(message.labels),
        ttl=span_of(message.ttl),
        expire_time=_time(message.expire_time, present=message.HasField("expire_time")),
        recovery_count=message.recovery_count,
        close_count=message.close_count,
        retire_time=_time(message.retire_time, present=message.HasField("retire_time")),
        retire_cause=RetireCause(message.retire_cause),
        last_turn=message.last_turn,
        title=message.title,
        revision=message.revision,
        update_time=_time(message.update_time, present=message.HasField("update_time")),
    )


def turn_from(message: session_pb2.Turn) -> Turn:
    """The turn a message tells of; without prompt and payload hash, which no message has."""
    return Turn(
        name=message.name,
        state=TurnState(message.state),
        request_id=message.request_id,
        prompt_sha256=message.prompt_sha256,
        payload_sha256="",
        create_time=time_of(message.create_time),
        expire_time=time_of(message.expire_time),
        answer_markdown=message.answer_markdown,
        answer_size_bytes=message.answer_size_bytes,
        stalled=message.stalled,
        completion=_completion(message.completion) if message.HasField("completion") else None,
        error=failure_from(message.error) if message.HasField("error") else None,
        warnings=tuple(Warning(warning.code, warning.message) for warning in message.warnings),
        artifacts=tuple(_artifact(artifact) for artifact in message.artifacts),
        model=message.model,
        shown_model=message.shown_model,
        submit_time=_time(message.submit_time, present=message.HasField("submit_time")),
        end_time=_time(message.end_time, present=message.HasField("end_time")),
        revision=message.revision,
        update_time=_time(message.update_time, present=message.HasField("update_time")),
    )


def event_from(message: event_pb2.Event) -> Event:
    """The event a message tells; raises ValueError for a kind, cause or resource that this version does not know."""
    return Event(
        revision=message.revision,
        kind=EventKind(message.kind),
        cause=ChangeCause(message.cause),
        record_time=time_of(message.record_time),
        resource=_resource(message),
    )


def progress_from(message: event_pb2.WatchProgress) -> Progress:
    """The place in a history that a message tells."""
    return Progress(message.history_id, message.revision)


def failure_from(message: error_reason_pb2.Failure) -> Failure:
    """The refusal a message tells."""
    delay = span_of(message.retry_delay) if message.HasField("retry_delay") else None
    return Failure(message.reason, message.message, dict(message.metadata), delay)


def _resource(message: event_pb2.Event) -> Resource:
    match message.WhichOneof("resource"):
        case "browser":
            return browser_from(message.browser)
        case "tab":
            return tab_from(message.tab)
        case "lease":
            return lease_from(message.lease)
        case "session":
            return session_from(message.session)
        case "turn":
            return turn_from(message.turn)
        case _:
            raise ValueError("the event has no resource that is known here")


def _time(message: Timestamp, *, present: bool) -> datetime | None:
    return time_of(message) if present else None


def _span(message: Duration, *, present: bool) -> timedelta | None:
    return span_of(message) if present else None


def _health(message: tab_pb2.TabHealth) -> TabHealth:
    return TabHealth(
        status=HealthStatus(message.status),
        check_time=time_of(message.check_time),
        latency=_span(message.latency, present=message.HasField("latency")),
        visible=message.visible,
    )


def _dialog(message: tab_pb2.Dialog) -> Dialog:
    return Dialog(
        kind=DialogKind(message.kind),
        message=message.message,
        default_prompt_text=message.default_prompt_text,
        open_time=time_of(message.open_time),
    )


def _completion(message: session_pb2.CompletionEvidence) -> CompletionEvidence:
    return CompletionEvidence(message.done_mark, span_of(message.stable_duration))


def _artifact(message: session_pb2.Artifact) -> Artifact:
    return Artifact(
        name=message.name,
        display_name=message.display_name,
        media_type=message.media_type,
        size_bytes=message.size_bytes,
        sha256=message.sha256,
        expire_time=time_of(message.expire_time),
    )
