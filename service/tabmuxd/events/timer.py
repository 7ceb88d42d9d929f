"""The time by which a watch waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Protocol

from tabmuxd.events.bell import Bell


class Timer(Protocol):
    """What one watch needs of time, in seconds that never go back."""

    def now(self) -> float:
        """The time."""
        ...

    def wait(self, bell: Bell, until: float) -> Awaitable[bool]:
        """False at the next ring, True at the time `until`, which is never before that of the wait before."""
        ...

    def close(self) -> None:
        """Nothing is waited for any more."""
        ...


class LoopTimer:
    """The time of the running loop.

    A wait that ends with a ring leaves the alarm as it is, and the next one goes by it: with a thousand watches, to set
    and to cancel one for each event cost as much as to send it.
    """

    __slots__ = ("_alarm", "_bell", "_loop", "_news", "_until", "now")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self._alarm: asyncio.TimerHandle | None = None
        self._bell: Bell | None = None
        self._news: asyncio.Future[bool] | None = None
        self._until = 0.0

    def wait(self, bell: Bell, until: float) -> asyncio.Future[bool]:
        """False at the next ring, True at the time `until`, which is never before that of the wait before."""
        self._bell = bell
        self._until = until
        self._news = news = bell.listen(self._loop)
        if self._alarm is None:
            self._alarm = self._loop.call_at(until, self._ring)
        return news

    def close(self) -> None:
        """Nothing is waited for any more."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._bell is not None and self._news is not None:
            self._bell.leave(self._news)

    def _ring(self) -> None:
        self._alarm = None
        if self._bell is None or self._news is None or self._news.done():
            return  # the next wait sets it again
        if self._loop.time() < self._until:
            self._alarm = self._loop.call_at(self._until, self._ring)
        else:
            self._bell.leave(self._news)
            self._news.set_result(True)
