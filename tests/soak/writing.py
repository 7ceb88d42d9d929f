"""Programs that change things at a steady rate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    AcquireLeaseRequest,
    CloseTabRequest,
    CreateTabRequest,
    ReleaseLeaseRequest,
    UpdateTabRequest,
)

from tests.e2e.serving import LIMIT, Server

CHANGES_PER_SECOND: Final = 50
_WRITERS: Final = 5
_TABS: Final = 10
_CHANGES_PER_VISIT: Final = 100
_SECONDS: Final = 3 * LIMIT


class Writers:
    """They label tabs; now and then one opens a tab, holds it, lets it go and closes it."""

    def __init__(self, server: Server, chance: Random) -> None:
        """Nothing is written yet."""
        self.change_count = 0
        self._server = server
        self._chance = chance

    async def write(self, seconds: float) -> None:
        """As many changes as come to this time; where the machine is slow, it takes longer."""
        tabs = [await self._opened() for _ in range(_TABS)]
        count = round(seconds * CHANGES_PER_SECOND / _WRITERS)
        await asyncio.gather(*(self._write(tabs, count) for _ in range(_WRITERS)))

    async def _write(self, tabs: Sequence[Tab], count: int) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        for number in range(1, count + 1):
            due = max(due + _WRITERS / CHANGES_PER_SECOND, loop.time())
            await asyncio.sleep(due - loop.time())  # the rate is what is asked for
            if number % _CHANGES_PER_VISIT:
                labels = {"n": str(number), "chance": str(self._chance.random())}
                request = UpdateTabRequest(name=self._chance.choice(tabs).name, labels=labels)
                await self._server.tabs.UpdateTab(request, timeout=_SECONDS)
            else:
                await self._visit()
            self.change_count += 1

    async def _visit(self) -> None:
        tab = await self._opened()
        held = await self._server.tabs.AcquireLease(AcquireLeaseRequest(tab=tab.name), timeout=_SECONDS)
        await self._server.tabs.ReleaseLease(ReleaseLeaseRequest(name=held.lease.name), timeout=_SECONDS)
        await self._server.tabs.CloseTab(CloseTabRequest(name=tab.name), timeout=_SECONDS)

    async def _opened(self) -> Tab:
        return (await self._server.tabs.CreateTab(CreateTabRequest(), timeout=_SECONDS)).tab
