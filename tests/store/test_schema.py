"""The file: made, checked, migrated or refused."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import peewee
import pytest
from tabmuxd.resources.event import Resource
from tabmuxd.store import Batch, Reader, Store, StoreDamaged, StoreError, StoreLocked, StoreTooNew, Transaction
from tabmuxd.store.models import MODELS
from tabmuxd.store.schema import MIGRATIONS, prepare

from tests.store.samples import full, put, tab


def ignore(_: Batch) -> None:
    """Hear nothing of commits."""


def putting(resource: Resource) -> Callable[[Transaction], int]:
    """Put `resource`."""
    return lambda transaction: put(transaction, resource)


def schema_of(connection: sqlite3.Connection) -> dict[str, tuple[list[Any], list[Any]]]:
    """Tables with their columns and indexes."""
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        if name != "schema_migration"
    ]
    return {
        table: (
            sorted(row[1:] for row in connection.execute(f"PRAGMA table_info({table})")),
            sorted(
                (
                    unique,
                    [column for (_, _, column) in connection.execute(f"PRAGMA index_info({name})")],
                )
                for (_, name, unique, _, _) in connection.execute(f"PRAGMA index_list({table})")
            ),
        )
        for table in tables
    }


async def test_migrations_lead_to_models(directory: Path) -> None:
    """The migrations make the very schema that the models describe.

    If a dataclass in `resources` got a field: before the first release add it to `0001_first.py`; after it, add a
    numbered file with `migrator.add_column`.
    """
    prepare(directory / "store.db")
    database = peewee.SqliteDatabase(str(directory / "models.db"))
    with database, database.bind_ctx(MODELS):
        database.create_tables(MODELS)
    shapes = []
    for name in ("store.db", "models.db"):
        connection = sqlite3.connect(directory / name)
        shape = schema_of(connection)
        connection.close()
        # The order of columns is of no concern.
        shapes.append(
            {table: ([column[:3] for column in columns], indexes) for table, (columns, indexes) in shape.items()}
        )
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("umask", [0o000, 0o077])
async def test_mode(directory: Path, umask: int) -> None:
    """The file and its companions are for their owner only, under a loose umask too (SEC-02)."""
    before = os.umask(umask)
    try:
        async with Store(directory / "store.db", committed=ignore) as store:
            await store.write(lambda transaction: put(transaction, tab(1)))
            modes = {
                name: (directory / name).stat().st_mode & 0o777 for name in ("store.db", "store.db-wal", "store.db-shm")
            }
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


async def test_everything_survives(directory: Path) -> None:
    """What was committed is there after the store was opened again, field by field."""
    async with Store(directory / "store.db", committed=ignore) as store:
        for resource in full():
            await store.write(putting(resource))
    async with Store(directory / "store.db", committed=ignore) as store:
        found = [await store.read(partial(Reader.find, kind=type(kept), name=kept.name)) for kept in full()]
    assert [resource and resource.revision for resource in found] == [1, 2, 3, 4, 5]
    assert [type(resource) for resource in found] == [type(resource) for resource in full()]


def damaged(path: Path, how: str) -> None:
    """Damage a whole store."""
    content = path.read_bytes()
    match how:
        case "empty":
            path.write_bytes(b"")
        case "half":
            path.write_bytes(content[: len(content) // 2])
        case "header":
            path.write_bytes(content[:16])
        case "cut":
            path.write_bytes(content[:-5000])
        case "noise":
            path.write_bytes(os.urandom(len(content)))
        case "noise behind":
            path.write_bytes(content[:100] + os.urandom(len(content) - 100))
        case "noise within":
            path.write_bytes(content[:8192] + os.urandom(len(content) - 8192))
        case "missing":
            path.unlink()
            path.with_name(f"{path.name}-wal").write_bytes(b"left")
        case _:
            path.unlink()
            connection = sqlite3.connect(path)
            connection.execute("CREATE TABLE history (id)")
            connection.close()


@pytest.mark.parametrize(
    "how", ["empty", "half", "header", "cut", "noise", "noise behind", "noise within", "missing", "of another program"]
)
async def test_damaged_file_is_refused(directory: Path, how: str) -> None:
    """A truncated or overwritten file is refused by its name, and left as it is (STO-06)."""
    path = directory / "store.db"
    async with Store(path, committed=ignore) as store:
        for number in range(200):
            await store.write(putting(tab(number)))
    damaged(path, how)
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(StoreDamaged, match=r"store\.db") as caught:
        await Store(path, committed=ignore).__aenter__()
    assert caught.value.path == path
    assert (path.read_bytes() if path.exists() else None) == before


async def test_lost_history_row(directory: Path) -> None:
    """A store without its count of revisions is refused, not begun anew (STO-06)."""
    path = directory / "store.db"
    prepare(path)
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM history")
    connection.commit()
    connection.close()
    with pytest.raises(StoreDamaged, match="revisions"):
        prepare(path)


def test_unfinished_file_is_made_anew(directory: Path) -> None:
    """A start that was cut off while it made the file leaves nothing that stops the next one."""
    (directory / "store.db.new").write_bytes(b"half")
    prepare(directory / "store.db")
    assert sorted(path.name for path in directory.iterdir()) == ["store.db"]


ADD_COLUMN = '''"""Add a column."""
import peewee

def up(migrator, database):
    migrator.migrate(migrator.add_column("tabs", "mood", peewee.TextField(default="calm")))
'''


def later_version(directory: Path) -> Path:
    """The migrations of a later version, which has one more."""
    migrations = directory / "migrations"
    shutil.copytree(MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "9999_mood.py").write_text(ADD_COLUMN)
    return migrations


async def test_migration_keeps_rows(directory: Path) -> None:
    """A store of the first schema is brought to the newest one with all its rows."""
    path = directory / "store.db"
    async with Store(path, committed=ignore) as store:
        await store.write(lambda transaction: put(transaction, tab(1)))
    migrations = later_version(directory)
    prepare(path, migrations=migrations)
    prepare(path, migrations=migrations)
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT name, revision, mood FROM tabs").fetchall()
    connection.close()
    assert rows == [(tab(1).name, 1, "calm")]


async def test_newer_schema_is_refused(directory: Path) -> None:
    """A store that a newer version wrote is refused by its name, and left as it is."""
    path = directory / "store.db"
    prepare(path, migrations=later_version(directory))
    before = path.read_bytes()
    with pytest.raises(StoreTooNew, match=r"store\.db.*9999_mood"):
        await Store(path, committed=ignore).__aenter__()
    assert path.read_bytes() == before


async def test_failed_migration_changes_nothing(directory: Path) -> None:
    """A migration that fails leaves the store as it was."""
    path = directory / "store.db"
    prepare(path)
    migrations = later_version(directory)
    (migrations / "9999_mood.py").write_text(ADD_COLUMN + "    raise ZeroDivisionError\n")
    with pytest.raises(ZeroDivisionError):
        prepare(path, migrations=migrations)
    prepare(path)
    connection = sqlite3.connect(path)
    assert "mood" not in [row[1] for row in connection.execute("PRAGMA table_info(tabs)")]
    connection.close()


async def test_locked_at_start(directory: Path) -> None:
    """A store that another process holds while it opens is told as locked, not as damaged."""
    path = directory / "store.db"
    prepare(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(StoreLocked) as caught:
            await Store(path, committed=ignore, busy_timeout=0.1).__aenter__()
    finally:
        other.close()
    assert isinstance(caught.value, StoreError)
