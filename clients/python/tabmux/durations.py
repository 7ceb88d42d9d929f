"""Native durations and those of the contract."""

from datetime import timedelta

from google.protobuf.duration_pb2 import Duration


def duration_of(time: timedelta | None) -> Duration | None:
    """`time` as the contract has it; `None` stays unset."""
    if time is None:
        return None
    duration = Duration()
    duration.FromTimedelta(time)
    return duration
