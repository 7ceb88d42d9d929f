"""Recovery, health and their races over a real Chromium, without a server over them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tabmuxd.events.changes import Changes
from tabmuxd.resources.browser import BrowserLimits
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.lease import LeaseTerms
from tabmuxd.resources.orders import AdoptOrder, LeaseOrder, NavigationOrder, TabOrder
from tabmuxd.resources.session import Session, SessionState, Turn, TurnState
from tabmuxd.resources.tab import CloseCause, HealthStatus, LoadMilestone, Strategy, Tab, TabState
from tabmuxd.tabs import dialogs, recovery_rules
from tabmuxd.webai import records

from tests.cdp.browsers import RunningChromium, fresh_profile
from tests.e2e.discarding import DISCARD, DISCARDED, discarding_chromium
from tests.e2e.in_process import BROWSER, PERSON, World, world_at
from tests.e2e.pages import Pages, running_pages
from tests.e2e.person import Person, person_at
from tests.e2e.serving import LIMIT

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(90)]

AT_ONCE = 20
CUT_EVERY = 25


@pytest.fixture(scope="module")
def chromium() -> Iterator[RunningChromium]:
    """One Chromium for this module, which discards the tabs at `DISCARDED` when a page is opened at `DISCARD`."""
    with discarding_chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def person(chromium: RunningChromium) -> AsyncIterator[Person]:
    """Somebody else in that Chromium."""
    async with person_at(chromium.profile) as person:
        yield person


@pytest.fixture
def directory() -> Iterator[Path]:
    """Where the store is."""
    with fresh_profile() as directory:
        yield directory


@pytest_asyncio.fixture(loop_scope="module")
async def world(chromium: RunningChromium, directory: Path, person: Person) -> AsyncIterator[World]:
    """All parts over that Chromium; no page is left afterwards."""
    async with world_at(directory, chromium.uri) as world:
        yield world
    for target_id in await person.pages():
        await person.close(target_id)


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow one another without a pause."""
    monkeypatch.setattr(recovery_rules, "_PAUSES", (0.01,))


async def lose(world: World, person: Person, tab: Tab) -> Tab:
    """The tab after a person closed its page."""
    await person.close(tab.target_id)
    return await world.until_state(tab.name, TabState.LOST)


async def crash(world: World, person: Person, tab: Tab) -> Tab:
    """The tab after its renderer was killed."""
    session = await person.attach(tab.target_id)
    await person.send("Page.crash", session)
    return await world.until_state(tab.name, TabState.CRASHED)


async def refused(call: Any) -> Refused:  # noqa: ANN401 - an awaitable
    """What a call is refused with."""
    with pytest.raises(Refused) as raised:
        await call
    return raised.value


# Recovery


async def test_fails(world: World, person: Person) -> None:
    """What is not served any more is tried three times, then RECOVERY_FAILED; no target is left (O-111, SES-04).

    Ten minutes later there may be three more.
    """
    with running_pages() as gone:
        tab = await world.open(gone.at("/page"))
    await lose(world, person, tab)
    before = world.log.progress.revision
    failed = await refused(world.tabs.recover(PERSON, tab.name, lease=""))
    told = (failed.reason, failed.metadata["cause"], failed.metadata["attempt_count"])
    again = await refused(world.tabs.recover(PERSON, tab.name, lease=""))
    changed = world.log.progress.revision - before
    world.clock.pass_by(recovery_rules.WINDOW + timedelta(seconds=1))
    later = await refused(world.tabs.recover(PERSON, tab.name, lease=""))
    assert told == (Reason.RECOVERY_FAILED, "attempts", "3")
    assert (again.reason, later.reason) == (Reason.RECOVERY_FAILED, Reason.RECOVERY_FAILED)
    # RECOVERING and LOST, three times.
    assert (changed, world.log.progress.revision - before) == (6, 12)
    assert world.tab(tab.name).state is TabState.LOST
    assert await person.pages() == {}


async def test_limit(world: World, person: Person, pages: Pages) -> None:
    """Three successes within ten minutes are as many as may be; ten minutes later there may be more (O-111)."""
    tab = await world.open(pages.at("/page"))
    for count in (1, 2, 3):
        lost = await lose(world, person, world.tab(tab.name))
        back = await world.tabs.recover(PERSON, lost.name, lease="")
        assert (back.strategy, back.tab.recovery_count, back.tab.generation) == (Strategy.REOPENED, count, count + 1)
    await lose(world, person, world.tab(tab.name))
    assert (await refused(world.tabs.recover(PERSON, tab.name, lease=""))).reason is Reason.RECOVERY_FAILED
    world.clock.pass_by(recovery_rules.WINDOW + timedelta(seconds=1))
    assert (await world.tabs.recover(PERSON, tab.name, lease="")).tab.recovery_count == 4


async def test_lease_lives_on(world: World, person: Person, pages: Pages) -> None:
    """A client's lease outlives crash, loss and recovery, and RecoverTab needs it (O-10, O-16, O-112)."""
    tab = await world.open(pages.at("/page"))
    lease = await world.tabs.leases.acquire(PERSON, LeaseOrder(tab.name, LeaseTerms(timedelta(minutes=5))))
    await crash(world, person, tab)
    without = await refused(world.tabs.recover(PERSON, tab.name, lease=""))
    reloaded = await world.tabs.recover(PERSON, tab.name, lease=lease.name)
    lost = await lose(world, person, reloaded.tab)
    reopened = await world.tabs.recover(PERSON, tab.name, lease=lease.name)
    assert without.reason is Reason.LEASE_REQUIRED
    assert (reloaded.strategy, reopened.strategy) == (Strategy.RELOADED, Strategy.REOPENED)
    assert {each.lease for each in (reloaded.tab, lost, reopened.tab)} == {lease.name}
    assert world.log.live.leases[lease.name].end_time is None
    order = NavigationOrder(tab.name, pages.at("/page?title=new"), lease=lease.name, expected_generation=2)
    assert (await world.tabs.navigate(PERSON, order))[0].uri == order.uri


async def test_no_room(chromium: RunningChromium, directory: Path, person: Person, pages: Pages) -> None:
    """At the limit a lost tab is TAB_CAPACITY at once, and opens nothing; a crashed one has its room (O-43, O-111)."""
    async with world_at(directory, chromium.uri, limits=BrowserLimits(max_tab_count=2)) as world:
        lost, crashed = await world.open(pages.at("/page")), await world.open(pages.at("/page"))
        await lose(world, person, lost)
        other = await world.open(pages.at("/page"))
        await crash(world, person, crashed)
        full = await refused(world.tabs.recover(PERSON, lost.name, lease=""))
        back = await world.tabs.recover(PERSON, crashed.name, lease="")
        assert (full.reason, full.metadata["limit"]) == (Reason.TAB_CAPACITY, "2")
        assert (back.strategy, world.tab(lost.name).state) == (Strategy.RELOADED, TabState.LOST)
        assert set(await person.pages()) == {crashed.target_id, other.target_id}
        await world.tabs.close(PERSON, other.name, lease="", force=False)
        assert (await world.tabs.recover(PERSON, lost.name, lease="")).strategy is Strategy.REOPENED
    for target_id in await person.pages():
        await person.close(target_id)


async def test_reopened_instead_of_reloaded(world: World, person: Person, pages: Pages) -> None:
    """A page that cannot be stopped is closed, and another target takes its place (O-111, O-112, O-113)."""
    tab = await world.open(pages.at("/page"))
    session = await person.attach(tab.target_id)
    await person.send("Runtime.evaluate", session, expression="for (;;);")
    held = world.host.pages.pop(tab.name)
    try:
        back = await world.tabs.recover(PERSON, tab.name, lease="")
    finally:
        held.end("tab_gone")
    assert (back.strategy, back.tab.generation, back.tab.state) == (Strategy.REOPENED, 2, TabState.READY)
    assert list(await person.pages()) == [back.tab.target_id]


async def test_closed_while_it_comes_back(world: World, person: Person, pages: Pages) -> None:
    """A tab that is closed by force while a new target is on its way leaves none, and no READY row (O-57, O-58)."""
    tab = await world.open(pages.at("/page"))
    await lose(world, person, tab)
    recovering = asyncio.ensure_future(refused(world.tabs.recover(PERSON, tab.name, lease="")))
    await world.until_state(tab.name, TabState.RECOVERING)
    closed = await world.tabs.close(PERSON, tab.name, lease="", force=True)
    assert (await recovering).reason is Reason.TAB_CLOSED
    assert (closed.state, closed.close_cause) == (TabState.CLOSED, CloseCause.CLIENT)
    assert (await person.pages(), world.log.live.tabs) == ({}, {})


async def test_discarded(world: World, person: Person, pages: Pages) -> None:
    """A discarded tab is the same tab, a generation on, and loaded anew on its first use (O-114, TAB-14)."""
    tab = await world.open(pages.at(DISCARDED))
    kept = await world.open(pages.at("/page?title=kept"))
    hits = pages.hits["/page"]
    opener = await person.open(pages.at(DISCARD))
    await world.until(lambda: world.tab(tab.name).generation == 2)
    discarded = world.tab(tab.name)
    looked = await world.tabs.check_health(tab.name)
    assert (discarded.state, discarded.uri, discarded.target_id != tab.target_id) == (TabState.READY, tab.uri, True)
    assert looked.health is not None
    assert looked.health.status is HealthStatus.UNRESPONSIVE
    assert pages.hits["/page"] == hits + 1
    order = NavigationOrder(tab.name, pages.at("/page?title=next"), expected_generation=2)
    used, _navigation = await world.tabs.navigate(PERSON, order)
    assert (used.uri, used.target_id, used.generation) == (order.uri, discarded.target_id, 2)
    assert set(await person.pages()) == {used.target_id, kept.target_id, opener}


# Sessions


async def bound(world: World, uri: str, conversation: str) -> tuple[Tab, Turn]:
    """A tab that serves a session whose turn is RUNNING."""
    session = Session(
        "sessions/s",
        SessionState.ACTIVE,
        "p",
        "1",
        "local",
        world.clock(),
        world.clock(),
        BROWSER,
        conversation_uri=conversation,
    )
    name = "sessions/s/turns/0123456789"
    turn = Turn(name, TurnState.RUNNING, "r", "a", "b", world.clock(), world.clock() + timedelta(minutes=5))

    def begin(changes: Changes) -> None:
        changes.record(replace(session, open_turn=name, last_turn=name))
        changes.record(turn)

    await world.log.change(begin)
    order = TabOrder(uri=uri, until=LoadMilestone.COMMITTED)
    opened = await world.tabs.open_for(
        "local", order, lambda changes, tab: records.bind(changes, name, tab, "leases/l")
    )
    return opened.tab, turn


async def test_session_comes_back(world: World, person: Person, pages: Pages) -> None:
    """A session's tab comes back by itself at its conversation, with its turn as before (O-140, SES-02).

    Five who ask for it meanwhile are given that tab, and one target was opened.
    """
    conversation = pages.at("/page?title=conversation")
    tab, turn = await bound(world, pages.at("/page?title=elsewhere"), conversation)
    closing = asyncio.ensure_future(person.close(tab.target_id))
    await world.until_state(tab.name, TabState.LOST)
    session = world.log.live.sessions["sessions/s"]
    await closing
    asked = await asyncio.gather(*(world.tabs.recover(PERSON, tab.name, lease="") for _ in range(5)))
    back = world.log.live.sessions["sessions/s"]
    now = world.tab(tab.name)
    assert (session.state, session.tab, session.close_count) == (SessionState.RECOVERING, tab.name, 1)
    assert {each.tab.generation for each in asked} == {2}
    assert (now.uri, now.session, now.lease, now.recovery_count) == (conversation, "sessions/s", "leases/l", 1)
    assert (back.state, back.tab, back.open_turn) == (SessionState.ACTIVE, tab.name, turn.name)
    assert (back.recovery_count, world.log.live.turns[turn.name].state) == (1, TurnState.RUNNING)
    assert list(await person.pages()) == [now.target_id]


async def test_session_is_given_up(world: World, person: Person) -> None:
    """After three failures the tab closes with cause RECOVERY, its turn fails with the reason (O-25, O-111, SES-04)."""
    with running_pages() as gone:
        tab, turn = await bound(world, gone.at("/page"), gone.at("/page?title=conversation"))
    await person.close(tab.target_id)
    await world.until(lambda: tab.name not in world.log.live.tabs)
    closed, ended = await world.log.get_tab(tab.name), await world.log.get_turn(turn.name)
    session = world.log.live.sessions["sessions/s"]
    assert closed is not None
    assert (closed.close_cause, closed.session, dict(world.log.live.leases)) == (CloseCause.RECOVERY, "", {})
    assert ended is not None
    assert ended.error is not None
    assert (ended.state, ended.error.reason, ended.error.metadata["cause"]) == (
        TurnState.FAILED,
        "RECOVERY_FAILED",
        "attempts",
    )
    assert (session.state, session.tab, session.open_turn, session.close_count) == (SessionState.ACTIVE, "", "", 1)
    assert await person.pages() == {}


# Health


async def test_sweep(world: World, person: Person, pages: Pages) -> None:
    """A round looks at all READY tabs at once but those at work or with a dialog, and records changes (O-118, JOB-02).

    It is one commit, no activity, and a second round records nothing.
    """
    alive, hung, busy = [await world.open(pages.at("/page")) for _ in range(3)]
    asks = await world.open(pages.at("/alerts"))
    await world.until(lambda: world.tab(asks.name).dialog is not None)
    await world.host.look()
    titles = {alive.name: "Page", hung.name: "Page", busy.name: "Page", asks.name: "Alerts"}
    await world.until(lambda: {tab.name: tab.title for tab in world.log.live.tabs.values()} == titles)
    session = await person.attach(hung.target_id)
    await person.send("Runtime.evaluate", session, expression="for (;;);")
    world.clock.pass_by(timedelta(minutes=1))
    before = world.log.progress.revision
    async with world.tabs.turn(busy.name):
        await world.tabs.recovery.sweep()
        recorded = world.log.progress.revision - before
        await world.tabs.recovery.sweep()
    found = {tab.name: world.tab(tab.name).health for tab in (alive, hung, busy, asks)}
    assert {name: health and health.status for name, health in found.items()} == {
        alive.name: HealthStatus.ALIVE,
        hung.name: HealthStatus.UNRESPONSIVE,
        busy.name: None,
        asks.name: None,
    }
    assert (recorded, world.log.progress.revision - before) == (2, 2)
    await person.evaluate(await person.attach(alive.target_id), "document.title = 'set by a script'")
    await world.tabs.recovery.sweep()
    await world.until(lambda: world.tab(alive.name).title == "set by a script")
    assert world.tab(alive.name).last_active_time == alive.last_active_time
    assert (await world.tabs.close(PERSON, hung.name, lease="", force=False)).ended


# Dialogs


async def test_dialog_left_alone(world: World, person: Person, pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A dialog that nobody answers is dismissed after its time, but never in an adopted tab (O-105)."""
    monkeypatch.setattr(dialogs, "_PATIENCE", 1.0)
    target_id = await person.open(pages.at("/page?title=adopted"))
    async with asyncio.timeout(LIMIT):
        while target_id not in world.host.foreign_targets():
            await person.pages()  # as long as the events of its making are on their way
    adopted = await world.tabs.adopt(PERSON, AdoptOrder(target_id=target_id))
    tab = await world.open(pages.at("/page"))
    for each in (adopted, tab):
        session = await person.attach(each.target_id)
        await person.send("Runtime.evaluate", session, expression="setTimeout(() => confirm('?'))")
    await world.until(lambda: world.tab(adopted.name).dialog is not None)
    await world.until(lambda: world.tab(tab.name).dialog is not None)
    await world.until(lambda: world.tab(tab.name).dialog is None)
    assert world.tab(adopted.name).dialog is not None


# Races

Step = Callable[[World, Person, Tab], Any]


async def _close(world: World, _person: Person, tab: Tab) -> None:
    await world.tabs.close(PERSON, tab.name, lease="", force=False)


async def _force(world: World, _person: Person, tab: Tab) -> None:
    await world.tabs.close(PERSON, tab.name, lease="", force=True)


async def _recover(world: World, _person: Person, tab: Tab) -> None:
    await world.tabs.recover(PERSON, tab.name, lease="")


async def _look(world: World, _person: Person, tab: Tab) -> None:
    await world.tabs.check_health(tab.name, timeout=timedelta(milliseconds=500))


async def _go(world: World, _person: Person, tab: Tab) -> None:
    await world.tabs.navigate(PERSON, NavigationOrder(tab.name, "about:blank", until=LoadMilestone.COMMITTED))


async def _leave(world: World, person: Person, tab: Tab) -> None:
    if target_id := world.tab(tab.name).target_id:
        await person.send("Target.closeTarget", targetId=target_id)


async def _crash(world: World, person: Person, tab: Tab) -> None:
    if target_id := world.tab(tab.name).target_id:
        attached = await person.send("Target.attachToTarget", targetId=target_id, flatten=True)
        if session := (await attached).get("result", {}).get("sessionId"):
            await person.send("Page.crash", session)


async def _cut(world: World, _person: Person, _tab: Tab) -> None:
    if world.host._link.connection is not None:
        await world.host._link.connection.close()


STEPS: tuple[Step, ...] = (_close, _force, _recover, _recover, _look, _go, _leave, _crash)


async def _interleaved(world: World, person: Person, seed: int) -> None:
    """Open a tab, and do a few things to it at moments that follow from the seed, whatever each comes to."""
    chance = random.Random(seed)
    opening = asyncio.ensure_future(world.open(group=f"seed-{seed}"))

    def mine() -> list[Tab]:
        return [tab for tab in world.log.live.tabs.values() if tab.group == f"seed-{seed}"]

    if chance.random() < 0.5:
        await asyncio.gather(opening, return_exceptions=True)
    await world.until(lambda: opening.done() or mine())
    for tab in mine():
        steps = chance.choices(STEPS, k=4) + [_cut] * (seed % CUT_EVERY == 0)
        chance.shuffle(steps)
        await asyncio.gather(*(_at_some_moment(world, person, tab, step, chance) for step in steps))
    await asyncio.gather(opening, return_exceptions=True)


async def _at_some_moment(world: World, person: Person, tab: Tab, step: Step, chance: random.Random) -> None:
    """Do it after a few turns of the loop, or a few changes of anything."""
    for _ in range(chance.randrange(40)):
        await asyncio.sleep(0)
    revision = world.log.progress.revision + chance.randrange(3)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await world.log.moved(revision)
    with contextlib.suppress(Refused, KeyError):
        await step(world, person, tab)


@pytest.mark.parametrize("seeds", [range(15), pytest.param(range(15, 200), marks=pytest.mark.long)], ids=len)
async def test_interleaved(world: World, person: Person, seeds: range) -> None:
    """Many seeded interleavings of open, close, recover, look, navigate, crash and cut leave nothing over (O-58).

    Every live target has a live row, and every row that shows a page has its target.
    """
    for begin in range(0, len(seeds), AT_ONCE):
        await world.host.back()
        await asyncio.gather(*(_interleaved(world, person, seed) for seed in seeds[begin : begin + AT_ONCE]))
    await world.host.back()
    await world.until(lambda: not any(tab.state in _ON_THE_WAY for tab in world.log.live.tabs.values()))
    # What Chrome made for a command whose answer was lost with the connection, for a tab that was closed meanwhile.
    await world.tabs.orphans.sweep()
    found = set(await person.pages())
    await world.until(  # Chrome may have told of an end that is not written down yet
        lambda: {tab.target_id for tab in world.log.live.tabs.values() if tab.state in _WITH_PAGE} <= found
    )
    rows = {tab.target_id for tab in world.log.live.tabs.values() if tab.state in _WITH_PAGE}
    assert found == rows
    assert world.host.foreign_targets() == []


_ON_THE_WAY = (TabState.OPENING, TabState.RECOVERING)
_WITH_PAGE = (TabState.READY, TabState.CRASHED)
