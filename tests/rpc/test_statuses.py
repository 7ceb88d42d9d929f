"""Refusals as statuses, and as a client reads them."""

from __future__ import annotations

import re
from datetime import timedelta

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from structlog.testing import capture_logs
from tabmux.v1 import tab_service_pb2 as tab_pb
from tabmuxd.resources.errors import NotBuilt, Reason, Refused, code_of, invalid_field, refuse
from tabmuxd.rpc.statuses import status_of

from tests.rpc.fakes import TAB, Served, status_from

KINDS: tuple[type[Message], ...] = (
    error_details_pb2.ErrorInfo,
    error_details_pb2.RetryInfo,
    error_details_pb2.BadRequest,
)


def details(status: status_pb2.Status) -> list[Message]:
    """The details of a status, unpacked."""
    found: list[Message] = []
    for packed in status.details:
        for kind in KINDS:
            if packed.TypeName() == kind.DESCRIPTOR.full_name:
                detail = kind()
                packed.Unpack(detail)
                found.append(detail)
    return found


async def refused(served: Served, error: BaseException) -> grpc.aio.AioRpcError:
    """What a client gets where the domain raises `error`."""
    served.below.error = error
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.GetTab(tab_pb.GetTabRequest(name=TAB.name))
    return caught.value


@pytest.mark.parametrize("reason", Reason)
async def test_reasons(served: Served, reason: Reason) -> None:
    """Each reason reaches a client whole: its code, its message, one ErrorInfo and the delay."""
    found = await refused(served, Refused(reason, "No.", {"field": "f", "b": "2"}, timedelta(milliseconds=1500)))
    status = status_from(found)
    expected: list[Message] = [
        error_details_pb2.ErrorInfo(reason=reason.value, domain="tabmux", metadata={"field": "f", "b": "2"}),
        error_details_pb2.RetryInfo(retry_delay=Duration(seconds=1, nanos=500_000_000)),
    ]
    if reason is Reason.INVALID_FIELD:
        violation = error_details_pb2.BadRequest.FieldViolation(field="f", description="No.")
        expected.append(error_details_pb2.BadRequest(field_violations=[violation]))
    assert (found.code().name, found.details(), details(status)) == (code_of(reason).value, "No.", expected)


def test_no_delay() -> None:
    """Without a delay there is no RetryInfo."""
    status = status_of(refuse(Reason.TAB_GONE, "Gone.", tab="t"))
    assert (status.code, details(status)) == (
        code_pb2.FAILED_PRECONDITION,
        [error_details_pb2.ErrorInfo(reason="TAB_GONE", domain="tabmux", metadata={"tab": "t"})],
    )


def test_limit_of_a_field() -> None:
    """A limit that is exceeded stands in the metadata."""
    info = details(status_of(invalid_field("uri", "is too long", limit=8192)))[0]
    assert info == error_details_pb2.ErrorInfo(
        reason="INVALID_FIELD", domain="tabmux", metadata={"field": "uri", "limit": "8192"}
    )


async def test_address_is_redacted(served: Served) -> None:
    """No secret of an address reaches a client in an error (O-150, SEC-03)."""
    uri = "https://e.com/?token=PLANTED"
    found = await refused(served, refuse(Reason.NAVIGATION_FAILED, f"{uri} did not load.", uri=uri, net_error="x"))
    assert found.details() == "https://e.com/?token=redacted did not load."
    assert b"PLANTED" not in status_from(found).SerializeToString()


@pytest.mark.parametrize("text", ["x" * 3000, "\u4e2d" * 3000, "\ud83d\ude00\ud800" * 500])
async def test_large(served: Served, text: str) -> None:
    """However large a refusal is, its status reaches the client."""
    error = Refused(Reason.SCRIPT_FAILED, text, {f"key{number}": text for number in range(8)})
    found = await refused(served, error)
    info = details(status_from(found))[0]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert (found.code(), info.reason, len(info.metadata)) == (
        grpc.StatusCode.FAILED_PRECONDITION, "SCRIPT_FAILED", 8,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("request_", "header", "metadata"),
    [
        (tab_pb.NavigateTabRequest(name=TAB.name), "Local a", {"field": "uri", "page_touched": "no", "retry": "never"}),
        (tab_pb.NavigateTabRequest(), "Bearer x", {"page_touched": "no", "retry": "never"}),
        (
            tab_pb.NavigateTabRequest(name=TAB.name, uri="https://e.com/", lease="leases/x"),
            "Local a",
            {"field": "lease", "page_touched": "no", "retry": "never"},
        ),
    ],
    ids=["field", "token", "lease"],
)
async def test_outcome(
    served: Served, request_: tab_pb.NavigateTabRequest, header: str, metadata: dict[str, str]
) -> None:
    """Every error of NavigateTab tells that the page is untouched and what a program may do (api-guide 5)."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.NavigateTab(request_, metadata=[("authorization", header)])
    info = details(status_from(caught.value))[0]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert dict(info.metadata) == metadata


async def test_outcome_of_the_domain(served: Served) -> None:
    """What the domain says of the page stays as it is."""
    served.below.error = refuse(Reason.OUTCOME_UNKNOWN, "Lost.", page_touched="unknown", retry="after-verify")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await served.tab_service.NavigateTab(tab_pb.NavigateTabRequest(name=TAB.name, uri="https://e.com/"))
    info = details(status_from(caught.value))[0]
    assert isinstance(info, error_details_pb2.ErrorInfo)
    assert dict(info.metadata) == {"page_touched": "unknown", "retry": "after-verify"}


async def test_not_built(served: Served) -> None:
    """An option that is not built is UNIMPLEMENTED and names itself, without details."""
    found = await refused(served, NotBuilt("CreateTabRequest.from_pool"))
    assert found.code() is grpc.StatusCode.UNIMPLEMENTED
    assert found.details() == str(NotBuilt("CreateTabRequest.from_pool"))
    assert details(status_from(found)) == []


async def test_incident(served: Served) -> None:
    """A fault of the server's own is INTERNAL with an id; the log has the places under it, and no content."""
    error = ValueError("PLANTED")
    error.__cause__ = KeyError("PLANTED")
    with capture_logs() as logs:
        found = await refused(served, error)
    incident = re.search(r"incident ([0-9a-f]{12})", found.details() or "")
    assert incident is not None
    assert (found.code(), details(status_from(found))) == (grpc.StatusCode.INTERNAL, [])
    [entry] = [entry for entry in logs if entry["event"] == "incident"]
    trace = entry["trace"]
    assert (entry["incident"], entry["log_level"]) == (incident[1], "error")
    assert {"ValueError", "KeyError"} <= set(trace)
    assert any("in GetTab" in line for line in trace)
    assert "PLANTED" not in f"{logs}{found.details()}"


async def test_log_line(served: Served) -> None:
    """A call has one log line: method, principal, code and duration, and nothing that it held (SEC-03)."""
    with capture_logs() as logs:
        await served.tab_service.NavigateTab(
            tab_pb.NavigateTabRequest(name=TAB.name, uri="https://e.com/PLANTED"),
            metadata=[("authorization", "Local a")],
        )
    [entry] = logs
    assert isinstance(entry.pop("seconds"), float)
    assert entry == {
        "event": "call",
        "log_level": "info",
        "method": "/tabmux.v1.TabService/NavigateTab",
        "principal": "local/a",
        "code": "OK",
    }


async def test_cancelled(served: Served) -> None:
    """A caller that gives up ends the work below, and is told nothing."""
    served.below.gate = served.below.cancelled  # never set before the cancellation
    call = served.tab_service.GetTab(tab_pb.GetTabRequest(name=TAB.name))
    await served.below.entered.wait()
    call.cancel()
    await served.below.cancelled.wait()
    assert await call.code() is grpc.StatusCode.CANCELLED
