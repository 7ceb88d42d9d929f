from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import cast

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import PageTouched, Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause, EventKind
from tabmuxd.resources.lease import Lease, LeaseEnd, LeaseTerms
from tabmuxd.resources.orders import LeaseOrder, PromptOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import (
    SessionState,
    TabSource,
    Turn,
    TurnState,
    Warning,  # noqa: A004 - the contract's word
)
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.store import ResourceKind
from tabmuxd.tabs import endings, lease_records
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai import records
from tabmuxd.webai.answers import Feeds
from tabmuxd.webai.providers.loading import Providers
from tabmuxd.webai.records import Ending, TabLost, TurnEnded
from tabmuxd.webai.service import WebAi, _insert_turn
from tabmuxd.wire import session_message

from tests.domain.values import (
    ADMIN,
    LEASE,
    NOW,
    OWNER,
    SESSION,
    STRANGER,
    TAB,
    TERMS,
    chat_session,
    playground,
    ready_tab,
)

_TURN = f"{SESSION}/turns/0123456789"
_ORDER = PromptOrder(SESSION, Prompt("What is 6 times 7?"), "key", "hash")


@pytest.fixture
async def log() -> AsyncGenerator[Log]:
    """A log with one session, its turn PENDING, and a tab that it is bound to."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    async with Log(directory / "t.sqlite3", clock=lambda: NOW) as opened:
        await opened.change(lambda changes: changes.record(chat_session()))
        await opened.change(
            lambda changes: _insert_turn(changes, OWNER, _ORDER, _TURN, timedelta(minutes=5), terms=TERMS)
        )
        await opened.change(
            lambda changes: changes.record(records.bind(changes, _TURN, replace(ready_tab(), shared_with=()), LEASE))
        )
        yield opened
    shutil.rmtree(directory)


def _served(changes: Changes, tab: Tab, refused: Refused, cause: ChangeCause) -> None:
    records.lose_tab(changes, tab, refused, cause, lambda _turn: "so far")


def _note(changes: Changes) -> None:
    """The conversation has an address, so that its tab comes back."""
    records.note_conversation(changes, _TURN, "http://textarea.localhost:8000/c/1", "title")


def _lose(changes: Changes) -> Tab:
    return endings.lose_page(changes, _now(changes), TabState.LOST, ChangeCause.PERSON, _served)


def _tab(log: Log) -> Tab:
    """The tab as it is published."""
    return log.live.tabs[TAB]


def _now(changes: Changes) -> Tab:
    """The tab as it stands."""
    tab = changes.tab(TAB)
    assert tab is not None
    return tab


async def test_typing_noted(log: Log) -> None:
    """That a prompt is about to be typed is kept once, with no event, and only for the session's own page (O-132)."""
    before = log.live.turns[_TURN]

    def noting(changes: Changes, touch: str) -> None:
        records.note_typing(changes, _TURN, _now(changes), ("k",), touch)

    await log.change(partial(noting, touch="page 0"))
    await log.change(partial(noting, touch="page 1"))
    assert log.live.turns[_TURN] == replace(before, typed="page 0", baseline=("k",))

    await log.change(_lose)

    with pytest.raises(TabLost):
        await log.change(partial(noting, touch="page 0"))


async def test_lost_before_the_press(log: Log) -> None:
    """A tab that was lost while the prompt was typed takes no press; the turn stays PENDING, for another (SUB-14)."""
    await log.change(_lose)

    with pytest.raises(TabLost):
        await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ()))

    turn = log.live.turns[_TURN]
    assert (turn.state, turn.prompt) == (TurnState.PENDING, _ORDER.prompt.content)


async def test_lost_after_the_press(log: Log) -> None:
    """A submitted turn whose tab is lost before its conversation had an address is `no_address` (SES-03, O-140).

    Its text is kept, the session is parked, and the service's own lease ends.
    """
    await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ("k",)))
    await log.change(lambda changes: records.run(changes, _TURN))

    await log.change(_lose)

    turn = await log.get_turn(_TURN)
    session = log.live.sessions[SESSION]
    assert turn is not None
    assert turn.error is not None
    assert (turn.state, turn.answer_markdown, turn.error.reason) == (TurnState.FAILED, "so far", "RECOVERY_FAILED")
    assert turn.error.metadata == {
        "tab": TAB,
        "session": SESSION,
        "attempt_count": "0",
        "cause": "no_address",
        "page_touched": "yes",
        "retry": "after-verify",
    }
    assert (session.tab, session.open_turn, session.close_count) == ("", "", 1)
    assert (_tab(log).session, _tab(log).lease, dict(log.live.leases)) == ("", "", {})


async def test_kept_through_the_loss(log: Log) -> None:
    """A tab whose conversation has an address keeps session, lease and turn, lost and back (O-112, O-16)."""
    await log.change(_note)
    await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ("k",)))
    before = log.live

    lost = await log.change(_lose)

    session = log.live.sessions[SESSION]
    assert (lost.state, lost.session, lost.lease) == (TabState.LOST, SESSION, LEASE)
    assert (session.state, session.tab, session.close_count) == (SessionState.RECOVERING, TAB, 1)
    assert (log.live.turns, log.live.leases) == (before.turns, before.leases)

    ready = replace(lost, state=TabState.READY, target_id="new", generation=lost.generation + 1)
    back = await log.change(lambda changes: endings.come_back(changes, ready))

    session = log.live.sessions[SESSION]
    assert (back.session, back.lease, back.recovery_count) == (SESSION, LEASE, 1)
    assert (session.state, session.tab, session.recovery_count) == (SessionState.ACTIVE, TAB, 1)
    assert (log.live.turns, log.live.leases) == (before.turns, before.leases)


async def test_another_page_takes_no_press(log: Log) -> None:
    """A prompt that was typed into one page of a tab is not pressed in the next one (O-132, O-112)."""
    await log.change(_note)
    typed_into = _tab(log)
    lost = await log.change(_lose)
    await log.change(lambda changes: endings.come_back(changes, replace(lost, state=TabState.READY)))

    with pytest.raises(TabLost):
        await log.change(lambda changes: records.submit(changes, _TURN, typed_into, ()))

    assert log.live.turns[_TURN].state is TurnState.PENDING


async def test_pressed_once(log: Log) -> None:
    """What was submitted is not submitted again, and keeps no prompt; the baseline is kept (O-132)."""
    submitted = await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ("k1", "k2")))

    with pytest.raises(Refused) as raised:
        await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ()))

    assert raised.value.reason is Reason.SUBMIT_UNCONFIRMED
    assert log.live.turns[_TURN] == submitted
    assert (submitted.state, submitted.prompt, submitted.baseline) == (TurnState.SUBMITTING, "", ("k1", "k2"))


_SIGN_IN = refuse(Reason.PROVIDER_SIGN_IN_REQUIRED, "Sign in.", provider="p", tab=TAB)
_CHALLENGE = refuse(Reason.PROVIDER_CHALLENGE_SHOWN, "Are you a person?", provider="p", tab=TAB)


@pytest.mark.parametrize("step", [TurnState.PENDING, TurnState.SUBMITTING, TurnState.RUNNING])
async def test_blocked(log: Log, step: TurnState) -> None:
    """BLOCKED is one change a reason, and the turn goes on where it was (O-132, SUB-12, FIN-08)."""
    before = await _brought_to(log, step)
    touched = records.touched(before)

    blocked = await log.change(lambda changes: records.block(changes, _TURN, _SIGN_IN))
    again = await log.change(lambda changes: records.block(changes, _TURN, _SIGN_IN))
    other = await log.change(lambda changes: records.block(changes, _TURN, _CHALLENGE))
    after = await log.change(lambda changes: records.unblock(changes, _TURN))
    still = await log.change(lambda changes: records.unblock(changes, _TURN))

    assert (blocked.state, blocked.step, blocked.error, records.touched(blocked)) == (
        TurnState.BLOCKED,
        step,
        _SIGN_IN.failure(),
        touched,
    )
    assert (again, other.error, still) == (blocked, _CHALLENGE.failure(), after)
    assert [other.revision - blocked.revision, after.revision - other.revision] == [1, 1]
    assert after == replace(before, revision=after.revision, update_time=after.update_time)


async def _brought_to(log: Log, step: TurnState) -> Turn:
    """The turn in this state."""
    if step is not TurnState.PENDING:
        await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ("k",)))
    if step is TurnState.RUNNING:
        await log.change(lambda changes: records.run(changes, _TURN))
    return log.live.turns[_TURN]


async def test_blocked_takes_no_press(log: Log) -> None:
    """While a turn is blocked its prompt cannot be submitted (O-132, SUB-12)."""
    await log.change(lambda changes: records.block(changes, _TURN, _SIGN_IN))

    with pytest.raises(Refused):
        await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ()))

    assert log.live.turns[_TURN].state is TurnState.BLOCKED


async def test_lost_while_blocked(log: Log) -> None:
    """A turn that is blocked before the press outlives the loss of its tab, as one that is PENDING (SUB-12, SUB-14)."""
    await log.change(lambda changes: records.block(changes, _TURN, _SIGN_IN))

    await log.change(_lose)

    assert (log.live.turns[_TURN].state, log.live.sessions[SESSION].tab) == (TurnState.BLOCKED, "")


async def test_ended(log: Log) -> None:
    """An end says what it ended with, frees the tab, and lets the session live on for its `ttl` (SES-12)."""
    warnings = tuple(Warning(f"w-{number}", "m") for number in range(25))
    ending = Ending(TurnState.CANCELLED, "ä", warnings=warnings)

    ended = await log.change(lambda changes: records.end(changes, _TURN, ending, ChangeCause.CLIENT))

    assert (ended.state, ended.answer_markdown, ended.answer_size_bytes) == (TurnState.CANCELLED, "ä", 2)
    assert (ended.end_time, ended.warnings, ended.prompt) == (NOW, warnings[:20], "")
    assert (log.live.tabs[TAB].session, log.live.tabs[TAB].lease) == (SESSION, "")
    assert log.live.sessions[SESSION].expire_time == NOW + timedelta(days=30)
    with pytest.raises(TurnEnded):
        await log.change(lambda changes: records.run(changes, _TURN))


async def test_unknown(log: Log) -> None:
    """The end of a turn that nobody knows is TURN_NOT_FOUND."""
    with pytest.raises(Refused) as raised:
        await log.change(lambda changes: records.end(changes, f"{_TURN[:-1]}8", Ending(TurnState.CANCELLED)))

    assert raised.value.reason is Reason.TURN_NOT_FOUND


async def test_another_lease(log: Log) -> None:
    """A prompt for a session whose tab a client holds is LEASE_HELD at once, and nothing is recorded (O-15)."""
    await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.CANCELLED)))
    lease = await _leased_by_client(log)
    head = log.progress.revision
    again = replace(_ORDER, request_id="again")

    with pytest.raises(Refused) as raised:
        await log.change(
            lambda changes: _insert_turn(changes, OWNER, again, f"{_TURN[:-1]}8", timedelta(minutes=5), terms=TERMS)
        )

    assert (raised.value.reason, raised.value.metadata, log.progress.revision) == (
        Reason.LEASE_HELD,
        {"tab": TAB, "lease": lease.name, "expire_time": lease.expire_time.isoformat()},
        head,
    )


async def test_leased_meanwhile(log: Log) -> None:
    """A turn does not take a tab that a client leased after the prompt was sent, and types nothing (O-15)."""
    await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.CANCELLED)))
    name = f"{_TURN[:-1]}8"
    again = replace(_ORDER, request_id="again")
    await log.change(lambda changes: _insert_turn(changes, OWNER, again, name, timedelta(minutes=5), terms=TERMS))
    await _leased_by_client(log)

    with pytest.raises(Refused) as raised:
        await log.change(lambda changes: records.bind(changes, name, _now(changes), "leases/new"))

    assert raised.value.reason is Reason.LEASE_HELD


async def test_lease_over(log: Log) -> None:
    """A client's lease whose time is over does not keep a turn from its tab: it ends first (O-12, O-15)."""
    await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.CANCELLED)))
    lease = await _leased_by_client(log, expire_time=NOW)
    name = f"{_TURN[:-1]}8"
    again = replace(_ORDER, request_id="again")

    await log.change(lambda changes: _insert_turn(changes, OWNER, again, name, timedelta(minutes=5), terms=TERMS))
    await log.change(lambda changes: records.take_tab(changes, name, "leases/new"))

    ended = await log.get_lease(lease.name)
    assert ended is not None
    assert (ended.end_time, ended.end_cause) == (NOW, LeaseEnd.EXPIRED)
    assert (log.live.tabs[TAB].lease, log.live.leases["leases/new"].fencing_token) == (
        "leases/new",
        lease.fencing_token + 1,
    )


async def test_lease_for_client(log: Log) -> None:
    """AcquireLease on a tab that serves an open turn is LEASE_HELD, also before the turn has taken it (O-15)."""
    with pytest.raises(Refused) as held:
        await log.change(lambda changes: lease_records.acquire(changes, OWNER, LeaseOrder(TAB), "leases/c"))
    await log.change(lambda changes: lease_records.end(changes, _held(changes), LeaseEnd.RELEASED, ChangeCause.CLIENT))
    with pytest.raises(Refused) as about:
        await log.change(lambda changes: lease_records.acquire(changes, OWNER, LeaseOrder(TAB), "leases/c"))

    assert [(raised.value.reason, raised.value.metadata["lease"]) for raised in (held, about)] == [
        (Reason.LEASE_HELD, LEASE),
        (Reason.LEASE_HELD, ""),
    ]


def _held(changes: Changes) -> Lease:
    """The lease on the tab."""
    lease = changes.lease_on(TAB)
    assert lease is not None
    return lease


async def _leased_by_client(log: Log, *, expire_time: datetime | None = None) -> Lease:
    """The tab's lease, once its owner has acquired it."""

    def decide(changes: Changes) -> Lease:
        lease = lease_records.grant(changes, _now(changes), "leases/c", LeaseTerms(), owner="local/a")
        changes.record(replace(_now(changes), lease=lease.name))
        return changes.keep(replace(lease, expire_time=expire_time or lease.expire_time))

    return await log.change(decide)


async def test_anothers_tab(log: Log) -> None:
    """A tab that serves one session cannot be bound to another, held or free (O-134)."""
    other = replace(chat_session(), name="sessions/other")
    name = "sessions/other/turns/0123456789"
    order = replace(_ORDER, session="sessions/other")
    await log.change(lambda changes: changes.record(other))
    await log.change(lambda changes: _insert_turn(changes, OWNER, order, name, timedelta(minutes=5), terms=TERMS))
    await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.CANCELLED)))

    with pytest.raises(Refused) as raised:
        await log.change(lambda changes: records.bind(changes, name, _now(changes), "leases/new"))

    assert (raised.value.reason, raised.value.metadata) == (
        Reason.TAB_BUSY,
        {"tab": TAB, "session": SESSION, "turn": ""},
    )
    assert (dict(log.live.leases), log.live.sessions["sessions/other"].tab) == ({}, "")


async def test_second_tab(log: Log) -> None:
    """A session that has a tab gets no second one, whoever opened it, so that each names the other (O-134)."""
    other = replace(ready_tab(), name=f"{TAB[:-1]}8")
    await log.change(lambda changes: changes.record(other))
    before = log.live

    for bind in (
        lambda changes: records.bind(changes, _TURN, other, "leases/new"),
        lambda changes: records.bind_idle(changes, SESSION, other),
    ):
        with pytest.raises(TabLost):
            await log.change(bind)

    assert log.live == before


async def test_bound_without_a_turn(log: Log) -> None:
    """A parked session that is brought back names its new tab, and that names it, in one step (O-134, O-140)."""
    await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.CANCELLED)))
    await log.change(
        lambda changes: endings.close(changes, _now(changes), CloseCause.IDLE, ChangeCause.EXPIRY, _served)
    )
    other = replace(ready_tab(), name=f"{TAB[:-1]}8")
    head = log.progress.revision

    await log.change(lambda changes: changes.record(records.bind_idle(changes, SESSION, other)))

    session = log.live.sessions[SESSION]
    assert (session.tab, session.tab_source, session.open_turn) == (other.name, TabSource.OPENED, "")
    assert (log.live.tabs[other.name].session, dict(log.live.leases)) == (SESSION, {})
    assert log.progress.revision == head + 2


async def test_prompted(log: Log) -> None:
    """Once a prompt may have been submitted the session knows, without an event of its own (O-140, SES-03)."""
    head = log.progress.revision

    await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ()))

    assert log.live.sessions[SESSION].prompted
    assert log.progress.revision == head + 1


@pytest.mark.parametrize(
    ("caller", "order", "reason"),
    [
        (OWNER, _ORDER, None),
        (ADMIN, _ORDER, None),
        (STRANGER, _ORDER, "NOT_OWNER"),
        (STRANGER, replace(_ORDER, session="sessions/none"), "SESSION_NOT_FOUND"),
        (OWNER, replace(_ORDER, payload_sha256="other"), "REQUEST_ID_REUSED"),
        (OWNER, replace(_ORDER, request_id="other"), "TURN_IN_PROGRESS"),
    ],
)
async def test_repeat(log: Log, caller: Principal, order: PromptOrder, reason: str | None) -> None:
    """The same key is the same turn, with another payload it is refused; one turn at a time (O-8, O-133, SUB-15)."""
    before = log.live

    def insert(changes: Changes) -> Turn:
        return _insert_turn(changes, caller, order, f"{_TURN[:-1]}8", timedelta(minutes=5), terms=TERMS)

    try:
        found, told = await log.change(insert), None
    except Refused as refused:
        found, told = None, refused.reason.value

    assert (told, log.live) == (reason, before)
    assert found in (None, before.turns[_TURN])


@pytest.mark.parametrize(
    ("state", "touched"),
    [(TurnState.PENDING, "no"), (TurnState.SUBMITTING, "unknown"), (TurnState.RUNNING, "yes")],
)
def test_touched(state: TurnState, touched: PageTouched) -> None:
    """Whether the prompt was submitted follows from how far the turn had come (ownership 2)."""
    turn = Turn(_TURN, state, "key", "a", "b", NOW, NOW)

    assert records.touched(turn) == touched


@pytest.mark.parametrize(
    ("state", "reason", "outcome"),
    [
        (TurnState.PENDING, Reason.TAB_CAPACITY, ("no", "safe")),
        (TurnState.PENDING, Reason.PROVIDER_COMPOSER_UNUSABLE, ("no", "after-verify")),
        (TurnState.SUBMITTING, Reason.BROWSER_UNREACHABLE, ("unknown", "after-verify")),
        (TurnState.SUBMITTING, Reason.SUBMIT_UNCONFIRMED, ("unknown", "after-verify")),
        (TurnState.RUNNING, Reason.BROWSER_UNREACHABLE, ("yes", "after-verify")),
        (TurnState.RUNNING, Reason.ANSWER_TIMEOUT, ("yes", "after-verify")),
    ],
)
async def test_end_tells(log: Log, state: TurnState, reason: Reason, outcome: tuple[str, str]) -> None:
    """Each `Turn.error` says whether the prompt was submitted and what a program may do (O-72, SUB-14)."""
    if state is not TurnState.PENDING:
        await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ()))
    if state is TurnState.RUNNING:
        await log.change(lambda changes: records.run(changes, _TURN))

    ended = await log.change(
        lambda changes: records.end(changes, _TURN, Ending(TurnState.FAILED, refused=refuse(reason, "m")))
    )

    assert ended.error is not None
    assert (ended.error.metadata["page_touched"], ended.error.metadata["retry"]) == outcome


async def test_conversation_is_adopted_once(log: Log) -> None:
    """The first address of the conversation is kept, whatever the page shows later; the title follows (FIN-17)."""

    def shown() -> tuple[str, str]:
        session = log.live.sessions[SESSION]
        return session.conversation_uri, session.title

    await log.change(lambda changes: records.note_conversation(changes, _TURN, "", "nought"))
    assert shown() == ("", "nought")
    await log.change(lambda changes: records.note_conversation(changes, _TURN, "http://x/c/1", "one"))
    assert shown() == ("http://x/c/1", "one")
    await log.change(lambda changes: records.note_conversation(changes, _TURN, "http://x/c/2", "two"))
    assert shown() == ("http://x/c/1", "two")


async def test_long_title_and_address(log: Log) -> None:
    """Of a title the beginning is kept, of 1 KiB; what is too long for an address is none (O-152, FIN-17)."""
    await log.change(
        lambda changes: records.note_conversation(changes, _TURN, f"http://x/c/{'1' * 8192}", "é" * 2_500_000)
    )
    session = log.live.sessions[SESSION]

    assert (session.conversation_uri, session.title) == ("", "é" * 512)
    assert session_message(session).ByteSize() < 4096


@pytest.mark.parametrize(
    ("state", "reason", "touched"),
    [
        (TurnState.PENDING, "ANSWER_TIMEOUT", "no"),
        (TurnState.SUBMITTING, "SUBMIT_UNCONFIRMED", "unknown"),
        (TurnState.RUNNING, "ANSWER_TIMEOUT", "yes"),
    ],
)
async def test_out_of_time_at_start(log: Log, state: TurnState, reason: str, touched: str) -> None:
    """A turn whose time ran out while no server ran ends at the start, once, and no page is asked (O-143, SES-07)."""
    if state is not TurnState.PENDING:
        await log.change(lambda changes: records.submit(changes, _TURN, _now(changes), ()))
    if state is TurnState.RUNNING:
        await log.change(lambda changes: records.run(changes, _TURN))
    late = log.live.turns[_TURN].expire_time
    async with Tasks() as tasks, asyncio.timeout(10):
        # Whoever asks for a tab fails: there are none.
        tabs, provider = cast("Tabs", None), Providers({"playground-textarea": playground()})
        web_ai = WebAi(provider, tabs, log, tasks, random=bytes, clock=lambda: late, feeds=Feeds(), max_turn_count=0)
        web_ai.resume()
        turn = await web_ai.wait_turn(_TURN, max_wait=timedelta(seconds=10), after_revision=0)

    assert turn.error is not None
    assert (turn.state, turn.error.reason, turn.error.metadata["page_touched"]) == (TurnState.FAILED, reason, touched)
    ends = [entry for entry in await log.entries(0, count=99, size_bytes=2**20) if entry.kind is EventKind.ENDED]
    assert [entry.resource_kind for entry in ends] == [ResourceKind.TURN, ResourceKind.LEASE]


@pytest.mark.parametrize("parked", [False, True])
async def test_not_let_in(log: Log, *, parked: bool) -> None:
    """A turn that its provider's line does not let in fails with TURN_CAPACITY past its time (O-141, SUB-21).

    No tab was opened for it, nor any page asked; the one that its session has is held for it until then.
    """
    await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.CANCELLED)))
    if parked:
        close = partial(endings.close, cause=CloseCause.IDLE, why=ChangeCause.EXPIRY, served=_served)
        await log.change(lambda changes: close(changes, _now(changes)))
    name, again = f"{_TURN[:-1]}8", replace(_ORDER, request_id="again")
    await log.change(lambda changes: _insert_turn(changes, OWNER, again, name, timedelta(seconds=0.3), terms=TERMS))
    async with Tasks() as tasks, asyncio.timeout(10):
        tabs, provider = cast("Tabs", OnlyLines()), Providers({"playground-textarea": playground()})
        web_ai = WebAi(provider, tabs, log, tasks, random=bytes, clock=lambda: NOW, feeds=Feeds(), max_turn_count=0)
        web_ai.resume()
        turn = await web_ai.wait_turn(name, max_wait=timedelta(seconds=10), after_revision=0)

    assert turn.error is not None
    assert (turn.state, turn.error.reason, turn.error.metadata) == (
        TurnState.FAILED,
        "TURN_CAPACITY",
        {"provider": "playground-textarea", "limit": "0", "page_touched": "no", "retry": "safe"},
    )
    assert (log.live.sessions[SESSION].tab, dict(log.live.leases)) == ("" if parked else TAB, {})


class OnlyLines:
    """Tabs that can be held, and nothing else."""

    @contextlib.asynccontextmanager
    async def turn(self, _tab: str) -> AsyncGenerator[None]:
        """Nobody else is there."""
        yield


async def test_late_time_out(log: Log) -> None:
    """A recorded end is never left: neither time, nor a failure, nor an answer that comes late changes it (O-143)."""
    ended = await log.change(lambda changes: records.end(changes, _TURN, Ending(TurnState.SUCCEEDED, "42")))
    head = log.progress.revision
    late = (
        Ending(TurnState.FAILED, "4", refused=refuse(Reason.ANSWER_TIMEOUT, "m")),
        Ending(TurnState.CANCELLED),
        Ending(TurnState.SUCCEEDED, "42 and more"),
    )

    found = [await log.change(partial(records.end, name=_TURN, ending=ending)) for ending in late]

    assert found == [ended] * 3
    assert log.progress.revision == head


async def test_unknown_provider(log: Log) -> None:
    """A turn whose provider the server does not know any more ends with PROVIDER_NOT_FOUND at the next start."""
    async with Tasks() as tasks, asyncio.timeout(10):
        web_ai = WebAi(Providers({}), cast("Tabs", None), log, tasks, random=bytes, clock=lambda: NOW, feeds=Feeds())
        web_ai.resume()
        while (turn := await web_ai.get_turn(_TURN)).error is None:
            await log.moved(log.progress.revision)

    session = log.live.sessions[SESSION]
    assert (turn.state, turn.error.reason, turn.error.metadata, session.open_turn, dict(log.live.leases)) == (
        TurnState.FAILED,
        "PROVIDER_NOT_FOUND",
        {"provider": "playground-textarea", "page_touched": "no", "retry": "never"},
        "",
        {},
    )


@pytest.mark.parametrize(
    ("answer", "kept", "codes"),
    [
        ("a" * 2**20, "a" * 2**20, []),
        ("a" * 2**20 + "b", "a" * 2**20, ["answer-cut"]),
        ("a" * (2**20 - 1) + "\u00e4", "a" * (2**20 - 1), ["answer-cut"]),
    ],
    ids=["fits", "cut", "within a character"],
)
async def test_cut(log: Log, answer: str, kept: str, codes: list[str]) -> None:
    """An answer of more than 1 MiB is cut on a character border, with a warning and its whole size."""
    ending = Ending(TurnState.SUCCEEDED, answer)
    turn = await log.change(lambda changes: records.end(changes, _TURN, ending))

    assert turn.answer_markdown == kept
    assert turn.answer_size_bytes == len(answer.encode())
    assert [warning.code for warning in turn.warnings] == codes
