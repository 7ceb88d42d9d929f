"""How a store file is made, checked and brought to the newest schema."""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import peewee
from playhouse.migrations import Runner

from tabmuxd.store.errors import StoreDamaged, StoreError, StoreLocked, StoreRefused, StoreTooNew
from tabmuxd.store.models import HistoryModel

MIGRATIONS = Path(__file__).parent / "migrations"

_HEADER = b"SQLite format 3\x00"
_APPLICATION_ID = 0x7A_6D_75_78  # "zmux"; tells our files from other SQLite files


def prepare(path: Path, *, migrations: Path = MIGRATIONS, busy_timeout: float = 10.0) -> None:
    """Make the file `path` a whole store of the newest schema, readable for its owner only.

    A file that is not there is made, whole or not at all. One that is there is checked and, where it is older,
    migrated. Raises StoreDamaged, StoreTooNew or StoreLocked, which name the file; then nothing was changed.
    """
    if path.exists():
        path.chmod(0o600)
        _check_header(path)
        _migrate(path, migrations, busy_timeout)
        return
    for companion in (Path(f"{path}-wal"), Path(f"{path}-journal")):
        if companion.exists():
            raise StoreDamaged(path, f"is missing, while {companion.name} is there")
    _create(path, migrations, busy_timeout)


def _create(path: Path, migrations: Path, busy_timeout: float) -> None:
    unfinished = path.with_name(f"{path.name}.new")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    unfinished.chmod(0o600)
    with _database(unfinished, busy_timeout) as database:
        database.execute_sql(f"PRAGMA application_id = {_APPLICATION_ID}")  # type: ignore[no-untyped-call]  # peewee 4.5 leaves it untyped
        Runner(database, str(migrations)).up()
        with database.bind_ctx([HistoryModel]):
            HistoryModel.insert(id=1, history_id=str(uuid.uuid4()), head=0, compact_revision=0).execute()
    unfinished.rename(path)
    _synchronise(path.parent)


def _migrate(path: Path, migrations: Path, busy_timeout: float) -> None:
    try:
        with _database(path, busy_timeout) as database:
            _check_whole(path, database)
            runner = Runner(database, str(migrations))
            if newer := sorted(migration.name for migration in runner.status() if migration.path is None):
                raise StoreTooNew(path, f"was written by a newer version of tabmuxd (it has {newer[-1]})")
            if any(migration.applied is None for migration in runner.status()):
                runner.up()
            if _first(database, "SELECT count(*) FROM history WHERE id = 1") != 1:
                raise StoreDamaged(path, "has lost the row that counts its revisions")
    except peewee.DatabaseError as error:
        raise refusal(path, error) from error


def _check_header(path: Path) -> None:
    with path.open("rb") as file:
        header = file.read(len(_HEADER))
    if not header:
        raise StoreDamaged(path, "is empty")
    if header != _HEADER:
        raise StoreDamaged(path, "is not an SQLite file")


def _check_whole(path: Path, database: peewee.SqliteDatabase) -> None:
    if _first(database, "PRAGMA application_id") != _APPLICATION_ID:
        raise StoreDamaged(path, "is an SQLite file, but not one of tabmuxd")
    found = _first(database, "PRAGMA quick_check(1)")
    if found != "ok":
        raise StoreDamaged(path, f"is damaged ({found})")


def refusal(path: Path, error: peewee.DatabaseError) -> StoreError:
    """What to say of a file that cannot be opened because of `error`."""
    cause = error.__context__  # peewee 4.5 wraps the error of SQLite in one of its own
    if is_locked(cause):
        return StoreLocked(path)
    if isinstance(cause, sqlite3.Error) and _code(cause) in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return StoreDamaged(path, f"is damaged ({error})")
    return StoreRefused(path, f"cannot be opened ({error})")


def is_locked(error: BaseException | None) -> bool:
    """Whether SQLite says that somebody else holds the file."""
    return isinstance(error, sqlite3.Error) and _code(error) == sqlite3.SQLITE_BUSY


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF  # without what an extended code adds


def _first(database: peewee.SqliteDatabase, sql: str) -> object:
    return database.execute_sql(sql).fetchone()[0]  # type: ignore[no-untyped-call]  # peewee 4.5 leaves it untyped


@contextmanager
def _database(path: Path, busy_timeout: float) -> Generator[peewee.SqliteDatabase]:
    database = peewee.SqliteDatabase(str(path), timeout=busy_timeout, pragmas={"synchronous": 2})
    database.connect()
    try:
        yield database
    finally:
        database.close()


def _synchronise(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
