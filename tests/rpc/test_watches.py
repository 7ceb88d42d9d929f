"""Watches at the edge: what they pass on, how many there are, and how they end."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from types import SimpleNamespace
from typing import TypeVar, cast

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from structlog.testing import capture_logs
from tabmux.v1 import event_pb2
from tabmux.v1 import tab_service_pb2 as tab_pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb
from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Progress
from tabmuxd.rpc.domain import ServerInfo
from tabmuxd.rpc.drain import Drain
from tabmuxd.rpc.gate import Gate
from tabmuxd.rpc.tab_service import TabService
from tabmuxd.rpc.watches import Unread, WatchSlots
from tabmuxd.wire import event_message, progress_message

from tests.rpc.fakes import HISTORY, NOW, TAB, Below, FakeEvents, FakeScripts, FakeTabs, Served, serving, status_from

WAIT_SECONDS = 20
Request = TypeVar("Request")
Response = TypeVar("Response")
EVENT = event_message(Event(3, EventKind.UPDATED, ChangeCause.PAGE, NOW, TAB))
FIRST = tab_pb.WatchTabsResponse(progress=progress_message(Progress(HISTORY, 2)))
SECOND = tab_pb.WatchTabsResponse(events=[EVENT], progress=progress_message(Progress(HISTORY, 3)))
# Events of a later version, whose fields are not known here.
UNKNOWN = FIRST.SerializeToString() + b"\x9a\x06\x01x"


def info_of(error: grpc.aio.AioRpcError) -> tuple[str, dict[str, str]]:
    """Reason and metadata of an error."""
    info = error_details_pb2.ErrorInfo()
    assert status_from(error).details[0].Unpack(info)
    return info.reason, dict(info.metadata)


async def read_all(stream: grpc.aio.UnaryStreamCall[Request, Response]) -> list[Response]:
    """All replies that are left; raises the error that a stream ends with."""
    replies: list[Response] = []
    async with asyncio.timeout(WAIT_SECONDS):
        while (reply := await stream.read()) is not grpc.aio.EOF:
            replies.append(cast("Response", reply))
    return replies


async def refusal(stream: grpc.aio.UnaryStreamCall[Request, Response]) -> tuple[str, str, dict[str, str]]:
    """Code, reason and metadata with which a stream ends, once all replies were read."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await read_all(stream)
    return caught.value.code().name, *info_of(caught.value)


async def test_bytes_pass_through(served: Served) -> None:
    """Finished replies reach the client byte for byte, known fields or not."""
    served.events.replies = [FIRST.SerializeToString(), SECOND.SerializeToString(), UNKNOWN]
    watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
    served.below.error = refuse(Reason.DRAINING, "x")
    found = [await watch.read() for _ in range(3)]
    assert [cast("Message", reply).SerializeToString() for reply in found] == served.events.replies


async def test_refused_at_once(served: Served) -> None:
    """A place that cannot be resumed from ends the watch with a status."""
    served.below.error = refuse(Reason.REVISION_COMPACTED, "Gone.", after_revision=1, compact_revision=5)
    start = event_pb2.WatchStart(resume=event_pb2.WatchProgress(history_id=HISTORY, revision=1))
    assert await refusal(served.tab_service.WatchTabs(tab_pb.WatchTabsRequest(start=start))) == (
        "OUT_OF_RANGE", "REVISION_COMPACTED", {"after_revision": "1", "compact_revision": "5"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("interval", "clamped"),
    [
        (Duration(), timedelta(seconds=1)),
        (Duration(nanos=400_000_000), timedelta(seconds=1)),
        (Duration(seconds=30), timedelta(seconds=30)),
        (Duration(seconds=301), timedelta(minutes=5)),
    ],
    ids=str,
)
async def test_bookmark_interval(served: Served, interval: Duration, clamped: timedelta) -> None:
    """The longest silence is clamped to 1 s to 5 min (WAT-10)."""
    await read_all(served.tab_service.WatchTabs(tab_pb.WatchTabsRequest(bookmark_interval=interval)))
    assert served.below.calls[0][3] == clamped


async def test_capacity() -> None:
    """Both services share one number of watches; one more is WATCH_CAPACITY, and one that ends makes room."""
    async with serving(max_watch_count=2) as served:
        served.events.replies = [FIRST.SerializeToString()]
        served.below.gate = asyncio.Event()
        first = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
        second = served.web_ai_service.WatchSessions(ai_pb.WatchSessionsRequest())
        await first.read()
        await second.read()
        assert await refusal(served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())) == (
            "RESOURCE_EXHAUSTED", "WATCH_CAPACITY", {"limit": "2"},
        )  # fmt: skip
        first.cancel()
        await served.below.cancelled.wait()
        third = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
        assert await third.read() == FIRST
        third.cancel()
        second.cancel()


async def test_capacity_of_one_program() -> None:
    """A program that has its part of the watches is refused one more; others still get theirs."""
    async with serving(max_watch_count=3, max_principal_watch_count=2) as served:
        served.events.replies = [FIRST.SerializeToString()]
        served.below.gate = asyncio.Event()

        def watch(name: str) -> grpc.aio.UnaryStreamCall[tab_pb.WatchTabsRequest, tab_pb.WatchTabsResponse]:
            metadata = [("authorization", f"Local {name}")]
            return served.tab_service.WatchTabs(tab_pb.WatchTabsRequest(), metadata=metadata)

        open_watches = [watch("a"), watch("a")]
        for each in open_watches:
            assert await each.read() == FIRST
        assert await refusal(watch("a")) == ("RESOURCE_EXHAUSTED", "WATCH_CAPACITY", {"limit": "2"})
        open_watches.append(watch("b"))
        assert await open_watches[2].read() == FIRST
        assert await refusal(watch("c")) == ("RESOURCE_EXHAUSTED", "WATCH_CAPACITY", {"limit": "3"})
        open_watches[0].cancel()
        await served.below.cancelled.wait()
        open_watches.append(watch("c"))
        assert await open_watches[3].read() == FIRST
        for each in open_watches:
            each.cancel()


async def test_many_idle_watches() -> None:
    """Calls are answered beside 500 watches that wait; cut, these give all their places back (WAT-06, WAT-07)."""
    count = 500
    async with serving(max_watch_count=count, max_principal_watch_count=count) as served:
        served.events.replies = [FIRST.SerializeToString()]
        served.below.gate = asyncio.Event()

        def watch() -> grpc.aio.UnaryStreamCall[tab_pb.WatchTabsRequest, tab_pb.WatchTabsResponse]:
            return served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())

        watches = [watch() for _ in range(count)]
        assert await asyncio.gather(*(each.read() for each in watches)) == [FIRST] * count
        await served.tab_service.GetServerInfo(tab_pb.GetServerInfoRequest(), timeout=WAIT_SECONDS)
        assert (await refusal(watch()))[1] == "WATCH_CAPACITY"
        for each in watches:
            each.cancel()
        async with asyncio.timeout(WAIT_SECONDS):
            while served.events.open_count:
                served.events.closed.clear()
                await served.events.closed.wait()
        again = [watch() for _ in range(count)]
        assert await asyncio.gather(*(each.read() for each in again)) == [FIRST] * count
        for each in again:
            each.cancel()


async def test_refused_start_holds_no_place() -> None:
    """A watch that is refused where it wants to begin takes nobody's place."""
    async with serving(max_watch_count=1) as served:
        served.below.error = refuse(Reason.REVISION_IN_FUTURE, "Not yet.", after_revision=9, current_revision=1)
        for _ in range(3):
            assert (await refusal(served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())))[1] == "REVISION_IN_FUTURE"


async def test_unread() -> None:
    """Each write has its own time: those that take too long are ended, those that are done or began later are not."""
    unread = Unread(timedelta(milliseconds=50))
    ended: list[str] = []

    async def write(name: str, written: asyncio.Event | None) -> None:
        scope = asyncio.timeout(None)
        writing = unread.open(scope)
        try:
            async with scope:
                writing.since = asyncio.get_running_loop().time()
                if written is not None:
                    await written.wait()
                    writing.since = 0.0
                await asyncio.Event().wait()
        except TimeoutError:
            ended.append(name)
        finally:
            unread.close(writing)

    written = asyncio.Event()
    first, second = (asyncio.ensure_future(write(name, None)) for name in ("first", "second"))
    done = asyncio.ensure_future(write("done", written))
    await asyncio.sleep(0)
    written.set()
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(first, second)
        await write("later", None)
    assert (sorted(ended), done.done(), repr(unread)) == (["first", "later", "second"], False, "<Unread 1>")
    done.cancel()
    await asyncio.wait([done])
    assert repr(unread) == "<Unread 0>"


async def test_cancelled_watch_is_closed(served: Served) -> None:
    """A watch whose client goes away is closed below."""
    served.events.replies = [FIRST.SerializeToString()]
    served.below.gate = asyncio.Event()
    watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
    await watch.read()
    assert served.events.open_count == 1
    await served.below.entered.wait()
    watch.cancel()
    await served.below.cancelled.wait()
    await served.events.closed.wait()


async def test_stalled() -> None:
    """A watcher that does not read is ended with WATCH_STALLED at the last reply written; others go on (WAT-04)."""
    async with serving(write_timeout=timedelta(milliseconds=300)) as served:
        large = event_pb2.Event(revision=1)
        large.tab.title = "t" * 1_000_000
        served.events.replies = [
            tab_pb.WatchTabsResponse(
                events=[large], progress=progress_message(Progress(HISTORY, number))
            ).SerializeToString()
            for number in range(1, 60)
        ]
        served.below.gate = asyncio.Event()
        watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
        await watch.read()
        await served.events.closed.wait()
        await served.tab_service.GetServerInfo(tab_pb.GetServerInfoRequest())
        code, reason, metadata = await refusal(watch)
        assert (code, reason, list(metadata)) == ("RESOURCE_EXHAUSTED", "WATCH_STALLED", ["revision"])
        assert 1 <= int(metadata["revision"]) < 59


class DeadClient:
    """The context of a call whose client goes away while something is being written: the metadata, or a reply."""

    def __init__(self, meanwhile: str) -> None:
        self._meanwhile = meanwhile

    async def send_initial_metadata(self, metadata: object) -> None:
        if self._meanwhile == "metadata":
            raise grpc.aio.InternalError("the batch failed")

    async def write(self, message: object) -> None:
        raise grpc.aio.InternalError("the batch failed")

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return []

    def peer(self) -> str:
        return "unix:"

    def time_remaining(self) -> float | None:
        return None


class SlowClient(DeadClient):
    """The context of a call whose status takes its time to leave."""

    def __init__(self) -> None:
        super().__init__(meanwhile="")
        self.told, self.left = asyncio.Event(), asyncio.Event()

    async def write(self, message: object) -> None:
        """Take it."""

    async def abort_with_status(self, status: object) -> None:
        self.told.set()
        await self.left.wait()


def watch_handler(events: FakeEvents, drain: Drain) -> SimpleNamespace:
    """The handler of WatchTabs."""
    service = TabService(ServerInfo("1"), FakeTabs(events.below), FakeScripts(events.below), events, WatchSlots())
    handlers = Gate(drain).handlers(tab_pb.DESCRIPTOR.services_by_name["TabService"], service)
    details = cast("grpc.HandlerCallDetails", SimpleNamespace(method="/tabmux.v1.TabService/WatchTabs"))
    return cast("SimpleNamespace", handlers.service(details))


async def test_at_work_until_told() -> None:
    """A call is at work until its status has left: gRPC cuts what it has not sent when it stops (O-156)."""
    events, drain, client = FakeEvents(Below(), [FIRST.SerializeToString()]), Drain(), SlowClient()
    events.below.gate = asyncio.Event()
    watch = asyncio.ensure_future(watch_handler(events, drain).unary_stream(tab_pb.WatchTabsRequest(), client))
    await events.below.entered.wait()
    drain.begin()
    await client.told.wait()
    assert repr(drain) == "<Drain begun=True active=1 streams=0>"
    client.left.set()
    await watch
    await drain.idle()


@pytest.mark.parametrize("meanwhile", ["metadata", "reply"])
async def test_client_dies(meanwhile: str) -> None:
    """A client that dies while something is being written is a call that was cancelled, no fault of the server's."""
    events = FakeEvents(Below(), [FIRST.SerializeToString()])
    handler = watch_handler(events, Drain())
    with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
        await handler.unary_stream(tab_pb.WatchTabsRequest(), DeadClient(meanwhile))
    assert [(entry["event"], entry["code"]) for entry in logs] == [("call", "CANCELLED")]
    assert events.open_count == 0
