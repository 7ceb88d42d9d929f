"""Requests and pages that mean harm: every answer is typed, everything goes on, and no secret is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

import grpc
import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf import message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tabmux.statuses import error_of_call
from tabmux.v1 import tab_service_pb2, web_ai_service_pb2
from tabmux.v1.event_pb2 import Event
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    AcquireLeaseRequest,
    CloseTabRequest,
    CreateTabRequest,
    GetServerInfoRequest,
    GetTabRequest,
    ListTabsRequest,
    NavigateTabRequest,
    Navigation,
    UpdateTabRequest,
    WatchTabsRequest,
)
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    SendPromptRequest,
    WaitTurnRequest,
    WatchSessionsRequest,
)
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub

from tests.cdp.browsers import fresh_profile
from tests.e2e.crashing_server import crashing
from tests.e2e.driving import close_all, opened
from tests.e2e.pages import Pages
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server, serving
from tests.e2e.watching import watching

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.chromium, pytest.mark.timeout(180)]

QUICK = Duration(seconds=1)
METHODS = [
    *tab_service_pb2.DESCRIPTOR.services_by_name["TabService"].methods,
    *web_ai_service_pb2.DESCRIPTOR.services_by_name["WebAiService"].methods,
]
CLIENT_STREAMS = {method.name for method in METHODS if method.client_streaming}
# What may come without a reason: what is not built, and messages that the transport does not take.
BARE_CODES = {"UNIMPLEMENTED", "RESOURCE_EXHAUSTED"}
HARMLESS = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION", "PERMISSION_DENIED", "ABORTED"} | BARE_CODES


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def _unharmed(server: Server) -> AsyncIterator[None]:
    """Afterwards the server serves, and nothing in it went wrong."""
    yield
    await server.tabs.GetServerInfo(GetServerInfoRequest(), timeout=LIMIT)
    await close_all(server)
    for trouble in ("incident", "task failed", "Traceback", "never awaited"):
        assert [line for line in server.log().splitlines() if trouble in line] == []


# Requests

TEXTS = st.one_of(
    st.text(max_size=40),
    st.text(alphabet=st.characters(codec="utf-8", categories=["Cc", "Cf", "So", "Mn"]), max_size=10),
    st.sampled_from(
        [
            "", "browsers/main", "browsers/-", "browsers/main/tabs/0000000000", "browsers/-/tabs/0000000000",
            "browsers/main/tabs/\0", "browsers/main/tabs/../../x", "sessions/x", "sessions/x/turns/0000000000",
            "leases/0000000000", "artifacts/0000000000", "playground-textarea", "local/x", "'; DROP TABLE tab; --",
            "%s%n%x", "{0}", "a" * 70_000, "ü" * 5000, "\0", "\ufeff", "\u202e", "http://127.0.0.1:1/", "data:,x",
            "http://[::", "http://127.0.0.1:99999999999", "http://\u2100.com/", "http://xn--/", "64d0" * 8,
            "javascript:1",
            "0f0e0d0c-0b0a-4908-8706-050403020100", "1" * 400, "f" * 64,
        ]
    ),
)  # fmt: skip
# Fields that name something, and names that `Living` puts in place: what these say is as likely there as anything else.
NAME_FIELDS = frozenset({"lease", "name", "parent", "session", "tab", "tabs", "turn"})
LIVE_NAMES = st.sampled_from(
    ["browsers/main/tabs/1111111111", "leases/1111111111", "sessions/live", "sessions/live/turns/1111111111"]
)
INTS = {
    FieldDescriptor.CPPTYPE_INT32: st.one_of(st.sampled_from([0, 1, -1, 2**31 - 1, -(2**31)]), st.integers(-9, 600)),
    FieldDescriptor.CPPTYPE_INT64: st.one_of(st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63)]), st.integers(-9, 9)),
}


def messages(descriptor: Descriptor | None, depth: int = 4) -> st.SearchStrategy[Message]:
    """Messages of this type, most fields of which are set to something."""
    assert descriptor is not None
    new = message_factory.GetMessageClass(descriptor)
    if not descriptor.fields or depth == 0:
        return st.builds(new)
    fields = {field.name: st.none() | values(field, depth) for field in descriptor.fields}
    return st.fixed_dictionaries({}, optional=fields).map(
        lambda chosen: new(**{name: value for name, value in chosen.items() if value is not None})
    )


def values(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    """Values of one field."""
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return st.dictionaries(TEXTS, TEXTS, max_size=20)
    one = single(field, depth)
    return st.lists(one, max_size=20) if field.is_repeated else one


def single(field: FieldDescriptor, depth: int) -> st.SearchStrategy[Any]:
    """One value."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING if field.type == FieldDescriptor.TYPE_BYTES:
            return st.binary(max_size=100)
        case FieldDescriptor.CPPTYPE_STRING:
            return LIVE_NAMES | TEXTS if field.name in NAME_FIELDS else TEXTS
        case FieldDescriptor.CPPTYPE_BOOL:
            return st.booleans()
        case FieldDescriptor.CPPTYPE_ENUM:
            return st.sampled_from([0, 1, 2, 3, 7, 99, -1, 2**31 - 1, -(2**31)])
        case FieldDescriptor.CPPTYPE_MESSAGE:
            return messages(field.message_type, depth - 1)
        case kind:
            return INTS[kind]


async def outcome(server: Server, method: str, request: Message) -> str:
    """OK, or the code that the call ends with; a code without a reason is told as such."""
    stub: Any = server.tabs if hasattr(server.tabs, method) else server.ai
    try:
        call = getattr(stub, method)(iter([request]) if method in CLIENT_STREAMS else request, timeout=2 * LIMIT)
        if hasattr(call, "__aiter__") and not hasattr(call, "__await__"):
            async for _ in call:
                break
            call.cancel()
        else:
            await call
    except grpc.aio.AioRpcError as error:
        known = error_of_call(error)
        return known.code if known.reason or known.code in BARE_CODES else f"{known.code} without a reason: {known}"
    return "OK"


class Living:
    """A tab, a lease on it, a session and a turn, there for whoever guesses their names; ids are of equal length."""

    def __init__(self, server: Server, turn: str) -> None:
        self._server = server
        self._turn = turn
        self._tab = ""
        self._lease = ""

    async def named_in(self, request: Message) -> Message:
        """The request with the names of what lives in place of those made up."""
        if not self._tab or await self._has_closed():
            self._tab = (await opened(self._server)).name
            acquire = AcquireLeaseRequest(tab=self._tab)
            self._lease = (await self._server.tabs.AcquireLease(acquire, timeout=LIMIT)).lease.name
        serialized = request.SerializeToString()
        for name in (self._tab, self._lease, self._turn):
            kind, identity = name.split("/")[-2:]
            serialized = serialized.replace(f"{kind}/1111111111".encode(), f"{kind}/{identity}".encode())
        return type(request).FromString(serialized)

    async def _has_closed(self) -> bool:
        tab = (await self._server.tabs.GetTab(GetTabRequest(name=self._tab), timeout=LIMIT)).tab
        return tab.state == Tab.STATE_CLOSED


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def living(server: Server) -> Living:
    """What lives on this module's server."""
    session = CreateSessionRequest(session_id="live", provider="playground-textarea")
    await server.ai.CreateSession(session, timeout=LIMIT)
    sending = SendPromptRequest(parent="sessions/live", request_id="1")
    sending.prompt.text = "{{plain=1 seconds=0.1}}"
    return Living(server, (await server.ai.SendPrompt(sending, timeout=LIMIT)).turn.name)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_fuzzed(server: Server, living: Living, method: MethodDescriptor) -> None:
    """Whatever a request holds, its answer is OK or a status with a reason, never a fault of the server (SEC-08)."""
    seen: set[str] = set()

    @settings(
        max_examples=15,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.large_base_example, HealthCheck.data_too_large],
        phases=[Phase.generate],
    )
    @given(request=messages(method.input_type))
    def collect(request: Message) -> None:
        requests.append(request)

    requests: list[Message] = []
    collect()
    for request in requests:
        seen.add(await outcome(server, method.name, await living.named_in(request)))
    assert seen <= HARMLESS | {"UNAVAILABLE", "OUT_OF_RANGE", "ALREADY_EXISTS", "UNAUTHENTICATED"}


async def test_oversized(server: Server) -> None:
    """A field of 5 MB, or labels without end, are refused, and the connection serves on (PAG-06)."""
    big = "x" * 5_000_000
    assert await outcome(server, "GetTab", GetTabRequest(name=big)) == "RESOURCE_EXHAUSTED"
    almost = "x" * 4_000_000
    assert await outcome(server, "GetTab", GetTabRequest(name=almost)) == "INVALID_ARGUMENT"
    assert await outcome(server, "CreateTab", CreateTabRequest(uri=f"http://{almost}/")) == "INVALID_ARGUMENT"
    many = {str(number): "x" for number in range(100_000)}
    assert await outcome(server, "CreateTab", CreateTabRequest(labels=many)) == "INVALID_ARGUMENT"
    shared = [f"local/{number}" for number in range(100_000)]
    tab = await opened(server)
    assert await outcome(server, "UpdateTab", UpdateTabRequest(name=tab.name, share_with=shared)) == "INVALID_ARGUMENT"
    unshared = UpdateTabRequest(name=tab.name, unshare_with=shared)
    assert await outcome(server, "UpdateTab", unshared) in {"OK", "INVALID_ARGUMENT"}
    assert await outcome(server, "WatchTabs", WatchTabsRequest(tabs=[tab.name] * 100_000)) == "INVALID_ARGUMENT"


async def long_prompt(server: Server, size: int) -> SendPromptRequest:
    """A prompt of so many bytes to a new session."""
    created = await server.ai.CreateSession(CreateSessionRequest(provider="playground-textarea"), timeout=LIMIT)
    request = SendPromptRequest(parent=created.session.name, request_id="1")
    request.prompt.text = "{{plain=1 seconds=0.1}} ".ljust(size, "x")
    return request


async def test_too_long_prompt(server: Server) -> None:
    """A prompt of one byte more than 1 MiB is INVALID_FIELD."""
    request = await long_prompt(server, 1024 * 1024 + 1)
    assert await reason(server.ai.SendPrompt(request, timeout=LIMIT)) == "INVALID_FIELD"


@pytest.mark.long
async def test_longest_prompt(server: Server) -> None:
    """A prompt of exactly 1 MiB is sent as it is, or refused before the press."""
    turn = (await server.ai.SendPrompt(await long_prompt(server, 1024 * 1024), timeout=LIMIT)).turn
    wait = WaitTurnRequest(name=turn.name, max_wait_duration=Duration(seconds=90))
    end = (await server.ai.WaitTurn(wait, timeout=120)).turn
    if end.state != Turn.STATE_SUCCEEDED:
        assert end.error.metadata["page_touched"] == "no", end


# Pages


@pytest.mark.parametrize("path", ["/long-title", "/odd-title"])
async def test_titles(server: Server, pages: Pages, path: str) -> None:
    """A title of a megabyte, or of control characters and halves, is cut to 1 KiB of whole characters (O-152)."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=QUICK))) as watch:
        tab = await opened(server, pages.at(path))
        event = await watch.until(lambda event: event.tab.name == tab.name and event.tab.title)
    assert 0 < len(event.tab.title.encode()) <= 1024
    assert (await server.tabs.GetTab(GetTabRequest(name=tab.name), timeout=LIMIT)).tab.title


async def test_odd_dialog(server: Server, pages: Pages) -> None:
    """The text of a dialog is cut to 1 KiB of whole characters (O-152)."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=QUICK))) as watch:
        tab = await opened(server, pages.at("/odd-dialog"))
        event = await watch.until(lambda event: event.tab.name == tab.name and event.tab.HasField("dialog"))
    assert 0 < len(event.tab.dialog.message.encode()) <= 1024


async def test_long_address(server: Server, pages: Pages) -> None:
    """An address that a page makes endless is cut to 8 KiB, also in the answer of a step."""
    tab = await opened(server)
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=QUICK))) as watch:
        answer = await server.tabs.NavigateTab(
            NavigateTabRequest(name=tab.name, uri=pages.at("/makes-long-address?title=again")), timeout=LIMIT
        )
        assert len(answer.tab.uri) <= 8192
        event = await watch.until(lambda event: event.tab.name == tab.name and len(event.tab.uri) > 4000)
    assert len(event.tab.uri) <= 8192


async def test_flood(server: Server, pages: Pages) -> None:
    """A page that floods console and title holds up nobody, and is recorded a few times a second at most (CON-09)."""
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(bookmark_interval=QUICK))) as watch:
        noisy = await opened(server, pages.at("/floods"))
        for number in range(5):
            other = await opened(server, pages.at(f"/page?title=calm{number}"))
            await watch.until(partial(_is_calm, other.name))
        events = [event for event in watch.events if event.tab.name == noisy.name]
    seconds = (events[-1].record_time.ToNanoseconds() - events[0].record_time.ToNanoseconds()) / 1e9
    assert len(events) <= 4 * seconds + 4
    closed = (await server.tabs.CloseTab(CloseTabRequest(name=noisy.name), timeout=LIMIT)).tab
    assert closed.state == Tab.STATE_CLOSED


def _is_calm(name: str, event: Event) -> bool:
    return event.tab.name == name and event.tab.title.startswith("calm")


@pytest.mark.parametrize("policy", [Tab.DIALOG_POLICY_ACCEPT, Tab.DIALOG_POLICY_DISMISS])
async def test_dialog_flood(server: Server, pages: Pages, policy: Tab.DialogPolicy.ValueType) -> None:
    """Two hundred dialogs in a row are all answered by the policy, and none is recorded (O-105)."""
    tab = await opened(server)
    await server.tabs.UpdateTab(UpdateTabRequest(name=tab.name, dialog_policy=policy), timeout=LIMIT)
    await server.tabs.NavigateTab(
        NavigateTabRequest(name=tab.name, uri=pages.at("/floods-dialogs?count=200")), timeout=LIMIT
    )
    # Chromium 156: a dialog that opens while the next document is committed holds it up until another order comes.
    after = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=after"), milestone_timeout=Duration(seconds=5))
    answer = await server.tabs.NavigateTab(after, timeout=LIMIT)
    if answer.navigation.outcome == Navigation.OUTCOME_UNCONFIRMED:
        answer = await server.tabs.NavigateTab(after, timeout=LIMIT)
    assert answer.tab.uri == pages.at("/page?title=after")


async def test_endless_redirects(server: Server, pages: Pages) -> None:
    """Redirects without end are NAVIGATION_FAILED."""
    refused = await refusal(opened(server, pages.at("/redirects-for-ever")))
    assert (refused.reason, refused.metadata["net_error"]) == ("NAVIGATION_FAILED", "net::ERR_TOO_MANY_REDIRECTS")


# Secrets


async def test_secrets(playground: PlaygroundProcess, pages: Pages) -> None:
    """Of forty planted secrets none is in the log at level debug, an event or an error (O-148, O-150, SEC-03)."""
    planted: list[str] = []

    def secret() -> str:
        planted.append(f"PLANTED{uuid4().hex}")
        return planted[-1]

    told: list[str] = []
    with fresh_profile() as directory:
        (directory / "tabmuxd.toml").write_text('log_level = "debug"\n')
        async with serving(directory, playground.port, *crashing(commit_wait=3)) as server:
            request = WatchSessionsRequest(with_tabs=True, bookmark_interval=QUICK)
            async with watching(server.ai.WatchSessions(request)) as watch:
                keys = (
                    "token", "access_token", "code", "key", "api_key", "password", "secret", "client_secret", "session",
                    "sessionid", "signature", "sig", "SAMLResponse", "id_token", "refresh_token", "auth", "jwt", "otp",
                )  # fmt: skip
                query = "&".join(f"{key}={secret()}" for key in keys)
                pages.cookie = secret()
                addresses = (
                    pages.at(f"/untitled?{query}"),
                    pages.at(f"/page?title=x#access_token={secret()}&state={secret()}"),
                    pages.at(f"/redirect?to=/untitled%3Ftoken%3D{secret()}"),
                    pages.at(f"/untitled?client_id=1&state={secret()}&code={secret()}"),
                    pages.at("/page", host=f"user:{secret()}@127.0.0.1"),
                    f"http://127.0.0.1:1/?token={secret()}",
                    pages.at(f"/empty?password={secret()}"),
                    f"javascript:alert('{secret()}')",
                    pages.at(f"/untitled?x=eyJhbGciOi{secret()}.eyJzdWIiOi{secret()}.{secret()}"),
                    pages.at(f"/untitled?next=http%3A%2F%2Fx%2F%3Ftoken%3D{secret()}"),
                    pages.at("/sets-cookie"),
                )
                old = await opened(server)
                for uri in addresses:
                    await _shown(server, old, uri, told)
                for header in (f"Bearer {secret()}", f"Local {secret()}!", f"Basic {secret()}", secret()):
                    stub: Any = TabServiceStub(server.channel())
                    call = stub.CreateTab(CreateTabRequest(), metadata=(("authorization", header),), timeout=LIMIT)
                    told.append(_text_of(await refusal(call)))
                directives = ("{{plain=1 seconds=0.2}}", "{{press=ignore}}", "{{plain=1 seconds=0.2 fail=late}}")
                await asyncio.gather(*(_prompted(server, secret(), text, told) for text in directives))
                long = SendPromptRequest(parent="sessions/unknown", request_id="1")
                long.prompt.text = secret()
                ai: Any = WebAiServiceStub(server.channel("x"))
                told.append(_text_of(await refusal(ai.SendPrompt(long, timeout=LIMIT))))
                listed = await server.tabs.ListTabs(ListTabsRequest(), timeout=LIMIT)
                await watch.passed(listed.progress.revision)
                told.append(str(listed))
                told.append("".join(str(event) for event in watch.events))
            await server.terminate()
            told.append(server.log())
    assert len(planted) >= 40
    everything = "\n".join(told)
    assert [number for number, word in enumerate(planted) if word in everything] == []
    assert "call" in everything


async def _shown(server: Server, old: Tab, uri: str, told: list[str]) -> None:
    """Open it, go there in an old tab too, and keep all that is answered."""
    for call in (
        server.tabs.CreateTab(CreateTabRequest(uri=uri), timeout=LIMIT),
        server.tabs.NavigateTab(NavigateTabRequest(name=old.name, uri=uri), timeout=LIMIT),
    ):
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            told.append(_text_of(error_of_call(error)))
        else:
            told.append(str(answer))


async def _prompted(server: Server, word: str, directives: str, told: list[str]) -> None:
    """Send a prompt that holds the word, wait for its end, and keep everything but the answer."""
    created = await server.ai.CreateSession(CreateSessionRequest(provider="playground-textarea"), timeout=LIMIT)
    request = SendPromptRequest(parent=created.session.name, request_id="1")
    request.prompt.text = f"{'filler ' * 12} {word} {directives}"
    sent = (await server.ai.SendPrompt(request, timeout=LIMIT)).turn
    wait = WaitTurnRequest(name=sent.name, max_wait_duration=Duration(seconds=60))
    end = (await server.ai.WaitTurn(wait, timeout=90)).turn
    assert end.HasField("end_time")
    end.ClearField("answer_markdown")
    told += [str(sent), str(end)]


def _text_of(error: Exception) -> str:
    return f"{error} {getattr(error, 'metadata', '')}"
