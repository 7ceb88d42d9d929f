"""The time of everything that is recorded: steady, whatever is done to the system's clock while the server runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def steady_clock() -> Callable[[], datetime]:
    """A clock that shows the system's time of this moment, and from then on what really passes, sleep included.

    Set an hour forth or back by somebody, the system's clock neither ends a lease nor makes an age negative.
    """
    begin = datetime.now(UTC)
    started = time.clock_gettime_ns(time.CLOCK_BOOTTIME)

    def now() -> datetime:
        return begin + timedelta(microseconds=(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - started) // 1000)

    return now
