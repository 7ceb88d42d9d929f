"""The mirror of the Python client over a real server: what it holds is what the store has, whatever happens between."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
import tabmux
from tabmux.errors import TabmuxError
from tabmux.mirror import Mirror
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import AcquireLeaseRequest, CloseTabRequest, CreateTabRequest, UpdateTabRequest
from tabmux.v1.web_ai_service_pb2 import CreateSessionRequest
from tabmux.view import Change, resource_of
from tabmuxd.clock import steady_clock
from tabmuxd.events import Log

from tests.e2e.serving import LIMIT, Server

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(120)]


async def opened(server: Server) -> Tab:
    """A blank tab."""
    return (await server.tabs.CreateTab(CreateTabRequest(), timeout=2 * LIMIT)).tab


async def labelled(server: Server, tab: Tab, value: str) -> Tab:
    """The tab after one recorded change."""
    return (await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, labels={"n": value}), timeout=LIMIT)).tab


async def closed(server: Server, tab: Tab) -> None:
    """The tab is closed."""
    await server.tabs.CloseTab(CloseTabRequest(name=tab.name, force=True), timeout=LIMIT)


def has_passed(revision: int, mirror: Mirror) -> bool:
    """Whether the mirror has come that far."""
    return mirror.progress.revision >= revision


async def equals_store(mirror: Mirror, server: Server) -> None:
    """The mirror comes to hold what a new snapshot shows, each resource at the same revision, and the listed tabs."""
    async with asyncio.timeout(2 * LIMIT):
        while True:
            existing, progress = await server.watch_since(None)
            listed = await server.list_tabs()
            await mirror.until(partial(has_passed, progress.revision))
            if mirror.progress == progress:
                break  # else something has changed in between
    shown = {resource.name: resource.revision for event in existing if (resource := resource_of(event))}
    assert {name: each.revision for name, each in mirror.resources.items()} == shown
    assert {(name, tab.revision, tab.state, tab.labels["n"]) for name, tab in mirror.tabs.items()} == {
        (tab.name, tab.revision, tab.state, tab.labels["n"]) for tab in listed
    }


async def test_mirror(server: Server) -> None:
    """It outlives a server that is killed, and one whose history was compacted meanwhile; then it equals the store.

    Nothing is told twice, nothing is missed, and only the compaction is a gap (W6, W7, WAT-03, CLI-01).
    """
    told: list[Change] = []
    gaps: list[TabmuxError] = []
    address = f"unix://{server.state_directory / 'tabmuxd.sock'}"
    async with (
        tabmux.connect(address, environment={}) as client,
        client.mirror(on_change=told.append, on_gap=gaps.append, bookmark_interval=timedelta(seconds=1)) as mirror,
    ):
        kept, ended, missed = [await opened(server) for _ in range(3)]
        create = CreateSessionRequest(provider="playground-textarea")
        session = (await server.ai.CreateSession(create, timeout=LIMIT)).session
        lease = (await server.tabs.AcquireLease(AcquireLeaseRequest(tab=kept.name), timeout=LIMIT)).lease
        await equals_store(mirror, server)
        assert set(mirror.tabs) == {kept.name, ended.name, missed.name}
        assert (set(mirror.sessions), set(mirror.leases)) == ({session.name}, {lease.name})

        await server.restart()
        await labelled(server, missed, "after the kill")
        await closed(server, ended)
        await equals_store(mirror, server)
        revisions = [change.event.revision for change in told if change.event is not None]
        assert (revisions, gaps) == (sorted(set(revisions)), [])
        assert [change.ended for change in told if change.name == ended.name][-2:] == [False, True]

        before = len(told)
        await server.kill()
        await compact(server)
        await server.start()
        new = await opened(server)
        await closed(server, missed)
        await equals_store(mirror, server)
        assert [gap.reason for gap in gaps] == ["REVISION_COMPACTED"]
        assert {new.name, kept.name} <= mirror.tabs.keys()
        assert [change.after for change in told[before:] if change.name == missed.name and change.ended]


async def compact(server: Server) -> None:
    """Bring the history of a server that is dead to its end, past every watch, and compact it whole."""
    async with Log(server.state_directory / "tabmuxd.sqlite3", clock=steady_clock()) as log:
        (browser,) = log.live.browsers.values()
        await log.change(lambda changes: changes.record(browser))
        await log.compact(age=timedelta(0), count=0)
