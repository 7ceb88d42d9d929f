"""What the end-to-end tests stand on."""

from pathlib import Path

import pytest
from tabmux.v1.tab_service_pb2 import CreateTabRequest, ListTabsRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub

from tests.e2e.serving import BROWSER, LIMIT, PlaygroundProcess, Server, browser_leaders, serving

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(90)]


async def test_named_program_owns_its_tab(server: Server) -> None:
    """A program that names itself on the socket owns what it opens (O-1, O-7)."""
    named = TabServiceStub(server.channel(as_name="alpha"))
    created = await named.CreateTab(CreateTabRequest(parent=BROWSER), timeout=LIMIT)
    assert created.tab.owner == "local/alpha"
    listed = await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)
    assert [tab.name for tab in listed.tabs] == [created.tab.name]
    assert list(await server.page_targets()) == [created.tab.target_id]


async def test_orderly_end_leaves_no_browser(state_directory: Path, playground: PlaygroundProcess) -> None:
    """A server that was asked to end has ended its LAUNCHED browser, and says 0 (PRO-01, O-156)."""
    async with serving(state_directory, playground.port) as server:
        assert browser_leaders(state_directory) == [server.browser_pid]
        assert await server.terminate() == 0
        assert browser_leaders(state_directory) == []
