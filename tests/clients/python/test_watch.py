"""A raw watch goes on by itself, exactly behind its last reply. Scenarios CLI-01, WAT-03."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from functools import partial

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.v1.event_pb2 import EVENT_KIND_ENDED, Event, WatchProgress, WatchSnapshot, WatchStart
from tabmux.v1.tab_service_pb2 import WatchTabsRequest, WatchTabsResponse
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest, WatchSessionsResponse
from tabmux.watch import WatchReply, silence_limit

from tests.clients.python.scripted import Refuse, ScriptedServer


def at(revision: int) -> WatchProgress:
    """A place in the history."""
    return WatchProgress(history_id="h1", revision=revision)


def reply(progress: int, *revisions: int) -> WatchSessionsResponse:
    """A reply with events of those revisions."""
    return WatchSessionsResponse(events=[Event(revision=each) for each in revisions], progress=at(progress))


def resuming(revision: int) -> WatchSessionsRequest:
    """Request that goes on behind a place."""
    return WatchSessionsRequest(start=WatchStart(resume=at(revision)), with_tabs=True)


async def first(count: int, watch: AsyncGenerator[WatchReply, None]) -> list[tuple[list[int], int]]:
    """Revisions and progress of the first replies; the watch is then closed."""
    seen: list[tuple[list[int], int]] = []
    async with aclosing(watch) as replies, asyncio.timeout(20):
        async for each in replies:
            seen.append(([event.revision for event in each.events], each.progress.revision))
            if len(seen) == count:
                break
    return seen


@pytest.mark.parametrize(
    "lost",
    [
        Refuse(grpc.StatusCode.UNAVAILABLE),
        Refuse(grpc.StatusCode.UNAVAILABLE, "DRAINING", retry_delay=timedelta(milliseconds=20)),
        Refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "WATCH_STALLED", retry_delay=timedelta(milliseconds=20)),
    ],
)
async def test_resumes_behind_last_reply(server: ScriptedServer, client: Client, lost: Refuse) -> None:
    """W6: after the connection, the server or the reader's place is lost it goes on behind the last progress."""
    server.script(
        "WatchSessions",
        [reply(7), reply(9, 8, 9), reply(12), lost],
        [lost],
        [reply(12), reply(13, 13), asyncio.Event()],
    )
    assert await first(5, client.watch()) == [([], 7), ([8, 9], 9), ([], 12), ([], 12), ([13], 13)]
    assert server.requests("WatchSessions") == [WatchSessionsRequest(with_tabs=True), resuming(12), resuming(12)]


async def test_resumes_after_restart(server: ScriptedServer, client: Client) -> None:
    """A watch whose server is stopped and started again goes on there."""
    server.script("WatchSessions", [reply(7, 7), asyncio.Event()], [reply(8, 8), asyncio.Event()])
    seen = []
    async with aclosing(client.watch()) as replies, asyncio.timeout(20):
        async for each in replies:
            seen.append(each.progress.revision)
            if seen == [7]:
                await server.restart()
            else:
                break
    assert (seen, server.requests("WatchSessions")[1]) == ([7, 8], resuming(7))


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("OUT_OF_RANGE", "REVISION_COMPACTED"),
        ("OUT_OF_RANGE", "HISTORY_CHANGED"),
        ("OUT_OF_RANGE", "REVISION_IN_FUTURE"),
        ("RESOURCE_EXHAUSTED", "WATCH_CAPACITY"),
        ("UNAVAILABLE", "BROWSER_UNREACHABLE"),
        ("INTERNAL", ""),
        ("CANCELLED", ""),
    ],
)
async def test_raises_what_the_caller_decides(server: ScriptedServer, client: Client, code: str, reason: str) -> None:
    """History that is lost, a limit and a bug are the caller's: the watch ends with that error, tried once."""
    server.script("WatchSessions", [reply(7), Refuse(grpc.StatusCode[code], reason)])
    with pytest.raises(TabmuxError) as caught:
        await first(2, client.watch())
    assert (caught.value.reason, caught.value.code, len(server.requests("WatchSessions"))) == (reason, code, 1)


async def test_snapshot_that_was_cut_begins_anew(server: ScriptedServer, client: Client) -> None:
    """W7: a snapshot is begun again until it was complete, and then it is resumed."""
    lost = Refuse(grpc.StatusCode.UNAVAILABLE)
    server.script(
        "WatchSessions",
        [reply(0, 3, 4), lost],
        [reply(0, 3), reply(0, 4), reply(9), lost],
        [reply(9), asyncio.Event()],
    )
    seen = await first(5, client.watch(snapshot=True))
    whole = WatchSessionsRequest(start=WatchStart(snapshot=WatchSnapshot()), with_tabs=True)
    assert seen == [([3, 4], 0), ([3], 0), ([4], 0), ([], 9), ([], 9)]
    assert server.requests("WatchSessions") == [whole, whole, resuming(9)]


async def test_since(server: ScriptedServer, client: Client) -> None:
    """A watch begins behind a place that the caller kept."""
    server.script("WatchSessions", [reply(5), asyncio.Event()])
    await first(1, client.watch(since=at(5)))
    assert server.requests("WatchSessions") == [resuming(5)]


async def test_scopes(server: ScriptedServer, client: Client) -> None:
    """Only tabs are watched by WatchTabs; sessions by WatchSessions, with tabs for everything."""
    server.script("WatchTabs", [WatchTabsResponse(progress=at(7)), asyncio.Event()])
    server.script("WatchSessions", [reply(7), asyncio.Event()])
    watch = partial(client.watch, names=["x"], kinds=[EVENT_KIND_ENDED], bookmark_interval=timedelta(seconds=5))
    await first(1, watch(scope="tabs"))
    await first(1, watch(scope="sessions"))
    kinds, interval = [EVENT_KIND_ENDED], Duration(seconds=5)
    assert server.requests("WatchTabs") == [WatchTabsRequest(tabs=["x"], kinds=kinds, bookmark_interval=interval)]
    assert server.requests("WatchSessions") == [
        WatchSessionsRequest(sessions=["x"], kinds=kinds, bookmark_interval=interval),
    ]


async def test_silent_connection_is_opened_again(
    server: ScriptedServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scenario CLI-02: three bookmarks that do not come count as a lost connection."""
    monkeypatch.setattr("tabmux.client.silence_limit", lambda _interval: timedelta(seconds=2))
    server.script("WatchSessions", [reply(7), asyncio.Event()], [reply(8), asyncio.Event()])
    assert await first(2, client.watch()) == [([], 7), ([], 8)]
    assert server.requests("WatchSessions")[1] == resuming(7)


@pytest.mark.parametrize(("asked", "limit"), [(None, 45), (0.1, 3), (10, 30), (3600, 900)])
def test_silence_limit(asked: float | None, limit: int) -> None:
    """The limit is three bookmark intervals, as the server grants them."""
    interval = None if asked is None else timedelta(seconds=asked)
    assert silence_limit(interval) == timedelta(seconds=limit)


async def test_not_both_beginnings(client: Client) -> None:
    """A place and a snapshot exclude each other."""
    with pytest.raises(ValueError, match="not both"):
        client.watch(since=at(5), snapshot=True)


async def test_end_without_a_status(server: ScriptedServer, client: Client) -> None:
    """A watch that the server ends with OK raises: the contract has no such end."""
    server.script("WatchSessions", [reply(7)])
    with pytest.raises(TabmuxError, match="without a status"):
        await first(2, client.watch())


async def test_cancelled_reader_ends_the_call(server: ScriptedServer, client: Client) -> None:
    """A reader that is cancelled while it waits ends its stream, and sees its own cancellation only."""
    server.script("WatchSessions", [reply(7), asyncio.Event()])
    began = asyncio.Event()

    async def read() -> None:
        async for _reply in client.watch():
            began.set()

    task = asyncio.create_task(read())
    async with asyncio.timeout(20):
        await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
