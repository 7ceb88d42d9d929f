"""A page that does not answer while the server comes to its browser."""

import pytest
from tabmux.v1.tab_service_pb2 import CreateTabRequest, NavigateTabRequest

from tests.e2e.serving import BROWSER, LIMIT, Server

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.long,
    pytest.mark.slow,
    pytest.mark.timeout(90),
]

BUSY = "data:text/html,<script>setTimeout(()=>{let%20start=Date.now();while(Date.now()-start<14000);},300)</script>"


async def test_busy_page_is_bound_later(server: Server) -> None:
    """A page that is busy when a server starts is of use once it is free, and delays no other (O-113, O-129)."""
    busy = (await server.tabs.CreateTab(CreateTabRequest(parent=BROWSER, uri=BUSY), timeout=LIMIT)).tab
    other = (await server.tabs.CreateTab(CreateTabRequest(parent=BROWSER), timeout=LIMIT)).tab
    await server.restart()
    for tab in (other, busy):
        request = NavigateTabRequest(name=tab.name, uri="about:blank")
        request.milestone_timeout.FromSeconds(int(LIMIT))
        navigated = (await server.tabs.NavigateTab(request, timeout=2 * LIMIT)).tab
        assert (navigated.name, navigated.uri) == (tab.name, "about:blank")
