"""`grpc.health.v1`: whether the server as a whole and each service serve."""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportAttributeAccessIssue=false
# The stubs of grpc_health know nothing of its asyncio servicer.

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

HEALTH_SERVICE: Final = "grpc.health.v1.Health"


class Health:
    """What health checks are answered; a browser that is away is no matter of health."""

    def __init__(self) -> None:
        self._servicer = health.aio.HealthServicer()

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serve it; the server as a whole, `""`, serves from the start."""
        health_pb2_grpc.add_HealthServicer_to_server(self._servicer, server)

    async def serving(self, services: Iterable[str]) -> None:
        """Say SERVING for each of `services`."""
        for service in services:
            await self._servicer.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def not_serving(self) -> None:
        """Say NOT_SERVING for everything, for good."""
        await self._servicer.enter_graceful_shutdown()
