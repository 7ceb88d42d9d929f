"""W1 to W12 over the wire: what clients of a real server saw, judged by the checkers that judge every other history."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import grpc
import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.statuses import error_of_call
from tabmux.v1.event_pb2 import EventKind as Kind
from tabmux.v1.event_pb2 import WatchProgress, WatchSnapshot, WatchStart
from tabmux.v1.tab_service_pb2 import (
    AcquireLeaseRequest,
    CloseTabRequest,
    CreateTabRequest,
    ListTabsRequest,
    UpdateTabRequest,
    WatchTabsRequest,
)
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    SendPromptRequest,
    WaitTurnRequest,
    WatchSessionsRequest,
)
from tabmuxd.clock import steady_clock
from tabmuxd.events import Log, Start, WatchFilter, session_filter, tab_filter
from tabmuxd.resources.event import EventKind, Progress

from tests.e2e.serving import BROWSER, LIMIT, Server
from tests.events.checkers import check
from tests.events.recording import Call, Reply, read_all

QUICK: Final = Duration(seconds=1)
NOBODY: Final = f"{BROWSER}/tabs/0000000000"
METHODS: Final = {
    WatchTabsRequest: "/tabmux.v1.TabService/WatchTabs",
    WatchSessionsRequest: "/tabmux.v1.WebAiService/WatchSessions",
}

Request: TypeAlias = WatchTabsRequest | WatchSessionsRequest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(120)]


@dataclass
class Client:
    """A client that records its calls: each begins where the one before was cut."""

    start: Start
    request: Request
    wanted: WatchFilter
    calls: list[Call] = field(default_factory=list)
    stream: grpc.aio.UnaryStreamCall[bytes, bytes] | None = None

    async def begin(self, channel: grpc.aio.Channel, head: int) -> None:
        """Watch; the first reply has come. `head` is a revision that was reached before."""
        start = self.calls[-1].place if self.calls else self.start
        assert start is not None
        request = type(self.request)(start=start_of(start), bookmark_interval=QUICK)
        request.MergeFrom(self.request)  # type: ignore[arg-type]  # of the same class
        open_stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(METHODS[type(request)])
        self.stream = open_stream(request.SerializeToString())
        self.calls.append(Call(start, self.wanted, head))
        await self.read()

    async def read(self) -> int:
        """Read one reply; the revision it comes to."""
        assert self.stream is not None
        body = await self.stream.read()
        assert isinstance(body, bytes)
        self.calls[-1].replies.append(Reply.parsed(body))
        return self.calls[-1].replies[-1].progress.revision

    async def passed(self, revision: int) -> None:
        """Read until that revision is reached, which takes no longer than a bookmark."""
        while self.calls[-1].replies[-1].progress.revision < revision:
            await self.read()

    async def end(self) -> str:
        """Read on until the server ends the call, and give its reason."""
        try:
            while True:
                await self.read()
        except grpc.aio.AioRpcError as error:
            return error_of_call(error).reason


def start_of(start: Start | Progress) -> WatchStart | None:
    """As the contract writes it."""
    match start:
        case Progress():
            return WatchStart(resume=WatchProgress(history_id=start.history_id, revision=start.revision))
        case Start.SNAPSHOT:
            return WatchStart(snapshot=WatchSnapshot())
        case Start.NOW:
            return None


async def head_of(server: Server) -> int:
    """The newest revision."""
    return (await server.tabs.ListTabs(ListTabsRequest(page_size=1), timeout=LIMIT)).progress.revision


async def write(server: Server, kept: str, session: str, text: str) -> int:
    """Change something of every kind; the newest revision then."""
    opened = (await server.tabs.CreateTab(CreateTabRequest(), timeout=2 * LIMIT)).tab.name
    for number in range(5):
        await server.tabs.UpdateTab(UpdateTabRequest(name=kept, labels={text: str(number)}), timeout=LIMIT)
    held = (await server.tabs.AcquireLease(AcquireLeaseRequest(tab=opened), timeout=LIMIT)).lease.name
    await server.ai.CreateSession(CreateSessionRequest(provider="playground-textarea"), timeout=LIMIT)
    request = SendPromptRequest(parent=session, request_id=text)
    request.prompt.text = f"{{{{plain=1 seconds=0.1}}}} {text}"
    turn = (await server.ai.SendPrompt(request, timeout=LIMIT)).turn
    wait = WaitTurnRequest(name=turn.name, max_wait_duration=Duration(seconds=60))
    await server.ai.WaitTurn(wait, timeout=4 * LIMIT)
    await server.tabs.CloseTab(CloseTabRequest(name=opened, lease=held), timeout=LIMIT)
    return await head_of(server)


async def test_contract(server: Server) -> None:
    """Whatever clients want, wherever they begin, over cuts and a killed server, W1 to W8 and W10 to W12 hold.

    A filter on a name that does not exist shows nothing, and its place moves on; in the end all are told DRAINING.
    """
    kept = (await server.tabs.CreateTab(CreateTabRequest(), timeout=2 * LIMIT)).tab.name
    create = CreateSessionRequest(provider="playground-textarea")
    session = (await server.ai.CreateSession(create, timeout=LIMIT)).session.name
    ended = [Kind.EVENT_KIND_ENDED, Kind.EVENT_KIND_CREATED]
    wishes: list[tuple[Request, WatchFilter]] = [
        (WatchTabsRequest(), tab_filter()),
        (WatchTabsRequest(parent=BROWSER, kinds=ended), tab_filter(kinds=[EventKind.ENDED, EventKind.CREATED])),
        (WatchTabsRequest(tabs=[kept]), tab_filter(tabs=[kept])),
        (WatchTabsRequest(tabs=[NOBODY]), tab_filter(tabs=[NOBODY])),
        (WatchSessionsRequest(), session_filter()),
        (WatchSessionsRequest(with_tabs=True), session_filter(with_tabs=True)),
        (
            WatchSessionsRequest(sessions=[session], with_tabs=True),
            session_filter(sessions=[session], with_tabs=True),
        ),
    ]
    clients = [Client(start, request, wanted) for start in Start for request, wanted in wishes]

    async def watch_all(text: str) -> grpc.aio.Channel:
        channel = server.channel()
        head = await head_of(server)
        await asyncio.gather(*(client.begin(channel, head) for client in clients))
        last = await write(server, kept, session, text)
        await asyncio.gather(*(client.passed(last) for client in clients))
        return channel

    async with asyncio.timeout(100):
        channel = await watch_all("cut")
        await channel.close()
        await watch_all("killed")
        await server.restart()
        await watch_all("drained")
        ends = asyncio.gather(*(client.end() for client in clients))
        await server.terminate()
        assert set(await ends) == {"DRAINING"}
    async with Log(server.state_directory / "tabmuxd.sqlite3", clock=steady_clock()) as log:
        truth = await read_all(log, 0)
    for client in clients:
        assert len(client.calls) == 3
        for call in client.calls:
            check(call, truth)
    seen = [[shown.revision for call in client.calls for shown in call.events] for client in clients]
    assert [not events for events in seen] == [request == WatchTabsRequest(tabs=[NOBODY]) for request, _ in wishes] * 2
    assert all(events == sorted(set(events)) for events in seen)
