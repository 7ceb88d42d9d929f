"""Leases over a real server and a real browser: who is kept out, who is fenced off, and how they end."""

from __future__ import annotations

import asyncio
import uuid
from functools import partial
from typing import Any, TypeAlias

import grpc.aio
import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.event_pb2 import ChangeCause, Event, EventKind, WatchProgress
from tabmux.v1.lease_pb2 import Lease, LeaseTerms
from tabmux.v1.prompt_pb2 import Prompt
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    AcquireLeaseRequest,
    ActivateTabRequest,
    CloseTabRequest,
    CreateTabRequest,
    CreateTabResponse,
    GetTabRequest,
    ListLeasesRequest,
    NavigateTabRequest,
    ReleaseLeaseRequest,
    RenewLeaseRequest,
    UpdateTabRequest,
    WatchTabsRequest,
)
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CreateSessionRequest,
    GetSessionRequest,
    SendPromptRequest,
)

from tests.e2e.pages import Pages
from tests.e2e.person import person_at
from tests.e2e.refusals import advice, reason, refusal
from tests.e2e.serving import BROWSER, LIMIT, Server
from tests.e2e.watching import watching

QUICK = Duration(seconds=1)
CLIENT = ChangeCause.CHANGE_CAUSE_CLIENT

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


class Caller:
    """A program of this name."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.tabs: Any = TabServiceStub(channel)

    async def opened(self, uri: str = "", **fields: Fields) -> CreateTabResponse:
        answer: CreateTabResponse = await self.tabs.CreateTab(CreateTabRequest(uri=uri, **fields), timeout=2 * LIMIT)
        return answer

    async def got(self, tab: Tab) -> Tab:
        return (await self.tabs.GetTab(GetTabRequest(name=tab.name), timeout=LIMIT)).tab

    async def acquired(self, tab: Tab, **fields: Fields) -> Lease:
        return (await self.tabs.AcquireLease(AcquireLeaseRequest(tab=tab.name, **fields), timeout=LIMIT)).lease

    async def renewed(self, lease: Lease) -> Lease:
        return (await self.tabs.RenewLease(RenewLeaseRequest(name=lease.name), timeout=LIMIT)).lease

    async def released(self, lease: Lease) -> Lease:
        return (await self.tabs.ReleaseLease(ReleaseLeaseRequest(name=lease.name), timeout=LIMIT)).lease

    async def went(self, tab: Tab, uri: str, **fields: Fields) -> Any:  # noqa: ANN401 - of a stub without types
        request = NavigateTabRequest(name=tab.name, uri=uri, **fields)
        return await self.tabs.NavigateTab(request, timeout=2 * LIMIT)

    async def leases(self, tab: str = "") -> list[Lease]:
        return list((await self.tabs.ListLeases(ListLeasesRequest(tab=tab), timeout=LIMIT)).leases)

    async def reasons(self, tab: Tab, uri: str, lease: str) -> dict[str, str]:
        """What each call that needs the lease is refused with under this one."""
        calls = {
            "NavigateTab": NavigateTabRequest(name=tab.name, uri=uri, lease=lease),
            "ActivateTab": ActivateTabRequest(name=tab.name, lease=lease),
            "CloseTab": CloseTabRequest(name=tab.name, lease=lease, force=True),
        }
        return {name: await reason(getattr(self.tabs, name)(call, timeout=LIMIT)) for name, call in calls.items()}


@pytest.fixture
def person(server: Server) -> Caller:
    """`local`, with every scope."""
    return Caller(server.channel())


@pytest.fixture
def a(server: Server) -> Caller:
    """`local/a`."""
    return Caller(server.channel("a"))


@pytest.fixture
def b(server: Server) -> Caller:
    """`local/b`."""
    return Caller(server.channel("b"))


def each(reason: str) -> dict[str, str]:
    """This reason for each call that needs the lease."""
    return dict.fromkeys(("NavigateTab", "ActivateTab", "CloseTab"), reason)


async def test_kept_out(server: Server, a: Caller, b: Caller, pages: Pages) -> None:
    """Without the lease that holds a tab no call touches it, or is told of (O-10, O-11, O-17, LSE-04)."""
    tab = (await a.opened(pages.at("/page"))).tab
    other = (await a.opened()).tab
    await a.tabs.UpdateTab(UpdateTabRequest(name=tab.name, share_with=["local/b"]), timeout=LIMIT)
    ended = await a.acquired(tab)
    await a.released(ended)
    elsewhere = await a.acquired(other)
    lease = await a.acquired(tab, terms=LeaseTerms(ttl=Duration(seconds=60), holder="report"))
    before = await a.got(tab)
    assert (before.lease, lease.owner, lease.terms.holder) == (lease.name, "local/a", "report")
    _, start = await server.watch_since(None)
    uri = pages.at("/404")

    for caller in (a, b):
        assert await caller.reasons(tab, uri, "") == each("LEASE_REQUIRED")
    assert await a.reasons(tab, uri, elsewhere.name) == each("LEASE_HELD")
    assert await a.reasons(tab, uri, "leases/0000000000") == each("LEASE_HELD")
    assert await a.reasons(tab, uri, ended.name) == each("LEASE_LOST")
    assert await b.reasons(tab, uri, lease.name) == each("NOT_OWNER")
    refused = await refusal(b.acquired(tab))
    assert (refused.reason, refused.metadata["tab"], refused.metadata["lease"]) == ("LEASE_HELD", tab.name, lease.name)
    assert await reason(b.renewed(lease)) == await reason(b.released(lease)) == "NOT_OWNER"
    step = await refusal(a.went(tab, uri, lease=ended.name))
    assert advice(step) == ("LEASE_LOST", "no", "after-verify")
    assert (step.metadata["lease"], step.metadata["cause"]) == (ended.name, "released")

    assert await told_by_clients(server, start) == []
    assert (await b.got(tab)).last_active_time == before.last_active_time
    assert await b.leases(tab.name) == [lease]
    assert await b.leases() == [elsewhere, lease]
    assert pages.hits["/404"] == 0
    went = await a.went(tab, uri, lease=lease.name)
    assert went.tab.uri == uri
    assert (await a.leases(tab.name))[0].expire_time == lease.expire_time


async def test_released_by_admin(a: Caller, person: Caller, pages: Pages) -> None:
    """`admin` may release another's lease, not drive under it; its holder's next call is LEASE_LOST (O-11)."""
    tab = (await a.opened(pages.at("/page"))).tab
    lease = await a.acquired(tab)
    assert await person.reasons(tab, pages.at("/404"), lease.name) == each("NOT_OWNER")
    ended = await person.released(lease)
    assert ended.HasField("end_time")
    assert await a.released(lease) == ended
    assert await a.reasons(tab, pages.at("/404"), lease.name) == each("LEASE_LOST")
    assert await reason(a.renewed(lease)) == "LEASE_LOST"
    assert (await a.got(tab)).lease == ""


async def test_fenced_off(server: Server, a: Caller, b: Caller, pages: Pages) -> None:
    """A navigation whose lease ends midway is LEASE_LOST and records nothing; the next lease waits (O-14, LSE-03)."""
    tab = (await a.opened(pages.at("/page"))).tab
    await a.tabs.UpdateTab(UpdateTabRequest(name=tab.name, share_with=["local/b"]), timeout=LIMIT)
    lease = await a.acquired(tab)
    before = await a.got(tab)
    async with (
        person_at(server.state_directory / "browsers" / "main") as somebody,
        watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[tab.name], bookmark_interval=QUICK))) as watch,
    ):
        session = await somebody.attach(tab.target_id)
        step = asyncio.ensure_future(refusal(a.went(tab, pages.at("/never-loaded"), lease=lease.name)))
        await watch.until(lambda event: event.tab.uri == pages.at("/never-loaded"))
        await a.released(lease)
        succession = asyncio.ensure_future(b.acquired(tab))
        assert await b.leases() == []
        await somebody.call("Page.navigate", session, url=pages.at("/page?title=elsewhere"))
        refused = await step
        successor = await succession
        await watch.until(lambda event: event.tab.lease == successor.name)
    assert advice(refused) == ("LEASE_LOST", "yes", "after-verify")
    assert (refused.metadata["lease"], refused.metadata["cause"]) == (lease.name, "released")
    assert successor.fencing_token > lease.fencing_token
    assert (await b.got(tab)).last_active_time == before.last_active_time
    by_clients = [event.tab.lease for event in watch.events if event.tab.name and event.cause == CLIENT]
    assert by_clients == ["", successor.name]


async def test_opened_with_lease(a: Caller, b: Caller, pages: Pages) -> None:
    """CreateTab grants the lease in the step that makes the tab READY; a repeat answers the live one (O-10, TAB-22)."""
    request = {"lease_terms": LeaseTerms(holder="report"), "request_id": str(uuid.uuid4())}
    first = await a.opened(pages.at("/page"), **request)
    again = await a.opened(pages.at("/page"), **request)
    assert (first.lease.owner, first.lease.tab, first.tab.lease) == ("local/a", first.tab.name, first.lease.name)
    assert (again.tab.name, again.lease) == (first.tab.name, first.lease)
    assert await a.reasons(first.tab, pages.at("/404"), "") == each("LEASE_REQUIRED")
    await a.released(first.lease)
    assert not (await a.opened(pages.at("/page"), **request)).HasField("lease")
    key = str(uuid.uuid4())
    lease, same = await asyncio.gather(*(a.acquired(first.tab, request_id=key) for _ in range(2)))
    assert lease == same
    assert await reason(a.acquired(first.tab, request_id=key, terms=LeaseTerms(holder="x"))) == "REQUEST_ID_REUSED"
    assert await reason(b.acquired(first.tab)) == "NOT_OWNER"
    closed = await a.tabs.CloseTab(CloseTabRequest(name=first.tab.name, lease=lease.name), timeout=LIMIT)
    assert (closed.tab.state, closed.tab.lease) == (Tab.STATE_CLOSED, "")
    assert await reason(a.acquired(first.tab)) == "TAB_CLOSED"
    lost = await refusal(a.renewed(lease))
    assert (lost.reason, lost.metadata["cause"]) == ("LEASE_LOST", "closed")


def ends_of(name: str, event: Event) -> bool:
    """Whether the event tells the end of the lease or tab of this name."""
    return event.kind == EventKind.EVENT_KIND_ENDED and name in (event.lease.name, event.tab.name)


async def test_expiry(server: Server, a: Caller, pages: Pages) -> None:
    """An expired lease ends, with its cause, and frees or closes the tab, a pinned one never (O-13, O-51, LSE-05)."""
    terms = LeaseTerms(ttl=Duration(seconds=5))
    closing = LeaseTerms(ttl=Duration(seconds=5), close_on_expiry=True)
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(parent=BROWSER, bookmark_interval=QUICK))) as watch:
        freed, closed, pinned, kept = await asyncio.gather(
            a.opened(pages.at("/page"), lease_terms=terms),
            a.opened(pages.at("/page"), lease_terms=closing),
            a.opened(pages.at("/page"), lease_terms=closing, pinned=True),
            a.opened(pages.at("/page"), lease_terms=LeaseTerms(ttl=Duration(seconds=60), close_on_expiry=True)),
        )
        renewed = await a.renewed(kept.lease)
        ends = [await watch.until(partial(ends_of, of.lease.name)) for of in (freed, closed, pinned)]
        end = await watch.until(partial(ends_of, closed.tab.name))
    assert [event.cause for event in (*ends, end)] == [ChangeCause.CHANGE_CAUSE_EXPIRY] * 4
    for event, of in zip(ends, (freed, closed, pinned), strict=True):
        assert event.lease.end_time.ToDatetime() >= of.lease.expire_time.ToDatetime()
    assert end.tab.close_cause == Tab.CLOSE_CAUSE_LEASE
    assert closed.tab.target_id not in await server.page_targets()
    for of in (freed, pinned):
        tab = await a.got(of.tab)
        assert (tab.state, tab.lease) == (Tab.STATE_READY, "")
    lost = await refusal(a.went(freed.tab, pages.at("/404"), lease=freed.lease.name))
    assert (lost.reason, lost.metadata["cause"]) == ("LEASE_LOST", "expired")
    assert (await a.got(kept.tab)).lease == renewed.name


async def test_restart(server: Server, pages: Pages) -> None:
    """A lease outlives kill -9 of the server and gets its time to live once more (O-6, O-12, O-129, LSE-06)."""
    a = Caller(server.channel("a"))
    opened = await a.opened(pages.at("/page"), lease_terms=LeaseTerms(ttl=Duration(seconds=600)))
    await server.restart()
    a = Caller(server.channel("a"))
    (lease,) = await a.leases()
    assert (lease.name, lease.fencing_token, lease.revision) == (
        opened.lease.name,
        opened.lease.fencing_token,
        opened.lease.revision,
    )
    assert lease.expire_time.ToDatetime() > opened.lease.expire_time.ToDatetime()
    assert await a.reasons(opened.tab, pages.at("/404"), "") == each("LEASE_REQUIRED")
    uri = pages.at("/page?title=again")
    assert (await a.went(opened.tab, uri, lease=lease.name)).tab.uri == uri


async def test_turn(server: Server) -> None:
    """An open turn's tab cannot be leased nor its lease released; a leased tab takes no prompt (O-15)."""
    caller = Caller(server.channel())
    session = (
        await server.ai.CreateSession(CreateSessionRequest(provider="playground-textarea"), timeout=LIMIT)
    ).session
    turn = await prompted(server, session.name, "one")
    tab = (await server.tabs_when(lambda tabs: any(tab.session == session.name and tab.lease for tab in tabs)))[0]
    (held,) = await caller.leases(tab.name)
    assert (held.session, held.owner) == (session.name, "")
    assert await reason(caller.acquired(tab)) == await reason(caller.released(held)) == "LEASE_HELD"
    assert await reason(caller.renewed(held)) == "NOT_OWNER"
    await server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)

    lease = await caller.acquired(tab)
    _, start = await server.watch_since(None)
    refused = await refusal(prompted(server, session.name, "two"))
    assert (refused.reason, refused.metadata["lease"]) == ("LEASE_HELD", lease.name)
    assert await told_by_clients(server, start) == []
    await caller.released(lease)
    turn = await prompted(server, session.name, "three")
    assert (await caller.got(tab)).lease not in ("", lease.name)
    await server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=LIMIT)
    now = (await server.ai.GetSession(GetSessionRequest(name=session.name), timeout=LIMIT)).session
    assert (now.tab, (await caller.got(tab)).lease) == (tab.name, "")


async def told_by_clients(server: Server, start: WatchProgress) -> list[Event]:
    """The events behind `start` of what clients did; a title may come late, and is the page's doing."""
    events, _ = await server.watch_since(start)
    return [event for event in events if event.cause != ChangeCause.CHANGE_CAUSE_PAGE]


async def prompted(server: Server, session: str, key: str) -> Turn:
    """A turn with a long answer."""
    request = SendPromptRequest(
        parent=session, prompt=Prompt(text=f"{{{{plain=1 seconds=60 think=0.05}}}} {key}"), request_id=key
    )
    return (await server.ai.SendPrompt(request, timeout=LIMIT)).turn
