"""Handles for tabs, and how one is found by a part of its name."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from tabmux.calls import Calls
from tabmux.durations import duration_of
from tabmux.errors import AmbiguousNameError, TabmuxError
from tabmux.names import id_of
from tabmux.v1.tab_pb2 import Tab as TabResource
from tabmux.v1.tab_service_pb2 import (
    LOAD_MILESTONE_COMMITTED,
    LOAD_MILESTONE_DOM_CONTENT_LOADED,
    LOAD_MILESTONE_LOADED,
    ActivateTabRequest,
    CloseTabRequest,
    EvaluateScriptRequest,
    EvaluateScriptResponse,
    GetTabRequest,
    ListTabsRequest,
    LoadMilestone,
    NavigateTabRequest,
    Navigation,
    UpdateTabRequest,
)

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub  # exists for type checkers only

Milestone = Literal["committed", "dom", "loaded"]

MILESTONES: Mapping[Milestone, LoadMilestone.ValueType] = MappingProxyType(
    {
        "committed": LOAD_MILESTONE_COMMITTED,
        "dom": LOAD_MILESTONE_DOM_CONTENT_LOADED,
        "loaded": LOAD_MILESTONE_LOADED,
    },
)
_STATES = tuple(value for value in TabResource.State.values() if value != TabResource.STATE_UNSPECIFIED)
_ORIGINS = tuple(value for value in TabResource.Origin.values() if value != TabResource.ORIGIN_UNSPECIFIED)
_ID_LENGTH = 10


class Tab:
    """One tab. `resource` is how it stood at the last call; `navigation` what is known of the last navigation."""

    def __init__(
        self,
        service: "TabServiceAsyncStub",
        calls: Calls,
        resource: TabResource,
        navigation: Navigation | None = None,
    ) -> None:
        self._service = service
        self._calls = calls
        self.resource = resource
        self.navigation = navigation

    @property
    def name(self) -> str:
        """Its resource name, `browsers/{browser}/tabs/{tab}`, for as long as it lives."""
        return self.resource.name

    async def get(self) -> TabResource:
        """The tab as it stands."""
        self.resource = (await self._calls.unary(self._service.GetTab, GetTabRequest(name=self.name))).tab
        return self.resource

    async def navigate(
        self,
        uri: str,
        *,
        until: Milestone = "loaded",
        milestone_timeout: timedelta | None = None,
        expected_generation: int = 0,
        request_id: str = "",
    ) -> Navigation:
        """Go to an address, and tell how far it came: only a navigation that surely failed is an error.

        With `request_id`, a UUID, the call is safe to repeat, and this client repeats it.
        """
        request = NavigateTabRequest(
            name=self.name,
            uri=uri,
            until=MILESTONES[until],
            milestone_timeout=duration_of(milestone_timeout),
            expected_generation=expected_generation,
            request_id=request_id,
        )
        response = await self._calls.unary(self._service.NavigateTab, request)
        self.resource, self.navigation = response.tab, response.navigation
        return response.navigation

    async def evaluate(
        self,
        script: str,
        *,
        await_promise: bool = False,
        result_timeout: timedelta | None = None,
        expected_generation: int = 0,
    ) -> Any:  # noqa: ANN401 - what the script gives
        """Run a script in the page, and give its value as `json.loads` makes it; `None` for `undefined` too.

        It is handed to the page once or not at all: `OutcomeUnknownError` means that it may have run, SCRIPT_FAILED,
        RESULT_NOT_SERIALIZABLE and RESULT_TOO_LARGE that it has. What comes back was written by the page, and is not to
        be trusted.
        """
        response = await self.evaluate_json(
            script,
            await_promise=await_promise,
            result_timeout=result_timeout,
            expected_generation=expected_generation,
        )
        return json.loads(response.result_json) if response.result_json else None

    async def evaluate_json(
        self,
        script: str,
        *,
        await_promise: bool = False,
        result_timeout: timedelta | None = None,
        expected_generation: int = 0,
    ) -> EvaluateScriptResponse:
        """As `evaluate`, with the value as the JSON text that came."""
        request = EvaluateScriptRequest(
            name=self.name,
            script=script,
            await_promise=await_promise,
            result_timeout=duration_of(result_timeout),
            expected_generation=expected_generation,
        )
        response = await self._calls.unary(self._service.EvaluateScript, request)
        self.resource = response.tab
        return response

    async def activate(self) -> TabResource:
        """Bring the tab to the front; `front` is set only if it was seen there."""
        self.resource = (await self._calls.unary(self._service.ActivateTab, ActivateTabRequest(name=self.name))).tab
        return self.resource

    async def close(self, *, force: bool = False) -> TabResource:
        """Close the tab, with `force` also one that is pinned or serves an open turn; a closed one stays closed."""
        request = CloseTabRequest(name=self.name, force=force)
        self.resource = (await self._calls.unary(self._service.CloseTab, request)).tab
        return self.resource

    async def update(
        self,
        *,
        group: str | None = None,
        pinned: bool | None = None,
        labels: Mapping[str, str] | None = None,
        expected_revision: int = 0,
    ) -> TabResource:
        """Set group, pin or labels; `None` leaves them, an empty group or label value takes them away."""
        request = UpdateTabRequest(name=self.name, expected_revision=expected_revision, group=group, pinned=pinned)
        request.labels.update(labels or {})
        self.resource = (await self._calls.unary(self._service.UpdateTab, request)).tab
        return self.resource

    async def pin(self, pinned: bool = True) -> TabResource:  # noqa: FBT001, FBT002 - `pin(False)` says what it does
        """Keep the tab from being closed without force, or no longer."""
        return await self.update(pinned=pinned)

    async def label(self, labels: Mapping[str, str]) -> TabResource:
        """Set labels; one with an empty value is removed, others stay."""
        return await self.update(labels=labels)


async def list_tabs(
    service: "TabServiceAsyncStub",
    calls: Calls,
    *,
    browser: str = "",
    groups: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    closed: bool = False,
    foreign: bool = False,
) -> AsyncGenerator[TabResource, None]:
    """Yield tabs that match, oldest first, over all pages; closed and foreign ones only if asked for."""
    request = ListTabsRequest(
        parent=browser,
        states=_STATES if closed else (),
        origins=_ORIGINS if foreign else (),
        groups=groups,
        labels=labels or {},
    )
    async for reply in calls.pages(service.ListTabs, request):
        for tab in reply.tabs:
            yield tab


async def find_tab(service: "TabServiceAsyncStub", calls: Calls, given: str) -> TabResource:
    """Tab by its full name, its id, or any beginning of the id that only one open tab has.

    Raises `AmbiguousNameError` if several have it, and `TabmuxError` with TAB_NOT_FOUND if none has.
    """
    if "/" in given or len(given) >= _ID_LENGTH:
        name = given if "/" in given else f"browsers/-/tabs/{given}"
        return (await calls.unary(service.GetTab, GetTabRequest(name=name))).tab
    fitting = [tab async for tab in list_tabs(service, calls) if given and id_of(tab.name).startswith(given)]
    exact = [tab for tab in fitting if id_of(tab.name) == given]
    match exact or fitting:
        case [tab]:
            return tab
        case []:
            raise TabmuxError(
                f"no open tab has an id that begins with {given!r}",
                reason="TAB_NOT_FOUND",
                code="NOT_FOUND",
                metadata={"tab": given},
            )
        case several:
            raise AmbiguousNameError(given, [tab.name for tab in several])
