"""Sequences of everything that opens, keeps and closes tabs, decided by the rules that the service decides by."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import settings, strategies
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.orders import TabOrder, TabsOrder
from tabmuxd.resources.principal import Principal, Scope
from tabmuxd.resources.session import Session
from tabmuxd.resources.tab import CloseCause, SkipReason, Tab, TabOrigin, TabState
from tabmuxd.tabs import keeping, lease_rules, rules
from tabmuxd.tabs.keeping import Standing
from tabmuxd.tabs.lease_rules import Claim

from tests.domain.values import ADMIN, NOW

PROGRAMS = [Principal(f"local/{name}", frozenset({Scope.DRIVE, Scope.READ})) for name in "abc"]
LIMITS = BrowserLimits(max_tab_count=4, max_pooled_tab_count=2, max_group_pooled_tab_count=1)
MINUTES = strategies.integers(0, 40)
program = strategies.sampled_from(PROGRAMS)
caller = strategies.sampled_from([*PROGRAMS, ADMIN])
group = strategies.sampled_from(["", "g", "h"])
place = strategies.integers(0, 7)


class Browser(RuleBasedStateMachine):
    """One browser's tabs; `kept` is what must be there, `popups` how many pages opened beyond the limit."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.tabs: dict[str, Tab] = {}
        self.leases: dict[str, Lease] = {}
        self.at_work: set[str] = set()
        self.number = 0
        self.over = 0

    # What happens

    @rule(by=program, group=group, pinned=strategies.booleans(), pool=strategies.booleans())
    def open(self, by: Principal, group: str, *, pinned: bool, pool: bool) -> None:
        """CreateTab: a pooled tab, or a new one once there is room."""
        order = TabOrder(group=group, pinned=pinned, from_pool=pool and bool(group))
        taken = keeping.from_pool(self.standings(), order) if order.from_pool else None
        if taken is not None:
            self.put(replace(taken, pooled=False, owner=by.name, pinned=pinned, last_active_time=self.now))
            return
        if rules.has_room(self.tabs.values(), "browsers/main", LIMITS) is not None:
            in_the_way = keeping.make_room(self.standings(), by.name, LIMITS, self.now)
            if in_the_way is None:
                return
            self.close(in_the_way, by=by, cause=CloseCause.CAPACITY)
        if rules.has_room(self.tabs.values(), "browsers/main", LIMITS) is None:
            self.add(owner=by.name, group=group, pinned=pinned)

    @rule(at=place)
    def open_popup(self, at: int) -> None:
        """A page opens another: counted and kept, whatever the limit."""
        if (opener := self.at(at)) is not None and opener.origin is not TabOrigin.ADOPTED and not opener.pooled:
            self.add(
                owner=opener.owner, group=opener.group, origin=TabOrigin.POPUP, opener=opener.name, lease=opener.lease
            )

    @rule()
    def adopt(self) -> None:
        """A person's page is adopted."""
        if sum(tab.origin is TabOrigin.ADOPTED for tab in self.tabs.values()) < 2:
            self.add(owner=ADMIN.name, origin=TabOrigin.ADOPTED)

    @rule(at=place, ttl=MINUTES, session=strategies.booleans())
    def hold(self, at: int, ttl: int, *, session: bool) -> None:
        """A client, or a turn, takes a lease."""
        tab = self.at(at)
        if tab is None or tab.pooled or tab.lease:
            return
        self.number += 1
        name = f"leases/{self.number}"
        expire = self.now + timedelta(minutes=ttl)
        served = "sessions/s" if session else ""
        self.leases[name] = Lease(name, tab.name, LeaseTerms(), expire, self.number, self.now, session=served)
        self.put(replace(tab, lease=name, session=served or tab.session))

    @rule(at=place)
    def free(self, at: int) -> None:
        """A lease ends."""
        tab = self.at(at)
        if tab is not None and tab.lease:
            self.leases.pop(tab.lease, None)
            for held in [each for each in self.tabs.values() if each.lease == tab.lease]:
                self.put(replace(held, lease="", last_active_time=self.now))

    @rule(at=place, state=strategies.sampled_from([TabState.READY, TabState.CRASHED, TabState.LOST]))
    def change(self, at: int, state: TabState) -> None:
        """A page crashes, is lost, or comes back where there is room for it."""
        tab = self.at(at)
        if tab is None or tab.state is state:
            return
        is_back = state is not TabState.LOST and tab.state is TabState.LOST and tab.origin is not TabOrigin.ADOPTED
        if is_back and rules.has_room(self.tabs.values(), "browsers/main", LIMITS) is not None:
            return
        self.put(replace(tab, state=state, update_time=self.now, front=False))

    @rule(at=place)
    def work(self, at: int) -> None:
        """A call begins on a tab, or ends."""
        if (tab := self.at(at)) is not None and not tab.pooled:
            self.at_work ^= {tab.name}

    @rule(at=place, pinned=strategies.booleans())
    def pin(self, at: int, *, pinned: bool) -> None:
        """A tab is pinned or not."""
        if (tab := self.at(at)) is not None and not tab.pooled:
            self.put(replace(tab, pinned=pinned))

    @rule(minutes=MINUTES)
    def wait(self, minutes: int) -> None:
        """Time passes."""
        self.now += timedelta(minutes=minutes)

    @rule()
    def tidy(self) -> None:
        """The job closes what is idle, overdue or too much in the pool."""
        for name in [standing.tab.name for standing in self.standings()]:
            standing = next(each for each in self.standings() if each.tab.name == name)
            if keeping.is_idle(standing, LIMITS, self.now) or keeping.is_overdue(standing, self.now):
                self.close(standing.tab, by=None, cause=CloseCause.IDLE)
        for tab, cause in keeping.pool_excess(self.standings(), LIMITS, self.now):
            self.close(tab, by=None, cause=cause)

    @rule(at=place, by=caller, pool=strategies.booleans())
    def close_one(self, at: int, by: Principal, *, pool: bool) -> None:
        """CloseTab without force and without a lease."""
        tab = self.at(at)
        if tab is None or rules.may_drive(by, tab) is not None or tab.name in self.at_work:
            return
        lease = lease_rules.holding(self.leases.get(tab.lease), self.now)
        if rules.may_close(tab, lease, Claim(by), self.now, force=False) is not None:
            return
        if pool and keeping.may_be_pooled(tab, self.tabs.values(), LIMITS):
            self.put(keeping.pooled(tab, self.now))
        else:
            self.close(tab, by=by, cause=CloseCause.CLIENT)

    @rule(by=caller, group=group, any_owner=strategies.booleans(), idle=MINUTES)
    def close_many(self, by: Principal, group: str, idle: int, *, any_owner: bool) -> None:
        """CloseTabs by group and idle time."""
        order = TabsOrder(group=group, any_owner=any_owner and by.admin, idle_duration=timedelta(minutes=idle))
        for standing in self.standings():
            if not keeping.is_chosen(standing.tab, order, by, self.now):
                continue
            if keeping.skip_reason(standing, in_front=False) is SkipReason.NONE:
                self.close(standing.tab, by=by, cause=CloseCause.CLIENT)

    # What must hold

    def close(self, tab: Tab, *, by: Principal | None, cause: CloseCause) -> None:
        """A tab closes: never one that is pinned, held or at work, and never an adopted one by the service itself."""
        lease = self.leases.get(tab.lease)
        held = lease is not None and (bool(lease.session) or lease.expire_time > self.now)
        gone_already = tab.state in (TabState.LOST, TabState.CRASHED)
        assert not tab.pinned
        assert tab.name not in self.at_work or (cause is CloseCause.IDLE and gone_already)
        assert not held or (cause is CloseCause.IDLE and gone_already)
        assert tab.origin is not TabOrigin.ADOPTED or cause is CloseCause.CLIENT or gone_already
        if cause is CloseCause.CAPACITY and by is not None and tab.owner not in ("", by.name):
            assert self.now - tab.last_active_time > timedelta(minutes=30)
        del self.tabs[tab.name]
        self.at_work.discard(tab.name)
        if lease is not None and lease.tab == tab.name:
            self.leases.pop(tab.lease, None)
            for popup in [each for each in self.tabs.values() if each.lease == tab.lease]:
                self.put(replace(popup, lease=""))

    @invariant()
    def limit_holds(self) -> None:
        """The count never exceeds the limit but by popups."""
        counted = [tab for tab in self.tabs.values() if keeping.counts_to_limit(tab)]
        popups = sum(tab.origin is TabOrigin.POPUP for tab in counted)
        assert len(counted) - popups <= LIMITS.max_tab_count

    @invariant()
    def pool_holds(self) -> None:
        """The pool never exceeds its limits, and what is in it is nobody's."""
        pooled = [tab for tab in self.tabs.values() if tab.pooled]
        assert len(pooled) <= LIMITS.max_pooled_tab_count
        assert all(sum(tab.group == each.group for tab in pooled) == 1 for each in pooled)
        assert all((tab.owner, tab.lease, tab.session, tab.pinned) == ("", "", "", False) for tab in pooled)

    # Means

    def standings(self) -> list[Standing]:
        """The tabs as they stand."""
        return keeping.standings(
            list(self.tabs.values()),
            self.leases.values(),
            frozenset(self.at_work),
            LIMITS,
            self.now,
            dict[str, Session]().get,
        )

    def at(self, number: int) -> Tab | None:
        """One of the tabs, if there are so many."""
        return dict(enumerate(self.tabs.values())).get(number)

    def add(self, **fields: Any) -> None:  # noqa: ANN401 - fields of a tab, by name
        """A new tab."""
        self.number += 1
        name = f"browsers/main/tabs/{self.number:010d}"
        common: dict[str, Any] = {"origin": TabOrigin.MANAGED, "update_time": self.now, **fields}
        self.put(Tab(name, TabState.READY, create_time=self.now, last_active_time=self.now, **common))

    def put(self, tab: Tab) -> None:
        """A tab as it is now."""
        self.tabs[tab.name] = tab


TestBrowser = Browser.TestCase
TestBrowser.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestBrowser.__doc__ = (
    """No sequence closes a tab that is pinned, leased, busy or adopted, nor exceeds a limit (O-42 to O-51)."""
)
