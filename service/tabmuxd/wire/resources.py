"""Resources as messages of the contract. What is private to the server has no field there and is never read here."""

from __future__ import annotations

from typing import Final, assert_never

from tabmux.v1 import (
    browser_pb2,
    error_reason_pb2,
    event_pb2,
    lease_pb2,
    provider_pb2,
    session_pb2,
    tab_pb2,
    tab_service_pb2,
    warning_pb2,
)

from tabmuxd.resources.browser import Browser, BrowserLimits, TabCounts
from tabmuxd.resources.errors import Failure, cut
from tabmuxd.resources.event import Event, Progress
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.orders import ClosedTab
from tabmuxd.resources.provider import Provider
from tabmuxd.resources.session import Artifact, CompletionEvidence, Session, Turn, Warning  # noqa: A004 - the contract's word
from tabmuxd.resources.tab import Dialog, Navigation, Tab, TabHealth, TabOrigin
from tabmuxd.wire.redaction import REDACTED, redact_uri, shown_failure
from tabmuxd.wire.times import duration, timestamp

_MAX_URI_BYTES: Final = 8 * 1024


def browser_message(browser: Browser, counts: TabCounts | None) -> browser_pb2.Browser:
    """A browser; `counts` are left out of events."""
    return browser_pb2.Browser(
        name=browser.name,
        state=browser_pb2.Browser.State.ValueType(browser.state),
        ownership=browser_pb2.Browser.Ownership.ValueType(browser.ownership),
        product=browser.product,
        endpoint=browser.endpoint,
        headless=browser.headless,
        generation=browser.generation,
        limits=_limits_message(browser.limits),
        tab_counts=None if counts is None else _counts_message(counts),
        revision=browser.revision,
        update_time=timestamp(browser.update_time),
    )


def provider_message(provider: Provider) -> provider_pb2.Provider:
    """A provider as its descriptor tells."""
    return provider_pb2.Provider(
        id=provider.id,
        display_name=provider.display_name,
        hosts=provider.hosts,
        start_uri=provider.start_uri,
        capabilities=[provider_pb2.ProviderCapability.ValueType(each) for each in provider.capabilities],
        models=provider.models,
        default_answer_timeout=duration(provider.default_answer_timeout),
        max_prompt_character_count=provider.max_prompt_character_count,
        descriptor_version=provider.descriptor_version,
        warnings=[warning_message(warning) for warning in provider.warnings],
    )


def tab_message(tab: Tab) -> tab_pb2.Tab:
    """A tab of ours; secrets in its address are not shown, nor is its marker, should it still stand there."""
    return tab_pb2.Tab(
        name=tab.name,
        state=tab_pb2.Tab.State.ValueType(tab.state),
        origin=tab_pb2.Tab.Origin.ValueType(tab.origin),
        opener=tab.opener,
        owner=tab.owner,
        target_id=tab.target_id,
        generation=tab.generation,
        uri=_shown_uri(tab.uri.replace(tab.marker, REDACTED) if tab.marker else tab.uri),
        title=redact_uri(tab.title),
        group=tab.group,
        pinned=tab.pinned,
        labels=tab.labels,
        dialog_policy=tab_pb2.Tab.DialogPolicy.ValueType(tab.dialog_policy),
        session=tab.session,
        lease=tab.lease,
        pooled=tab.pooled,
        front=tab.front,
        health=None if tab.health is None else _health_message(tab.health),
        dialog=None if tab.dialog is None else _dialog_message(tab.dialog),
        recovery_count=tab.recovery_count,
        close_cause=tab_pb2.Tab.CloseCause.ValueType(tab.close_cause),
        last_active_time=timestamp(tab.last_active_time),
        create_time=timestamp(tab.create_time),
        close_time=timestamp(tab.close_time),
        revision=tab.revision,
        update_time=timestamp(tab.update_time),
        shared_with=tab.shared_with,
    )


def foreign_tab_message(target_id: str) -> tab_pb2.Tab:
    """Somebody else's tab: its target id and that it is foreign, nothing more."""
    return tab_pb2.Tab(origin=tab_pb2.Tab.Origin.ValueType(TabOrigin.FOREIGN), target_id=target_id)


def navigation_message(navigation: Navigation) -> tab_service_pb2.Navigation:
    """What is known of a navigation."""
    return tab_service_pb2.Navigation(
        outcome=tab_service_pb2.Navigation.Outcome.ValueType(navigation.outcome),
        reached=tab_service_pb2.LoadMilestone.ValueType(navigation.reached),
        http_status=navigation.http_status,
    )


def lease_message(lease: Lease) -> lease_pb2.Lease:
    """A lease."""
    return lease_pb2.Lease(
        name=lease.name,
        tab=lease.tab,
        terms=lease_pb2.LeaseTerms(
            ttl=duration(lease.terms.ttl),
            holder=lease.terms.holder,
            close_on_expiry=lease.terms.close_on_expiry,
        ),
        session=lease.session,
        expire_time=timestamp(lease.expire_time),
        fencing_token=lease.fencing_token,
        create_time=timestamp(lease.create_time),
        end_time=timestamp(lease.end_time),
        revision=lease.revision,
        owner=lease.owner,
    )


def session_message(session: Session) -> session_pb2.Session:
    """A session; secrets in its address are not shown."""
    return session_pb2.Session(
        name=session.name,
        state=session_pb2.Session.State.ValueType(session.state),
        provider=session.provider,
        descriptor_version=session.descriptor_version,
        owner=session.owner,
        tab=session.tab,
        conversation_uri=_shown_uri(session.conversation_uri),
        open_turn=session.open_turn,
        labels=session.labels,
        expire_time=timestamp(session.expire_time),
        recovery_count=session.recovery_count,
        close_count=session.close_count,
        last_active_time=timestamp(session.last_active_time),
        create_time=timestamp(session.create_time),
        retire_time=timestamp(session.retire_time),
        retire_cause=session_pb2.Session.RetireCause.ValueType(session.retire_cause),
        revision=session.revision,
        update_time=timestamp(session.update_time),
        ttl=duration(session.ttl),
        last_turn=session.last_turn,
        title=redact_uri(session.title),
    )


def turn_message(turn: Turn, *, with_answer: bool) -> session_pb2.Turn:
    """A turn; lists, events and streams leave its answer out."""
    return session_pb2.Turn(
        name=turn.name,
        state=session_pb2.Turn.State.ValueType(turn.state),
        answer_markdown=turn.answer_markdown if with_answer else "",
        answer_size_bytes=turn.answer_size_bytes,
        stalled=turn.stalled,
        completion=None if turn.completion is None else _completion_message(turn.completion),
        error=None if turn.error is None else failure_message(turn.error),
        warnings=[warning_message(warning) for warning in turn.warnings],
        artifacts=[artifact_message(artifact) for artifact in turn.artifacts],
        model=turn.model,
        shown_model=turn.shown_model,
        prompt_sha256=turn.prompt_sha256,
        request_id=turn.request_id,
        create_time=timestamp(turn.create_time),
        submit_time=timestamp(turn.submit_time),
        expire_time=timestamp(turn.expire_time),
        end_time=timestamp(turn.end_time),
        revision=turn.revision,
        update_time=timestamp(turn.update_time),
    )


def event_message(event: Event) -> event_pb2.Event:
    """An event: turns without their answers, browsers without counts. Raises ValueError for a foreign tab."""
    message = event_pb2.Event(
        revision=event.revision,
        kind=event_pb2.EventKind.ValueType(event.kind),
        cause=event_pb2.ChangeCause.ValueType(event.cause),
        record_time=timestamp(event.record_time),
    )
    match event.resource:
        case Browser() as browser:
            message.browser.CopyFrom(browser_message(browser, None))
        case Tab() as tab:
            if tab.origin is TabOrigin.FOREIGN:
                raise ValueError("a foreign tab is in no event")
            message.tab.CopyFrom(tab_message(tab))
        case Lease() as lease:
            message.lease.CopyFrom(lease_message(lease))
        case Session() as session:
            message.session.CopyFrom(session_message(session))
        case Turn() as turn:
            message.turn.CopyFrom(turn_message(turn, with_answer=False))
        case _ as never:
            assert_never(never)
    return message


def closed_tab_message(closed: ClosedTab) -> tab_service_pb2.CloseTabsOutcome:
    """What `CloseTabs` did with one tab."""
    actions = tab_service_pb2.CloseTabsOutcome
    action = actions.ACTION_SKIPPED if closed.skip_reason else actions.ACTION_CLOSED
    return tab_service_pb2.CloseTabsOutcome(
        tab=closed.tab,
        action=actions.ACTION_FAILED if closed.error else action,
        skip_reason=actions.SkipReason.ValueType(closed.skip_reason),
        idle_duration=duration(closed.idle_duration),
        error=None if closed.error is None else failure_message(closed.error),
    )


def progress_message(progress: Progress) -> event_pb2.WatchProgress:
    """A place in a history."""
    return event_pb2.WatchProgress(history_id=progress.history_id, revision=progress.revision)


def failure_message(failure: Failure) -> error_reason_pb2.Failure:
    """A refusal as data; secrets in its address are not shown."""
    shown = shown_failure(failure)
    return error_reason_pb2.Failure(
        reason=shown.reason,
        message=shown.message,
        metadata=shown.metadata,
        retry_delay=duration(shown.retry_delay),
    )


def warning_message(warning: Warning) -> warning_pb2.Warning:
    """Something that went differently from what was asked."""
    return warning_pb2.Warning(code=warning.code, message=warning.message)


def artifact_message(artifact: Artifact) -> session_pb2.Artifact:
    """A file the service keeps."""
    return session_pb2.Artifact(
        name=artifact.name,
        display_name=artifact.display_name,
        media_type=artifact.media_type,
        size_bytes=artifact.size_bytes,
        sha256=artifact.sha256,
        expire_time=timestamp(artifact.expire_time),
    )


def _shown_uri(uri: str) -> str:
    return cut(redact_uri(uri), _MAX_URI_BYTES)


def _limits_message(limits: BrowserLimits) -> browser_pb2.BrowserLimits:
    return browser_pb2.BrowserLimits(
        max_tab_count=limits.max_tab_count,
        max_pooled_tab_count=limits.max_pooled_tab_count,
        max_group_pooled_tab_count=limits.max_group_pooled_tab_count,
        idle_timeout=duration(limits.idle_timeout),
        pool_timeout=duration(limits.pool_timeout),
        reclaim_after=duration(limits.reclaim_after),
    )


def _counts_message(counts: TabCounts) -> browser_pb2.TabCounts:
    return browser_pb2.TabCounts(
        managed_count=counts.managed_count,
        popup_count=counts.popup_count,
        adopted_count=counts.adopted_count,
        lost_count=counts.lost_count,
        foreign_count=counts.foreign_count,
        pooled_count=counts.pooled_count,
    )


def _health_message(health: TabHealth) -> tab_pb2.TabHealth:
    return tab_pb2.TabHealth(
        status=tab_pb2.TabHealth.Status.ValueType(health.status),
        check_time=timestamp(health.check_time),
        latency=duration(health.latency),
        visible=health.visible,
    )


def _dialog_message(dialog: Dialog) -> tab_pb2.Dialog:
    return tab_pb2.Dialog(
        kind=tab_pb2.Dialog.Kind.ValueType(dialog.kind),
        message=dialog.message,
        default_prompt_text=dialog.default_prompt_text,
        open_time=timestamp(dialog.open_time),
    )


def _completion_message(completion: CompletionEvidence) -> session_pb2.CompletionEvidence:
    return session_pb2.CompletionEvidence(
        done_mark=completion.done_mark, stable_duration=duration(completion.stable_duration)
    )
