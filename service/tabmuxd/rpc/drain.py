"""The end of a server: no new calls, streams and waits end at once, other calls may finish."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from tabmuxd.resources.errors import Reason, Refused, refuse

Result = TypeVar("Result")


class Drain:
    """Whether the server is ending, and how many calls are at work. To be used on the loop only."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self._scopes: set[asyncio.Timeout] = set()
        self._active_count = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<Drain begun={self.begun.is_set()} active={self._active_count} streams={len(self._scopes)}>"

    def begin(self) -> None:
        """Refuse new calls from now on and end what is inside `ended_by_drain`."""
        self.begun.set()
        now = asyncio.get_running_loop().time()
        for scope in self._scopes:
            scope.reschedule(now)

    async def idle(self) -> None:
        """Wait until no call is at work."""
        await self._idle.wait()

    @contextmanager
    def at_work(self) -> Generator[None]:
        """Count a call as at work, until it was told how it ended: a server that stops cuts what it has not sent."""
        self._active_count += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._active_count -= 1
            if self._active_count == 0:
                self._idle.set()

    def admit(self) -> None:
        """Raise DRAINING once draining has begun."""
        if self.begun.is_set():
            raise draining()

    @asynccontextmanager
    async def ended_by_drain(self) -> AsyncGenerator[None]:
        """Raise DRAINING inside, wherever it waits, once draining begins. A cancellation stays a cancellation."""
        scope = asyncio.timeout(None)
        try:
            async with scope:
                self._scopes.add(scope)
                self.admit()
                try:
                    yield
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if scope.expired():
                raise draining() from None
            raise

    async def each_unless_begun(self, parts: AsyncIterator[Result]) -> AsyncGenerator[Result, None]:
        """The parts of a request, as they come; raises DRAINING where the next one does not before draining begins."""
        while True:
            async with self.ended_by_drain():
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
            yield part

    async def unless_begun(self, work: Coroutine[None, None, Result]) -> Result | None:
        """What `work` gives, or None once draining begins; `work` is cancelled then."""
        try:
            async with self.ended_by_drain():
                return await work
        except Refused as refused:
            if refused.reason is Reason.DRAINING:
                return None
            raise
        finally:
            work.close()


def draining() -> Refused:
    """DRAINING."""
    return refuse(
        Reason.DRAINING,
        "The server is shutting down; nothing was done. Repeat the call, or resume the watch, later.",
        retry_after=1,
    )
