"""`TabService`: each method converts, makes one call below, and converts back."""

from __future__ import annotations

from tabmux.v1 import tab_service_pb2 as pb

from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.rpc import fields, lease_requests, tab_requests
from tabmuxd.rpc.domain import Events, Scripts, ServerInfo, Tabs
from tabmuxd.rpc.listing import browsers_page, leases_page, tabs_page
from tabmuxd.rpc.pages import page_of
from tabmuxd.rpc.watch_requests import tabs_watch
from tabmuxd.rpc.watches import OpenWatch, WatchSlots
from tabmuxd.wire import (
    browser_message,
    closed_tab_message,
    lease_message,
    navigation_message,
    progress_message,
    tab_message,
)


class TabService:
    """Opens, reads, drives and watches tabs.

    A method of the contract that is missing here is not built: the gate answers so.
    """

    def __init__(self, info: ServerInfo, tabs: Tabs, scripts: Scripts, events: Events, slots: WatchSlots) -> None:
        self._info = info
        self._tabs = tabs
        self._scripts = scripts
        self._events = events
        self._slots = slots

    async def GetServerInfo(self, request: pb.GetServerInfoRequest, caller: Principal) -> pb.GetServerInfoResponse:
        """Tell about the server and the caller."""
        return pb.GetServerInfoResponse(
            version=self._info.version,
            principal=caller.name,
            scopes=sorted(caller.scopes),
            progress=progress_message(self._events.progress),
            disabled_methods=self._info.disabled_methods,
        )

    async def GetBrowser(self, request: pb.GetBrowserRequest, caller: Principal) -> pb.GetBrowserResponse:
        """Get a browser."""
        browser, counts = self._tabs.browser(fields.browser_name("name", request.name))
        return pb.GetBrowserResponse(browser=browser_message(browser, counts))

    async def ListBrowsers(self, request: pb.ListBrowsersRequest, caller: Principal) -> pb.ListBrowsersResponse:
        """List browsers, by name."""
        page = page_of(request, self._events.progress)
        return browsers_page(self._tabs.browsers(), page)

    async def CreateTab(self, request: pb.CreateTabRequest, caller: Principal) -> pb.CreateTabResponse:
        """Open a tab."""
        opened = await self._tabs.create(caller, tab_requests.tab_order(request))
        return pb.CreateTabResponse(
            tab=tab_message(opened.tab),
            lease=None if opened.lease is None else lease_message(opened.lease),
            from_pool=opened.from_pool,
            navigation=None if opened.navigation is None else navigation_message(opened.navigation),
        )

    async def AdoptTab(self, request: pb.AdoptTabRequest, caller: Principal) -> pb.AdoptTabResponse:
        """Take over a foreign page, as it is."""
        tab = await self._tabs.adopt(caller, tab_requests.adopt_order(request))
        return pb.AdoptTabResponse(tab=tab_message(tab))

    async def GetTab(self, request: pb.GetTabRequest, caller: Principal) -> pb.GetTabResponse:
        """Get a tab, closed ones too."""
        tab = await self._tabs.get(fields.tab_name("name", request.name))
        return pb.GetTabResponse(tab=tab_message(tab))

    async def ListTabs(self, request: pb.ListTabsRequest, caller: Principal) -> pb.ListTabsResponse:
        """List tabs, oldest first; foreign ones, if asked for, after all others."""
        wanted = tab_requests.tab_filter(request)
        return await tabs_page(self._tabs, wanted, page_of(request, self._events.progress))

    async def UpdateTab(self, request: pb.UpdateTabRequest, caller: Principal) -> pb.UpdateTabResponse:
        """Set labels, group, pin, dialog policy or sharing."""
        tab = await self._tabs.update(caller, tab_requests.tab_update(request))
        return pb.UpdateTabResponse(tab=tab_message(tab))

    async def CloseTab(self, request: pb.CloseTabRequest, caller: Principal) -> pb.CloseTabResponse:
        """Close a tab."""
        name = tab_requests.closed_tab(request)
        tab = await self._tabs.close(caller, name, lease=request.lease, force=request.force, pool=request.pool)
        return pb.CloseTabResponse(tab=tab_message(tab))

    async def CloseTabs(self, request: pb.CloseTabsRequest, caller: Principal) -> pb.CloseTabsResponse:
        """Close all tabs of the caller that match, and tell of each what was done."""
        outcomes = await self._tabs.close_many(caller, tab_requests.closed_tabs(request))
        return pb.CloseTabsResponse(outcomes=map(closed_tab_message, outcomes))

    async def RecoverTab(self, request: pb.RecoverTabRequest, caller: Principal) -> pb.RecoverTabResponse:
        """Bring a tab back to use."""
        name = tab_requests.recovered_tab(request)
        recovered = await self._tabs.recover(caller, name, lease=request.lease)
        strategy = pb.RecoverTabResponse.Strategy.ValueType(recovered.strategy)
        return pb.RecoverTabResponse(tab=tab_message(recovered.tab), strategy=strategy)

    async def CheckTabHealth(self, request: pb.CheckTabHealthRequest, caller: Principal) -> pb.CheckTabHealthResponse:
        """Look whether the page answers."""
        name, timeout = tab_requests.looked_at(request)
        return pb.CheckTabHealthResponse(tab=tab_message(await self._tabs.check_health(name, timeout=timeout)))

    async def NavigateTab(self, request: pb.NavigateTabRequest, caller: Principal) -> pb.NavigateTabResponse:
        """Go to an address."""
        tab, navigation = await self._tabs.navigate(caller, tab_requests.navigation_order(request))
        return pb.NavigateTabResponse(tab=tab_message(tab), navigation=navigation_message(navigation))

    async def EvaluateScript(self, request: pb.EvaluateScriptRequest, caller: Principal) -> pb.EvaluateScriptResponse:
        """Run a script in the page."""
        if "EvaluateScript" in self._info.disabled_methods:
            refused = refuse(
                Reason.METHOD_DISABLED,
                "This server runs no scripts of clients (`scripts = false`); nothing was done. Ask its operator.",
                method="EvaluateScript",
                setting="scripts",
            )
            raise with_outcome(refused, "no")
        ran = await self._scripts.evaluate(caller, tab_requests.script_order(request))
        return pb.EvaluateScriptResponse(result_json=ran.result_json, tab=tab_message(ran.tab))

    async def ActivateTab(self, request: pb.ActivateTabRequest, caller: Principal) -> pb.ActivateTabResponse:
        """Bring a tab to the front."""
        name = tab_requests.activated_tab(request)
        tab = await self._tabs.activate(caller, name, lease=request.lease)
        return pb.ActivateTabResponse(tab=tab_message(tab))

    async def AcquireLease(self, request: pb.AcquireLeaseRequest, caller: Principal) -> pb.AcquireLeaseResponse:
        """Take the exclusive right to a tab."""
        lease = await self._tabs.leases.acquire(caller, lease_requests.lease_order(request))
        return pb.AcquireLeaseResponse(lease=lease_message(lease))

    async def RenewLease(self, request: pb.RenewLeaseRequest, caller: Principal) -> pb.RenewLeaseResponse:
        """Extend a lease."""
        lease = await self._tabs.leases.renew(caller, lease_requests.named_lease(request))
        return pb.RenewLeaseResponse(lease=lease_message(lease))

    async def ReleaseLease(self, request: pb.ReleaseLeaseRequest, caller: Principal) -> pb.ReleaseLeaseResponse:
        """Give a lease back."""
        lease = await self._tabs.leases.release(caller, lease_requests.named_lease(request))
        return pb.ReleaseLeaseResponse(lease=lease_message(lease))

    async def ListLeases(self, request: pb.ListLeasesRequest, caller: Principal) -> pb.ListLeasesResponse:
        """List live leases, oldest first."""
        tab = lease_requests.listed_tab(request)
        return await leases_page(self._tabs.leases, tab, page_of(request, self._events.progress))

    def WatchTabs(self, request: pb.WatchTabsRequest, caller: Principal) -> OpenWatch:
        """Follow changes of browsers, tabs and leases; gives finished replies."""
        order = tabs_watch(request)
        return self._slots.holding(
            caller.name,
            self._events.watch(order.start, order.wanted, bookmark_interval=order.bookmark_interval),
        )
