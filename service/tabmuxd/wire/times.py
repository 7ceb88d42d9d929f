"""Times and durations of the contract, exact to the microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_MICROSECONDS: Final = 1_000_000  # in a second
_NANOSECONDS: Final = 1_000_000_000  # in a second
_MAX_DURATION_SECONDS: Final = 315_576_000_000  # ten thousand years: the limit that `duration.proto` states


def timestamp(time: datetime | None) -> Timestamp | None:
    """`time`, which must be aware, as a message; None stays None and leaves a field absent."""
    if time is None:
        return None
    seconds, microseconds = divmod((time - _EPOCH) // _MICROSECOND, _MICROSECONDS)
    return Timestamp(seconds=seconds, nanos=microseconds * 1000)


def duration(span: timedelta | None) -> Duration | None:
    """`span` as a message; None stays None and leaves a field absent."""
    if span is None:
        return None
    microseconds = span // _MICROSECOND
    sign = -1 if microseconds < 0 else 1
    seconds, rest = divmod(abs(microseconds), _MICROSECONDS)
    return Duration(seconds=sign * seconds, nanos=sign * rest * 1000)


def time_of(message: Timestamp) -> datetime:
    """The time a message tells, cut to microseconds; raises OverflowError where Python has no such time."""
    return _EPOCH + timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def span_of(message: Duration) -> timedelta:
    """The span a message tells, cut towards zero to microseconds; raises ValueError for what is no valid `Duration`."""
    seconds, nanos = message.seconds, message.nanos
    if abs(seconds) > _MAX_DURATION_SECONDS or abs(nanos) >= _NANOSECONDS or seconds * nanos < 0:
        raise ValueError("not a valid google.protobuf.Duration")
    microseconds = abs(nanos) // 1000
    return timedelta(seconds=seconds, microseconds=-microseconds if nanos < 0 else microseconds)
