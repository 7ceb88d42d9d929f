"""The gRPC server on its Unix socket."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_reflection.v1alpha import reflection
from tabmux.v1 import tab_service_pb2, web_ai_service_pb2

from tabmuxd.rpc.domain import Events, Scripts, ServerInfo, Tabs, WebAi
from tabmuxd.rpc.drain import Drain
from tabmuxd.rpc.gate import WRITE_TIMEOUT, Gate
from tabmuxd.rpc.health import HEALTH_SERVICE, Health
from tabmuxd.rpc.tab_service import TabService
from tabmuxd.rpc.watches import MAX_PRINCIPAL_WATCH_COUNT, MAX_WATCH_COUNT, WatchSlots
from tabmuxd.rpc.web_ai_service import WebAiService

DRAIN_GRACE: Final = timedelta(seconds=20)
_FLUSH_SECONDS: Final = 3.0
SERVER_OPTIONS: Final = (
    ("grpc.max_receive_message_length", 4 * 1024 * 1024),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # grpcio 1.85 silently ignores the name with `recv` in it; without this one, clients that ping are cut off.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    ("grpc.http2.max_pings_without_data", 0),
)
_SERVICES: Final[tuple[ServiceDescriptor, ...]] = (
    tab_service_pb2.DESCRIPTOR.services_by_name["TabService"],
    web_ai_service_pb2.DESCRIPTOR.services_by_name["WebAiService"],
)


class RpcServer:
    """Serves both services, health and reflection on a Unix socket while `async with` lasts.

    Leaving ends every call at once; `drain` first for a gentle end. Whoever starts it must be the only server of the
    state directory: gRPC takes over a live socket without an error.
    """

    def __init__(
        self,
        socket: Path,
        info: ServerInfo,
        tabs: Tabs,
        scripts: Scripts,
        web_ai: WebAi,
        *,
        events: Events,
        max_watch_count: int = MAX_WATCH_COUNT,
        max_principal_watch_count: int = MAX_PRINCIPAL_WATCH_COUNT,
        write_timeout: timedelta = WRITE_TIMEOUT,
    ) -> None:
        self._socket = socket
        self._drain = Drain()
        self._health = Health()
        slots = WatchSlots(max_watch_count, max_principal_watch_count)
        gate = Gate(self._drain, write_timeout=write_timeout)
        servicers = (
            TabService(info, tabs, scripts, events, slots),
            WebAiService(web_ai, events, slots, self._drain),
        )
        self._handlers = [
            gate.handlers(service, servicer) for service, servicer in zip(_SERVICES, servicers, strict=True)
        ]
        self._server: grpc.aio.Server | None = None

    def __repr__(self) -> str:
        return f"<RpcServer {self._socket} {self._drain}>"

    @property
    def draining(self) -> asyncio.Event:
        """Set once draining has begun."""
        return self._drain.begun

    async def __aenter__(self) -> Self:
        """Bind the socket, with mode 0600 in a directory that is made with mode 0700, and serve."""
        self._server = grpc.aio.server(options=SERVER_OPTIONS)
        self._server.add_generic_rpc_handlers(self._handlers)
        self._health.add_to(self._server)
        names = [service.full_name for service in _SERVICES]
        reflection.enable_server_reflection([*names, HEALTH_SERVICE, reflection.SERVICE_NAME], self._server)
        with _private_files():
            self._socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._server.add_insecure_port(f"unix://{self._socket}")
            self._socket.chmod(0o600)  # the umask leaves 0700
        await self._server.start()
        await self._health.serving(names)
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """End what is left."""
        if self._server is not None:
            await self._server.stop(None)

    async def drain(self, grace: timedelta = DRAIN_GRACE) -> None:
        """Refuse new calls with DRAINING, end streams with it, give other calls `grace`, and stop serving.

        Health says NOT_SERVING from the first moment.
        """
        await self._health.not_serving()
        self._drain.begin()
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self._drain.idle()
        except TimeoutError:
            pass
        if self._server is not None:
            # What is left are streams that nobody reads, health watches, and calls that did not end: the last answers
            # leave, then all is cut.
            await self._server.stop(_FLUSH_SECONDS)


@contextmanager
def _private_files() -> Generator[None]:
    """Make files and sockets for ourselves only; a socket's mode follows the umask."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)
