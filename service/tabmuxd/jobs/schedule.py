"""The schedule: which jobs run when, each with a deadline, and an orderly end."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, timedelta
from types import TracebackType
from typing import Any, Final, Self

import structlog
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, EVENT_JOB_MISSED, JobEvent
from apscheduler.schedulers.asyncio import AsyncIOScheduler

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# APScheduler tells of misses by its own logger as well; ours is the one that counts them.
logging.getLogger("apscheduler").setLevel(logging.ERROR)

_AWAIT_RUNNING: Final = 20.0


@dataclass(frozen=True, slots=True)
class Job:
    """A coroutine function to run every `period`; a run is ended at its `deadline`, which is below the period."""

    id: str
    work: Callable[[], Awaitable[object]]
    period: timedelta
    deadline: timedelta


class Schedule:
    """Runs jobs on the loop while `async with` lasts; leaving starts none anew, awaits those at work, then ends.

    A run that comes too late is made up for once, whatever the number missed; a job never runs twice at once.
    """

    def __init__(self, *jobs: Job) -> None:
        """Nothing runs before it is entered."""
        self._scheduler: Any = AsyncIOScheduler(timezone=UTC)  # has no types
        self._running: set[asyncio.Task[object]] = set()
        self._jobs = jobs
        self.missed_count = 0
        self.failed_count = 0

    def __repr__(self) -> str:
        """How many jobs there are, how many run, and how many runs were missed or failed."""
        return (
            f"<Schedule jobs={len(self._jobs)} running={len(self._running)} missed={self.missed_count} "
            f"failed={self.failed_count}>"
        )

    async def __aenter__(self) -> Self:
        """Begin; each job runs first after one period."""
        self._scheduler.add_listener(self._tell_missed, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES)
        for job in self._jobs:
            self._scheduler.add_job(
                self._run,
                "interval",
                args=[job],
                id=job.id,
                seconds=job.period.total_seconds(),
                misfire_grace_time=max(1, int(job.period.total_seconds())),
                coalesce=True,
                max_instances=1,
            )
        self._scheduler.start()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Start none anew, await those at work for up to 20 s, end."""
        self._scheduler.pause()
        if self._running:
            await asyncio.wait(tuple(self._running), timeout=_AWAIT_RUNNING)
        self._scheduler.shutdown(wait=False)
        # `shutdown` is done by a callback that the scheduler puts on the loop.
        await asyncio.sleep(0)

    async def _run(self, job: Job) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._running.add(task)
        try:
            async with asyncio.timeout(job.deadline.total_seconds()):
                await job.work()
        except Exception as error:  # noqa: BLE001 - the top of a job: logged, and run again after its period
            self.failed_count += 1
            _log.warning("job failed", job=job.id, error=type(error).__name__, exc_info=error)
        finally:
            if task is not None:
                self._running.discard(task)

    def _tell_missed(self, event: JobEvent) -> None:
        self.missed_count += 1
        _log.warning("job missed", job=event.job_id)
