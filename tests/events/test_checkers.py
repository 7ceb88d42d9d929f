"""The checkers themselves: each passes what is right, and finds what breaks its rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

import pytest
from tabmux.v1 import event_pb2
from tabmuxd.events import Start, WatchFilter, WatchStart, tab_filter
from tabmuxd.events.changes import entry_of, place_of
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Progress, Resource
from tabmuxd.resources.tab import TabState

from tests.events import checkers
from tests.events.recording import Call, Reply, Shown
from tests.store.samples import MAIN, NOW, tab

Checker: TypeAlias = Callable[[Call, checkers.Truth], None]

ALL = tab_filter()
ONE = tab_filter(tabs=[tab(1).name])


def told(revision: int, kind: EventKind, resource: Resource) -> Event:
    """An event."""
    whole = replace(resource, revision=revision, update_time=NOW)
    return Event(revision, kind, ChangeCause.NONE, NOW, whole)


EVENTS = [
    told(1, EventKind.CREATED, MAIN),
    told(2, EventKind.CREATED, tab(1)),
    told(3, EventKind.CREATED, tab(2)),
    told(4, EventKind.UPDATED, replace(tab(1), title="a")),
    told(5, EventKind.ENDED, replace(tab(2), state=TabState.CLOSED)),
    told(6, EventKind.UPDATED, replace(tab(1), title="b")),
]
TRUTH = [entry_of(event, place_of(event.resource)) for event in EVENTS]
RECORDED = {entry.revision: Shown.of(event_pb2.Event.FromString(entry.body)) for entry in TRUTH}


def existing(revision: int) -> Shown:
    """A resource as a snapshot shows it."""
    event = told(revision, EventKind.EXISTING, EVENTS[revision - 1].resource)
    return Shown.of(event_pb2.Event.FromString(entry_of(event, place_of(event.resource)).body))


def reply(place: int, *events: int | Shown, time: float = 0.0, history: str = "h") -> Reply:
    """A reply with these events, which comes to this place."""
    shown = tuple(RECORDED[event] if isinstance(event, int) else event for event in events)
    return Reply(shown, Progress(history, place), time)


def call(start: WatchStart, wanted: WatchFilter, *replies: Reply) -> Call:
    """A call that saw these."""
    return Call(start, wanted, 2, list(replies))


BEHIND_2 = Progress("h", 2)
SNAPSHOT = (reply(0, existing(1), existing(2)), reply(0, existing(3)), reply(3))
FORGED = replace(RECORDED[4], message=event_pb2.Event(revision=4))

RIGHT = [
    call(Start.NOW, ALL, reply(2), reply(3, 3), reply(6, 4, 5, 6)),
    call(Start.NOW, ONE, reply(3), reply(6, 4, 6), reply(6)),
    call(Start.SNAPSHOT, ALL, *SNAPSHOT, reply(6, 4, 5, 6)),
    call(Start.SNAPSHOT, ALL, *SNAPSHOT[:1]),
    call(BEHIND_2, ALL, reply(2), reply(4, 3, 4)),
]
WRONG: dict[Checker, list[Call]] = {
    checkers.w1_first: [
        call(BEHIND_2, ALL, reply(3)),
        call(BEHIND_2, ALL, reply(2, 3)),
        call(Start.NOW, ALL, reply(1)),
        call(Start.SNAPSHOT, ALL, reply(3, existing(1))),
    ],
    checkers.w2_ordered: [call(BEHIND_2, ALL, reply(2), reply(4, 4, 3))],
    checkers.w3_unique: [call(BEHIND_2, ALL, reply(2), reply(3, 3), reply(4, 3, 4))],
    checkers.w4_reliable: [
        call(BEHIND_2, ALL, reply(2), reply(4, 4)),
        call(BEHIND_2, ALL, reply(2), reply(3, 3), reply(5, 5)),
        call(BEHIND_2, ALL, reply(2), reply(3)),
    ],
    checkers.w5_bookmark: [
        call(BEHIND_2, ALL, reply(2), reply(3), reply(4, 3, 4)),
        call(BEHIND_2, ALL, reply(2), reply(4, 3, 4), reply(3)),
        call(BEHIND_2, ALL, reply(2), reply(3, 3, 4)),
    ],
    checkers.w6_resumable: [
        call(BEHIND_2, ALL, reply(2), reply(4, 4)),
        call(BEHIND_2, ALL, reply(2), reply(3, 2, 3)),
        call(BEHIND_2, ALL, reply(2), reply(3, 3, history="other")),
    ],
    checkers.w7_snapshot: [
        call(Start.SNAPSHOT, ALL, reply(0, existing(1), existing(3)), reply(3)),
        call(Start.SNAPSHOT, ALL, reply(0, existing(1), existing(2)), reply(3, existing(3))),
        call(Start.SNAPSHOT, ALL, *SNAPSHOT, reply(4, existing(4))),
        call(Start.SNAPSHOT, ALL, reply(0, existing(1), 2)),
        call(Start.NOW, ALL, *SNAPSHOT),
    ],
    checkers.w8_filtered: [call(BEHIND_2, ONE, reply(2), reply(3, 3)), call(BEHIND_2, ONE, reply(2), reply(1))],
    checkers.w10_whole: [call(BEHIND_2, ALL, reply(2), reply(4, 3, FORGED))],
    checkers.w11_own_writes: [call(BEHIND_2, ALL, reply(2), reply(4, 3)), call(BEHIND_2, ONE, reply(2), reply(6, 4))],
    checkers.w12_unknown: [
        call(BEHIND_2, ALL, reply(2), reply(3, 3, history="")),
        call(BEHIND_2, ALL, reply(2), reply(3, 3, 4)),
    ],
}


@pytest.mark.parametrize("seen", RIGHT)
def test_right(seen: Call) -> None:
    """What keeps the contract passes."""
    checkers.check(seen, TRUTH)


@pytest.mark.parametrize("checker", checkers.CHECKERS)
def test_wrong(checker: Checker) -> None:
    """Each rule but W9 has histories that break it, and its checker finds each of them."""
    for seen in WRONG[checker]:
        with pytest.raises(AssertionError):
            checker(seen, TRUTH)


def test_silence() -> None:
    """Silence as long as the interval passes; a longer one breaks W9."""
    interval = timedelta(seconds=5)
    checkers.w9_idle(call(Start.NOW, ALL, reply(2), reply(2, time=5.0), reply(3, 3, time=10.0)), interval)
    with pytest.raises(AssertionError):
        checkers.w9_idle(call(Start.NOW, ALL, reply(2), reply(2, time=5.1)), interval)
