"""Turns the status of a call, and the `Failure` in a resource, into the errors of this package."""

from collections.abc import Mapping
from datetime import timedelta

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from tabmux.errors import TabmuxError, TurnFailed, error_class
from tabmux.reasons import CODES
from tabmux.v1.error_reason_pb2 import Failure
from tabmux.v1.session_pb2 import Turn

DOMAIN = "tabmux"
_DETAILS_KEY = "grpc-status-details-bin"


def error_of_call(error: grpc.aio.AioRpcError) -> TabmuxError:
    """Error for the status that a call ended with; without our `ErrorInfo` it has a code and no reason."""
    reason = ""
    metadata: Mapping[str, str] = {}
    retry_delay: timedelta | None = None
    for detail in _status(error).details:
        info, retry = ErrorInfo(), RetryInfo()
        if detail.Unpack(info) and info.domain == DOMAIN:
            reason, metadata = info.reason, dict(info.metadata)
        elif detail.Unpack(retry):
            retry_delay = retry.retry_delay.ToTimedelta()
    return error_class(reason)(
        error.details() or error.code().name,
        reason=reason,
        code=error.code().name,
        metadata=metadata,
        retry_delay=retry_delay,
    )


def error_of_failure(failure: Failure) -> TabmuxError:
    """Error for a `Failure`: what the status of a call would have said."""
    return error_class(failure.reason)(
        failure.message,
        reason=failure.reason,
        code=CODES.get(failure.reason, ""),
        metadata=dict(failure.metadata),
        retry_delay=_delay_of(failure),
    )


def turn_failed(turn: Turn) -> TurnFailed:
    """Error for a turn that ended as FAILED or CANCELLED; `turn` has the answer there was."""
    if turn.state == Turn.STATE_CANCELLED:
        return TurnFailed("the turn was cancelled", turn=turn)
    failure = turn.error
    return TurnFailed(
        failure.message,
        turn=turn,
        reason=failure.reason,
        code=CODES.get(failure.reason, ""),
        metadata=dict(failure.metadata),
        retry_delay=_delay_of(failure),
    )


def _delay_of(failure: Failure) -> timedelta | None:
    return failure.retry_delay.ToTimedelta() if failure.HasField("retry_delay") else None


def _status(error: grpc.aio.AioRpcError) -> Status:
    """Status message in the trailing metadata; an empty one if there is none, or if it cannot be read."""
    for key, value in error.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            try:
                return Status.FromString(value if isinstance(value, bytes) else value.encode())
            except DecodeError:
                break  # a proxy may have cut it; the code and the sentence still hold
    return Status()
