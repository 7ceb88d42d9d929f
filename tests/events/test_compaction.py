"""What compaction removes, and what it never does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tabmuxd.events import Changes, Log
from tabmuxd.resources.session import SessionState, TurnState
from tabmuxd.resources.tab import TabState

from tests.events.steps import Clock, know_browser
from tests.store.samples import lease, session, tab, turn

DAY = timedelta(days=1)


@pytest.fixture
def clock() -> Clock:
    """The clock of the log."""
    return Clock()


@pytest.fixture
async def log(directory: Path, clock: Clock) -> AsyncIterator[Log]:
    """An open log that knows the browser: revision 1."""
    async with Log(directory / "s", clock=clock, tail_count=1) as log:
        await log.change(know_browser)
        yield log


async def add(log: Log, count: int) -> None:
    """So many events, of one tab."""

    def decide(changes: Changes) -> None:
        for _ in range(count):
            changes.record(replace(changes.tab(tab(77).name) or tab(77), title="x"))

    await log.change(decide)


async def test_age_and_count(log: Log, clock: Clock) -> None:
    """An event goes when it is older than the age and beyond the newest count, whichever keeps more."""
    await add(log, 10)
    clock.advance(DAY)
    await add(log, 10)
    assert await log.compact(age=DAY / 2, count=100) == 0
    assert await log.compact(age=DAY * 3, count=5) == 0
    assert await log.compact(age=DAY / 2, count=15) == 6
    assert await log.compact(age=DAY / 2, count=5) == 5
    assert await log.compact(age=DAY / 2, count=5) == 0
    assert (log.compact_revision, log.progress.revision) == (11, 21)
    assert [entry.revision for entry in await log.entries(11, count=100, size_bytes=10**6)] == list(range(12, 22))


async def test_clock_that_went_back(log: Log, clock: Clock) -> None:
    """No event goes that follows one which has to stay, even if the clock was set back (JOB-05)."""
    await add(log, 3)
    clock.advance(-DAY)
    await add(log, 3)
    clock.advance(DAY)
    assert await log.compact(age=DAY / 2, count=0) == 0
    clock.advance(DAY)
    assert await log.compact(age=DAY / 2, count=0) == 7


async def test_many_steps(log: Log, clock: Clock) -> None:
    """More than one transaction can hold goes too, and revisions go on behind what is gone."""
    for _ in range(6):
        await add(log, 1_000)
    clock.advance(DAY)
    assert await log.compact(age=DAY / 2, count=10) == 5_991
    await add(log, 1)
    assert log.progress.revision == 6_002


async def test_what_stays(log: Log, clock: Clock) -> None:
    """Nothing that has not ended goes; closed tabs and ended leases go once no event tells of them (STO-07)."""

    def decide(changes: Changes) -> None:
        for number in (1, 2):
            held_tab = changes.record(tab(number))
            for token in (1, 2):
                held = changes.record(lease(number * 10 + token, held_tab, token))
                changes.record(replace(held, end_time=changes.now))
        changes.record(replace(tab(2), state=TabState.CLOSED))
        changes.record(tab(3))
        changes.record(replace(tab(4), state=TabState.CLOSED))

    await log.change(decide)
    clock.advance(DAY)
    await log.compact(age=DAY / 2, count=1)
    assert [(await log.get_tab(tab(number).name)) is not None for number in (1, 2, 3, 4)] == [True, False, True, True]
    known = [(await log.get_lease(f"leases/{number:010d}")) is not None for number in (11, 12, 21, 22)]
    # The newest lease of a tab that is known stays, so that its fencing token is never given again.
    assert known == [False, True, False, False]
    assert await log.change(lambda changes: changes.last_fencing_token(tab(1).name)) == 2


async def test_sessions_stay_for_30_days(log: Log, clock: Clock) -> None:
    """A retired session goes with its turns 30 days after its end; one that is not retired never (SES-11)."""

    def decide(changes: Changes) -> None:
        for number in (1, 2, 3):
            mine = changes.record(session(number))
            state = TurnState.PENDING if number == 3 else TurnState.SUCCEEDED
            changes.record(replace(turn(number, mine), state=state, answer_markdown="# A"))
            if number != 2:
                changes.record(replace(mine, state=SessionState.RETIRED, retire_time=changes.now))

    await log.change(decide)

    async def known() -> list[tuple[bool, bool]]:
        return [
            (
                await log.get_session(session(number).name) is not None,
                await log.get_turn(turn(number, session(number)).name) is not None,
            )
            for number in (1, 2, 3)
        ]

    clock.advance(DAY * 29)
    await log.compact(age=DAY, count=0)
    assert await known() == [(True, True)] * 3
    clock.advance(DAY * 2)
    await log.compact(age=DAY, count=0)
    # The third is retired while a turn is open, which may not be; it stays until that ends.
    assert await known() == [(False, False), (True, True), (True, True)]


async def test_many_retired(log: Log, clock: Clock) -> None:
    """More sessions than one transaction removes go too, each with its own turns, and no other (SES-11)."""

    def decide(changes: Changes) -> None:
        for number in range(1, 131):
            mine = changes.record(session(number))
            changes.record(replace(turn(number, mine), state=TurnState.SUCCEEDED))
            if number != 77:
                changes.record(replace(mine, state=SessionState.RETIRED, retire_time=changes.now))

    await log.change(decide)
    clock.advance(DAY * 31)
    await log.compact(age=DAY, count=0)

    left = [number for number in range(1, 131) if await log.get_session(session(number).name) is not None]
    turns = [number for number in range(1, 131) if await log.get_turn(turn(number, session(number)).name) is not None]
    assert (left, turns) == ([77], [77])


async def test_requests_expire(log: Log, clock: Clock) -> None:
    """Requests that have expired go."""
    await log.change(
        lambda changes: changes.remember_request("a", "M", "1", "p", "r", changes.now + timedelta(hours=1))
    )
    clock.advance(DAY)
    await log.compact()
    clock.advance(-DAY)
    assert await log.change(lambda changes: changes.request("a", "M", "1")) is None


async def test_live_stays_as_it_is(log: Log, clock: Clock) -> None:
    """Compaction changes nothing in memory, and a restart finds the same."""
    await add(log, 20)
    before = log.live
    clock.advance(DAY)
    await log.compact(age=DAY / 2, count=0)
    assert log.live == before
