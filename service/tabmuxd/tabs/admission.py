"""Who gets a tab: a repeat the one of the first request, a pooled one or a new one, once there is room for it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, assert_never

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, new_id, tab_name
from tabmuxd.resources.orders import OpenedTab, TabOrder
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import keeping, rules
from tabmuxd.tabs.addresses import check_address
from tabmuxd.tabs.clearing import Clearing
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.keeping import Standing
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.opening import Ready, open_target
from tabmuxd.tabs.pool import hand_over
from tabmuxd.tabs.room import Gate, Place, Room
from tabmuxd.tasks import Tasks

_CREATE_METHOD: Final = "CreateTab"
_REPEAT_WINDOW: Final = timedelta(hours=24)
_ASK_AGAIN: Final = 1.0


@dataclass(frozen=True, slots=True)
class _Known:
    """This request has made the tab before."""

    tab: Tab


@dataclass(frozen=True, slots=True)
class _New:
    """There is room, and the row of the new tab is there."""

    tab: Tab


@dataclass(frozen=True, slots=True)
class _Pooled:
    """A pooled tab is the caller's now, to be loaded afresh."""

    tab: Tab


@dataclass(frozen=True, slots=True)
class _InTheWay:
    """There will be room once this tab is closed."""

    tab: Tab


@dataclass(frozen=True, slots=True)
class _Full:
    """There is no room, and none can be made."""

    refused: Refused


_Decision = _Known | _New | _Pooled | _InTheWay | _Full
_Opening = asyncio.Task[OpenedTab | None]


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One caller that wants a tab; `failed` names tabs that could not be closed, or not be handed over, for it."""

    host: BrowserHost
    owner: str
    order: TabOrder
    uri: str
    ready: Ready
    place: Place
    gate: Gate | None = None
    failed: set[str] = field(default_factory=set[str])

    def step_aside(self) -> None:
        """There is no room for it: what it holds beside that is free for others."""
        if self.gate is not None:
            self.place.shut = self.place.reserved = False
            self.gate.step_aside()

    def enter(self) -> bool:
        """There may be room for it; whether it may go on."""
        self.place.shut = self.gate is not None and not self.gate.enter()
        return not self.place.shut

    def refused(self, no_room: Refused) -> Refused:
        """Why its time is over in vain."""
        return self.gate.refused if self.gate is not None and self.place.shut else no_room


class Admission:
    """Opens tabs, each in a task of its own, so that a caller who goes away does not leave one half open."""

    def __init__(  # noqa: PLR0917 - the parts it is built of
        self, hosts: Hosts, log: Log, tasks: Tasks, random: RandomBytes, lines: Lines, clearing: Clearing
    ) -> None:
        """Nothing opens yet."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._random = random
        self._lines = lines
        self._clearing = clearing
        self._rooms = {host.name: Room() for host in hosts}
        self._openings: dict[str, _Opening] = {}

    def __repr__(self) -> str:
        """How many tabs open now, and who waits for room."""
        return f"<Admission opening={len(self._openings)} {list(self._rooms.values())}>"

    async def admit(
        self, owner: str, order: TabOrder, ready: Ready, *, keep: bool, gate: Gate | None = None
    ) -> OpenedTab:
        """Open a tab for `owner`, or hand one over; `ready` runs in the transaction that makes it READY.

        Who is cancelled leaves the line for room. A tab that opens already opens to its end where `keep`, so that a
        repeat finds it; else it is closed again before this returns. A `gate` has been entered, and is so at the end.
        """
        uri = check_address(order.uri)
        host = self._hosts.named(order.browser)
        host.connected()
        room = self._rooms[host.name]
        failed: set[str] = set()
        while True:
            with room.place() as place:
                case = _Case(host, owner, order, uri, ready, place, gate, failed)
                begun = await self._begun(case, room, keep=keep)
            if isinstance(begun, OpenedTab):
                return begun
            opened = await self._settled(begun, keep=keep)
            if opened is not None:
                return opened

    async def _begun(self, case: _Case, room: Room, *, keep: bool) -> _Opening | OpenedTab:
        """The task that opens the tab, as soon as there is room for it.

        Raises TAB_CAPACITY when the time is over, and where `keep` at once if too many wait: those who wait for turns
        are as many as there are turns.
        """
        loop = asyncio.get_running_loop()
        wait = case.order.room_timeout
        deadline = None if wait is None else loop.time() + wait.total_seconds()
        while True:
            revision = self._log.progress.revision
            case.place.ask_again = loop.time() + _ASK_AGAIN
            attempt = self._tasks.spawn(self._attempt(case), "admit", awaited=True)
            step = await self._settled_attempt(attempt, keep=keep)
            match step:
                case _InTheWay(tab):
                    await self._clear(case, tab)
                case _Full(refused):
                    left = None if deadline is None else deadline - loop.time()
                    if keep and room.is_full and not case.place.waiting:
                        raise refused
                    case.step_aside()
                    may = partial(self._may_go, case)
                    if not await room.chance(case.place, self._log, revision, may, timeout=left):
                        raise case.refused(refused)
                case None:
                    pass
                case _:
                    return step

    async def _settled_attempt(
        self, attempt: asyncio.Task[_InTheWay | _Full | _Opening | OpenedTab | None], *, keep: bool
    ) -> _InTheWay | _Full | _Opening | OpenedTab | None:
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if not keep and not attempt.cancelled():
                begun = await attempt
                if isinstance(begun, asyncio.Task):
                    await _given_up(begun)
            raise

    async def _settled(self, opening: _Opening, *, keep: bool) -> OpenedTab | None:
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if not keep:
                await _given_up(opening)
            raise

    async def _attempt(self, case: _Case) -> _InTheWay | _Full | _Opening | OpenedTab | None:
        """Decide once and begin what follows; None where something was in the way that is gone now."""
        name = tab_name(case.host.name, new_id(self._random))
        marker = hashlib.sha256(self._random(32)).hexdigest()[:32]
        decide = partial(self._decide, case=case, name=name, marker=marker, at_work=self._lines.at_work)
        async with self._rooms[case.host.name].asking:
            if case.place.left:
                return None  # nobody is there any more to get a tab
            decision: _Decision = await self._log.change(decide)
        host, order = case.host, case.order
        match decision:
            case _New(tab):
                return self._begin(open_target(host, self._log, tab, order, uri=case.uri, ready=case.ready), tab.name)
            case _Pooled(tab):
                return self._begin(self._hand_over(case, tab), tab.name)
            case _Known(tab):
                # Of two calls at once the one whose row it is was told first, so its task is there.
                running = self._openings.get(tab.name)
                if running is not None or tab.state is not TabState.OPENING:
                    return running or OpenedTab(tab, None, repeated=True)
                # The rest of a call that died with its server: it ends, by proof, before this one begins anew.
                await host.close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)
                return None
            case _InTheWay() | _Full():
                return decision
        assert_never(decision)

    def _begin(self, opening: Coroutine[object, object, OpenedTab | None], tab: str) -> _Opening:
        task = self._tasks.spawn(opening, f"open {tab}", awaited=True)
        self._openings[tab] = task
        task.add_done_callback(lambda _task: self._openings.pop(tab, None))
        return task

    async def _hand_over(self, case: _Case, tab: Tab) -> OpenedTab | None:
        async with self._lines.turn(tab.name):
            return await hand_over(case.host, self._log, tab, case.order, uri=case.uri, ready=case.ready)

    async def _clear(self, case: _Case, tab: Tab) -> None:
        """Close what is in the way; what cannot be closed for this caller now is not tried again."""
        limits = case.host.options.limits
        case.place.reserved = True
        if not await self._clearing.close_if(
            tab,
            CloseCause.CAPACITY,
            lambda standing, now: keeping.may_be_reclaimed(standing, case.owner, limits, now),
        ):
            case.place.reserved = False
            case.failed.add(tab.name)

    def _may_go(self, case: _Case) -> bool:
        """Whether an attempt may succeed, and the gate is open; while one is missing, others may have the other."""
        if self._may(case):
            return case.enter()
        case.step_aside()
        return False

    def _may(self, case: _Case) -> bool:
        """Whether an attempt may succeed, by what is published: so that those who wait do not keep the store busy."""
        if case.order.request_id and asyncio.get_running_loop().time() >= case.place.ask_again:
            return True  # the tab may be there, by another call of this request
        standings, now = self._clearing.now(case.host)
        limits = case.host.options.limits
        free = keeping.free_count((standing.tab for standing in standings), limits)
        able = [standing for standing in standings if standing.tab.name not in case.failed]
        return (
            (free > 0 and free > self._rooms[case.host.name].taken(case.place))
            or (case.order.from_pool and keeping.from_pool(able, case.order) is not None)
            or keeping.make_room(able, case.owner, limits, now) is not None
        )

    # Decisions: on the store's thread

    def _decide(self, changes: Changes, *, case: _Case, name: str, marker: str, at_work: frozenset[str]) -> _Decision:
        owner, order, host = case.owner, case.order, case.host
        if order.request_id and (known := self._repeat(changes, owner, order)):
            return _Known(known)
        limits = host.options.limits
        tabs = changes.tabs(host.name)
        if case.place.left:
            return _Full(rules.no_room(tabs, host.name, limits))  # nobody is there any more to get it
        standings = [
            standing
            for standing in keeping.standings(tabs, changes.leases(), at_work, limits, changes.now, changes.session)
            if standing.tab.name not in case.failed
        ]
        if order.from_pool and (pooled := keeping.from_pool(standings, order)):
            return _Pooled(self._recorded(changes, case, _taken(pooled, owner, order)))
        free = keeping.free_count(tabs, limits)
        if free > 0 and free > self._rooms[host.name].taken(case.place):
            tab = Tab(
                name=name,
                state=TabState.OPENING,
                origin=TabOrigin.MANAGED,
                owner=owner,
                create_time=changes.now,
                last_active_time=changes.now,
                group=order.group,
                pinned=order.pinned,
                labels=dict(order.labels),
                dialog_policy=order.dialog_policy,
                marker=marker,
            )
            return _New(self._recorded(changes, case, tab))
        return self._without_room(standings, case, changes)

    def _without_room(self, standings: list[Standing], case: _Case, changes: Changes) -> _Decision:
        limits = case.host.options.limits
        in_the_way = keeping.make_room(standings, case.owner, limits, changes.now)
        if in_the_way is not None:
            return _InTheWay(in_the_way)
        return _Full(rules.no_room(changes.tabs(case.host.name), case.host.name, limits))

    def _recorded(self, changes: Changes, case: _Case, tab: Tab) -> Tab:
        recorded = changes.record(tab, ChangeCause.CLIENT)
        order = case.order
        if order.request_id:
            changes.remember_request(
                case.owner,
                _CREATE_METHOD,
                order.request_id,
                order.payload_sha256,
                tab.name,
                changes.now + _REPEAT_WINDOW,
            )
        return recorded

    def _repeat(self, changes: Changes, owner: str, order: TabOrder) -> Tab | None:
        """The tab that this request made before; None for a first request, or one that left no tab.

        Raises REQUEST_ID_REUSED, and TAB_CLOSED if the tab was given back: it is another's now, or nobody's.
        """
        known = changes.request(owner, _CREATE_METHOD, order.request_id)
        if known is None:
            return None
        if known.payload_sha256 != order.payload_sha256:
            raise refuse(
                Reason.REQUEST_ID_REUSED,
                f"The request id {order.request_id} was used for another CreateTab; nothing was done.",
                request_id=order.request_id,
                resource=known.resource,
            )
        tab = changes.tab(known.resource)
        if tab is not None and (tab.pooled or tab.owner != owner):
            raise rules.given_back(tab)
        never_ready = tab is None or (tab.ended and not tab.uri)
        return None if never_ready else tab


def _taken(pooled: Tab, owner: str, order: TabOrder) -> Tab:
    """A pooled tab as its new owner's: OPENING until it is loaded afresh, so that a crash of the server ends it.

    It keeps the address at which it was given back: what its page does there is not its new owner's.
    """
    return replace(
        pooled,
        state=TabState.OPENING,
        uri="",
        title="",
        pooled=False,
        owner=owner,
        labels=dict(order.labels),
        pinned=order.pinned,
        dialog_policy=order.dialog_policy,
        health=None,
        close_owed=CloseCause.NONE,
    )


async def _given_up(opening: _Opening) -> None:
    """Cancel an opening and wait until what it has begun is undone."""
    opening.cancel()
    with contextlib.suppress(asyncio.CancelledError, Refused):
        await asyncio.wait({opening})
