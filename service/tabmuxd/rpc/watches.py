"""Limits of watches: how many are open, and how long one may leave a reply unread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import timedelta
from typing import Final

from tabmux.v1 import tab_service_pb2

from tabmuxd.resources.errors import Reason, Refused, refuse

MAX_WATCH_COUNT: Final = 256
MAX_PRINCIPAL_WATCH_COUNT: Final = 64


class WatchSlots:
    """Room for a number of watches, shared by both services, of which one principal gets a part.

    To be used on the loop only.
    """

    def __init__(self, limit: int = MAX_WATCH_COUNT, principal_limit: int = MAX_PRINCIPAL_WATCH_COUNT) -> None:
        self._limit = limit
        self._principal_limit = principal_limit
        self._taken: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<WatchSlots {self._taken.total()}/{self._limit}>"

    def holding(self, principal: str, replies: AsyncGenerator[bytes, None]) -> OpenWatch:
        """The replies, with a place that `principal` holds until they are closed; raises WATCH_CAPACITY."""
        if self._taken[principal] >= self._principal_limit:
            raise _capacity(self._principal_limit, f"{principal} has {self._principal_limit} watches open")
        if self._taken.total() >= self._limit:
            raise _capacity(self._limit, f"{self._limit} watches are open")
        self._taken[principal] += 1
        return OpenWatch(replies, lambda: self._release(principal))

    def _release(self, principal: str) -> None:
        self._taken[principal] -= 1
        if not self._taken[principal]:
            del self._taken[principal]


class OpenWatch:
    """Replies of a watch that holds a place until it is closed.

    No generator: one more around that of the watch would cost each event of each watcher another step.
    """

    __slots__ = ("_release", "_replies")

    def __init__(self, replies: AsyncGenerator[bytes, None], release: Callable[[], None]) -> None:
        self._replies = replies
        self._release: Callable[[], None] | None = release

    def __aiter__(self) -> AsyncIterator[bytes]:
        """The replies themselves."""
        return self._replies

    async def aclose(self) -> None:
        """End the watch, and give the place back."""
        release, self._release = self._release, None
        try:
            await self._replies.aclose()
        finally:
            if release is not None:
                release()


def _capacity(limit: int, what: str) -> Refused:
    return refuse(Reason.WATCH_CAPACITY, f"{what}, and no more may be. Close one.", limit=limit)


class Writing:
    """The writes of one stream: whether one is under way, and since when, on the loop's clock; 0 if none is."""

    __slots__ = ("scope", "since")

    def __init__(self, scope: asyncio.Timeout) -> None:
        self.scope = scope
        self.since = 0.0


class Unread:
    """Replies that are being written, and how long one may take; ends the scopes of those that take longer.

    They are looked at every now and then, so that a write has up to a quarter more time: with a thousand watches, an
    alarm for each write cost as much as the write. To be used on the loop only.
    """

    def __init__(self, limit: timedelta) -> None:
        self._limit = limit.total_seconds()
        self._open: set[Writing] = set()
        self._alarm: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Unread {len(self._open)}>"

    def open(self, scope: asyncio.Timeout) -> Writing:
        """A stream that writes inside `scope`, which ends with TimeoutError if a write takes too long."""
        writing = Writing(scope)
        self._open.add(writing)
        self._look_later()
        return writing

    def close(self, writing: Writing) -> None:
        """The stream writes no more."""
        self._open.discard(writing)
        if not self._open and self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _look_later(self) -> None:
        if self._alarm is None and self._open:
            self._alarm = asyncio.get_running_loop().call_later(self._limit / 4, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        self._alarm = None
        for writing in self._open:
            if writing.since and now - writing.since >= self._limit:
                writing.since = 0.0
                writing.scope.reschedule(now)
        self._look_later()


def stalled(last_reply: bytes) -> Refused:
    """WATCH_STALLED; tells how far the replies came that were written."""
    # Replies of both watches are alike on the wire.
    revision = tab_service_pb2.WatchTabsResponse.FromString(last_reply).progress.revision
    return refuse(
        Reason.WATCH_STALLED,
        f"The watch ended at revision {revision}, because its reader took no events for too long. Resume it, and read "
        "faster.",
        retry_after=1,
        revision=revision,
    )
