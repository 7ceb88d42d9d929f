"""Files beside the database, in one directory that one thread works in: a disk that is slow holds up no loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar, cast

import structlog

from tabmuxd.store.errors import StoreError
from tabmuxd.store.line import Job, Line, Outcome

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

T = TypeVar("T")

MAX_WAITING: Final = 4096


class Files:
    """The thread of the files; `async with` makes the directory, readable for its owner only, and ends the thread.

    Bound: `max_waiting`; one more raises StoreBusy. What a caller that was cancelled has begun is done all the same,
    and what is handed over after it comes behind it.
    """

    def __init__(self, directory: Path, *, max_waiting: int = MAX_WAITING) -> None:
        self.directory = directory
        self._line: Line[Path] = Line("store-files", max_waiting=max_waiting, group_count=1)

    def __repr__(self) -> str:
        return f"<Files {self.directory} waiting={self._line.waiting_count}>"

    async def __aenter__(self) -> Self:
        """Make the directory; raises OSError."""
        await self._line.start(self._work)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what is in line, then end."""
        await self._line.stop()

    async def run(self, work: Callable[[Path], T]) -> T:
        """What `work`, which gets the directory, returns or raises; it runs on the thread."""
        return cast("T", await self._line.call(work))

    def soon(self, work: Callable[[Path], object]) -> None:
        """Have `work` done behind all that is in line; what it raises is logged. Nothing where the line is closed."""

        def tell(directory: Path) -> None:
            try:
                work(directory)
            except OSError as error:
                _log.warning("file not cleared away", error=error.strerror)

        try:
            self._line.submit(tell)
        except StoreError as error:
            _log.warning("file not cleared away", error=type(error).__name__)

    def _work(self, started: Callable[[], None]) -> None:
        self.directory.mkdir(mode=0o700, exist_ok=True)
        started()
        while jobs := self._line.take():
            for job in jobs:
                self._line.on_loop(self._line.settle, [self._done(job)])

    def _done(self, job: Job[Path]) -> Outcome[Path]:
        try:
            return Outcome(job, job.work(self.directory))
        except BaseException as error:  # noqa: BLE001 - goes to the caller; a thread that dies would leave all waiting
            return Outcome(job, error=error)
