"""Limits of watches: how many are open, and how long one may leave a reply unread."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from tabmux.v1 import tab_service_pb2

from tabmuxd.resources.errors import Reason, Refused, refuse

MAX_WATCH_COUNT: Final = 256


class WatchSlots:
    """Room for a number of watches, shared by both services. To be used on the loop only."""

    def __init__(self, limit: int = MAX_WATCH_COUNT) -> None:
        self._limit = limit
        self._taken_count = 0

    def __repr__(self) -> str:
        return f"<WatchSlots {self._taken_count}/{self._limit}>"

    @contextmanager
    def taken(self) -> Generator[None]:
        """Hold one place; raises WATCH_CAPACITY if there is none."""
        if self._taken_count >= self._limit:
            raise refuse(
                Reason.WATCH_CAPACITY,
                f"{self._limit} watches are open, and no more may be. Close one.",
                limit=self._limit,
            )
        self._taken_count += 1
        try:
            yield
        finally:
            self._taken_count -= 1


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
