from __future__ import annotations

import asyncio
import itertools
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import Browser, BrowserState, Ownership
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import Lease, LeaseEnd, LeaseTerms
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import endings, lease_records
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.leases import Leases
from tabmuxd.tabs.lines import Lines
from tabmuxd.tasks import Tasks

from tests.domain.values import ADMIN, FRIEND, NOW, OWNER, SESSION, STRANGER, TAB, ready_tab, told

POPUP = "browsers/main/tabs/1111111111"
CLOSING = LeaseTerms(timedelta(seconds=5), close_on_expiry=True)
SHORT = LeaseTerms(timedelta(seconds=5))
LIMIT = 20.0


@dataclass
class FakeHost:
    """A browser that closes tabs at once, and `targets` None while it is away."""

    log: Log
    name: str = "browsers/main"
    targets: object | None = "there"
    closed: list[tuple[str, CloseCause, ChangeCause]] = field(default_factory=list)

    async def close(self, tab: Tab, cause: CloseCause, why: ChangeCause) -> Tab:
        self.closed.append((tab.name, cause, why))
        return await self.log.change(lambda changes: endings.close(changes, tab, cause, why, lambda *_: None))


@dataclass
class World:
    """A log with one tab, its leases, the line of calls, and a clock that tests move."""

    log: Log
    host: FakeHost
    lines: Lines
    leases: Leases
    times: list[datetime]

    def wait(self, seconds: float) -> None:
        """Time passes."""
        self.times[0] += timedelta(seconds=seconds)

    async def tab(self, name: str = TAB) -> Tab:
        """The tab as it stands."""
        found = await self.log.get_tab(name)
        assert found is not None
        return found

    async def put(self, name: str = TAB, /, **fields: object) -> Tab:
        """Record the tab with other fields."""

        def decide(changes: Changes) -> Tab:
            known = changes.tab(name) or replace(ready_tab(), name=name)
            return changes.record(replace(known, **fields))  # type: ignore[arg-type]

        return await self.log.change(decide)

    async def acquired(self, terms: LeaseTerms = SHORT, *, by: Principal = OWNER, tab: str = TAB) -> Lease:
        """A lease on the tab."""
        return await self.leases.acquire(by, LeaseOrder(tab, terms))

    async def lease(self, lease: Lease) -> Lease:
        """The lease as it stands."""
        found = await self.log.get_lease(lease.name)
        assert found is not None
        return found

    async def settled(self) -> None:
        """Run the job, and wait for the closes that it begins."""
        await self.leases.expire()
        async with asyncio.timeout(LIMIT):
            while closing := list(self.leases._closing.values()):
                await asyncio.wait(closing)


@pytest.fixture
async def world() -> AsyncGenerator[World]:
    """A READY tab of `local/a`, shared with `local/b`."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    times = [NOW]
    numbers = itertools.count(1)

    def random(size: int) -> bytes:
        number = next(numbers)
        return bytes(number >> 5 * place & 31 for place in range(size))

    async with Log(directory / "t.sqlite3", clock=lambda: times[0]) as log, Tasks() as tasks:
        host, lines = FakeHost(log), Lines()
        hosts = Hosts([cast("BrowserHost", host)])
        leases = Leases(hosts, log, tasks, lines, random=random, clock=lambda: times[0])
        world = World(log, host, lines, leases, times)
        await log.change(
            lambda changes: changes.record(Browser("browsers/main", BrowserState.ACTIVE, Ownership.LAUNCHED))
        )
        await world.put()
        yield world
    shutil.rmtree(directory)


async def refused(work: object) -> str | None:
    """The reason, with its cause, that this is refused with."""
    with pytest.raises(Refused) as raised:
        await work  # type: ignore[misc]
    return told(raised.value)


async def test_grant(world: World) -> None:
    """A lease is the caller's, for its time from now, and the tab names it (O-1, O-10)."""
    lease = await world.leases.acquire(FRIEND, LeaseOrder(TAB, LeaseTerms(holder="report")))

    assert lease == Lease(
        lease.name,
        TAB,
        LeaseTerms(holder="report"),
        NOW + timedelta(seconds=30),
        1,
        NOW,
        owner="local/b",
        revision=lease.revision,
        update_time=NOW,
    )
    assert await world.tab() == replace(ready_tab(), lease=lease.name, revision=lease.revision + 1, update_time=NOW)


@pytest.mark.parametrize(
    ("caller", "fields", "reason"),
    [
        (OWNER, {}, None),
        (FRIEND, {}, None),
        (ADMIN, {}, None),
        (STRANGER, {}, "NOT_OWNER"),
        (OWNER, {"pooled": True, "owner": ""}, "NOT_OWNER"),
        (OWNER, {"state": TabState.CRASHED}, None),
        (OWNER, {"state": TabState.LOST}, None),
        (OWNER, {"state": TabState.RECOVERING}, None),
        (OWNER, {"state": TabState.CLOSED}, "TAB_CLOSED"),
        (STRANGER, {"state": TabState.CLOSED}, "NOT_OWNER"),
    ],
)
async def test_who_and_what(world: World, caller: Principal, fields: dict[str, object], reason: str | None) -> None:
    """Who may drive a tab may lease it, with or without a page, until it is closed (O-2, O-3, O-16, O-45)."""
    await world.put(**fields)
    work = world.acquired(by=caller)

    assert (await refused(work) if reason else (await work).end_time) == reason


async def test_waits_for_its_turn(world: World) -> None:
    """A lease is granted once no call is at work on the tab; where another holds it, it is refused at once (O-10)."""
    async with world.lines.turn(TAB):
        waiting = asyncio.ensure_future(world.acquired())
        await asyncio.wait({waiting}, timeout=0.1)
        assert dict(world.log.live.leases) == {}
    async with asyncio.timeout(LIMIT):
        lease = await waiting
    async with world.lines.turn(TAB):
        assert await refused(world.acquired(by=FRIEND)) == "LEASE_HELD"
    assert list(world.log.live.leases) == [lease.name]


async def test_waits_for_opening(world: World) -> None:
    """A tab that is being opened is leased once it is READY: whoever opens it may get a lease with it (O-1)."""
    await world.put(state=TabState.OPENING)
    waiting = asyncio.ensure_future(world.acquired())
    await asyncio.wait({waiting}, timeout=0.1)
    assert dict(world.log.live.leases) == {}

    await world.put(state=TabState.READY)

    async with asyncio.timeout(LIMIT):
        assert (await waiting).tab == TAB


async def test_opens_anew_meanwhile(world: World) -> None:
    """A tab that begins to open while a lease waits for its turn is leased once it is READY, not before (O-1, O-45)."""
    async with world.lines.turn(TAB):
        waiting = asyncio.ensure_future(world.acquired())
        await asyncio.wait({waiting}, timeout=0.1)
        await world.put(state=TabState.OPENING)
    await asyncio.wait({waiting}, timeout=0.1)
    assert dict(world.log.live.leases) == {}

    await world.put(state=TabState.READY)

    async with asyncio.timeout(LIMIT):
        assert (await waiting).tab == TAB


async def test_granted(world: World) -> None:
    """The lease that a repeated CreateTab is told is one on its tab, under whatever request others were (O-1)."""
    lease = await world.leases.acquire(OWNER, LeaseOrder(TAB, SHORT, "r"))
    found = [await world.leases.granted("leases/none", tab, "local/a", "r") for tab in (TAB, POPUP)]

    assert found == [lease, None]


async def test_repeated(world: World) -> None:
    """The same request gets the same lease while it lives, also while a call is at work; afterwards a new one."""
    order = LeaseOrder(TAB, SHORT, "0b6f5f0a-0000-4000-8000-000000000001")
    first, at_once = await asyncio.gather(world.leases.acquire(OWNER, order), world.leases.acquire(OWNER, order))
    world.wait(4)
    await world.leases.renew(OWNER, first.name)
    async with world.lines.turn(TAB):
        again = await world.leases.acquire(OWNER, order)
    assert await refused(world.leases.acquire(FRIEND, order)) == "LEASE_HELD"
    world.wait(5)
    anew = await world.leases.acquire(OWNER, order)

    assert (at_once, again) == (first, replace(first, expire_time=NOW + timedelta(seconds=9)))
    assert (anew.fencing_token, anew.create_time) == (2, NOW + timedelta(seconds=9))
    assert (await world.lease(first)).end_cause is LeaseEnd.EXPIRED


async def test_renewed_in_time(world: World) -> None:
    """A renewal that came before the job's own step counts, though the job saw the lease as it was (O-12)."""
    lease = await world.acquired()
    head = world.log.progress.revision
    world.wait(4.999)
    await world.leases.renew(OWNER, lease.name)
    world.wait(0.001)

    await world.log.change(lease_records.expire)

    assert (await world.lease(lease)).end_time is None
    assert world.log.progress.revision == head


async def test_renewed_too_late(world: World) -> None:
    """Once its time is over a lease is lost, before the job has ended it (O-12, LSE-03)."""
    lease = await world.acquired()
    world.wait(5)

    assert await refused(world.leases.renew(OWNER, lease.name)) == "LEASE_LOST:expired"


async def test_renewed_by_one_shared_no_more(world: World) -> None:
    """Who may not drive the tab any more renews no lease of it, but may give it back (O-3)."""
    lease = await world.acquired(by=FRIEND)
    await world.put(shared_with=())

    assert await refused(world.leases.renew(FRIEND, lease.name)) == "NOT_OWNER"
    assert (await world.leases.release(FRIEND, lease.name)).end_cause is LeaseEnd.RELEASED


async def test_released_too_late(world: World) -> None:
    """Releasing a lease whose time is over ends it as expired, and closes the tab if it asked for that (O-13)."""
    lease = await world.acquired(CLOSING)
    world.wait(5)

    ended = await world.leases.release(OWNER, lease.name)
    await world.settled()

    assert (ended.end_cause, (await world.tab()).close_cause) == (LeaseEnd.EXPIRED, CloseCause.LEASE)


async def test_expired(world: World) -> None:
    """An expired lease ends once, at its time and not before, and the tab is free; its activity is as before (O-12)."""
    lease = await world.acquired()
    before = await world.tab()
    world.wait(4.999999)
    await world.settled()
    assert (await world.lease(lease)).end_time is None
    world.wait(0.000001)

    await world.settled()
    await world.settled()

    after = await world.tab()
    ended = await world.lease(lease)
    assert (ended.end_time, ended.end_cause) == (NOW + timedelta(seconds=5), LeaseEnd.EXPIRED)
    assert after == replace(before, lease="", revision=after.revision, update_time=ended.end_time)
    assert (world.host.closed, after.revision) == ([], ended.revision + 1)


@pytest.mark.parametrize(
    ("fields", "closed"),
    [
        ({}, True),
        ({"state": TabState.LOST}, True),
        ({"origin": TabOrigin.POPUP}, True),
        ({"pinned": True}, False),
        ({"origin": TabOrigin.ADOPTED}, False),
    ],
)
async def test_closes(world: World, fields: dict[str, object], *, closed: bool) -> None:
    """`close_on_expiry` closes the tab with cause LEASE, unless it is pinned or adopted (O-13, O-51, LSE-05)."""
    await world.put(**fields)
    await world.acquired(CLOSING)
    world.wait(5)

    await world.settled()

    expected = [(TAB, CloseCause.LEASE, ChangeCause.EXPIRY)] if closed else []
    assert (world.host.closed, (await world.tab()).ended, (await world.tab()).lease) == (expected, closed, "")


@pytest.mark.parametrize("meanwhile", ["pinned", "adopted", "turn", "given back", "nothing"])
async def test_judged_again(world: World, meanwhile: str) -> None:
    """A close for a lease waits for the call at work, and is not done if somebody keeps the tab by then (O-126)."""
    await world.acquired(CLOSING)
    world.wait(5)
    async with world.lines.turn(TAB):
        await world.leases.expire()
        (closing,) = world.leases._closing.values()
        await asyncio.wait({closing}, timeout=0.1)
        assert world.host.closed == []
        match meanwhile:
            case "pinned":
                await world.put(pinned=True)
            case "adopted":
                await world.put(origin=TabOrigin.ADOPTED)
            case "turn":
                await world.log.change(_take_for_turn)
            case "given back":
                await world.log.change(
                    lambda changes: endings.give_back(changes, _known(changes), ChangeCause.CLIENT, lambda *_: None)
                )
            case _:
                pass
    await world.settled()

    kept = await world.tab()
    assert (kept.ended, kept.close_owed if not kept.ended else None) == (
        (True, None) if meanwhile == "nothing" else (False, CloseCause.NONE)
    )


def _known(changes: Changes) -> Tab:
    tab = changes.tab(TAB)
    assert tab is not None
    return tab


def _take_for_turn(changes: Changes) -> None:
    lease = Lease("leases/turn", TAB, LeaseTerms(), changes.now, 9, changes.now, session=SESSION)
    changes.record(lease)
    changes.record(replace(_known(changes), lease=lease.name))


async def test_browser_away(world: World) -> None:
    """While the browser is away the close stays owed, and is done once it is back (O-13, O-127)."""
    lease = await world.acquired(CLOSING)
    world.host.targets = None
    world.wait(5)
    await world.settled()
    assert ((await world.lease(lease)).end_cause, (await world.tab()).close_owed) == (
        LeaseEnd.EXPIRED,
        CloseCause.LEASE,
    )
    world.host.targets = "there"

    await world.settled()

    assert (await world.tab()).close_cause is CloseCause.LEASE


async def test_owner_back_before_the_close(world: World) -> None:
    """Who leases a tab whose close is owed and cannot be done keeps it (O-126)."""
    await world.acquired(CLOSING)
    world.host.targets = None
    world.wait(5)
    await world.settled()
    lease = await world.acquired()
    world.host.targets = "there"

    await world.settled()

    assert (world.host.closed, (await world.tab()).lease) == ([], lease.name)


async def test_acquired_when_it_is_to_close(world: World) -> None:
    """A tab whose lease ran out, and asked for its end, is closed before anybody else can lease it (O-13)."""
    await world.acquired(CLOSING)
    world.wait(5)

    assert await refused(world.acquired()) == "TAB_CLOSED"


async def _popup(world: World, lease: Lease) -> None:
    await world.put(POPUP, origin=TabOrigin.POPUP, opener=TAB, lease=lease.name)


@pytest.mark.parametrize("way", ["released", "expired", "closed"])
async def test_popups(world: World, way: str) -> None:
    """A popup is held by its opener's lease, which however it ends is cleared on both in one transaction (O-16)."""
    lease = await world.acquired()
    await _popup(world, lease)
    assert await refused(world.acquired(tab=POPUP)) == "LEASE_HELD"
    assert await world.leases.list(POPUP, after=0, count=9) == await world.leases.list(TAB, after=0, count=9)
    match way:
        case "released":
            await world.leases.release(OWNER, lease.name)
        case "expired":
            world.wait(5)
            await world.settled()
        case _:
            await world.host.close(await world.tab(), CloseCause.CLIENT, ChangeCause.CLIENT)

    own = await world.acquired(tab=POPUP)

    assert ((await world.tab()).lease, (await world.tab(POPUP)).lease) == ("", own.name)
    assert (await world.lease(lease)).end_cause.name.lower() == way
    assert own.fencing_token > lease.fencing_token


async def test_popup_closes(world: World) -> None:
    """A popup that closes leaves its opener's lease alone (O-16)."""
    lease = await world.acquired()
    await _popup(world, lease)

    await world.host.close(await world.tab(POPUP), CloseCause.CLIENT, ChangeCause.CLIENT)

    assert ((await world.tab(POPUP)).lease, (await world.tab()).lease, await world.lease(lease)) == (
        "",
        lease.name,
        lease,
    )


async def test_prolonged(world: World) -> None:
    """At start each live lease of a client has its time once more, with no event; a turn's is as it was (O-12)."""
    lease = await world.acquired()
    await world.put(POPUP)
    turn = Lease("leases/turn", POPUP, SHORT, NOW, 1, NOW, session=SESSION)
    turn = await world.log.change(lambda changes: changes.record(turn))
    head = world.log.progress.revision
    world.wait(7)

    await world.leases.prolong()

    assert await world.lease(lease) == replace(lease, expire_time=NOW + timedelta(seconds=12))
    assert (await world.lease(turn), world.log.progress.revision) == (turn, head)


async def test_list(world: World) -> None:
    """Live leases are listed, oldest first, and page by page."""
    names = [f"browsers/main/tabs/222222222{number}" for number in range(3)]
    for name in names:
        await world.put(name)
    leases = [await world.acquired(tab=name) for name in names]
    await world.leases.release(OWNER, leases[1].name)

    assert await world.leases.list("", after=0, count=9) == [(lease.revision, lease) for lease in leases[::2]]
    assert await world.leases.list("", after=leases[0].revision, count=9) == [(leases[2].revision, leases[2])]
    assert await world.leases.list(names[1], after=0, count=9) == []
    assert await refused(world.leases.list("browsers/-/tabs/zzzzzzzzzz", after=0, count=9)) == "TAB_NOT_FOUND"
