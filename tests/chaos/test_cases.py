"""What rounds of chaos have found, each case as small as it gets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import CreateTabRequest, WatchTabsRequest

from tests.cdp.browsers import fresh_profile
from tests.e2e.crashing_server import crashing
from tests.e2e.person import person_at
from tests.e2e.refusals import reason
from tests.e2e.serving import LIMIT, Server, serving
from tests.e2e.watching import watching

pytestmark = [pytest.mark.chromium, pytest.mark.timeout(90)]


@asynccontextmanager
async def served(*command: str) -> AsyncGenerator[Server]:
    """A server of its own."""
    with fresh_profile() as directory:
        async with serving(directory, 0, *command) as server:
            yield server


async def test_crash_while_opening() -> None:
    """A page that crashes while its tab opens leaves no target: CLOSED is told once it is gone (O-36, O-58, O-109)."""
    async with (
        served(*crashing(slow_prepare=1)) as server,
        watching(server.tabs.WatchTabs(WatchTabsRequest())) as watch,
        person_at(server.state_directory / "browsers" / "main") as person,
    ):
        opening = asyncio.ensure_future(reason(server.tabs.CreateTab(CreateTabRequest(), timeout=2 * LIMIT)))
        tab = (await watch.until(lambda event: event.tab.state == Tab.STATE_OPENING and event.tab.target_id)).tab
        await person.send("Page.crash", await person.attach(tab.target_id))
        await watch.until(lambda event: event.tab.state == Tab.STATE_CLOSED)
        assert await server.page_targets() == {}
        assert await opening in ("TAB_GONE", "TAB_CLOSED")
