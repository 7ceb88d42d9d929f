"""Sessions as a whole over a real log and real tabs without a browser: changed, retired, parted from their tabs."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import LeaseTerms
from tabmuxd.resources.orders import PromptOrder, SessionFilter, SessionUpdate
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import (
    CompletionEvidence,
    RetireCause,
    Session,
    SessionState,
    TabDisposition,
    TabSource,
    Turn,
    TurnState,
)
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import lease_records
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import records, sessions
from tabmuxd.webai.parting import Fate, Parting, fate_of, parting
from tabmuxd.webai.records import Ending
from tabmuxd.webai.service import _insert_turn
from tabmuxd.webai.sessions import updated

from tests.domain.below import Below, below
from tests.domain.values import ADMIN, LEASE, NOW, OWNER, SESSION, STRANGER, TAB, TERMS, chat_session, ready_tab, told

_TURN = f"{SESSION}/turns/0123456789"
_MONTH = timedelta(days=30)
_SUCCESS = Ending(TurnState.SUCCEEDED, "42", CompletionEvidence(done_mark=True, stable_duration=timedelta(seconds=1)))
_DEFAULT, _POOL, _CLOSE, _KEEP = TabDisposition


@dataclass
class Parts(Below):
    """A server below its edge with the session of the tests."""

    async def has_tab(self, source: TabSource = TabSource.OPENED, **fields: object) -> None:
        """The session has a tab, and a turn in it that has ended."""
        tab = replace(ready_tab(), **{"group": "g", "shared_with": (), **fields})  # type: ignore[arg-type]

        def decide(changes: Changes) -> None:
            _insert_turn(
                changes,
                OWNER,
                PromptOrder(SESSION, Prompt("why?"), "key", "hash"),
                _TURN,
                timedelta(minutes=5),
                terms=TERMS,
            )
            changes.record(records.bind(changes, _TURN, tab, LEASE, source))
            records.end(changes, _TURN, Ending(TurnState.CANCELLED))

        await self.log.change(decide)

    async def retire(self, disposition: TabDisposition = _DEFAULT, caller: Principal = OWNER) -> Session:
        """Retire the session."""
        return await self.web_ai.sessions.retire(caller, SESSION, disposition)

    @property
    def tab(self) -> Tab:
        """The tab as it is published."""
        return self.log.live.tabs[TAB]

    @property
    def session(self) -> Session:
        """The session as it is published."""
        return self.log.live.sessions[SESSION]


@asynccontextmanager
async def _parts(limits: BrowserLimits) -> AsyncGenerator[Parts]:
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    try:
        async with below(directory, limits=limits) as made:
            await made.log.change(lambda changes: changes.record(chat_session()))
            yield Parts(made.log, made.tabs, made.web_ai, made.clock)
    finally:
        shutil.rmtree(directory)


@pytest.fixture
async def parts() -> AsyncGenerator[Parts]:
    """A session of `local/a` without a tab."""
    async with _parts(BrowserLimits()) as parts:
        yield parts


# The decision


@pytest.mark.parametrize("source", TabSource)
@pytest.mark.parametrize("asked", TabDisposition)
@pytest.mark.parametrize("poolable", [True, False])
def test_fate(source: TabSource, asked: TabDisposition, *, poolable: bool) -> None:
    """A tab goes where the call says, by default to the pool if the session got it from us, else it stays (O-142)."""
    ours = source in (TabSource.OPENED, TabSource.POOLED)
    pooled = Fate.POOLED if poolable else Fate.CLOSES
    expected = {_DEFAULT: pooled if ours else Fate.STAYS, _POOL: pooled, _CLOSE: Fate.CLOSES, _KEEP: Fate.STAYS}

    assert fate_of(ready_tab(), source, asked, kept=False, poolable=poolable) is expected[asked]


@pytest.mark.parametrize("asked", TabDisposition)
def test_stays(asked: TabDisposition) -> None:
    """A tab that is pinned or held stays, whatever is asked for; an adopted one closes only if asked to (O-142)."""
    pinned = fate_of(replace(ready_tab(), pinned=True), TabSource.OPENED, asked, kept=False, poolable=True)
    held = fate_of(ready_tab(), TabSource.OPENED, asked, kept=True, poolable=True)
    adopted = replace(ready_tab(), origin=TabOrigin.ADOPTED)

    assert (pinned, held) == (Fate.STAYS, Fate.STAYS)
    assert fate_of(adopted, TabSource.TAKEN, asked, kept=False, poolable=False) is (
        Fate.CLOSES if asked is _CLOSE else Fate.STAYS
    )


# Retired on request


async def test_retired(parts: Parts) -> None:
    """RetireSession ends the session and gives its tab to the pool, in one transaction, and ends it once (O-142)."""
    await parts.has_tab()
    head = parts.log.progress.revision

    first = await parts.retire()
    again = await parts.retire()

    assert first == again
    assert (first.state, first.retire_cause, first.retire_time, first.tab, first.expire_time) == (
        SessionState.RETIRED, RetireCause.CLIENT, NOW, "", None,
    )  # fmt: skip
    assert (parts.tab.pooled, parts.tab.owner, parts.tab.session, parts.tab.state) == (True, "", "", TabState.READY)
    assert (SESSION in parts.log.live.sessions, parts.log.progress.revision) == (False, head + 2)
    assert first.close_count == 0


@pytest.mark.parametrize(
    ("source", "asked", "fields", "fate"),
    [
        (TabSource.OPENED, _DEFAULT, {}, Fate.POOLED),
        (TabSource.POOLED, _DEFAULT, {}, Fate.POOLED),
        (TabSource.TAKEN, _DEFAULT, {}, Fate.STAYS),
        (TabSource.TAKEN, _POOL, {}, Fate.POOLED),
        (TabSource.OPENED, _KEEP, {}, Fate.STAYS),
        (TabSource.OPENED, _CLOSE, {}, Fate.CLOSES),
        (TabSource.OPENED, _CLOSE, {"pinned": True}, Fate.STAYS),
        (TabSource.OPENED, _DEFAULT, {"pinned": True}, Fate.STAYS),
        (TabSource.OPENED, _DEFAULT, {"has_opened": True}, Fate.CLOSES),
        (TabSource.OPENED, _DEFAULT, {"group": ""}, Fate.CLOSES),
        (TabSource.TAKEN, _POOL, {"origin": TabOrigin.ADOPTED}, Fate.STAYS),
        (TabSource.TAKEN, _CLOSE, {"owner": "local/b"}, Fate.STAYS),
    ],
)
async def test_tab_at_the_end(
    parts: Parts, source: TabSource, asked: TabDisposition, fields: dict[str, object], fate: Fate
) -> None:
    """What becomes of the tab is recorded with the end; a close is owed before it is begun (O-142, O-36, O-2)."""
    await parts.has_tab(source, **fields)
    other = replace(ready_tab(), name=f"{TAB[:-1]}0")
    await parts.log.change(lambda changes: changes.record(other))
    before = parts.log.live.tabs[other.name]

    await parts.retire(asked)

    tab = parts.tab
    assert (tab.session, tab.lease, parts.log.live.tabs[other.name]) == ("", "", before)
    assert (tab.pooled, tab.close_owed) == (
        fate is Fate.POOLED,
        CloseCause.SESSION if fate is Fate.CLOSES else CloseCause.NONE,
    )


async def test_held(parts: Parts) -> None:
    """A tab under a client's lease stays, with its lease, whatever is asked for (O-142)."""
    await parts.has_tab()

    def lease(changes: Changes) -> None:
        granted = lease_records.grant(changes, parts.tab, "leases/c", LeaseTerms(), owner="local/a")
        changes.record(replace(parts.tab, lease=granted.name))

    await parts.log.change(lease)

    await parts.retire(_CLOSE)

    assert (parts.tab.lease, parts.tab.session, parts.tab.close_owed) == ("leases/c", "", CloseCause.NONE)
    assert list(parts.log.live.leases) == ["leases/c"]


async def test_at_work(parts: Parts) -> None:
    """A tab that a call is at work on stays its owner's (O-142, O-45)."""
    await parts.has_tab()

    async with parts.tabs.turn(TAB):
        await parts.retire()

    assert (parts.tab.pooled, parts.tab.session, parts.tab.close_owed) == (False, "", CloseCause.NONE)


async def test_no_room_in_the_pool() -> None:
    """Without room in the pool of its group a tab is closed (O-142, O-47)."""
    async with _parts(BrowserLimits(max_pooled_tab_count=0)) as parts:
        await parts.has_tab()

        await parts.retire()

        assert (parts.tab.pooled, parts.tab.close_owed) == (False, CloseCause.SESSION)


@pytest.mark.parametrize("state", [TabState.LOST, TabState.CRASHED])
async def test_lost_tab(parts: Parts, state: TabState) -> None:
    """A session that was being brought back is retired with a tab that has no page, which closes (O-142)."""
    await parts.has_tab()

    def lose(changes: Changes) -> None:
        changes.record(replace(parts.tab, state=state))
        changes.record(replace(parts.session, state=SessionState.RECOVERING))

    await parts.log.change(lose)

    assert (await parts.retire()).state is SessionState.RETIRED
    assert (parts.tab.session, parts.tab.close_owed) == ("", CloseCause.SESSION)


async def test_open_turn_first(parts: Parts) -> None:
    """An open turn is cancelled before its session is retired, and both can be read afterwards (O-142)."""
    order = PromptOrder(SESSION, Prompt("why?"), "key", "hash")
    await parts.log.change(
        lambda changes: _insert_turn(changes, OWNER, order, _TURN, timedelta(minutes=5), terms=TERMS)
    )

    async def cancel(caller: Principal, turn: str) -> Turn:
        assert (caller, turn) == (OWNER, _TURN)
        return await parts.log.change(lambda changes: records.end(changes, turn, Ending(TurnState.CANCELLED)))

    parts.web_ai.sessions._cancel = cancel
    retired = await parts.retire()

    turn = await parts.log.get_turn(_TURN)
    assert turn is not None
    assert (retired.state, retired.open_turn, retired.last_turn, turn.state) == (
        SessionState.RETIRED, "", _TURN, TurnState.CANCELLED,
    )  # fmt: skip
    assert await parts.web_ai.sessions.get(SESSION) == retired
    listed = await parts.web_ai.sessions.list_turns(SESSION, after=0, count=9)
    assert [found.name for _, found in listed] == [_TURN]


def _ready() -> Tab:
    return replace(ready_tab(), group="g", shared_with=())


async def test_tab_of_a_moment_ago(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tab that came for the open turn right before its end goes as asked for too (O-142)."""
    order = PromptOrder(SESSION, Prompt("why?"), "key", "hash")
    await parts.log.change(
        lambda changes: _insert_turn(changes, OWNER, order, _TURN, timedelta(minutes=5), terms=TERMS)
    )

    async def cancel(_caller: Principal, name: str) -> Turn:
        def decide(changes: Changes) -> Turn:
            changes.record(records.bind(changes, name, _ready(), LEASE, TabSource.OPENED))
            return records.end(changes, name, Ending(TurnState.CANCELLED))

        return await parts.log.change(decide)

    monkeypatch.setattr(parts.web_ai.sessions, "_cancel", cancel)
    await parts.retire(_CLOSE)

    assert (parts.tab.session, parts.tab.lease, parts.tab.close_owed) == ("", "", CloseCause.SESSION)


@pytest.mark.parametrize("expired", [True, False])
async def test_tab_that_comes_meanwhile(parts: Parts, monkeypatch: pytest.MonkeyPatch, *, expired: bool) -> None:
    """A tab that comes once the session was read is parted with as the session's own (O-142)."""
    await parts.log.change(lambda changes: changes.record(replace(parts.session, expire_time=NOW)))

    @asynccontextmanager
    async def part(tabs: Tabs, tab: str, *order: Any) -> AsyncGenerator[Parting]:  # noqa: ANN401 - as it is given
        if not tab:
            await parts.log.change(lambda changes: changes.record(records.bind_idle(changes, SESSION, _ready())))
        async with parting(tabs, tab, *order) as how:
            yield how

    monkeypatch.setattr(sessions, "parting", part)
    if expired:
        assert [await parts.web_ai.sessions.expire() for _ in range(3)] == [0, 1, 0]
    else:
        await parts.retire(_CLOSE)

    assert (parts.tab.session, parts.tab.pooled, parts.tab.close_owed) == (
        "", expired, CloseCause.NONE if expired else CloseCause.SESSION,
    )  # fmt: skip


async def test_another_turn_meanwhile(parts: Parts) -> None:
    """A turn that is sent while the one before is cancelled is cancelled too: none is left open (O-142)."""
    cancelled: list[str] = []

    async def cancel(_caller: Principal, turn: str) -> Turn:
        cancelled.append(turn)
        ended = await parts.log.change(lambda changes: records.end(changes, turn, Ending(TurnState.CANCELLED)))
        if len(cancelled) < 3:
            await send(len(cancelled))
        return ended

    async def send(number: int) -> None:
        order = PromptOrder(SESSION, Prompt("why?"), f"key-{number}", "hash")
        name = f"{_TURN[:-1]}{number}"
        await parts.log.change(
            lambda changes: _insert_turn(changes, OWNER, order, name, timedelta(minutes=5), terms=TERMS)
        )

    parts.web_ai.sessions._cancel = cancel
    await send(0)

    assert (await parts.retire()).state is SessionState.RETIRED
    assert (cancelled, dict(parts.log.live.turns)) == ([f"{_TURN[:-1]}{number}" for number in range(3)], {})


async def test_caller_gone(parts: Parts) -> None:
    """A caller that goes away in the middle leaves no session half retired (O-142)."""
    reached, go_on = asyncio.Event(), asyncio.Event()
    order = PromptOrder(SESSION, Prompt("why?"), "key", "hash")
    await parts.log.change(
        lambda changes: _insert_turn(changes, OWNER, order, _TURN, timedelta(minutes=5), terms=TERMS)
    )

    async def cancel(_caller: Principal, turn: str) -> Turn:
        reached.set()
        await go_on.wait()
        return await parts.log.change(lambda changes: records.end(changes, turn, Ending(TurnState.CANCELLED)))

    parts.web_ai.sessions._cancel = cancel
    call = asyncio.ensure_future(parts.retire())
    await reached.wait()
    call.cancel()
    go_on.set()

    async with asyncio.timeout(20):
        while SESSION in parts.log.live.sessions:
            await parts.log.moved(parts.log.progress.revision)


@pytest.mark.parametrize(
    ("caller", "name", "reason"),
    [(STRANGER, SESSION, "NOT_OWNER"), (OWNER, "sessions/none", "SESSION_NOT_FOUND"), (ADMIN, SESSION, None)],
)
async def test_who_may(parts: Parts, caller: Principal, name: str, reason: str | None) -> None:
    """Only its owner and `admin` change and retire a session; another's call does nothing (O-8)."""
    before = parts.log.live
    update = SessionUpdate(name, labels={"a": "b"})
    found: list[str | None] = []
    for call in (
        parts.web_ai.sessions.update(caller, update),
        parts.web_ai.sessions.retire(caller, name, _DEFAULT),
    ):
        try:
            await call
            found.append(None)
        except Refused as refused:
            found.append(told(refused))

    assert found == [reason, reason]
    assert (parts.log.live == before) is (reason is not None)


# Given back after a turn


@pytest.mark.parametrize(
    ("ending", "release", "released"),
    [(_SUCCESS, True, True), (_SUCCESS, False, False), (Ending(TurnState.CANCELLED), True, False)],
)
async def test_release(parts: Parts, ending: Ending, *, release: bool, released: bool) -> None:
    """`release_tab` gives the tab back in the transaction of the success, and only then; the session stays (O-142)."""
    order = PromptOrder(SESSION, Prompt("why?"), "key", "hash", release_tab=release)
    tab = replace(ready_tab(), group="g", shared_with=())
    how = Parting(TAB, _DEFAULT, None, at_work=False, limits=BrowserLimits())

    def decide(changes: Changes) -> None:
        _insert_turn(changes, OWNER, order, _TURN, timedelta(minutes=5), terms=TERMS)
        changes.record(records.bind(changes, _TURN, tab, LEASE))

    await parts.log.change(decide)
    before = parts.log.live

    await parts.log.change(lambda changes: records.end(changes, _TURN, ending, ChangeCause.PAGE, how))

    session = parts.session
    assert (session.tab, session.tab_source) == (("", TabSource.NONE) if released else (TAB, TabSource.OPENED))
    assert (session.state, session.open_turn, session.close_count, session.expire_time) == (
        SessionState.ACTIVE, "", 0, NOW + _MONTH,
    )  # fmt: skip
    assert (parts.tab.pooled, parts.tab.session, parts.tab.lease) == (released, "" if released else SESSION, "")
    assert (len(before.leases), len(parts.log.live.leases)) == (1, 0)


# Changed


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        (SessionUpdate(SESSION, labels={"a": "2", "b": ""}), {"labels": {"a": "2"}}),
        (SessionUpdate(SESSION, labels={"c": "3"}), {"labels": {"a": "1", "b": "1", "c": "3"}}),
        (SessionUpdate(SESSION, 7, ttl=timedelta(days=1)), {"ttl": timedelta(days=1), "expire_time": NOW}),
    ],
)
def test_updated(update: SessionUpdate, expected: dict[str, object]) -> None:
    """Labels are merged, one with an empty value goes; another `ttl` counts from the last turn's end."""
    session = replace(
        chat_session(), labels={"a": "1", "b": "1"}, ttl=timedelta(days=3), expire_time=NOW + timedelta(days=2),
        revision=7,
    )  # fmt: skip

    assert updated(session, update) == replace(session, **expected)  # type: ignore[arg-type]


def test_ttl_while_open() -> None:
    """A session with an open turn has no time of expiry, also with another `ttl`."""
    session = replace(chat_session(), open_turn=_TURN, expire_time=None)

    assert updated(session, SessionUpdate(SESSION, ttl=timedelta(days=1))).expire_time is None


@pytest.mark.parametrize(
    ("session", "update", "reason"),
    [
        (replace(chat_session(), revision=7), SessionUpdate(SESSION, 6, {"a": "b"}), "REVISION_MISMATCH"),
        (replace(chat_session(), state=SessionState.RETIRED), SessionUpdate(SESSION, 0, {"a": "b"}), "SESSION_RETIRED"),
        (
            replace(chat_session(), labels={str(number): "v" for number in range(16)}),
            SessionUpdate(SESSION, 0, {"a": "b"}),
            "INVALID_FIELD",
        ),
    ],
)
def test_not_updated(session: Session, update: SessionUpdate, reason: str) -> None:
    """A session of another revision, one that is retired, and too many labels are refused."""
    with pytest.raises(Refused) as raised:
        updated(session, update)

    assert raised.value.reason == reason


async def test_update_in_the_log(parts: Parts) -> None:
    """A change is recorded once; one that changes nothing is no event (O-146)."""
    update = SessionUpdate(SESSION, labels={"a": "b"}, ttl=timedelta(days=1))

    first = await parts.web_ai.sessions.update(OWNER, update)
    head = parts.log.progress.revision
    again = await parts.web_ai.sessions.update(OWNER, update)

    assert (first, parts.log.progress.revision) == (again, head)
    assert (first.labels, first.ttl, first.revision) == ({"a": "b"}, timedelta(days=1), head)


# Expired


async def test_expiry(parts: Parts) -> None:
    """A session is retired `ttl` after its last turn and not before, and its tab goes as by RetireSession (SES-12)."""
    await parts.has_tab()

    parts.clock.now = NOW + _MONTH - timedelta(seconds=1)
    assert await parts.web_ai.sessions.expire() == 0
    parts.clock.now = NOW + _MONTH
    assert await parts.web_ai.sessions.expire() == 1
    assert await parts.web_ai.sessions.expire() == 0

    session = await parts.web_ai.sessions.get(SESSION)
    assert (session.state, session.retire_cause, session.retire_time) == (
        SessionState.RETIRED, RetireCause.EXPIRY, NOW + _MONTH,
    )  # fmt: skip
    assert (parts.tab.pooled, parts.tab.session) == (True, "")


async def test_turn_a_day(parts: Parts) -> None:
    """A session with a turn a day outlives its `ttl`; none expires with a turn open, but `ttl` after it (SES-12)."""
    for day in range(40):
        parts.clock.now = NOW + timedelta(days=day)
        name = f"{SESSION}/turns/{day:010d}"
        order = PromptOrder(SESSION, Prompt("why?"), f"key-{day}", "hash")
        await parts.log.change(
            lambda changes, order=order, name=name: _insert_turn(changes, OWNER, order, name, _MONTH * 3, terms=TERMS)  # type: ignore[misc]
        )
        if day < 39:
            await parts.log.change(
                lambda changes, name=name: records.end(changes, name, Ending(TurnState.CANCELLED))  # type: ignore[misc]
            )
        assert await parts.web_ai.sessions.expire() == 0

    parts.clock.now += _MONTH * 2
    assert await parts.web_ai.sessions.expire() == 0
    await parts.log.change(lambda changes: records.end(changes, f"{SESSION}/turns/{39:010d}", _SUCCESS))
    parts.clock.now += _MONTH
    assert await parts.web_ai.sessions.expire() == 1


async def test_readable_for_30_days(parts: Parts) -> None:
    """An expired session stays readable with its answers for 30 days, then it goes with its turns (SES-11, SES-12)."""
    await parts.has_tab()
    other = replace(chat_session(), name="sessions/other", expire_time=NOW + _MONTH * 9, ttl=_MONTH * 9)
    await parts.log.change(lambda changes: changes.record(other))
    parts.clock.now += _MONTH
    await parts.web_ai.sessions.expire()

    parts.clock.now += _MONTH - timedelta(seconds=1)
    await parts.log.compact()
    assert [await parts.log.get_session(SESSION) is None, await parts.log.get_turn(_TURN) is None] == [False, False]

    parts.clock.now += timedelta(seconds=1)
    await parts.log.compact()
    assert [await parts.log.get_session(SESSION), await parts.log.get_turn(_TURN)] == [None, None]
    assert list(parts.log.live.sessions) == ["sessions/other"]


# Listed


async def test_listed(parts: Parts) -> None:
    """Sessions are listed by state, provider and labels, retired ones only if asked for; turns of a known one."""
    one = replace(chat_session(), name="sessions/one", provider="p", labels={"a": "1"})
    two = replace(chat_session(), name="sessions/two", state=SessionState.RETIRED, retire_time=NOW)
    for session in (one, two):
        await parts.log.change(lambda changes, session=session: changes.record(session))  # type: ignore[misc]

    async def listed(wanted: SessionFilter) -> list[str]:
        return [found.name for _, found in await parts.web_ai.sessions.list(wanted, after=0, count=9)]

    assert await listed(SessionFilter()) == [SESSION, "sessions/one"]
    assert await listed(SessionFilter(states=frozenset(SessionState))) == [SESSION, "sessions/one", "sessions/two"]
    assert await listed(SessionFilter(states=frozenset({SessionState.RETIRED}))) == ["sessions/two"]
    assert await listed(SessionFilter(providers=frozenset({"p", "q"}))) == ["sessions/one"]
    assert await listed(SessionFilter(labels={"a": "1", "b": "1"})) == []
    with pytest.raises(Refused) as raised:
        await parts.web_ai.sessions.list_turns("sessions/none", after=0, count=9)
    assert told(raised.value) == "SESSION_NOT_FOUND"


async def test_size_of_an_open_turn(parts: Parts) -> None:
    """A list of turns tells how long an answer is so far, without its text."""
    order = PromptOrder(SESSION, Prompt("why?"), "key", "hash")
    await parts.log.change(
        lambda changes: _insert_turn(changes, OWNER, order, _TURN, timedelta(minutes=5), terms=TERMS)
    )
    parts.web_ai._feeds.of(_TURN).set("so far")

    ((_, turn),) = await parts.web_ai.sessions.list_turns(SESSION, after=0, count=9)

    assert (turn.answer_size_bytes, turn.answer_markdown, turn.prompt) == (6, "", "")
