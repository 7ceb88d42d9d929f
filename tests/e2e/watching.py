"""A client that watches and keeps what it was shown."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Protocol

import pytest
from tabmux.v1.event_pb2 import Event, WatchProgress

from tests.e2e.serving import LIMIT


class Reply(Protocol):
    """A reply of either watch."""

    @property
    def events(self) -> Sequence[Event]: ...
    @property
    def progress(self) -> WatchProgress: ...


class Call(Protocol):
    """A call of either watch."""

    def __aiter__(self) -> AsyncIterator[Reply]: ...
    def cancel(self) -> bool: ...


class Watching:
    """What one watch has shown so far."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self._moved = asyncio.Event()

    @property
    def events(self) -> list[Event]:
        """All events in the order in which they came."""
        return [event for reply in self.replies for event in reply.events]

    @property
    def progress(self) -> WatchProgress:
        """The last place."""
        return self.replies[-1].progress

    async def read(self, call: Call) -> None:
        """Read until the call ends."""
        async for reply in call:
            self.replies.append(reply)
            self._moved.set()

    async def until(self, reached: Callable[[Event], object]) -> Event:
        """The first event that is as asked, now or later."""
        looked = 0
        try:
            async with asyncio.timeout(2 * LIMIT):
                while True:
                    events = self.events
                    for event in events[looked:]:
                        if reached(event):
                            return event
                    looked = len(events)
                    self._moved.clear()
                    await self._moved.wait()
        except TimeoutError:
            pytest.fail(f"no such event among {self.events}")

    async def passed(self, revision: int) -> None:
        """Return once the watch has come to this revision."""
        async with asyncio.timeout(2 * LIMIT):
            while not self.replies or self.progress.revision < revision:
                self._moved.clear()
                await self._moved.wait()


@contextlib.asynccontextmanager
async def watching(call: Call) -> AsyncGenerator[Watching]:
    """Watch until left; on entry the first reply has come, so that nothing from now on is missed."""
    watch = Watching()
    reading = asyncio.ensure_future(watch.read(call))
    try:
        await watch.passed(0)
        yield watch
    finally:
        call.cancel()
        await asyncio.gather(reading, return_exceptions=True)
