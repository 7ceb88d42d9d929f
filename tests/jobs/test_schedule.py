from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta

from apscheduler.events import EVENT_JOB_MISSED, JobEvent
from tabmuxd.jobs.schedule import Job, Schedule

_PERIOD = timedelta(seconds=0.05)
_LONG = timedelta(seconds=60)
_LIMIT = 10


class Runs:
    """Counts the runs of a job and lets a test wait for them."""

    def __init__(self) -> None:
        self.count = 0
        self.threads: set[int] = set()
        self._more = asyncio.Condition()

    async def __call__(self) -> None:
        """One run."""
        self.threads.add(threading.get_ident())
        async with self._more:
            self.count += 1
            self._more.notify_all()

    async def reach(self, count: int) -> None:
        """Return after this many runs."""
        async with asyncio.timeout(_LIMIT), self._more:
            await self._more.wait_for(lambda: self.count >= count)


def _job(work: Callable[[], Awaitable[object]], *, deadline: timedelta = _LONG, period: timedelta = _PERIOD) -> Job:
    return Job("job", work, period, deadline)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(_LIMIT):
        while not condition():  # noqa: ASYNC110 - counts of a schedule are told by no event
            await asyncio.sleep(0.01)


async def test_on_the_loop() -> None:
    """Jobs run again and again, as coroutines on the loop's own thread (JOB-03)."""
    runs = Runs()
    async with Schedule(_job(runs)) as schedule:
        await runs.reach(3)

    assert runs.threads == {threading.get_ident()}
    assert (schedule.missed_count, schedule.failed_count) == (0, 0)


async def test_first_after_a_period() -> None:
    """Nothing runs at once, and nothing at all if the schedule is left before the first period is over."""
    runs = Runs()
    async with Schedule(_job(runs, period=_LONG)) as schedule:
        assert repr(schedule) == "<Schedule jobs=1 running=0 missed=0 failed=0>"

    assert runs.count == 0


async def test_failures() -> None:
    """A run that fails is counted, and the job runs again."""
    runs = Runs()

    async def fail() -> None:
        await runs()
        raise ValueError("of the job")

    async with Schedule(_job(fail)) as schedule:
        await runs.reach(3)

    assert schedule.failed_count >= 2


async def test_deadline() -> None:
    """A run is ended at its deadline, which is below its period, and others go on beside it (JOB-02)."""
    ended = asyncio.Event()
    runs = Runs()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    hanging = Job("hanging", hang, _PERIOD, timedelta(seconds=0.02))
    async with Schedule(hanging, Job("other", runs, _PERIOD, _LONG)) as schedule:
        async with asyncio.timeout(_LIMIT):
            await ended.wait()
        await runs.reach(2)
        await _until(lambda: schedule.failed_count >= 1)

    assert schedule.failed_count >= 1


async def test_never_twice_at_once() -> None:
    """While a run takes longer than the period no second one begins; what is skipped is counted (JOB-01, JOB-02)."""
    going = asyncio.Event()
    running = most = 0

    async def slow() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await going.wait()
        running -= 1

    async with Schedule(_job(slow)) as schedule:
        await _until(lambda: schedule.missed_count >= 2)
        assert (running, repr(schedule).split()[2]) == (1, "running=1")
        going.set()

    assert (running, most) == (0, 1)


async def test_missed() -> None:
    """A run that APScheduler gives up, for it comes far too late, is counted (JOB-01)."""
    async with Schedule(_job(Runs(), period=_LONG)) as schedule:
        schedule._scheduler._dispatch_event(JobEvent(EVENT_JOB_MISSED, "job", "default"))

        assert repr(schedule) == "<Schedule jobs=1 running=0 missed=1 failed=0>"


async def test_blocked_loop() -> None:
    """Runs that a blocked loop kept from beginning are made up for once, in a task of its own (JOB-01, JOB-04)."""
    runs = Runs()
    tasks: list[asyncio.Task[object] | None] = []

    async def block_once() -> None:
        tasks.append(asyncio.current_task())
        if len(tasks) == 1:
            time.sleep(0.4)  # noqa: ASYNC251 - the loop stands still, for eight periods
        await runs()

    async with Schedule(_job(block_once)):
        await runs.reach(3)

    assert len(set(tasks)) == len(tasks)


async def test_exit_awaits() -> None:
    """Leaving waits for what runs, and cuts nothing off."""
    begun, going = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def work() -> None:
        begun.set()
        await going.wait()
        done.append("done")

    schedule = Schedule(_job(work))
    await schedule.__aenter__()
    async with asyncio.timeout(_LIMIT):
        await begun.wait()
    leaving = asyncio.ensure_future(schedule.__aexit__(None, None, None))
    await asyncio.sleep(0)
    assert (leaving.done(), done) == (False, [])
    going.set()
    async with asyncio.timeout(_LIMIT):
        await leaving

    assert done == ["done"]


async def test_nothing_after() -> None:
    """After leaving nothing begins, however many periods go by, and no task is left."""
    before = asyncio.all_tasks()
    runs, later = Runs(), Runs()
    async with Schedule(_job(runs)) as first:
        await runs.reach(1)
    count = runs.count

    async with Schedule(_job(later)):
        await later.reach(4)

    assert (runs.count, asyncio.all_tasks(), first._scheduler.running) == (count, before, False)


async def test_nothing_while_leaving() -> None:
    """While leaving waits for one job, another that is due does not begin."""
    begun, going = asyncio.Event(), asyncio.Event()
    others, elsewhere = Runs(), Runs()

    async def work() -> None:
        begun.set()
        await going.wait()

    schedule = Schedule(Job("one", work, _PERIOD, _LONG), Job("other", others, _PERIOD, _LONG))
    await schedule.__aenter__()
    async with asyncio.timeout(_LIMIT):
        await begun.wait()
    leaving = asyncio.ensure_future(schedule.__aexit__(None, None, None))
    await asyncio.sleep(0)
    count = others.count
    async with Schedule(_job(elsewhere)):
        await elsewhere.reach(4)
    going.set()
    async with asyncio.timeout(_LIMIT):
        await leaving

    assert others.count == count
