"""The mirror shows what the server has, over lost connections, restarts and gaps. Scenarios WAT-02, WAT-03, CLI-01."""

import asyncio
from datetime import timedelta

import grpc
import pytest
from hypothesis import given, strategies
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.mirror import Mirror
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.event_pb2 import (
    EVENT_KIND_CREATED,
    EVENT_KIND_ENDED,
    EVENT_KIND_EXISTING,
    EVENT_KIND_UPDATED,
    Event,
    WatchProgress,
    WatchSnapshot,
    WatchStart,
)
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest, WatchSessionsResponse
from tabmux.view import Change, View

from tests.clients.python.scripted import Refuse, ScriptedServer

LIMIT = 20


def at(revision: int, history: str = "h1") -> WatchProgress:
    """A place in a history."""
    return WatchProgress(history_id=history, revision=revision)


def tab(name: str, title: str = "") -> Tab:
    """A tab."""
    return Tab(name=name, title=title)


def event(revision: int, kind: int, of: Tab) -> Event:
    """An event about a tab."""
    return Event(revision=revision, kind=kind, tab=of)  # type: ignore[arg-type]  # one of the numbers


def existing(*tabs: Tab, revision: int = 0, history: str = "h1") -> WatchSessionsResponse:
    """A reply of a snapshot; with a revision the last one."""
    events = [event(1, EVENT_KIND_EXISTING, each) for each in tabs]
    return WatchSessionsResponse(events=events, progress=at(revision, history))


def changed(*events: Event) -> WatchSessionsResponse:
    """A reply with changes."""
    return WatchSessionsResponse(events=events, progress=at(events[-1].revision))


SNAPSHOT = WatchSessionsRequest(start=WatchStart(snapshot=WatchSnapshot()), with_tabs=True)


def resuming(revision: int, history: str = "h1") -> WatchSessionsRequest:
    """Request that goes on behind a place."""
    return WatchSessionsRequest(start=WatchStart(resume=at(revision, history)), with_tabs=True)


def titles(mirror: Mirror) -> dict[str, str]:
    """Titles of the tabs, by name."""
    return {name: each.title for name, each in mirror.tabs.items()}


async def reached(mirror: Mirror, revision: int) -> None:
    """Wait until the mirror has come that far."""
    async with asyncio.timeout(LIMIT):
        await mirror.until(lambda mirror: mirror.progress.revision >= revision)


async def test_follows(server: ScriptedServer, client: Client) -> None:
    """Entered, it is whole; it follows each change, and tells of each in order with what was before."""
    created = event(8, EVENT_KIND_CREATED, tab("b", "1"))
    updated = event(9, EVENT_KIND_UPDATED, tab("b", "2"))
    ended = event(10, EVENT_KIND_ENDED, tab("a", "last"))
    go_on = asyncio.Event()
    server.script(
        "WatchSessions",
        [existing(tab("a")), existing(revision=7), go_on, changed(created, updated), changed(ended), asyncio.Event()],
    )
    told: list[Change] = []
    async with client.mirror(on_change=told.append) as mirror:
        assert (titles(mirror), mirror.progress) == ({"a": ""}, at(7))
        go_on.set()
        await reached(mirror, 10)
        assert titles(mirror) == {"b": "2"}
    assert told == [
        Change("a", None, tab("a"), ended=False, event=None),
        Change("b", None, tab("b", "1"), ended=False, event=created),
        Change("b", tab("b", "1"), tab("b", "2"), ended=False, event=updated),
        Change("a", tab("a"), tab("a", "last"), ended=True, event=ended),
    ]
    assert server.requests("WatchSessions") == [SNAPSHOT]


async def test_survives_losses(server: ScriptedServer, client: Client) -> None:
    """A snapshot that is cut off begins anew, a watch that is cut off goes on; nothing of it is told (CLI-01)."""
    lost = Refuse(grpc.StatusCode.UNAVAILABLE)
    server.script(
        "WatchSessions",
        [existing(tab("gone")), lost],
        [existing(tab("a")), existing(revision=7), lost],
        [lost],
        [changed(event(8, EVENT_KIND_UPDATED, tab("a", "8"))), asyncio.Event()],
    )
    told: list[Change] = []
    async with client.mirror(on_change=told.append) as mirror:
        await reached(mirror, 8)
        assert titles(mirror) == {"a": "8"}
    assert [(change.name, change.event is None) for change in told] == [("a", True), ("a", False)]
    assert server.requests("WatchSessions") == [SNAPSHOT, SNAPSHOT, resuming(7), resuming(7)]


async def test_survives_restart(server: ScriptedServer, client: Client) -> None:
    """A server that is stopped and started again is a pause, and nothing else."""
    server.script(
        "WatchSessions",
        [existing(tab("a"), revision=7), asyncio.Event()],
        [changed(event(8, EVENT_KIND_UPDATED, tab("a", "8"))), asyncio.Event()],
    )
    gaps: list[TabmuxError] = []
    async with client.mirror(on_gap=gaps.append) as mirror:
        await server.restart()
        await reached(mirror, 8)
        assert (titles(mirror), gaps) == ({"a": "8"}, [])


@pytest.mark.parametrize("reason", ["REVISION_COMPACTED", "HISTORY_CHANGED"])
async def test_gaps(server: ScriptedServer, client: Client, reason: str) -> None:
    """It tells a gap, then what differs behind it from what was before; until then it shows the old (WAT-03)."""
    server.script(
        "WatchSessions",
        [existing(tab("a", "1"), tab("b"), tab("c"), revision=7), Refuse(grpc.StatusCode.UNAVAILABLE)],
        [Refuse(grpc.StatusCode.OUT_OF_RANGE, reason)],
        [existing(tab("a", "2")), existing(tab("c"), tab("d"), revision=3, history="h2"), asyncio.Event()],
    )
    told: list[Change | str] = []
    seen: list[dict[str, str]] = []

    def see(mirror: Mirror) -> str:
        seen.append(titles(mirror))
        return mirror.progress.history_id

    def miss(error: TabmuxError) -> None:
        told.append(error.reason)

    async with client.mirror(on_change=told.append, on_gap=miss) as mirror:
        first = len(told)
        async with asyncio.timeout(LIMIT):
            await mirror.until(lambda mirror: see(mirror) == "h2")
        assert titles(mirror) == {"a": "2", "c": "", "d": ""}
    assert seen[:-1] == [{"a": "1", "b": "", "c": ""}] * (len(seen) - 1)
    assert told[first:] == [
        reason,
        Change("b", tab("b"), None, ended=True, event=None),
        Change("a", tab("a", "1"), tab("a", "2"), ended=False, event=None),
        Change("d", None, tab("d"), ended=False, event=None),
    ]
    assert server.requests("WatchSessions") == [SNAPSHOT, resuming(7), SNAPSHOT]


async def test_revision_in_future(server: ScriptedServer, client: Client) -> None:
    """A server that has not come as far as the mirror has an older store, or a fault: the mirror ends, and says so."""
    server.script(
        "WatchSessions",
        [existing(tab("a"), revision=7), Refuse(grpc.StatusCode.UNAVAILABLE)],
        [Refuse(grpc.StatusCode.OUT_OF_RANGE, "REVISION_IN_FUTURE")],
    )
    with pytest.raises(TabmuxError) as caught:
        async with client.mirror() as mirror:
            await reached(mirror, 8)
    assert caught.value.reason == "REVISION_IN_FUTURE"
    assert server.requests("WatchSessions") == [SNAPSHOT, resuming(7)]


async def test_waits_for_a_place(server: ScriptedServer, client: Client) -> None:
    """Refused a place when it comes back, it tries again; refused one at first, it says so."""
    full = Refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "WATCH_CAPACITY", retry_delay=timedelta(milliseconds=10))
    server.script(
        "WatchSessions",
        [existing(tab("a"), revision=7), Refuse(grpc.StatusCode.UNAVAILABLE)],
        [full],
        [changed(event(8, EVENT_KIND_UPDATED, tab("a", "8"))), asyncio.Event()],
    )
    async with client.mirror() as mirror:
        await reached(mirror, 8)
    server.script("WatchSessions", [full])
    with pytest.raises(TabmuxError) as caught:
        async with client.mirror():
            pass
    assert caught.value.reason == "WATCH_CAPACITY"


async def test_callback_fails(server: ScriptedServer, client: Client) -> None:
    """What `on_change` raises ends the mirror and comes out of it; nothing is left running."""

    def refuse(change: Change) -> None:
        if change.event is not None:
            raise ValueError(change.name)

    changes = changed(event(8, EVENT_KIND_UPDATED, tab("a", "8")))
    server.script("WatchSessions", [existing(tab("a"), revision=7), changes, asyncio.Event()])
    with pytest.raises(ValueError, match="a"):
        async with client.mirror(on_change=refuse) as mirror:
            await reached(mirror, 9)
    assert not [task for task in asyncio.all_tasks() if "_keep" in repr(task.get_coro())]


def test_unknown_kinds() -> None:
    """An event of a kind, or of a resource, that this client does not know changes nothing but the place (W12)."""
    view = View()
    view.take([Event(revision=1), event(1, 99, tab("a"))], at(1))
    assert (view.take([Event(revision=2), event(3, 99, tab("a"))], at(3)), view.progress) == ([], at(3))
    assert dict(view.resources) == {}


names = strategies.sampled_from("abcd")
steps = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("put"), names, strategies.integers(0, 2)),
        strategies.tuples(strategies.just("end"), names, strategies.just(0)),
        strategies.tuples(strategies.just("gap"), names, strategies.just(0)),
        strategies.tuples(strategies.just("cut"), names, strategies.just(0)),
    ),
    max_size=30,
)


@given(steps)
def test_equals_the_store(steps: list[tuple[str, str, int]]) -> None:
    """Whatever changes, is cut off or missed, the view equals the store, and what it told adds up to it."""
    store: dict[str, Tab] = {}
    told: dict[str, Browser | Tab | None] = {}
    view = View()
    unseen: list[Event] = []
    for revision, (step, name, title) in enumerate(steps, 1):
        match step:
            case "put":
                store[name] = tab(name, str(title))
                unseen.append(event(revision, EVENT_KIND_UPDATED, store[name]))
            case "end" if name in store:
                unseen.append(event(revision, EVENT_KIND_ENDED, store.pop(name)))
            case _:
                pass
        if step == "gap" or view.progress is None:
            view.begin_snapshot()
            if step == "cut":
                view.take([event(revision, EVENT_KIND_EXISTING, tab("cut off"))], at(0))
                view.begin_snapshot()
            changes = view.take([event(1, EVENT_KIND_EXISTING, each) for each in store.values()], at(revision))
        else:
            changes = view.take(unseen, at(revision))
        unseen.clear()
        for change in changes:
            assert told.get(change.name) == change.before
            told[change.name] = None if change.ended else change.after  # type: ignore[assignment]
        assert dict(view.resources) == store
        assert {name: each for name, each in told.items() if each is not None} == store
