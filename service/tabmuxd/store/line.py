"""A bounded line of work for one thread."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from tabmuxd.store.errors import StoreBusy, StoreClosed

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Job(Generic[Given]):
    """A function to run on the thread, and the future of the one who waits for it."""

    work: Callable[[Given], object]
    done: asyncio.Future[object]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Given]):
    """What became of a job: its result, or an error; `spoiled` if that came when something was written already."""

    job: Job[Given]
    result: object = None
    error: BaseException | None = None
    spoiled: bool = False


class Line(Generic[Given]):
    """Callers on the loop wait in line for one thread, which takes up to `group_count` of them at once.

    Bound: `max_waiting`, those being served included; one more raises StoreBusy. `run` is the whole life of the
    thread: it calls `take` until that gives nothing.
    """

    def __init__(self, name: str, *, max_waiting: int, group_count: int) -> None:
        self._name = name
        self._max_waiting = max_waiting
        self._group_count = group_count
        self._jobs: queue.SimpleQueue[Job[Given] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._last = False
        self._open = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None
        self._thread: threading.Thread | None = None

    @property
    def waiting_count(self) -> int:
        """How many wait or are being served."""
        return self._waiting

    async def start(self, run: Callable[[Callable[[], None]], None]) -> None:
        """Start the thread; returns once `run` has called its argument, raises what it raises before."""
        self._loop = asyncio.get_running_loop()
        started: asyncio.Future[None] = self._loop.create_future()
        self._ended = self._loop.create_future()

        def life() -> None:
            error: BaseException | None = None
            try:
                run(lambda: self.on_loop(_settle, started, None))
            except BaseException as raised:  # noqa: BLE001 - top of a thread; the one who started it is told
                error = raised
            self.on_loop(self._end, started, error)

        self._open = True
        self._thread = threading.Thread(target=life, name=self._name, daemon=True)
        self._thread.start()
        try:
            await started
        except BaseException:
            await self.stop()
            raise

    async def call(self, work: Callable[[Given], object]) -> object:
        """What `work` returns or raises, once the thread has run it. Who is cancelled stops waiting, no more."""
        return await self.submit(work)

    def submit(self, work: Callable[[Given], object]) -> asyncio.Future[object]:
        """A future of what `work` returns or raises; raises StoreClosed or StoreBusy where it will not be run."""
        if self._loop is None or not self._open:
            raise StoreClosed
        if self._waiting >= self._max_waiting:
            raise StoreBusy(self._max_waiting)
        job = Job(work, self._loop.create_future())
        self._waiting += 1
        self._jobs.put(job)
        return job.done

    def take(self) -> list[Job[Given]]:
        """The next jobs, oldest first, waiting for one if there is none; empty when the thread has to end.

        To be called on the thread.
        """
        if self._last:
            return []
        jobs = [self._jobs.get()]
        while jobs[-1] is not None and len(jobs) < self._group_count:
            try:
                jobs.append(self._jobs.get_nowait())
            except queue.Empty:
                break
        self._last = jobs[-1] is None
        return [job for job in jobs if job is not None]

    def settle(self, outcomes: Sequence[Outcome[Given]]) -> None:
        """Tell those who wait what became of their jobs. To be called on the loop."""
        self._waiting -= len(outcomes)
        for outcome in outcomes:
            if outcome.job.done.cancelled():
                continue
            if outcome.error is None:
                outcome.job.done.set_result(outcome.result)
            else:
                outcome.job.done.set_exception(_raisable(outcome.error))

    def on_loop(self, function: Callable[..., None], *arguments: object) -> None:
        """Call `function` on the loop, unless that is closed. To be called on the thread."""
        if self._loop is None:
            return
        with contextlib.suppress(RuntimeError):  # the loop was closed under us: nobody waits any more
            self._loop.call_soon_threadsafe(function, *arguments)

    async def stop(self) -> None:
        """End the thread once everything in line is done; may be called again."""
        if self._ended is None or self._thread is None:
            return
        if self._open:
            self._open = False
            self._jobs.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    def _end(self, started: asyncio.Future[None], error: BaseException | None) -> None:
        self._open = False
        left: list[Outcome[Given]] = []
        while not self._jobs.empty():
            job = self._jobs.get_nowait()
            if job is not None:
                left.append(Outcome(job, error=error or StoreClosed()))
        self.settle(left)
        if self._ended is not None:
            self._ended.set_result(None)
        _settle(started, error)


def _settle(started: asyncio.Future[None], error: BaseException | None) -> None:
    if started.done():
        if error is not None:
            raise error
    elif error is None:
        started.set_result(None)
    else:
        started.set_exception(error)


def _raisable(error: BaseException) -> BaseException:
    # asyncio: a future cannot hold a StopIteration.
    return RuntimeError(repr(error)) if isinstance(error, StopIteration) else error
