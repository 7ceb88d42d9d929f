"""Tasks that end with their owner."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import structlog

from tabmuxd.incidents import trace_of

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

T = TypeVar("T")


async def outlasted(task: asyncio.Task[T]) -> T:
    """What the task gives or raises; who is cancelled goes once it has ended, and holds what it holds until then."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class Tasks:
    """Tasks that may fail alone: a failure is logged, the others go on. Leaving cancels all and waits for their end."""

    def __init__(self) -> None:
        """Entered with `async with`."""
        self._running: set[asyncio.Task[object]] = set()
        self._closed = False

    def __repr__(self) -> str:
        """How many run."""
        return f"<Tasks running={len(self._running)}>"

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Cancel what runs and wait for its end."""
        self._closed = True
        while self._running:
            for task in tuple(self._running):
                task.cancel()
            await asyncio.wait(tuple(self._running))

    def spawn(self, work: Coroutine[object, object, T], name: str, *, awaited: bool = False) -> asyncio.Task[T]:
        """Run `work` as a task. `awaited`: its exception is somebody's answer, so that it is not logged."""
        if self._closed:
            work.close()
            raise asyncio.CancelledError
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(partial(self._ended, awaited=awaited))
        return task

    def _ended(self, task: asyncio.Task[object], *, awaited: bool) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        if (error := task.exception()) is not None and not awaited:
            _log.warning("task failed", task=task.get_name(), error=type(error).__name__, trace=trace_of(error))
