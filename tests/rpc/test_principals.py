"""Who calls, and what it may do."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2
from structlog.testing import capture_logs
from tabmux.v1 import tab_service_pb2, web_ai_service_pb2
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.principal import Principal, Scope, local_person, local_program
from tabmuxd.rpc.principals import METHOD_SCOPES, check_scope, principal_of

from tests.rpc.fakes import Served, status_from
from tests.rpc.test_services import METHODS, responses

READ_ONLY = Principal("reader", frozenset({Scope.READ}))

BAD_HEADERS: list[str | bytes] = [
    "", "Local", "Local ", "local a", "LOCAL a", "Local  a", "Local a b", "Local A", "Local a/b", "Local a_b",
    "Local " + "a" * 64, "Local é", "Bearer abc", "Bearer", "Basic YTpi", "a", b"Local a",
]  # fmt: skip


def test_nobody_named() -> None:
    """Over the Unix socket without a header the principal is `local`, with every scope (O-7)."""
    assert principal_of([("user-agent", "x")], unix_socket=True) == local_person()


@pytest.mark.parametrize("name", ["a", "night-report", "0", "-", "local", "a" * 63])
def test_named(name: str) -> None:
    """With `Local NAME` it is `local/NAME`, without `admin` (O-7)."""
    assert principal_of([("authorization", f"Local {name}")], unix_socket=True) == local_program(name)


@pytest.mark.parametrize("header", BAD_HEADERS)
def test_token_invalid(header: str | bytes) -> None:
    """Every other header is TOKEN_INVALID, and is not repeated to the caller."""
    with pytest.raises(Refused) as caught:
        principal_of([("authorization", header)], unix_socket=True)
    assert (caught.value.reason, caught.value.metadata) == (Reason.TOKEN_INVALID, {})
    assert "abc" not in caught.value.message


def test_two_headers() -> None:
    """A header that comes twice is TOKEN_INVALID, though each be right."""
    with pytest.raises(Refused) as caught:
        principal_of([("authorization", "Local a"), ("authorization", "Local b")], unix_socket=True)
    assert caught.value.reason is Reason.TOKEN_INVALID


def test_no_socket() -> None:
    """Nobody is `local` but over the Unix socket (O-7)."""
    with pytest.raises(Refused) as caught:
        principal_of([], unix_socket=False)
    assert caught.value.reason is Reason.TOKEN_INVALID


def test_table() -> None:
    """Every method of the contract has its scopes, and no other (O-4)."""
    services = (
        tab_service_pb2.DESCRIPTOR.services_by_name["TabService"],
        web_ai_service_pb2.DESCRIPTOR.services_by_name["WebAiService"],
    )
    methods = {f"/{service.full_name}/{method.name}" for service in services for method in service.methods}
    assert set(METHOD_SCOPES) == methods


def test_scopes() -> None:
    """`read` opens what gets, lists, watches, waits, streams, captures and looks; see api-guide 12 (O-4)."""
    opened = {
        scopes: sorted(name.rpartition("/")[2] for name, needed in METHOD_SCOPES.items() if needed == scopes)
        for scopes in set(METHOD_SCOPES.values())
    }
    assert opened == {
        frozenset(): ["GetServerInfo"],
        frozenset({Scope.ADMIN}): ["AdoptTab", "ImportSessions"],
        frozenset({Scope.READ}): [
            "CaptureScreenshot", "CheckTabHealth", "GetBrowser", "GetProviderStatus", "GetSession", "GetTab", "GetTurn",
            "ListBrowsers", "ListLeases", "ListProviders", "ListSessions", "ListTabs", "ListTurns", "ProbeProvider",
            "ReadArtifact", "RenderPrompt", "StreamAnswer", "TakeSnapshot", "WaitTurn", "WatchSessions", "WatchTabs",
        ],
        frozenset({Scope.DRIVE}): [
            "AcquireLease", "ActivateTab", "CloseTab", "CloseTabs", "CreateTab", "EvaluateScript", "NavigateTab",
            "PerformAction", "RecoverTab", "ReleaseLease", "RenewLease", "UpdateTab",
        ],
        frozenset({Scope.AI}): [
            "CancelTurn", "CreateSession", "RecoverSession", "RetireSession", "SendPrompt", "UpdateSession",
        ],
        frozenset({Scope.AI, Scope.DRIVE}): ["UploadArtifact"],
    }  # fmt: skip


@pytest.mark.parametrize("method", sorted(METHOD_SCOPES))
def test_reader(method: str) -> None:
    """A principal with `read` only is refused with SCOPE_MISSING wherever more is needed, and told the scope (O-4)."""
    needed = METHOD_SCOPES[method]
    if not needed or Scope.READ in needed:
        check_scope(READ_ONLY, method)
        return
    with pytest.raises(Refused) as caught:
        check_scope(READ_ONLY, method)
    assert (caught.value.reason, caught.value.metadata) == (
        Reason.SCOPE_MISSING, {"scope": " or ".join(sorted(needed))},
    )  # fmt: skip


async def test_adopt_needs_admin(served: Served) -> None:
    """A program that names itself cannot adopt: only a person gives a page away (TAB-25)."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.AdoptTab(
            tab_service_pb2.AdoptTabRequest(target_id="T"), metadata=[("authorization", "Local a")]
        )
    info = error_details_pb2.ErrorInfo()
    status_from(caught.value).details[0].Unpack(info)
    assert (caught.value.code(), info) == (
        grpc.StatusCode.PERMISSION_DENIED,
        error_details_pb2.ErrorInfo(reason="SCOPE_MISSING", domain="tabmux", metadata={"scope": "admin"}),
    )


EMPTY = {name: GetMessageClass(method.input_type)() for name, method in METHODS.items()}


@pytest.mark.parametrize("header", ["Bearer PLANTED-TOKEN", "Local q/../p", "Local P", ""])
@pytest.mark.parametrize("method", ["GetServerInfo", "CloseTab", "WatchTabs", "SendPrompt", "UploadArtifact"])
async def test_token_tries(served: Served, method: str, header: str) -> None:
    """A wrong token or name opens no method, reaches nothing below, and is never repeated or logged (SEC-03)."""
    with capture_logs() as logs, pytest.raises(grpc.aio.AioRpcError) as caught:
        await responses(served, method, EMPTY[method], authorization=header)
    assert (caught.value.code(), served.below.calls) == (grpc.StatusCode.UNAUTHENTICATED, [])
    assert "PLANTED" not in f"{logs}{caught.value.details()}{caught.value.trailing_metadata()}"


async def test_every_method_is_guarded(served: Served) -> None:
    """No method is open to a wrong token."""
    codes = {}
    for name in METHODS:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await responses(served, name, EMPTY[name], authorization="Bearer x")
        codes[name] = caught.value.code()
    assert codes == dict.fromkeys(METHODS, grpc.StatusCode.UNAUTHENTICATED)
