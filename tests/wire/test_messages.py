"""Resources and messages, both ways."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from tabmux.v1 import event_pb2, tab_pb2
from tabmuxd import wire
from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserState, Ownership, TabCounts
from tabmuxd.resources.errors import Failure
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Progress, Resource
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.session import (
    Artifact,
    CompletionEvidence,
    Session,
    SessionState,
    Turn,
    TurnState,
)
from tabmuxd.resources.tab import Dialog, Navigation, Tab, TabHealth, TabOrigin, TabState
from tabmuxd.wire import reading

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
PLANTED = "PLANTED"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
uris = st.sampled_from(["", "about:blank", "https://example.com/a?q=1#b"])  # one with a secret is shown redacted
times = st.datetimes(timezones=st.just(UTC))
maybe_times = st.none() | times
spans = st.timedeltas(min_value=timedelta(days=-3_000_000), max_value=timedelta(days=3_000_000))
maybe_spans = st.none() | spans
counts = st.integers(0, 2**31 - 1)
numbers = st.integers(0, 2**53)
labels = st.dictionaries(texts, texts, max_size=2)

tab_counts = st.builds(TabCounts, counts, counts, counts, counts, counts, counts)
browsers = st.builds(
    Browser,
    name=texts,
    product=texts,
    endpoint=texts,
    generation=numbers,
    limits=st.builds(BrowserLimits, counts, counts, counts, maybe_spans, maybe_spans, maybe_spans),
    process_key=st.just(""),
    revision=numbers,
    update_time=maybe_times,
)
tabs = st.builds(
    Tab,
    name=texts,
    origin=st.sampled_from([TabOrigin.MANAGED, TabOrigin.POPUP, TabOrigin.ADOPTED]),
    owner=texts,
    create_time=times,
    last_active_time=times,
    opener=texts,
    target_id=texts,
    generation=numbers,
    uri=uris,
    title=texts,
    labels=labels,
    health=st.none() | st.builds(TabHealth, check_time=times, latency=maybe_spans),
    dialog=st.none() | st.builds(Dialog, message=texts, default_prompt_text=texts, open_time=times),
    recovery_count=counts,
    close_time=maybe_times,
    shared_with=st.lists(texts, max_size=2).map(tuple),
    marker=st.just(""),
    browser_generation=st.just(0),
    revision=numbers,
    update_time=maybe_times,
)
leases = st.builds(
    Lease,
    name=texts,
    terms=st.builds(LeaseTerms, ttl=spans, holder=texts),
    expire_time=times,
    fencing_token=numbers,
    create_time=times,
    end_time=maybe_times,
    revision=numbers,
    update_time=st.none(),
)
sessions = st.builds(
    Session,
    name=texts,
    create_time=times,
    last_active_time=times,
    browser=st.just(""),
    conversation_uri=uris,
    labels=labels,
    ttl=spans,
    expire_time=maybe_times,
    recovery_count=counts,
    close_count=counts,
    retire_time=maybe_times,
    title=texts,
    new_tab_group=st.just(""),
    new_tab_activate=st.just(value=False),
    revision=numbers,
    update_time=maybe_times,
)
failures = st.builds(Failure, texts, texts, st.dictionaries(texts.filter(lambda key: key != "uri"), texts), maybe_spans)
turns = st.builds(
    Turn,
    name=texts,
    prompt=st.just(""),
    payload_sha256=st.just(""),
    baseline=st.just(()),
    create_time=times,
    expire_time=times,
    answer_markdown=texts,
    answer_size_bytes=numbers,
    completion=st.none() | st.builds(CompletionEvidence, stable_duration=spans),
    error=st.none() | failures,
    artifacts=st.lists(st.builds(Artifact, size_bytes=numbers, expire_time=times), max_size=1).map(tuple),
    submit_time=maybe_times,
    end_time=maybe_times,
    revision=numbers,
    update_time=maybe_times,
)


@given(browsers, tab_counts)
def test_browser(browser: Browser, counted: TabCounts) -> None:
    """A browser and its counts come back from their message as they were."""
    message = wire.browser_message(browser, counted)
    assert (reading.browser_from(message), reading.counts_from(message.tab_counts)) == (browser, counted)


@given(tabs)
def test_tab(tab: Tab) -> None:
    """A tab comes back from its message as it was."""
    assert reading.tab_from(wire.tab_message(tab)) == tab


@given(leases)
def test_lease(lease: Lease) -> None:
    """A lease comes back from its message as it was."""
    assert reading.lease_from(wire.lease_message(lease)) == lease


@given(sessions)
def test_session(session: Session) -> None:
    """A session comes back from its message as it was, without its browser, which is not shown."""
    assert reading.session_from(wire.session_message(session)) == session


@given(turns)
def test_turn(turn: Turn) -> None:
    """A turn comes back from its message as it was, with its answer or without."""
    assert reading.turn_from(wire.turn_message(turn, with_answer=True)) == turn
    assert reading.turn_from(wire.turn_message(turn, with_answer=False)) == replace(turn, answer_markdown="")


@given(
    st.builds(Event, revision=numbers, record_time=times, resource=st.one_of(browsers, tabs, leases, sessions, turns))
)
def test_event(event: Event) -> None:
    """An event comes back from its bytes with the whole resource, a turn without its answer (W10)."""
    told = event.resource
    if isinstance(told, Turn):
        told = replace(told, answer_markdown="")
    message = event_pb2.Event.FromString(wire.event_message(event).SerializeToString())
    assert reading.event_from(message) == replace(event, resource=told)


@given(times, spans)
def test_times(time: datetime, span: timedelta) -> None:
    """Times and spans are exact to the microsecond, as protobuf's own conversion has them."""
    stamp, length = Timestamp(), Duration()
    stamp.FromDatetime(time)
    length.FromTimedelta(span)
    assert (wire.timestamp(time), wire.duration(span)) == (stamp, length)
    assert (wire.time_of(stamp), wire.span_of(length)) == (time, span)


@pytest.mark.parametrize(
    ("seconds", "nanos"), [(1, -1), (-1, 1), (0, 1_000_000_000), (315_576_000_001, 0), (-315_576_000_001, 0)]
)
def test_invalid_duration(seconds: int, nanos: int) -> None:
    """A duration that protobuf does not allow is a ValueError."""
    with pytest.raises(ValueError, match="Duration"):
        wire.span_of(Duration(seconds=seconds, nanos=nanos))


def test_small_duration() -> None:
    """What is finer than a microsecond is cut towards zero."""
    assert wire.span_of(Duration(nanos=-1999)) == timedelta(microseconds=-1)


def test_counts_are_not_in_events() -> None:
    """An event has a browser without its counts."""
    browser = Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED)
    message = wire.event_message(Event(1, EventKind.CREATED, ChangeCause.NONE, NOW, browser))
    assert not message.browser.HasField("tab_counts")


def test_foreign_tab() -> None:
    """A foreign tab shows its target id and its origin, no other field (O-5)."""
    assert wire.foreign_tab_message("T1") == tab_pb2.Tab(origin=tab_pb2.Tab.ORIGIN_FOREIGN, target_id="T1")


def test_foreign_tab_in_no_event() -> None:
    """There is no event of a foreign tab (O-146)."""
    tab = Tab("browsers/main/tabs/a", TabState.READY, TabOrigin.FOREIGN, "", NOW, NOW)
    with pytest.raises(ValueError, match="foreign"):
        wire.event_message(Event(1, EventKind.CREATED, ChangeCause.NONE, NOW, tab))


@given(st.builds(Navigation, http_status=counts))
def test_navigation(navigation: Navigation) -> None:
    """What is known of a navigation comes back as it was."""
    assert reading.navigation_from(wire.navigation_message(navigation)) == navigation


def test_progress() -> None:
    """A place in the history comes back as it was."""
    assert reading.progress_from(wire.progress_message(Progress("h", 7))) == Progress("h", 7)


BROWSER = Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED, process_key=PLANTED)
TAB = Tab(
    "browsers/main/tabs/k3v9x2m7qd", TabState.OPENING, TabOrigin.MANAGED, "local", NOW, NOW,
    uri=f"http://127.0.0.1:1/tab?k3v9x2m7qd.{PLANTED}", marker=PLANTED, browser_generation=987_654_321,
)  # fmt: skip
SESSION = Session(
    "sessions/s", SessionState.ACTIVE, "chatgpt", "1", "local", NOW, NOW,
    browser=PLANTED, conversation_uri=f"https://e.com/c?token={PLANTED}", new_tab_group=PLANTED,
)  # fmt: skip
TURN = Turn(
    "sessions/s/turns/t", TurnState.FAILED, "r", "00", PLANTED, NOW, NOW, prompt=PLANTED, baseline=(PLANTED, PLANTED),
    error=Failure("NAVIGATION_FAILED", f"https://e.com/?code={PLANTED}", {"uri": f"https://e.com/?code={PLANTED}"}),
)  # fmt: skip


@pytest.mark.parametrize("resource", [BROWSER, TAB, SESSION, TURN], ids=lambda resource: type(resource).__name__)
def test_private_fields(resource: Resource) -> None:
    """What is private never leaves: planted in every private field, it is in no bytes (O-148, O-150, O-151)."""
    message = wire.event_message(Event(1, EventKind.CREATED, ChangeCause.NONE, NOW, resource))
    assert PLANTED.encode() not in message.SerializeToString()


def test_answers_stay_out_of_events() -> None:
    """An event of a turn does not hold the answer."""
    turn = replace(TURN, answer_markdown=PLANTED)
    message = wire.event_message(Event(1, EventKind.ENDED, ChangeCause.NONE, NOW, turn))
    assert PLANTED.encode() not in message.SerializeToString()


def test_browser_generation_is_not_shown() -> None:
    """The generation of the browser that a target belongs to is proof of ownership: a tab's message is the same."""
    assert wire.tab_message(TAB) == wire.tab_message(replace(TAB, browser_generation=0))
    assert wire.session_message(SESSION) == wire.session_message(replace(SESSION, new_tab_activate=True))


def test_long_address() -> None:
    """An address is shown with at most 8 KiB, also where redaction made it longer."""
    uri = "https://e.com/?" + "code=a&" * 1150
    assert len(wire.tab_message(replace(TAB, uri=uri)).uri) == 8192
