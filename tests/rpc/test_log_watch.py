"""Watches over a real log, from the request to the last byte."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from tabmux.v1 import event_pb2
from tabmux.v1 import tab_service_pb2 as tab_pb
from tabmuxd.events.log import Log
from tabmuxd.resources.event import ChangeCause, Event, EventKind
from tabmuxd.resources.tab import Tab
from tabmuxd.rpc.domain import LogEvents
from tabmuxd.wire import event_message, progress_message

from tests.rpc.fakes import NOW, TAB, serving
from tests.rpc.test_watches import refusal

SNAPSHOT = event_pb2.WatchStart(snapshot=event_pb2.WatchSnapshot())


async def test_watch(tmp_path: Path) -> None:
    """A snapshot, a change and a place to resume from reach a client (W1, W6, W7, W10)."""
    async with Log(tmp_path / "log.db", clock=lambda: NOW) as log, serving(events=LogEvents(log)) as served:
        first: Tab = await log.change(lambda changes: changes.record(TAB))
        watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest(start=SNAPSHOT))
        shown = [await watch.read(), await watch.read()]
        second: Tab = await log.change(lambda changes: changes.record(replace(first, title="b"), ChangeCause.PAGE))
        shown.append(await watch.read())
        watch.cancel()
        before = event_pb2.WatchProgress(history_id=log.progress.history_id, revision=first.revision)
        resumed = served.tab_service.WatchTabs(
            tab_pb.WatchTabsRequest(start=event_pb2.WatchStart(resume=before), tabs=["browsers/-/tabs/k3v9x2m7qd"])
        )
        shown.extend([await resumed.read(), await resumed.read()])
        resumed.cancel()
        changed = tab_pb.WatchTabsResponse(
            events=[event_message(Event(second.revision, EventKind.UPDATED, ChangeCause.PAGE, NOW, second))],
            progress=progress_message(log.progress),
        )
        assert shown == [
            tab_pb.WatchTabsResponse(
                events=[event_message(Event(first.revision, EventKind.EXISTING, ChangeCause.NONE, NOW, first))],
                progress=event_pb2.WatchProgress(history_id=before.history_id),
            ),
            tab_pb.WatchTabsResponse(progress=before),
            changed,
            tab_pb.WatchTabsResponse(progress=before),
            changed,
        ]


@pytest.mark.parametrize(
    ("history_id", "revision", "reason"),
    [("another", 0, "HISTORY_CHANGED"), ("", 100, "REVISION_IN_FUTURE")],
)
async def test_wrong_place(tmp_path: Path, history_id: str, revision: int, reason: str) -> None:
    """A place of another history, or one that was not reached, ends the watch with OUT_OF_RANGE."""
    async with Log(tmp_path / "log.db", clock=lambda: NOW) as log, serving(events=LogEvents(log)) as served:
        place = event_pb2.WatchProgress(history_id=history_id or log.progress.history_id, revision=revision)
        watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest(start=event_pb2.WatchStart(resume=place)))
        assert (await refusal(watch))[:2] == ("OUT_OF_RANGE", reason)


async def test_drain(tmp_path: Path) -> None:
    """A watch of the real log ends with DRAINING."""
    async with Log(tmp_path / "log.db", clock=lambda: NOW) as log, serving(events=LogEvents(log)) as served:
        watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
        assert await watch.read() == tab_pb.WatchTabsResponse(progress=progress_message(log.progress))
        await served.server.drain(timedelta(seconds=10))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await watch.read()
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
