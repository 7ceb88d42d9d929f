"""A turn of 90 minutes, by a clock that the test moves: no job and no rule ends it or takes its tab."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.lease import LeaseEnd
from tabmuxd.resources.session import TurnState
from tabmuxd.tabs import keeping
from tabmuxd.webai import completion, records
from tabmuxd.webai.completion import Complete, Observation, Running
from tabmuxd.webai.samples import OwnTurn
from tabmuxd.webai.service import _insert_turn

from tests.domain.below import below
from tests.domain.test_turn_records import _ORDER
from tests.domain.values import LEASE, OWNER, SESSION, TAB, TERMS, chat_session, playground, ready_tab, sample

_TURN: Final = f"{SESSION}/turns/0123456789"
_MINUTES: Final = 90
_ASKED: Final = timedelta(hours=2)


def _begin(changes: Changes) -> None:
    """A turn that runs in a tab, in a session that is retired an hour after its last one."""
    changes.record(replace(chat_session(), ttl=timedelta(hours=1)))
    _insert_turn(changes, OWNER, _ORDER, _TURN, _ASKED, terms=TERMS)
    changes.record(records.bind(changes, _TURN, replace(ready_tab(), shared_with=()), LEASE))
    tab = changes.tab(TAB)
    assert tab is not None
    records.submit(changes, _TURN, tab, ())
    records.run(changes, _TURN)


async def test_jobs(tmp_path: Path) -> None:
    """Each minute all jobs look at it: lease, tab and session last until the turn's own time (FIN-24, SES-12)."""
    async with below(tmp_path) as parts:
        log, tabs, sessions = parts.log, parts.tabs, parts.web_ai.sessions
        await log.change(_begin)
        before = (log.live.turns[_TURN], log.live.sessions[SESSION], log.live.leases[LEASE], log.live.tabs[TAB])
        for _minute in range(_MINUTES):
            parts.clock.now += timedelta(minutes=1)
            await tabs.leases.expire()
            await tabs.clearing.tidy()
            await sessions.expire()
            await log.compact()

        turn, tab, lease = log.live.turns[_TURN], log.live.tabs[TAB], log.live.leases[LEASE]
        assert (turn, log.live.sessions[SESSION], lease, tab) == before
        assert (turn.state, lease.end_cause) == (TurnState.RUNNING, LeaseEnd.NONE)
        assert lease.expire_time > turn.expire_time
        (standing,) = keeping.standings(
            [tab], [lease], frozenset(), BrowserLimits(), parts.clock.now, log.live.sessions.get
        )
        assert not keeping.may_go(standing)
        assert not keeping.is_idle(standing, BrowserLimits(), parts.clock.now)


def test_rule() -> None:
    """An answer that is written for 90 minutes, with pauses of 9, is followed to its mark (FIN-24, FIN-01)."""
    descriptor, now = playground(), 0.0
    seen = Observation(quiet_since=now)
    for minute in range(0, _MINUTES, 9):
        now = 60.0 * minute
        own = OwnTurn(f"{'word ' * minute}", done=False, answered=True)
        shown = replace(sample(), stop=True, frames=minute)
        seen = completion.observe(seen, shown, own, descriptor, now)
        assert isinstance(completion.judge(seen, shown, descriptor, now + 539.0), Running)
    whole = OwnTurn("word " * _MINUTES, done=True, answered=True)
    shown = replace(sample(), frames=_MINUTES)
    for moment in (0.0, 1.0):
        seen = completion.observe(seen, shown, whole, descriptor, 60.0 * _MINUTES + moment)

    assert isinstance(completion.judge(seen, shown, descriptor, 60.0 * _MINUTES + 2.0), Complete)
