"""One program among many: asks, and judges each answer as far as it can be judged alone."""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any, Final
from uuid import UUID

import grpc
import grpc.aio
from google.protobuf.message import Message
from tabmux.statuses import error_of_call
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub

from tests.chaos.world import Known, World

DEADLINE: Final = 60.0
"""Seconds that a call may take, a wait for a server that is being restarted included: more is a hang."""

LOST: Final = "(lost)"
"""Stands for the reason where the server went away under the call, or the caller did."""

_OF_OUTAGES: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
_OUR_FAULT: Final = ("INVALID_FIELD", "TOKEN_INVALID", "SCOPE_MISSING", "METHOD_DISABLED")
"""Refusals of requests that no round makes."""


class Client:
    """A program of this name, or the person where it is empty; its choices come from the seed and its number."""

    def __init__(self, world: World, number: int, name: str) -> None:
        """Nothing is asked yet."""
        self.world = world
        self.random = Random(f"{world.plan.seed} {number}")
        self.principal = f"local/{name}" if name else "local"
        self.admin = not name
        channel = world.server.channel(name or None)
        self._stubs: tuple[Any, ...] = (TabServiceStub(channel), WebAiServiceStub(channel))
        self._ids = 0
        self.mine: list[str] = []
        """Names of tabs that are ours and not known to be closed."""
        self.leases: dict[str, str] = {}
        """Lease by tab, as far as we remember: it may have ended long ago."""
        self.sessions: list[str] = []

    async def ask(
        self, method: str, request: Message, *, timeout: float = DEADLINE, refused: Collection[str] = ()
    ) -> Any:  # noqa: ANN401 - whichever answer it is
        """The answer, or as a text the reason of the refusal; anything else that a call can end with is a failure.

        `timeout`: a shorter one than usual may run out. `refused`: reasons that this request may be refused with, and
        others never are.
        """
        stub = next(stub for stub in self._stubs if hasattr(stub, method))
        before = self.world.outages.count
        try:
            answer = await getattr(stub, method)(request, timeout=timeout, wait_for_ready=True)
        except grpc.aio.AioRpcError as error:
            answer = error_of_call(error).reason
            late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED and timeout < DEADLINE
            if not answer and (late or (error.code() in _OF_OUTAGES and self.world.outages.met(before))):
                answer = LOST
            if not answer or (answer in _OUR_FAULT and answer not in refused):
                raise AssertionError(f"{self.principal}: {method} {request} ended with {error!r}") from error
        self.world.answers[method, answer if isinstance(answer, str) else ""] += 1
        return answer

    def new_id(self) -> str:
        """A UUID of ours."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def new_address(self, path: str = "/page") -> str:
        """An address that nothing else has."""
        self._ids += 1
        title = f"{self.principal.replace('/', '-')}-{self._ids}"
        return self.world.pages.at(f"{path}?title={title}")

    def learn(self, tab: Tab, *addresses: str) -> None:
        """Note a tab that is ours now, and where it was sent."""
        known = self.world.tabs.setdefault(tab.name, Known(self.principal))
        known.owner = self.principal
        known.drivers.add(self.principal)
        known.addresses.update(addresses)
        if tab.name not in self.mine:
            self.mine.append(tab.name)

    def forget(self, tab: str) -> None:
        """It is closed, or was given away."""
        if tab in self.mine:
            self.mine.remove(tab)
        self.leases.pop(tab, None)

    def one_of_mine(self) -> str | None:
        """A tab of ours; None where there is none."""
        return self.random.choice(self.mine) if self.mine else None

    def one_of_others(self) -> str | None:
        """A tab that we could never drive; None where there is none."""
        others = [name for name, known in self.world.tabs.items() if self.principal not in known.drivers]
        return self.random.choice(others) if others and not self.admin else None

    def saw(self, name: str, tab: Tab) -> None:
        """Judge the tab in an answer to a call that drives it: it is the one that was named, where it was sent."""
        known = self.world.tabs[name]
        assert tab.name == name, f"asked of {name}, answered with {tab}"
        assert self.admin or self.principal in known.drivers, f"{self.principal} drove {tab}"
        assert tab.uri in {*known.addresses, "about:blank", ""}, f"{tab} was never sent there: {known}"
