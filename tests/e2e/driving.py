"""What a program does with tabs, as tests say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from tabmux.v1.event_pb2 import Event
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    CloseTabRequest,
    CloseTabsRequest,
    CreateTabRequest,
    GetTabRequest,
    ListLeasesRequest,
    ReleaseLeaseRequest,
)

from tests.e2e.person import Person
from tests.e2e.serving import LIMIT, Server

Fields: TypeAlias = Any
"""Fields of a request, by name."""


async def opened(server: Server, uri: str = "", **fields: Fields) -> Tab:
    """A tab at this address."""
    return (await server.tabs.CreateTab(CreateTabRequest(uri=uri, **fields), timeout=2 * LIMIT)).tab


async def got(server: Server, tab: Tab) -> Tab:
    """The tab as it stands."""
    return (await server.tabs.GetTab(GetTabRequest(name=tab.name), timeout=LIMIT)).tab


async def closed(server: Server, tab: Tab, *, force: bool = False) -> Tab:
    """The tab after CloseTab."""
    return (await server.tabs.CloseTab(CloseTabRequest(name=tab.name, force=force), timeout=LIMIT)).tab


def of(tab: Tab, state: Tab.State.ValueType) -> Callable[[Event], bool]:
    """Whether an event shows this tab in this state."""
    return lambda event: event.tab.name == tab.name and event.tab.state == state


async def close_all(server: Server) -> None:
    """Close every tab, whoever has or holds it."""
    for lease in (await server.tabs.ListLeases(ListLeasesRequest(), timeout=LIMIT)).leases:
        if not lease.session:
            await server.tabs.ReleaseLease(ReleaseLeaseRequest(name=lease.name), timeout=LIMIT)
    if any(tab.pooled for tab in await server.list_tabs()):
        await server.tabs.CloseTabs(CloseTabsRequest(all=True, any_owner=True), timeout=2 * LIMIT)
    for tab in await server.list_tabs():
        await closed(server, tab, force=True)


async def clear_browser(server: Server, person: Person) -> None:
    """Close every tab, and every page that is nobody's; the server knows of it."""
    await close_all(server)
    for target_id in await person.pages():
        await person.close(target_id)
    await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 0)
