"""The store: one thread that writes, one that reads, one for files, and what was committed told in order."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar, cast

import peewee
import structlog

from tabmuxd.store.errors import StoreFailed, StoreLocked
from tabmuxd.store.files import Files
from tabmuxd.store.line import Job, Line, Outcome
from tabmuxd.store.live import Live
from tabmuxd.store.rows import History
from tabmuxd.store.schema import is_locked, prepare, refusal
from tabmuxd.store.transaction import Batch, Reader, Transaction, read_history, read_live

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

T = TypeVar("T")

MAX_WAITING: Final = 4096
GROUP_COUNT: Final = 64

_PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL: a commit that was told survives the loss of power
    "cache_size": -2_048,
    "journal_size_limit": 67_108_864,
}


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """How full the lines are, what was done since the start, and how many rows could not be read then."""

    waiting_write_count: int
    waiting_read_count: int
    commit_count: int
    regroup_count: int
    unreadable_count: int


class Store:
    """The file that everything is kept in; `async with` opens and closes it.

    Nothing on the loop touches the file. What waits to be written, up to `group_count`, shares one transaction. A
    function that raises before it has written anything has no part in it. If one raises later, or the commit fails,
    all is rolled back and each function is run again in a transaction of its own: so a function may run twice, and
    must change nothing but the transaction. `committed` is called on the loop for each commit, in order, before the
    callers get their results. A caller that is cancelled stops waiting; its write still happens, or not, whole.
    """

    def __init__(
        self,
        path: Path,
        *,
        committed: Callable[[Batch], None],
        max_waiting: int = MAX_WAITING,
        group_count: int = GROUP_COUNT,
        busy_timeout: float = 10.0,
    ) -> None:
        self._path = path
        self._committed = committed
        self._busy_timeout = busy_timeout
        self._writes: Line[Transaction] = Line("store-writer", max_waiting=max_waiting, group_count=group_count)
        self.files = Files(path.parent / "artifacts")
        self._reads: Line[Reader] = Line("store-reader", max_waiting=max_waiting, group_count=1)
        self._history = History("", 0, 0)
        self._live = Live()
        self._commit_count = 0
        self._regroup_count = 0
        self._unreadable_count = 0

    def __repr__(self) -> str:
        return f"<Store {self._path} {self.statistics()}>"

    async def __aenter__(self) -> Self:
        """Open the file; raises StoreRefused or StoreLocked, and then nothing is left running.

        `committed` is called once, with all there is, before this returns.
        """
        async with AsyncExitStack() as started:
            await self._writes.start(self._write_all)
            started.push_async_callback(self._writes.stop)
            await self._reads.start(self._read_all)
            started.push_async_callback(self._reads.stop)
            await self.files.__aenter__()
            started.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Do what is in line, then close the file."""
        async with AsyncExitStack() as ending:
            ending.push_async_callback(self._reads.stop)
            ending.push_async_callback(self._writes.stop)
            await self.files.__aexit__(kind, error, traceback)

    async def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` returns, once it is committed; what it raises, once it is rolled back.

        `work` runs on the writer's thread, perhaps twice. Raises StoreBusy, StoreLocked or StoreClosed if it did not
        run, StoreFailed if SQLite failed.
        """
        return cast("T", await self._writes.call(work))

    async def read(self, work: Callable[[Reader], T]) -> T:
        """What `work` returns or raises; it runs on the reader's thread and sees one moment."""
        return await self.reading(work)

    def reading(self, work: Callable[[Reader], T]) -> asyncio.Future[T]:
        """As `read`, begun at once."""
        return cast("asyncio.Future[T]", self._reads.submit(work))

    def statistics(self) -> StoreStatistics:
        """How full the lines are, and what was done since the start."""
        return StoreStatistics(
            self._writes.waiting_count,
            self._reads.waiting_count,
            self._commit_count,
            self._regroup_count,
            self._unreadable_count,
        )

    def _write_all(self, started: Callable[[], None]) -> None:
        prepare(self._path, busy_timeout=self._busy_timeout)
        database = self._connected()
        try:
            self._connection = database.connection()  # type: ignore[no-untyped-call]  # peewee 4.5 leaves it untyped
            self._history = read_history(self._connection)
            self._live, unreadable = read_live(self._connection)
            self._unreadable_count = len(unreadable)
            for error in unreadable:
                _log.error("row cannot be read", table=error.table, name=error.name, problem=error.problem)
            self._writes.on_loop(self._committed, Batch(self._history, (), self._live))
            started()
            while jobs := self._writes.take():
                self._write_group(jobs)
        finally:
            database.close()

    def _read_all(self, started: Callable[[], None]) -> None:
        database = self._connected()
        try:
            connection: sqlite3.Connection = database.connection()  # type: ignore[no-untyped-call]  # peewee 4.5 leaves it untyped
            started()
            while jobs := self._reads.take():
                for job in jobs:
                    outcome = _read(connection, job)
                    if outcome.error is not None:
                        outcome = replace(outcome, error=self._told(outcome.error))
                    self._reads.on_loop(self._reads.settle, [outcome])
        finally:
            database.close()

    def _connected(self) -> peewee.SqliteDatabase:
        database = peewee.SqliteDatabase(str(self._path), timeout=self._busy_timeout, pragmas=_PRAGMAS)
        try:
            database.connect()
            database.connection().text_factory = _readable  # type: ignore[no-untyped-call]  # peewee 4.5 leaves it untyped
        except peewee.DatabaseError as error:
            raise refusal(self._path, error) from error
        return database

    def _write_group(self, jobs: list[Job[Transaction]]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            told = self._told(error)
            self._writes.on_loop(self._writes.settle, [Outcome(job, error=told) for job in jobs])
            return
        transaction = Transaction(self._connection, self._history, self._live)
        outcomes: list[Outcome[Transaction]] = []
        failed: BaseException | None = None
        for job in jobs:
            outcomes.append(_written(transaction, job))
            if outcomes[-1].spoiled:
                failed = outcomes[-1].error
                break
        if failed is None:
            try:
                batch = transaction.finish()
                self._commit()
            except sqlite3.Error as error:
                failed = error
            else:
                self._publish(batch, outcomes)
                return
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if len(jobs) == 1:
            self._writes.on_loop(self._writes.settle, [Outcome(jobs[0], error=self._told(failed))])
            return
        self._regroup_count += 1
        for job in jobs:
            self._write_group([job])

    def _commit(self) -> None:
        """Commit: what was written before is lost until this returns, and safe once it has. For tests to wrap."""
        self._connection.execute("COMMIT")

    def _told(self, error: BaseException) -> BaseException:
        if not isinstance(error, sqlite3.Error):
            return error
        told = StoreLocked(self._path) if is_locked(error) else StoreFailed(self._path, str(error))
        told.__cause__ = error
        return told

    def _publish(self, batch: Batch, outcomes: list[Outcome[Transaction]]) -> None:
        self._history = batch.history
        self._live = batch.live
        self._commit_count += 1
        self._writes.on_loop(self._deliver, batch, outcomes)

    def _deliver(self, batch: Batch, outcomes: list[Outcome[Transaction]]) -> None:
        try:
            self._committed(batch)
        finally:
            self._writes.settle(outcomes)


def _readable(raw: bytes) -> str | bytes:
    """A text as SQLite has it; what is no UTF-8 stays as it is, and is no text to anybody."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _written(transaction: Transaction, job: Job[Transaction]) -> Outcome[Transaction]:
    before = transaction.write_count
    try:
        return Outcome(job, job.work(transaction))
    except BaseException as error:  # noqa: BLE001 - goes to the caller; a thread that dies would leave all waiting
        # SQLite may have rolled back by itself, after an error of its own.
        spoiled = transaction.write_count != before or isinstance(error, sqlite3.Error)
        return Outcome(job, error=error, spoiled=spoiled)


def _read(connection: sqlite3.Connection, job: Job[Reader]) -> Outcome[Reader]:
    try:
        connection.execute("BEGIN")
        try:
            return Outcome(job, job.work(Reader(connection)))
        finally:
            connection.execute("COMMIT")
    except BaseException as error:  # noqa: BLE001 - as above
        return Outcome(job, error=error)
