from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tabmux.v1.event_pb2 import Event as EventMessage
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserLimits, BrowserState, Ownership
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import session_of
from tabmuxd.resources.orders import PromptOrder
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import CompletionEvidence, Session, SessionState, TabDisposition, Turn, TurnState
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import endings, recovery_rules
from tabmuxd.tabs.recovery_rules import Attempts
from tabmuxd.webai import records
from tabmuxd.webai.parting import Parting
from tabmuxd.webai.records import Ending, TabLost, TurnEnded
from tabmuxd.webai.service import _insert_turn

from tests.domain.values import NOW, OWNER, TERMS

T = TypeVar("T")

_SESSIONS = ("sessions/one", "sessions/two")
_SESSION = st.sampled_from(_SESSIONS)
_WHICH = st.integers(0, 3)
_ENDINGS = st.sampled_from(
    [
        Ending(TurnState.SUCCEEDED, "42", CompletionEvidence(done_mark=True, stable_duration=timedelta(seconds=1))),
        Ending(TurnState.FAILED, "4", refused=refuse(Reason.ANSWER_TIMEOUT, "m")),
        Ending(TurnState.FAILED, refused=refuse(Reason.TAB_CAPACITY, "m")),
        Ending(TurnState.CANCELLED, "4"),
    ]
)
_NO_TAB = Tab("browsers/main/tabs/zzzzzzzzzz", TabState.READY, TabOrigin.MANAGED, "local/a", NOW, NOW)
_LOSSES = st.sampled_from(
    [
        (TabState.LOST, ChangeCause.PERSON),
        (TabState.LOST, ChangeCause.BROWSER),
        (TabState.CRASHED, ChangeCause.CRASH),
    ]
)


class Conversations(RuleBasedStateMachine):
    """Two sessions whose turns and tabs change in any order, over a real log that is opened anew now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = Path(tempfile.mkdtemp(prefix="tm"))
        self._runner = asyncio.Runner()
        self._now = NOW
        self._count = 0
        self._final: dict[str, Turn] = {}
        self._pressed: list[str] = []
        self._log = self._opened()

    def _opened(self) -> Log:
        async def opened() -> Log:
            return await Log(self._directory / "t.sqlite3", clock=lambda: self._now).__aenter__()

        return self._runner.run(opened())

    def _close(self) -> None:
        self._runner.run(self._log.__aexit__(None, None, None))

    def teardown(self) -> None:
        self._states_in_events()
        self._close()
        self._runner.close()
        shutil.rmtree(self._directory)

    def _change(self, decide: Callable[[Changes], T]) -> T:
        self._now += timedelta(seconds=1)
        return self._runner.run(self._log.change(decide))

    def _id(self) -> str:
        self._count += 1
        return f"{self._count:010d}"

    def _turn(self, which: int) -> str | None:
        """The name of some turn that there was, newest first; open ones and ended ones."""
        names = [*self._log.live.turns, *self._final]
        return names[which % len(names)] if names else None

    def _tab(self, which: int) -> Tab | None:
        tabs = [*self._log.live.tabs.values()]
        return tabs[which % len(tabs)] if tabs else None

    @initialize()
    def begin(self) -> None:
        """A browser and two sessions."""

        def decide(changes: Changes) -> None:
            changes.record(Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED))
            for name in _SESSIONS:
                changes.record(Session(name, SessionState.ACTIVE, "p", "1", "local/a", NOW, NOW, "browsers/main"))

        self._change(decide)

    # What clients, runners, people and browsers do

    @rule(session=_SESSION, key=st.integers(0, 2))
    def send(self, session: str, key: int) -> None:
        """A prompt: a turn, the same turn for the same key, or TURN_IN_PROGRESS."""
        busy = self._log.live.sessions[session].open_turn
        known = {turn.request_id: turn for turn in [*self._log.live.turns.values(), *self._final.values()]}
        order = PromptOrder(
            session, Prompt(f"prompt {key}"), f"{session[-3:]}-{key}", f"hash {key}", release_tab=key > 0
        )
        name = f"{session}/turns/{self._id()}"
        try:
            turn = self._change(
                lambda changes: _insert_turn(changes, OWNER, order, name, timedelta(minutes=5), terms=TERMS)
            )
        except Refused as refused:
            assert (refused.reason, bool(busy)) == (Reason.TURN_IN_PROGRESS, True)  # noqa: PT017
            return
        before = known.get(order.request_id)
        assert turn.name == (before.name if before else name)

    @rule(which=_WHICH)
    def get_tab(self, which: int) -> None:
        """A runner gets its session a tab, or takes the one that it has."""
        name = self._turn(which)
        if name is None:
            return
        lease = f"leases/{self._id()}"
        tab_name = f"browsers/main/tabs/{self._id()}"

        def decide(changes: Changes) -> None:
            tab = records.usable_tab(changes, session_of(name))
            session = changes.session(session_of(name))
            if tab is None and session is not None and session.tab:
                return  # it is being brought back, and the runner waits for that
            if tab is None:
                new = Tab(tab_name, TabState.READY, TabOrigin.MANAGED, "local/a", changes.now, changes.now, group="g")
                changes.record(records.bind(changes, name, new, lease), ChangeCause.CLIENT)
                return
            bound = records.bind(changes, name, tab, lease)
            if bound.lease != tab.lease:
                changes.record(bound, ChangeCause.CLIENT)

        try:
            self._change(decide)
        except TurnEnded:
            assert name in self._final

    @rule(session=_SESSION)
    def recover_session(self, session: str) -> None:
        """RecoverSession gets a session a tab; one that has a tab gets no other (O-134, O-140)."""
        new = replace(_NO_TAB, name=f"browsers/main/tabs/{self._id()}")
        had = self._log.live.sessions[session].tab
        try:
            self._change(lambda changes: changes.record(records.bind_idle(changes, session, new)))
        except TabLost:
            assert had
        else:
            assert not had

    @rule(which=_WHICH)
    def get_second_tab(self, which: int) -> None:
        """A runner that opens a tab for a session which has got one meanwhile loses it again (O-134)."""
        name = self._turn(which)
        if name is None or name in self._final or not self._log.live.sessions[session_of(name)].tab:
            return
        new = replace(_NO_TAB, name=f"browsers/main/tabs/{self._id()}")
        with pytest.raises((TabLost, TurnEnded)):
            self._change(lambda changes: records.bind(changes, name, new, f"leases/{self._id()}"))

    @rule(which=_WHICH, tab=_WHICH)
    def take_anothers(self, which: int, tab: int) -> None:
        """A tab that serves another session cannot be taken (O-134)."""
        name, found = self._turn(which), self._tab(tab)
        if name is None or found is None or found.session in ("", session_of(name)):
            return
        try:
            self._change(lambda changes: records.bind(changes, name, found, f"leases/{self._id()}"))
        except TurnEnded:
            assert name in self._final
        except Refused as refused:
            assert refused.reason is Reason.TAB_BUSY  # noqa: PT017
        else:
            raise AssertionError("taken")

    @rule(which=_WHICH, stale=st.booleans())
    def submit(self, which: int, *, stale: bool) -> None:
        """A runner is about to press, in the tab it typed into, which it may have lost meanwhile."""
        name = self._turn(which)
        if name is None:
            return
        turn = self._log.live.turns.get(name)
        session = self._log.live.sessions[session_of(name)]
        held = session.tab and self._log.live.lease_on(session.tab)
        tab = self._log.live.tabs.get(session.tab, _NO_TAB)
        typed_into = replace(tab, generation=tab.generation + 1) if stale else tab
        try:
            self._change(lambda changes: records.submit(changes, name, typed_into, ("k",)))
        except TurnEnded:
            assert turn is None
        except TabLost:
            assert stale or not held or tab.state is not TabState.READY
        except Refused as refused:
            assert refused.reason is Reason.SUBMIT_UNCONFIRMED  # noqa: PT017
            assert turn is not None
            assert turn.state is not TurnState.PENDING
        else:
            assert not stale
            self._pressed.append(name)

    @rule(which=_WHICH)
    def run(self, which: int) -> None:
        """The provider shows the prompt."""
        name = self._turn(which)
        turn = self._log.live.turns.get(name) if name else None
        if name is None or (turn is not None and turn.state is TurnState.PENDING):
            return
        self._late(name, lambda changes: records.run(changes, name))

    @rule(which=_WHICH, stalled=st.booleans())
    def stall(self, which: int, *, stalled: bool) -> None:
        """An answer is quiet, or goes on."""
        name = self._turn(which)
        if name is not None:
            self._late(name, lambda changes: records.stall(changes, name, stalled=stalled))

    def _late(self, name: str, decide: Callable[[Changes], object]) -> None:
        try:
            self._change(decide)
        except TurnEnded:
            assert name in self._final

    @rule(which=_WHICH, ending=_ENDINGS)
    def end(self, which: int, ending: Ending) -> None:
        """A turn ends, or a late end finds it ended (FIN-09); a success gives the tab back if asked to (O-142)."""
        name = self._turn(which)
        if name is None:
            return
        before, turn = self._log.live, self._log.live.turns.get(name)
        tab = before.sessions[session_of(name)].tab
        how = Parting(tab, TabDisposition.UNSPECIFIED, None, at_work=False, limits=BrowserLimits())
        ended = self._change(lambda changes: records.end(changes, name, ending, ChangeCause.PAGE, how))
        assert ended == self._final.get(name, ended)
        if turn is not None:
            released = turn.release_tab and ended.state is TurnState.SUCCEEDED
            assert self._log.live.sessions[session_of(name)].tab == ("" if released else tab)

    @rule(session=_SESSION, uri=st.sampled_from(["", "http://x/c/1", "http://x/c/2"]))
    def note(self, session: str, uri: str) -> None:
        """The conversation's address is adopted once (FIN-17)."""
        before = self._log.live.sessions[session].conversation_uri
        self._change(lambda changes: records.note_conversation(changes, f"{session}/turns/x", uri, "title"))
        assert self._log.live.sessions[session].conversation_uri == (before or uri)

    @rule(tab=_WHICH, loss=_LOSSES)
    def lose(self, tab: int, loss: tuple[TabState, ChangeCause]) -> None:
        """A person closes the page, its renderer crashes, or its browser ends."""
        found = self._tab(tab)
        if found is None:
            return
        state, why = loss
        pending = self._pending_on(found)
        self._change(lambda changes: endings.lose_page(changes, found, state, why, _served))
        assert pending is None or pending in self._log.live.turns

    @rule(tab=_WHICH, reopened=st.booleans())
    def come_back(self, tab: int, *, reopened: bool) -> None:
        """A tab that lost its page gets one again, its own or another; its session knows, its turn goes on (O-112)."""
        found = self._tab(tab)
        if found is None or found.state is TabState.READY:
            return
        before = self._log.live
        back = replace(found, state=TabState.READY, generation=found.generation + reopened)
        after = self._change(lambda changes: endings.come_back(changes, back))
        assert (after.session, after.lease, after.recovery_count) == (
            found.session,
            found.lease,
            found.recovery_count + 1,
        )
        assert self._log.live.turns == before.turns
        if found.session:
            session = self._log.live.sessions[found.session]
            count = before.sessions[found.session].recovery_count + 1
            assert (session.state, session.recovery_count) == (SessionState.ACTIVE, count)

    @rule(tab=_WHICH)
    def give_up(self, tab: int) -> None:
        """A tab is not brought back: its session is parked, a turn that was submitted fails with RECOVERY_FAILED."""
        found = self._tab(tab)
        if found is None or found.state is TabState.READY:
            return
        turn = self._log.live.sessions[found.session].open_turn if found.session else ""
        pending = self._pending_on(found)
        refused = recovery_rules.failed(found, Attempts(), self._now)
        after = self._change(lambda changes: endings.give_up(changes, found, refused, _served))
        assert (after.session, after.lease) == ("", "")
        assert pending is None or pending in self._log.live.turns
        if turn and pending is None:
            ended = self._runner.run(self._log.get_turn(turn))
            assert ended is not None
            assert ended.error is not None
            assert (ended.state, ended.error.reason) == (TurnState.FAILED, "RECOVERY_FAILED")

    @rule(tab=_WHICH, cause=st.sampled_from([CloseCause.CLIENT, CloseCause.OUTSIDE]))
    def close(self, tab: int, cause: CloseCause) -> None:
        """A client closes the tab by force: its turn fails at once with TAB_CLOSED (O-38)."""
        found = self._tab(tab)
        if found is None:
            return
        turn = self._log.live.sessions[found.session].open_turn if found.session else ""
        self._change(lambda changes: endings.close(changes, found, cause, ChangeCause.CLIENT, _served))
        if turn:
            ended = self._runner.run(self._log.get_turn(turn))
            assert ended is not None
            assert ended.error is not None
            assert (ended.state, ended.error.reason) == (TurnState.FAILED, "TAB_CLOSED")

    def _pending_on(self, tab: Tab) -> str | None:
        """The turn on this tab that was not submitted: it goes on in another."""
        turn = self._log.live.turns.get(self._log.live.sessions[tab.session].open_turn) if tab.session else None
        return turn.name if turn and turn.state is TurnState.PENDING else None

    @rule()
    def restart(self) -> None:
        """The server ends and starts again: all is as it was (O-143)."""
        before = self._log.live
        self._close()
        self._log = self._opened()
        assert self._log.live == before

    # What holds whatever happens

    @invariant()
    def final_turns_stay(self) -> None:
        """A turn that has ended is never changed, and no longer open (FIN-09, O-143)."""
        for name in {session.last_turn for session in self._log.live.sessions.values()} - {""}:
            turn = self._runner.run(self._log.get_turn(name))
            assert turn is not None
            if turn.ended:
                self._final.setdefault(name, turn)
        for name, turn in self._final.items():
            assert self._runner.run(self._log.get_turn(name)) == turn
            assert name not in self._log.live.turns
            assert (turn.prompt, turn.stalled, turn.end_time is None) == ("", False, False)
            assert (turn.error is not None) is (turn.state is TurnState.FAILED)

    @invariant()
    def one_open_turn(self) -> None:
        """A session has one open turn or none, and each knows the other; open ones keep it from expiring (O-133)."""
        live = self._log.live
        open_turns = {session.name: session.open_turn for session in live.sessions.values() if session.open_turn}
        assert {session_of(name): name for name in live.turns} == open_turns
        assert len(live.turns) == len(open_turns)
        for session in live.sessions.values():
            assert (session.expire_time is None) is (bool(session.open_turn) or not session.last_turn)

    @invariant()
    def both_sides_know(self) -> None:
        """Session and tab name each other or nobody; a session's tab has a page, or is brought back (O-134, O-112)."""
        live = self._log.live
        bound = {(session.name, session.tab) for session in live.sessions.values() if session.tab}
        assert {(tab.session, tab.name) for tab in live.tabs.values() if tab.session} == bound
        for session, tab in bound:
            ready = live.tabs[tab].state is TabState.READY
            assert live.sessions[session].state is (SessionState.ACTIVE if ready else SessionState.RECOVERING)
            assert ready or live.sessions[session].conversation_uri

    @invariant()
    def lease_while_open(self) -> None:
        """The service holds a tab only for the open turn of its session, and every submitted turn's tab (O-15)."""
        live = self._log.live
        for lease in live.leases.values():
            session = live.sessions[lease.session]
            assert (session.tab, bool(session.open_turn), live.tabs[lease.tab].lease) == (lease.tab, True, lease.name)
        assert {tab.lease for tab in live.tabs.values() if tab.lease} == set(live.leases)
        for turn in live.turns.values():
            if turn.state is not TurnState.PENDING:
                held = live.lease_on(live.sessions[session_of(turn.name)].tab)
                assert held is not None

    @invariant()
    def prompt_is_forgotten(self) -> None:
        """The prompt's text is kept until the press, and pressed at most once (O-132, SUB-02)."""
        assert all(bool(turn.prompt) is (turn.state is TurnState.PENDING) for turn in self._log.live.turns.values())
        assert len(self._pressed) == len(set(self._pressed))

    @invariant()
    def revisions(self) -> None:
        """Revisions grow by one, without a gap."""
        head = self._log.progress.revision
        entries = self._runner.run(self._log.entries(0, count=10_000, size_bytes=10_000_000)) if head else []
        assert [entry.revision for entry in entries] == list(range(1, head + 1))

    def _states_in_events(self) -> None:
        """As told in events, a turn enters SUBMITTING at most once, never goes back, and ends once."""
        states: dict[str, list[int]] = {}
        head = self._log.progress.revision
        for entry in self._runner.run(self._log.entries(0, count=10_000, size_bytes=10_000_000)) if head else []:
            message = EventMessage.FromString(entry.body)
            if message.WhichOneof("resource") == "turn":
                told = states.setdefault(message.turn.name, [])
                if not told or told[-1] != message.turn.state:
                    told.append(message.turn.state)
        for told in states.values():
            assert told == sorted(told)
            assert told.count(TurnState.SUBMITTING) <= 1
            assert len([state for state in told if state >= TurnState.SUCCEEDED]) <= 1


def _served(changes: Changes, tab: Tab, refused: Refused, cause: ChangeCause) -> None:
    records.lose_tab(changes, tab, refused, cause, lambda _turn: "so far")


TestConversations = pytest.mark.timeout(120)(Conversations.TestCase)  # it writes to a disk that others use too
TestConversations.settings = settings(
    max_examples=30,
    stateful_step_count=30,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes longer than a test may
    suppress_health_check=[HealthCheck.too_slow],
)
