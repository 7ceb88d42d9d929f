"""The server itself: its socket, health, reflection, and its end."""

# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false
# The stubs of health and reflection know nothing of asyncio.

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tabmux.v1 import tab_service_pb2 as tab_pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb
from tabmuxd.rpc.drain import Drain

from tests.rpc.fakes import TAB, TURN, Part, Served, serving, status_from
from tests.rpc.test_watches import FIRST, WAIT_SECONDS, info_of, refusal

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
NAMES = ("", "tabmux.v1.TabService", "tabmux.v1.WebAiService")


def mode(path: Path) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("loose", [0o000, 0o022])
async def test_modes(loose: int) -> None:
    """The socket has mode 0600 and its directory 0700, also under a loose umask, which stays as it was (SEC-02)."""
    before = os.umask(loose)
    try:
        async with serving() as served:
            assert (oct(mode(served.socket)), oct(mode(served.socket.parent))) == ("0o600", "0o700")
            assert served.socket.is_socket()
            assert os.umask(loose) == loose
        assert not served.socket.exists()
    finally:
        os.umask(before)


async def test_health(served: Served) -> None:
    """Health says SERVING for the server and each service, whoever asks."""
    stub = health_pb2_grpc.HealthStub(served.channel)
    found = [
        await stub.Check(health_pb2.HealthCheckRequest(service=name), metadata=[("authorization", "Bearer x")])
        for name in NAMES
    ]
    assert [response.status for response in found] == [SERVING] * 3


async def test_reflection(served: Served) -> None:
    """Reflection lists both services."""
    stub = reflection_pb2_grpc.ServerReflectionStub(served.channel)
    call = stub.ServerReflectionInfo(iter([reflection_pb2.ServerReflectionRequest(list_services="")]))
    [response] = [response async for response in call]
    assert set(NAMES[1:]) <= {service.name for service in response.list_services_response.service}


async def test_large_request(served: Served) -> None:
    """A request beyond 4 MiB is refused, and the server goes on."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.GetTab(tab_pb.GetTabRequest(name="x" * (4 * 1024 * 1024)))
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    await served.tab_service.GetTab(tab_pb.GetTabRequest(name=TAB.name))


async def test_drain_ends_streams(served: Served) -> None:
    """When draining begins, watches and answers end with DRAINING, and health says NOT_SERVING (PRO-01)."""
    served.events.replies = [FIRST.SerializeToString()]
    served.web_ai.parts = [Part(0, "4", 1, TURN)]
    served.below.gate = asyncio.Event()
    stub = health_pb2_grpc.HealthStub(served.channel)
    health = stub.Watch(health_pb2.HealthCheckRequest())
    assert (await health.read()).status == SERVING
    tabs = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
    sessions = served.web_ai_service.WatchSessions(ai_pb.WatchSessionsRequest())
    answer = served.web_ai_service.StreamAnswer(ai_pb.StreamAnswerRequest(name=TURN.name))
    for stream in (tabs, sessions, answer):
        await stream.read()
    draining = asyncio.create_task(served.server.drain())
    ends = [await refusal(tabs), await refusal(sessions), await refusal(answer)]
    assert ends == [("UNAVAILABLE", "DRAINING", {})] * 3
    assert (await health.read()).status == NOT_SERVING
    assert (served.server.draining.is_set(), served.events.open_count) == (True, 0)
    await draining


@pytest.mark.parametrize("turns", range(4))
async def test_drain_meets_the_first_reply(served: Served, turns: int) -> None:
    """A watch whose first reply is just being written when draining begins ends with DRAINING too (PRO-01).

    `turns`: of the loop, after which draining begins.
    """
    served.events.replies = [FIRST.SerializeToString()]
    served.below.gate = asyncio.Event()
    draining: list[asyncio.Task[None]] = []

    def begin_after(count: int) -> None:
        if count:
            asyncio.get_running_loop().call_soon(begin_after, count - 1)
        else:
            draining.append(asyncio.create_task(served.server.drain()))

    served.events.first = lambda: begin_after(turns)
    watch = served.tab_service.WatchTabs(tab_pb.WatchTabsRequest())
    assert await refusal(watch) == ("UNAVAILABLE", "DRAINING", {})
    await asyncio.gather(*draining)


async def test_drain_answers_waits(served: Served) -> None:
    """When draining begins, WaitTurn answers at once with the turn as it is."""
    served.below.gate = asyncio.Event()
    wait = served.web_ai_service.WaitTurn(ai_pb.WaitTurnRequest(name=TURN.name))
    await served.below.entered.wait()
    draining = asyncio.create_task(served.server.drain())
    async with asyncio.timeout(WAIT_SECONDS):
        response = await wait
    assert (response.turn.name, served.below.cancelled.is_set()) == (TURN.name, True)
    await draining


async def test_drain_ends_uploads(served: Served) -> None:
    """An import whose file does not go on to come ends with DRAINING, and nothing is done (O-156)."""

    async def requests() -> AsyncGenerator[ai_pb.ImportSessionsRequest, None]:
        yield ai_pb.ImportSessionsRequest(info=ai_pb.ImportInfo(source=ai_pb.ImportInfo.SOURCE_AGBROWSE))
        await asyncio.Event().wait()

    call = served.web_ai_service.ImportSessions(requests())
    await served.below.entered.wait()
    draining = asyncio.create_task(served.server.drain())
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async with asyncio.timeout(WAIT_SECONDS):
            await call
    assert (caught.value.code(), *info_of(caught.value)) == (grpc.StatusCode.UNAVAILABLE, "DRAINING", {})
    assert served.below.calls == []
    await draining


async def test_drain_lets_calls_finish(served: Served) -> None:
    """A call at work when draining begins finishes, and new ones are DRAINING meanwhile (O-156)."""
    served.below.gate = asyncio.Event()
    call = served.tab_service.GetTab(tab_pb.GetTabRequest(name=TAB.name))
    await served.below.entered.wait()
    draining = asyncio.create_task(served.server.drain())
    await served.server.draining.wait()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.GetServerInfo(tab_pb.GetServerInfoRequest())
    assert (caught.value.code().name, info_of(caught.value)) == ("UNAVAILABLE", ("DRAINING", {}))
    served.below.gate.set()
    assert (await call).tab.name == TAB.name
    await draining


async def test_drain_has_an_end(served: Served) -> None:
    """A call that does not finish within the grace is cut."""
    served.below.gate = asyncio.Event()
    call = served.tab_service.GetTab(tab_pb.GetTabRequest(name=TAB.name))
    await served.below.entered.wait()
    async with asyncio.timeout(WAIT_SECONDS):
        await served.server.drain(timedelta(milliseconds=10))
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    assert caught.value.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    await served.below.cancelled.wait()


async def test_retry_delay_of_draining(served: Served) -> None:
    """DRAINING tells to come back after a second."""
    served.server.draining.set()
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.GetServerInfo(tab_pb.GetServerInfoRequest())
    assert b"google.rpc.RetryInfo" in status_from(caught.value).SerializeToString()


async def test_cancellation_stays_one() -> None:
    """A call that is cancelled while draining begins is cancelled, not drained."""
    drain = Drain()
    entered = asyncio.Event()

    async def work() -> None:
        async with drain.ended_by_drain():
            entered.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await entered.wait()
    task.cancel()
    drain.begin()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert repr(drain) == "<Drain begun=True active=0 streams=0>"


async def test_own_timeout_stays_one() -> None:
    """A TimeoutError of the work itself is not taken for draining."""
    drain = Drain()
    with pytest.raises(TimeoutError, match="own"):
        async with drain.ended_by_drain():
            raise TimeoutError("own")
