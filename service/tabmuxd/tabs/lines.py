"""The line of calls for each tab: one acts, at most 16 wait; what closes a tab by itself takes its turn here too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Final

from tabmuxd.resources.errors import Reason, refuse

MAX_LINE: Final = 16


class _Line:
    """The calls for one tab: the one that holds the lock, and those that wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0


class Lines:
    """Orders the calls that act on one tab; different tabs never wait for each other. All runs on the loop."""

    def __init__(self) -> None:
        """No call is at work."""
        self._lines: dict[str, _Line] = {}

    def __repr__(self) -> str:
        """How many tabs have calls at work."""
        return f"<Lines tabs={len(self._lines)}>"

    @property
    def at_work(self) -> frozenset[str]:
        """Names of the tabs that a call is at work on."""
        return frozenset(self._lines)

    @contextlib.asynccontextmanager
    async def turn(self, tab: str, *, seconds: float | None = None) -> AsyncGenerator[None]:
        """Wait for the tab, first come, first served, and hold it.

        CALL_CAPACITY if 16 wait already (`line_full`), or the turn has not come within `seconds` (`line_slow`).
        """
        line = self._lines.setdefault(tab, _Line())
        if line.count > MAX_LINE:
            raise refuse(
                Reason.CALL_CAPACITY,
                f"{MAX_LINE} calls wait for {tab} already; this one was not begun. Repeat it later.",
                retry_after=1,
                tab=tab,
                cause="line_full",
            )
        async with self._counted(tab, line):
            try:
                async with asyncio.timeout(seconds):
                    await line.lock.acquire()
            except TimeoutError:
                raise refuse(
                    Reason.CALL_CAPACITY,
                    f"Other calls held {tab} for too long; this one was not begun. Repeat it later.",
                    retry_after=1,
                    tab=tab,
                    cause="line_slow",
                ) from None
            try:
                yield
            finally:
                line.lock.release()

    @contextlib.asynccontextmanager
    async def if_free(self, tab: str) -> AsyncGenerator[bool]:
        """Hold the tab if no call is at work on it; gives whether it is held."""
        if tab in self._lines:
            yield False
            return
        line = self._lines[tab] = _Line()
        async with self._counted(tab, line), line.lock:
            yield True

    @contextlib.asynccontextmanager
    async def _counted(self, tab: str, line: _Line) -> AsyncGenerator[None]:
        line.count += 1
        try:
            yield
        finally:
            line.count -= 1
            if line.count == 0:
                self._lines.pop(tab, None)
