"""What a decision can do, and what is published of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tabmux.v1 import event_pb2
from tabmuxd.events import Changes, Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause, EventKind, Progress
from tabmuxd.resources.session import TurnState
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.store import Request, ResourceKind

from tests.events.recording import read_all
from tests.events.steps import START, Clock, know_browser
from tests.store.samples import MAIN, lease, session, tab, turn

LIMIT = 20


@pytest.fixture
async def log(directory: Path) -> AsyncIterator[Log]:
    """An open log that knows the browser: revision 1."""
    async with Log(directory / "s", clock=Clock()) as log:
        await log.change(know_browser)
        yield log


def changed(number: int, **values: object) -> Callable[[Changes], Tab]:
    """Record a change of a tab."""

    def decide(changes: Changes) -> Tab:
        known = changes.tab(tab(number).name)
        assert known is not None
        return changes.record(replace(known, **values))  # type: ignore[arg-type]

    return decide


async def test_kinds(log: Log) -> None:
    """The first record of a name is CREATED, the last ENDED, those between UPDATED, each with its cause."""
    await log.change(lambda changes: changes.record(tab(1), ChangeCause.CLIENT))
    await log.change(changed(1, title="a"))
    closed = await log.change(lambda changes: changes.record(replace(tab(1), state=TabState.CLOSED)))
    entries = await read_all(log, 1)
    messages = [event_pb2.Event.FromString(entry.body) for entry in entries]
    assert [(entry.revision, entry.kind, entry.resource_kind) for entry in entries] == [
        (2, EventKind.CREATED, ResourceKind.TAB),
        (3, EventKind.UPDATED, ResourceKind.TAB),
        (4, EventKind.ENDED, ResourceKind.TAB),
    ]
    assert [ChangeCause(message.cause) for message in messages] == [
        ChangeCause.CLIENT,
        ChangeCause.NONE,
        ChangeCause.NONE,
    ]
    assert [message.tab.revision for message in messages] == [2, 3, 4]
    assert (closed.revision, closed.update_time) == (4, entries[-1].record_time)


async def test_ended_for_good(log: Log) -> None:
    """What has ended is never recorded again, nor brought back by `keep` (W12's `ENDED`, WAT-08)."""
    ended = await log.change(lambda changes: changes.record(replace(tab(1), state=TabState.CLOSED)))
    for attempt in (ended, tab(1)):
        with pytest.raises(ValueError, match="ended"):
            await log.change(lambda changes, attempt=attempt: changes.record(attempt))  # type: ignore[misc]
    with pytest.raises(ValueError, match="recorded"):
        await log.change(lambda changes: changes.keep(tab(1)))
    assert log.progress.revision == 2


async def test_keep(log: Log) -> None:
    """What is kept changes no revision and no update time, and is in no event."""
    before = await log.change(lambda changes: changes.record(tab(1)))
    kept = await log.change(
        lambda changes: changes.keep(replace(before, last_active_time=START, revision=77, update_time=None))
    )
    assert kept == replace(before, last_active_time=START)
    assert (log.progress.revision, log.live.tab(before.name), await log.get_tab(before.name)) == (2, kept, kept)
    with pytest.raises(ValueError, match="recorded"):
        await log.change(lambda changes: changes.keep(tab(2)))
    with pytest.raises(ValueError, match="recorded"):
        await log.change(lambda changes: changes.keep(replace(kept, state=TabState.CLOSED)))


async def test_all_or_nothing(log: Log) -> None:
    """What a decision recorded before it refused is gone, in memory and on disk."""

    def decide(changes: Changes) -> None:
        changes.record(tab(1))
        changes.remember_request("local", "CreateTab", "r", "aa", tab(1).name, changes.now + timedelta(hours=1))
        raise refuse(Reason.TAB_CAPACITY, "no", limit=1)

    with pytest.raises(Refused):
        await log.change(decide)
    assert await log.change(
        lambda changes: (changes.tab(tab(1).name), changes.request("local", "CreateTab", "r"), changes.tabs())
    ) == (None, None, [])
    assert (log.progress.revision, dict(log.live.tabs), await log.get_tab(tab(1).name)) == (1, {}, None)


async def test_reads_what_it_wrote(log: Log) -> None:
    """A decision sees what it has written itself, at once, by each way of asking."""

    def decide(changes: Changes) -> list[object]:
        one, two = changes.record(tab(1)), changes.record(tab(2))
        mine = changes.record(session(1))
        asked = changes.record(turn(1, mine))
        held = changes.record(lease(1, one, 5))
        changes.record(replace(two, state=TabState.CLOSED))
        return [
            changes.browser(MAIN.name) is not None,
            changes.browser("browsers/none"),
            changes.tab(one.name) == one == changes.tab(f"browsers/-/tabs/{1:010d}"),
            getattr(changes.tab(f"browsers/-/tabs/{2:010d}"), "state", None),
            changes.tab("browsers/main/tabs/0000000009"),
            changes.tabs() == changes.tabs(MAIN.name) == [one],
            changes.tabs("browsers/other"),
            changes.session(mine.name) == mine and changes.sessions() == [mine],
            changes.turn(asked.name) == asked and changes.open_turns() == [asked],
            changes.turn_by_request(mine.name, "request-1") == asked,
            changes.turn_by_request(mine.name, "request-2"),
            changes.lease(held.name) == held == changes.lease_on(one.name) and changes.leases() == [held],
            changes.lease_on(two.name),
            (changes.last_fencing_token(one.name), changes.last_fencing_token(two.name)),
            len(changes.browsers()),
        ]

    assert await log.change(decide) == [
        True, None, True, TabState.CLOSED, None, True, [], True, True, True, None, True, None, (5, 0), 1,
    ]  # fmt: skip


async def test_fencing_token_outlives_its_lease(log: Log) -> None:
    """The last fencing token of a tab is known after its lease has ended."""
    one = await log.change(lambda changes: changes.record(tab(1)))
    held = await log.change(lambda changes: changes.record(lease(1, one, 5)))
    await log.change(lambda changes: changes.record(replace(held, end_time=changes.now)))
    assert await log.change(lambda changes: (changes.lease_on(one.name), changes.last_fencing_token(one.name))) == (
        None,
        5,
    )


async def test_requests(log: Log) -> None:
    """A request is remembered by principal, method and id until it expires, and replaced when it comes anew."""
    await log.change(
        lambda changes: changes.remember_request("a", "M", "1", "p", "r", changes.now + timedelta(hours=1))
    )
    assert await log.change(
        lambda changes: [changes.request(*key) for key in (("a", "M", "1"), ("b", "M", "1"), ("a", "N", "1"))]
    ) == [Request("p", "r"), None, None]
    log._clock.advance(timedelta(hours=2))  # type: ignore[attr-defined]
    assert await log.change(lambda changes: changes.request("a", "M", "1")) is None
    await log.change(
        lambda changes: changes.remember_request("a", "M", "1", "q", "s", changes.now + timedelta(hours=1))
    )
    assert await log.change(lambda changes: changes.request("a", "M", "1")) == Request("q", "s")


async def test_published_before_answered(log: Log) -> None:
    """When a change is answered it is in `live`, and the head has come to its revision (W11)."""

    async def one(number: int) -> bool:
        written = await log.change(lambda changes: changes.record(tab(number)))
        return log.live.tab(written.name) == written and log.progress.revision >= written.revision

    assert all(await asyncio.gather(*(one(number) for number in range(100))))


async def test_live_is_of_one_moment(log: Log) -> None:
    """A `live` that somebody holds does not change; the log has a new one."""
    before = log.live
    await log.change(lambda changes: changes.record(tab(1)))
    assert (list(before.tabs), list(log.live.tabs)) == ([], [tab(1).name])
    await log.change(lambda changes: changes.record(replace(tab(1), state=TabState.CLOSED)))
    assert list(log.live.tabs) == []


async def test_ended_resources_come_from_the_store(log: Log) -> None:
    """What has ended is not in memory and still given, with the answer of a turn."""
    mine = await log.change(lambda changes: changes.record(session(1)))
    answered = replace(turn(1, mine), state=TurnState.SUCCEEDED, answer_markdown="# A")
    answered = await log.change(lambda changes: changes.record(answered))
    assert (dict(log.live.turns), await log.get_turn(answered.name)) == ({}, answered)
    closed = await log.change(lambda changes: changes.record(replace(tab(1), state=TabState.CLOSED)))
    assert await log.get_tab(closed.name) == await log.get_tab(f"browsers/-/tabs/{1:010d}") == closed
    assert (await log.get_session(mine.name), await log.get_lease("leases/none")) == (mine, None)
    assert await log.get_browser(MAIN.name) == log.live.browsers[MAIN.name]


async def test_moved(log: Log) -> None:
    """`moved` returns once the head is above the revision; one who is cancelled takes nobody along."""
    await log.moved(0)
    waiting = [asyncio.ensure_future(log.moved(revision)) for revision in (1, 1, 2)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    async with asyncio.timeout(LIMIT):
        await log.change(lambda changes: changes.record(tab(1)))
        await waiting[1]
        await asyncio.sleep(0)
        assert [task.done() for task in waiting] == [True, True, False]
        await log.change(lambda changes: changes.record(tab(2)))
        await waiting[2]


async def test_restart(directory: Path) -> None:
    """After a restart there is the same history, the same head and the same `live`."""
    async with Log(directory / "s", clock=Clock()) as log:
        await log.change(know_browser)
        mine = await log.change(lambda changes: changes.record(session(1)))
        for number in range(1, 30):
            await log.change(lambda changes, number=number: changes.record(tab(number)))  # type: ignore[misc]
        await log.change(lambda changes: changes.record(turn(1, mine)))
        await log.change(changed(5, state=TabState.CLOSED))
        before = (log.live, log.progress)
    async with Log(directory / "s", clock=Clock()) as log:
        assert (log.live, log.progress) == before
        assert list(log.live.tabs) == list(before[0].tabs)
        assert await log.change(lambda changes: changes.record(tab(99)).revision) == 34
    assert before[1] == Progress(before[1].history_id, 33)
