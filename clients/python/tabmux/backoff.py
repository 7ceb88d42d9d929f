"""How long to wait before trying again. No I/O, no clock."""

from collections.abc import Callable, Iterator
from datetime import timedelta

FIRST_SECONDS = 0.1
FACTOR = 1.6
MOST_SECONDS = 10.0


def pauses(random: Callable[[], float]) -> Iterator[float]:
    """Seconds to wait before each further try, without end: from 0.1 growing by 1.6 to 10, times chance in [0, 1).

    The chance (full jitter) keeps clients that were cut off together from coming back together.
    """
    bound = FIRST_SECONDS
    while True:
        yield bound * random()
        bound = min(bound * FACTOR, MOST_SECONDS)


def pause_after(pause: float, asked: timedelta | None) -> float:
    """Seconds to wait when the server asked for a delay: never less than it asked for."""
    return max(pause, asked.total_seconds()) if asked else pause
