"""Leases of several programs in any order, over a real log with a fake clock that is opened anew now and then."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tabmux.v1.event_pb2 import Event as EventMessage
from tabmux.v1.event_pb2 import EventKind
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserState, Ownership
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import endings, lease_records
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lease_rules import Right
from tabmuxd.tabs.leases import Leases
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.rights import Rights
from tabmuxd.tasks import Tasks

from tests.domain.values import ADMIN, NOW, OWNER, told

T = TypeVar("T")

SECOND = Principal("local/b", OWNER.scopes)
CALLERS = (OWNER, SECOND, ADMIN)
CALLER = st.sampled_from(CALLERS)
PLACE = st.integers(0, 5)
TTL = st.sampled_from([5, 30, 600])
NAMES = st.integers(0, 7)
MOST_TABS = 4


@dataclass
class Held:
    """What a lease must be like: whose, on which tab, until when, and why it ended, if it did."""

    owner: str
    tab: str
    ttl: timedelta
    expire_time: datetime
    token: int
    end: str = ""

    def holds(self, now: datetime) -> bool:
        return not self.end and now < self.expire_time

    def cause(self) -> str:
        return self.end or "expired"


@dataclass
class Call:
    """A call that has begun and not recorded its result yet."""

    right: Right
    lease: str
    number: int = field(default_factory=count().__next__)


class Programs(RuleBasedStateMachine):
    """`held` has every lease that was ever granted; `calls` those that are at work."""

    def __init__(self) -> None:
        super().__init__()
        self._directory = Path(tempfile.mkdtemp(prefix="tm"))
        self._runner = asyncio.Runner()
        self._ids = count(1)
        self.now = NOW
        self.held: dict[str, Held] = {}
        self.calls: list[Call] = []
        self.owed: set[str] = set()
        self._open()

    def _open(self) -> None:
        async def opened() -> Log:
            return await Log(self._directory / "t.sqlite3", clock=lambda: self.now).__aenter__()

        self._log = self.run(opened())
        self._rights = Rights(self._log, lambda: self.now)
        self._leases = Leases(Hosts([]), self._log, Tasks(), Lines(), random=self._random, clock=lambda: self.now)

    def _random(self, size: int) -> bytes:
        number = next(self._ids)
        return bytes(number >> 5 * place & 31 for place in range(size))  # ids are of five bits a byte

    def run(self, work: Coroutine[object, object, T]) -> T:
        return self._runner.run(work)

    def teardown(self) -> None:
        self._ends_once()
        self.run(self._log.__aexit__(None, None, None))
        self._runner.close()
        shutil.rmtree(self._directory)

    @initialize()
    def begin(self) -> None:
        """A browser and two tabs of `local/a`, both shared with `local/b`."""

        def decide(changes: Changes) -> None:
            changes.record(Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED))
            self._tab(changes)
            self._tab(changes)

        self.run(self._log.change(decide))

    def _tab(self, changes: Changes, **fields: object) -> Tab:
        name = f"browsers/main/tabs/{next(self._ids):010d}"
        tab = Tab(name, TabState.READY, TabOrigin.MANAGED, OWNER.name, self.now, self.now, shared_with=(SECOND.name,))
        return changes.record(replace(tab, **fields))  # type: ignore[arg-type]

    def tab(self, at: int) -> Tab:
        tabs = list(self._log.live.tabs.values())
        return tabs[at % len(tabs)]

    def lease(self, which: int) -> str:
        names = ["leases/never", *self.held]
        return names[-1 - which % len(names)]

    def owner(self, lease: str) -> Principal:
        """Who holds or held the lease; anybody, where there was none of this name."""
        held = self.held.get(lease)
        return next(caller for caller in CALLERS if held is None or caller.name == held.owner)

    def holder(self, tab: Tab) -> str:
        """Name of the lease that must hold the tab now; empty if it is free."""
        return next(
            (
                name
                for name, held in self.held.items()
                if held.holds(self.now) and (held.tab == tab.name or (tab.lease == name and tab.opener))
            ),
            "",
        )

    # What programs do

    @rule(by=CALLER, at=PLACE, ttl=TTL, close=st.booleans(), key=st.sampled_from(["", "x"]))
    def acquire(self, by: Principal, at: int, ttl: int, key: str, *, close: bool) -> None:
        """A grant where the tab is free, the same lease for the same request, or LEASE_HELD."""
        tab = self.tab(at)
        terms = LeaseTerms(timedelta(seconds=ttl), close_on_expiry=close)
        known = {
            lease.name: lease
            for lease in self._log.live.leases.values()
            if key and (lease.owner, lease.request_id) == (by.name, key) and self.held[lease.name].holds(self.now)
        }
        same = [name for name, lease in known.items() if (lease.tab, lease.terms) == (tab.name, terms)]
        holder = self.holder(tab)
        expected = "REQUEST_ID_REUSED" if known and not same else "LEASE_HELD" if holder and not same else None
        try:
            lease = self.run(self._leases.acquire(by, LeaseOrder(tab.name, terms, key)))
        except Refused as refused:
            assert refused.reason == expected  # noqa: PT017
            self._settle()  # what is over on the tab is ended before the request is judged
            return
        assert expected is None
        if same:
            assert lease == self._log.live.leases[same[0]]
            self._settle()
            return
        assert lease.fencing_token > max((each.token for each in self.held.values() if each.tab == tab.name), default=0)
        self.held[lease.name] = Held(by.name, tab.name, terms.ttl, self.now + terms.ttl, lease.fencing_token)
        self._settle()
        self.owed.discard(tab.name)

    @rule(which=NAMES)
    def repeat(self, which: int) -> None:
        """The same request again gets the lease that it brought, or a new one where that has ended."""
        keyed = [lease for lease in self._log.live.leases.values() if lease.request_id]
        lease = keyed[which % len(keyed)] if keyed else None
        if lease is not None:
            by = self.owner(lease.name)
            at = list(self._log.live.tabs).index(lease.tab)
            ttl, close = int(lease.terms.ttl.total_seconds()), lease.terms.close_on_expiry
            self.acquire(by, at, ttl, lease.request_id, close=close)

    @rule(by=st.none() | CALLER, which=NAMES)
    def renew(self, by: Principal | None, which: int) -> None:
        """The holder gets its time once more, with no event."""
        name = self.lease(which)
        by = by or self.owner(name)
        held = self.held.get(name)
        expected = "LEASE_NOT_FOUND" if held is None else "NOT_OWNER" if held.owner != by.name else None
        if held is not None and expected is None and not held.holds(self.now):
            expected = f"LEASE_LOST:{held.cause()}"
        head = self._log.progress.revision
        try:
            lease = self.run(self._leases.renew(by, name))
        except Refused as refused:
            assert told(refused) == expected  # noqa: PT017
        else:
            assert expected is None
            assert held is not None
            held.expire_time = self.now + held.ttl
            assert lease.expire_time == held.expire_time
        assert self._log.progress.revision == head

    @rule(by=st.none() | CALLER, which=NAMES)
    def release(self, by: Principal | None, which: int) -> None:
        """The holder and `admin` end it; what has ended stays as it is."""
        name = self.lease(which)
        by = by or self.owner(name)
        held = self.held.get(name)
        allowed = held is not None and (by.admin or held.owner == by.name)
        expected = "LEASE_NOT_FOUND" if held is None else None if allowed else "NOT_OWNER"
        try:
            lease = self.run(self._leases.release(by, name))
        except Refused as refused:
            assert refused.reason == expected  # noqa: PT017
            return
        assert expected is None
        assert held is not None
        assert lease.ended
        if held.holds(self.now):
            held.end = "released"
        elif not held.end:
            self._expired(name, held, lease)

    @rule(at=PLACE)
    def begin_rightly(self, at: int) -> None:
        """A call begins under the lease that holds the tab, or without one where it is free."""
        tab = self.tab(at)
        named = self.holder(tab)
        right = self.run(self._rights.judged(self.owner(named), tab.name, named))
        self.calls.append(Call(right, named))

    @rule(by=CALLER, at=PLACE, which=st.none() | NAMES)
    def begin_call(self, by: Principal, at: int, which: int | None) -> None:
        """A call begins under the lease it names, or is refused for what is wrong with that."""
        tab = self.tab(at)
        named = "" if which is None else self.lease(which)
        try:
            right = self.run(self._rights.judged(by, tab.name, named))
        except Refused as refused:
            assert told(refused) == self._wrong(by, tab, named)  # noqa: PT017
        else:
            assert self._wrong(by, tab, named) is None
            self.calls.append(Call(right, named))

    def _wrong(self, by: Principal, tab: Tab, named: str) -> str | None:
        held, holder = self.held.get(named), self.holder(tab)
        if held is not None and held.owner != by.name:
            return "NOT_OWNER"
        if held is not None and not held.holds(self.now):
            return f"LEASE_LOST:{held.cause()}"
        if not holder:
            return "LEASE_NOT_FOUND" if named and held is None else "INVALID_FIELD" if named else None
        return "LEASE_REQUIRED" if not named else None if named == holder else "LEASE_HELD"

    @rule(which=NAMES)
    def end_call(self, which: int) -> None:
        """A call records its result only under what it began under: else nothing of it is there (O-14)."""
        if not self.calls:
            return
        call = self.calls.pop(which % len(self.calls))
        head = self._log.progress.revision
        tab = self._log.live.tab(call.right.tab.name)

        def record(changes: Changes) -> None:
            lease_records.fence(changes, call.right, "yes")
            now = changes.tab(call.right.tab.name)
            if now is not None and not now.ended:
                changes.record(replace(now, title=f"by call {call.number}"))

        holder = self.holder(tab) if tab else ""
        try:
            self.run(self._log.change(record))
        except Refused as refused:
            assert call.lease != holder
            expected = f"LEASE_LOST:{self.held[call.lease].cause()}" if call.lease else "LEASE_HELD"
            assert (told(refused), refused.metadata["page_touched"]) == (expected, "yes")  # noqa: PT017
            assert (self._log.progress.revision, self._log.live.tab(call.right.tab.name)) == (head, tab)
        else:
            assert call.lease == holder

    # What happens besides

    @rule(seconds=st.sampled_from([0.000001, 1, 4, 30]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.now += timedelta(seconds=seconds)

    @rule(which=NAMES, before=st.booleans())
    def wait_for_end(self, which: int, *, before: bool) -> None:
        """Time passes until a lease is over, or nearly."""
        held = self.held.get(self.lease(which))
        if held is not None and held.holds(self.now):
            self.now = max(self.now, held.expire_time - timedelta(microseconds=before))

    @rule()
    def expire(self) -> None:
        """The job ends what is over, and nothing else (O-12, O-13)."""
        self.run(self._leases.expire())
        self._settle()

    def _settle(self) -> None:
        """Take over what the job must have ended."""
        for name, held in self.held.items():
            if not held.end and not held.holds(self.now):
                lease = self.run(self._log.get_lease(name))
                assert lease is not None
                if lease.ended:
                    self._expired(name, held, lease)

    def _expired(self, name: str, held: Held, lease: Lease) -> None:
        held.end = "expired"
        assert (lease.name, lease.end_time) == (name, self.now)
        tab = self._log.live.tab(held.tab)
        if lease.terms.close_on_expiry and tab is not None and not tab.pinned:
            self.owed.add(held.tab)

    @rule(at=PLACE)
    def close_owed(self, at: int) -> None:
        """A tab is closed for its lease exactly where one expired that asked for it, and nobody keeps it (O-13)."""
        tab = self.tab(at)
        closes = tab.name in self.owed and not tab.pinned and not self.holder(tab)
        found = self.run(self._log.change(lambda changes: lease_records.owed_close(changes, tab.name)))
        assert (found is not None) is closes
        self.owed.discard(tab.name)
        if closes:
            self._close(tab, CloseCause.LEASE, ChangeCause.EXPIRY)

    @rule(at=PLACE)
    def close(self, at: int) -> None:
        """A tab is closed, and its lease ends with it, on its popups too (O-16)."""
        self._close(self.tab(at), CloseCause.CLIENT, ChangeCause.CLIENT)

    def _close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> None:
        def decide(changes: Changes) -> None:
            endings.close(changes, tab, cause, why, lambda *_: None)
            if not changes.tabs():
                self._tab(changes)

        self.run(self._log.change(decide))
        self.owed.discard(tab.name)
        for held in self.held.values():
            if held.tab == tab.name and not held.end:
                held.end = "closed"

    @rule(at=PLACE)
    def open_popup(self, at: int) -> None:
        """A page opens a window, which is under the lease of its opener (O-16)."""
        opener = self.tab(at)
        if len(self._log.live.tabs) >= MOST_TABS:
            return
        self.run(
            self._log.change(
                lambda changes: self._tab(changes, origin=TabOrigin.POPUP, opener=opener.name, lease=opener.lease)
            )
        )

    @rule(at=PLACE, pinned=st.booleans())
    def pin(self, at: int, *, pinned: bool) -> None:
        """A tab is pinned or not."""
        tab = self.tab(at)
        self.run(self._log.change(lambda changes: changes.record(replace(tab, pinned=pinned))))

    @rule()
    def restart(self) -> None:
        """Another server takes over: each lease that had not ended has its time once more (O-12)."""
        self.run(self._log.__aexit__(None, None, None))
        self.calls.clear()
        self._open()
        self.run(self._leases.prolong())
        for held in self.held.values():
            if not held.end:
                held.expire_time = self.now + held.ttl

    # What holds whatever happens

    @invariant()
    def as_expected(self) -> None:
        """What lives in the store is what must live, no longer and no shorter; one lease a tab (O-10, O-12)."""
        live = self._log.live
        assert {(lease.name, lease.owner, lease.tab, lease.expire_time) for lease in live.leases.values()} == {
            (name, held.owner, held.tab, held.expire_time) for name, held in self.held.items() if not held.end
        }
        tabs = [lease.tab for lease in live.leases.values()]
        assert len(tabs) == len(set(tabs))

    @invariant()
    def both_sides_know(self) -> None:
        """A tab names a live lease or none, and each lease is named by its tab (O-16)."""
        live = self._log.live
        assert {tab.lease for tab in live.tabs.values()} - {""} == set(live.leases)
        assert all(live.tabs[lease.tab].lease == lease.name for lease in live.leases.values())

    @invariant()
    def closes_are_owed(self) -> None:
        """What is owed stays owed until it is done or not wanted any more, over restarts too (O-13)."""
        tabs = self._log.live.tabs.values()
        assert {tab.name for tab in tabs if tab.close_owed is CloseCause.LEASE} == self.owed

    def _ends_once(self) -> None:
        """Each lease is told of once when it is granted and once when it ends, and never again (O-13, O-146)."""
        kinds: dict[str, list[int]] = {}
        head = self._log.progress.revision
        for entry in self.run(self._log.entries(0, count=10_000, size_bytes=10_000_000)) if head else []:
            event = EventMessage.FromString(entry.body)
            if event.HasField("lease"):
                kinds.setdefault(event.lease.name, []).append(event.kind)
        created, ended = EventKind.EVENT_KIND_CREATED, EventKind.EVENT_KIND_ENDED
        assert kinds == {name: [created, ended] if held.end else [created] for name, held in self.held.items()}


TestPrograms = pytest.mark.timeout(120)(Programs.TestCase)  # it writes to a disk that others use too
TestPrograms.settings = settings(
    max_examples=12,
    stateful_step_count=40,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes longer than a test may
    suppress_health_check=[HealthCheck.too_slow],
)
