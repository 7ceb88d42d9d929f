"""Refusals as gRPC statuses: code, message and details are all made from one value."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from tabmuxd.resources.errors import MAX_VALUE_BYTES, Failure, NotBuilt, Reason, Refused, code_of, cut
from tabmuxd.wire import duration, shown_failure

DOMAIN: Final = "tabmux"
# grpcio 1.85: a receiver refuses trailers above its soft limit of 8 KiB more and more often, above 16 KiB always. The
# message travels percent-encoded, the details in base64.
_MAX_TRAILER_BYTES: Final = 7 * 1024
_SMALLEST_VALUE_BYTES: Final = 64


def status_of(refused: Refused) -> status_pb2.Status:
    """The status of a refusal: one `ErrorInfo`, at most one each of `RetryInfo` and `BadRequest`.

    Addresses are shown without their secrets. Values are cut further than to 1 KiB where a status would otherwise be
    too large to reach its receiver.
    """
    failure = shown_failure(refused.failure())
    limit_bytes = MAX_VALUE_BYTES
    while True:
        status = _status(refused.reason, failure, limit_bytes)
        if limit_bytes <= _SMALLEST_VALUE_BYTES or _trailer_bytes(status) <= _MAX_TRAILER_BYTES:
            return status
        limit_bytes //= 2


def not_built_status(error: NotBuilt) -> status_pb2.Status:
    """The status of what is not built: UNIMPLEMENTED with its name, and no details."""
    return status_pb2.Status(code=code_pb2.UNIMPLEMENTED, message=str(error))


def incident_status(incident: str) -> status_pb2.Status:
    """The status of a fault of the server's own: INTERNAL with the id under which the log has it, and no details."""
    message = (
        f"An internal error in the server; incident {incident}. What was done is not known: look before you repeat "
        "the call. The server's log has more under this id."
    )
    return status_pb2.Status(code=code_pb2.INTERNAL, message=message)


def grpc_status(status: status_pb2.Status) -> grpc.Status:
    """The same for `abort_with_status`."""
    converted: grpc.Status = rpc_status.to_status(status)  # pyright: ignore[reportUnknownMemberType] - it has no types
    return converted


def code_name(status: status_pb2.Status) -> str:
    """Name of the code, such as `NOT_FOUND`."""
    return str(code_pb2.Code.Name(status.code))


def _status(reason: Reason, failure: Failure, limit_bytes: int) -> status_pb2.Status:
    message = _cut(failure.message, limit_bytes)
    metadata = {key: _cut(value, limit_bytes) for key, value in failure.metadata.items()}
    return status_pb2.Status(
        code=code_pb2.Code.Value(code_of(reason).value),
        message=message,
        details=[_packed(detail) for detail in _details(reason, failure, metadata)],
    )


def _details(reason: Reason, failure: Failure, metadata: Mapping[str, str]) -> list[Message]:
    details: list[Message] = [error_details_pb2.ErrorInfo(reason=reason.value, domain=DOMAIN, metadata=dict(metadata))]
    if failure.retry_delay is not None:
        details.append(error_details_pb2.RetryInfo(retry_delay=duration(failure.retry_delay)))
    if reason is Reason.INVALID_FIELD:
        violation = error_details_pb2.BadRequest.FieldViolation(
            field=metadata.get("field", ""), description=_cut(failure.message, MAX_VALUE_BYTES // 4)
        )
        details.append(error_details_pb2.BadRequest(field_violations=[violation]))
    return details


def _packed(detail: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(detail)
    return packed


def _trailer_bytes(status: status_pb2.Status) -> int:
    return len(quote(status.message, safe=" ")) + len(base64.b64encode(status.SerializeToString()))


def _cut(text: str, limit_bytes: int) -> str:
    """`text` cut to `limit_bytes`; what a page wrote can hold halves of characters, which no message takes."""
    return cut(text.encode("utf-8", "replace").decode("utf-8"), limit_bytes)
