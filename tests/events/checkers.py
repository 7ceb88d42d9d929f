"""The watch contract, W1 to W12 of `event.proto`: one pure checker a rule, over what a client saw.

`truth` is the whole log, every event that was ever recorded, in order of revision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from tabmux.v1 import event_pb2
from tabmuxd.events import Start, WatchFilter
from tabmuxd.resources.event import EventKind, Progress
from tabmuxd.store import Entry, Place, ResourceKind

from tests.events.recording import Call, Shown

Truth = Sequence[Entry]


def w1_first(call: Call, truth: Truth) -> None:
    """The first reply tells the place where the watch began."""
    del truth
    first = call.replies[0]
    match call.start:
        case Progress():
            assert (first.events, first.progress) == ((), call.start)
        case Start.NOW:
            assert (first.events, first.progress.revision >= call.head) == ((), True)
        case _:
            assert first.progress.revision == 0 or not first.events


def w2_ordered(call: Call, truth: Truth) -> None:
    """Events come in revision order."""
    del truth
    for events in (call.existing, call.events):
        revisions = [shown.revision for shown in events]
        assert revisions == sorted(revisions)


def w3_unique(call: Call, truth: Truth) -> None:
    """No revision comes twice in one call."""
    del truth
    revisions = [shown.revision for shown in [*call.existing, *call.events]]
    assert len(revisions) == len(set(revisions))


def w4_reliable(call: Call, truth: Truth) -> None:
    """Between two places no matching event is missing."""
    places = [reply.progress.revision for reply in call.replies if reply.progress.revision or not call.existing]
    if places:
        seen = [shown.revision for shown in call.events if shown.revision <= places[-1]]
        assert seen == [entry.revision for entry in matching(truth, call.wanted, places[0], places[-1])]


def w5_bookmark(call: Call, truth: Truth) -> None:
    """No event follows a place that is behind it; places never go back."""
    del truth
    place = 0
    for reply in call.replies:
        assert all(shown.revision > place for shown in reply.events)
        assert reply.progress.revision >= place
        assert all(shown.revision <= reply.progress.revision for shown in reply.events if not _existing(shown))
        place = reply.progress.revision


def w6_resumable(call: Call, truth: Truth) -> None:
    """A watch that resumes goes on with the first matching event behind its place."""
    if isinstance(call.start, Progress):
        reached = call.replies[-1].progress.revision
        expected = matching(truth, call.wanted, call.start.revision, reached)[:1]
        assert [shown.revision for shown in call.events[:1]] == [entry.revision for entry in expected]
        assert {reply.progress.history_id for reply in call.replies} == {call.start.history_id}


def w7_snapshot(call: Call, truth: Truth) -> None:
    """A snapshot has each matching resource of one moment once, then one reply with that moment and no events."""
    if call.start is not Start.SNAPSHOT:
        assert call.existing == []
        return
    first_place = next((index for index, reply in enumerate(call.replies) if reply.progress.revision), None)
    if first_place is None:
        # Cut off before the moment, unless there is nothing in the history at all.
        assert call.events == [] or not truth
        return
    moment = call.replies[first_place]
    assert moment.events == ()
    assert all(_existing(shown) for reply in call.replies[:first_place] for shown in reply.events)
    assert not any(_existing(shown) for reply in call.replies[first_place:] for shown in reply.events)
    if not call.wanted.kinds:
        shown = {shown.name: shown.revision for shown in call.existing}
        assert shown == alive(truth, call.wanted, moment.progress.revision)


def w8_filtered(call: Call, truth: Truth) -> None:
    """Nothing that was not wanted is sent, and the place moves on although nothing matched."""
    by_revision = {entry.revision: entry for entry in truth}
    for shown in call.events:
        entry = by_revision[shown.revision]
        assert call.wanted.wants(entry.kind, entry.resource_kind, entry.place)
    assert call.replies[-1].progress.revision >= call.replies[0].progress.revision


def w9_idle(call: Call, interval: timedelta) -> None:
    """No silence is longer than the bookmark interval."""
    times = [reply.time for reply in call.replies]
    assert all(later - sooner <= interval.total_seconds() for sooner, later in pairwise(times))


def w10_whole(call: Call, truth: Truth) -> None:
    """An event holds the whole resource after the change; keeping the higher revision gives what is."""
    by_revision = {entry.revision: entry for entry in truth}
    for shown in call.events:
        assert shown.message == event_pb2.Event.FromString(by_revision[shown.revision].body)
        assert shown.resource_revision == shown.revision
    for shown in call.existing:
        recorded = event_pb2.Event.FromString(by_revision[shown.revision].body)
        assert shown.resource_revision == shown.revision
        assert (shown.name, shown.message.WhichOneof("resource")) == (
            Shown.of(recorded).name,
            recorded.WhichOneof("resource"),
        )


def w11_own_writes(call: Call, truth: Truth) -> None:
    """A watch that has passed the revision of a unary answer has shown it, or a later one of the same resource."""
    places = [reply.progress.revision for reply in call.replies if reply.progress.revision]
    if not places:
        return
    shown_revisions: dict[str, int] = {}
    for shown in call.events:
        shown_revisions[shown.name] = max(shown.revision, shown_revisions.get(shown.name, 0))
    for entry in matching(truth, call.wanted, places[0], places[-1]):
        assert shown_revisions.get(name_of(entry), 0) >= entry.revision


def w12_unknown(call: Call, truth: Truth) -> None:
    """The place does not depend on the events: who skips them all still moves on, and knows which history it is."""
    del truth
    assert all(reply.progress.history_id for reply in call.replies)
    assert call.replies[-1].progress.revision >= max((shown.revision for shown in call.events), default=0)


CHECKERS: tuple[Callable[[Call, Truth], None], ...] = (
    w1_first,
    w2_ordered,
    w3_unique,
    w4_reliable,
    w5_bookmark,
    w6_resumable,
    w7_snapshot,
    w8_filtered,
    w10_whole,
    w11_own_writes,
    w12_unknown,
)


def check(call: Call, truth: Truth) -> None:
    """Every rule but W9, which needs to know of time."""
    if call.replies:
        for checker in CHECKERS:
            checker(call, truth)


def matching(truth: Truth, wanted: WatchFilter, after: int, last: int) -> list[Entry]:
    """The events after `after` up to `last` that are wanted."""
    return [
        entry
        for entry in truth
        if after < entry.revision <= last and wanted.wants(entry.kind, entry.resource_kind, entry.place)
    ]


def alive(truth: Truth, wanted: WatchFilter, moment: int) -> dict[str, int]:
    """Names and revisions of what had not ended at `moment` and is wanted, from the events up to it."""
    newest = {name_of(entry): entry for entry in truth if entry.revision <= moment}
    return {
        name: entry.revision
        for name, entry in newest.items()
        if entry.kind is not EventKind.ENDED
        and wanted.wants(EventKind.EXISTING, entry.resource_kind, _place_now(entry, newest))
    }


def name_of(entry: Entry) -> str:
    """Name of the resource that an event tells of."""
    return Shown.of(event_pb2.Event.FromString(entry.body)).name


def _place_now(entry: Entry, newest: Mapping[str, Entry]) -> Place:
    """Where the resource belongs by now: a lease goes with its tab, a tab forgets what it served before."""
    if entry.resource_kind is not ResourceKind.LEASE:
        return replace(entry.place, session_before=entry.place.session)
    session = newest[entry.place.tab].place.session if entry.place.tab in newest else ""
    own = event_pb2.Event.FromString(entry.body).lease.session
    return replace(entry.place, session=session, session_before=own or session)


def _existing(shown: Shown) -> bool:
    return shown.kind is EventKind.EXISTING
