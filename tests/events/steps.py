"""Changes such as the service makes, for tests of the log: pure functions over `Changes`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tabmuxd.events import Changes
from tabmuxd.resources.event import Resource
from tabmuxd.resources.session import SessionState, TurnState
from tabmuxd.resources.tab import TabState

from tests.store.samples import MAIN, lease, session, tab, turn

START = datetime(2026, 5, 1, tzinfo=UTC)
Step = Callable[[Changes], "Resource | None"]


class Clock:
    """A clock that tests advance; each look at it takes a millisecond."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        self.time += timedelta(milliseconds=1)
        return self.time

    def advance(self, length: timedelta) -> None:
        self.time += length


def know_browser(changes: Changes) -> Resource:
    """Record the one browser."""
    known = changes.browser(MAIN.name)
    return changes.record(known or MAIN)


def step(kind: int, number: int) -> Step:
    """One of the changes below, on what has this number."""
    steps = (_open, _title, _close, _start_session, _bind, _unbind_and_release, _ask, _answer, _hold, _release, _touch)
    return lambda changes: steps[kind % len(steps)](changes, number)


def _open(changes: Changes, number: int) -> Resource | None:
    return None if changes.tab(tab(number).name) else changes.record(tab(number))


def _title(changes: Changes, number: int) -> Resource | None:
    known = changes.tab(tab(number).name)
    if known is None or known.ended:
        return None
    return changes.record(replace(known, title=f"t{changes.now:%f}", state=TabState.READY))


def _close(changes: Changes, number: int) -> Resource | None:
    known = changes.tab(tab(number).name)
    if known is None or known.ended:
        return None
    closed = changes.record(replace(known, state=TabState.CLOSED, session="", close_time=changes.now))
    held = changes.lease_on(known.name)
    if held:
        changes.record(replace(held, end_time=changes.now))
    return closed


def _start_session(changes: Changes, number: int) -> Resource | None:
    return None if changes.session(session(number).name) else changes.record(session(number))


def _bind(changes: Changes, number: int) -> Resource | None:
    known_tab, known = changes.tab(tab(number).name), changes.session(session(number).name)
    if known_tab is None or known_tab.ended or known is None or known.ended:
        return None
    changes.record(replace(known_tab, session=known.name))
    return changes.record(replace(known, tab=known_tab.name))


def _unbind_and_release(changes: Changes, number: int) -> Resource | None:
    known = changes.tab(tab(number).name)
    if known is None or known.ended or not known.session:
        return None
    held = changes.lease_on(known.name)
    written = changes.record(replace(known, session=""))
    return changes.record(replace(held, end_time=changes.now)) if held else written


def _ask(changes: Changes, number: int) -> Resource | None:
    known = changes.session(session(number).name)
    if known is None or known.ended or changes.turn(turn(number, known).name):
        return None
    return changes.record(turn(number, known))


def _answer(changes: Changes, number: int) -> Resource | None:
    of = session(number)
    known = changes.turn(turn(number, of).name)
    if known is None or known.ended:
        return None
    answered = replace(known, state=TurnState.SUCCEEDED, answer_markdown="# A", end_time=changes.now)
    written = changes.record(answered)
    mother = changes.session(of.name)
    if mother and not mother.ended:
        changes.record(replace(mother, state=SessionState.RETIRED, retire_time=changes.now))
    return written


def _hold(changes: Changes, number: int) -> Resource | None:
    known = changes.tab(tab(number).name)
    token = changes.last_fencing_token(tab(number).name) + 1
    if known is None or known.ended or changes.lease_on(known.name):
        return None
    taken_for = session(number).name if number % 2 else ""
    return changes.record(replace(lease(number * 1000 + token, known, token), session=taken_for))


def _release(changes: Changes, number: int) -> Resource | None:
    held = changes.lease_on(tab(number).name)
    return None if held is None else changes.record(replace(held, end_time=changes.now))


def _touch(changes: Changes, number: int) -> Resource | None:
    known = changes.tab(tab(number).name)
    return None if known is None or known.ended else changes.keep(replace(known, last_active_time=changes.now))
