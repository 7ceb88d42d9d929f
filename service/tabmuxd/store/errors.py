"""Why the store did not do something."""

from __future__ import annotations

from pathlib import Path


class StoreError(Exception):
    """Root of all errors of the store."""


class StoreBusy(StoreError):
    """Too many callers wait already; nothing was done, and it may be tried again."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} calls wait for the store already; nothing was done")
        self.limit = limit


class StoreLocked(StoreError):
    """Another process held the store for too long; nothing was done, and it may be tried again."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another process holds the store {path}; nothing was done")
        self.path = path


class StoreClosed(StoreError):
    """The store is closed, or was never opened; nothing was done."""

    def __init__(self) -> None:
        super().__init__("the store is not open; nothing was done")


class StoreFailed(StoreError):
    """SQLite could not do it: the disk is full, say; nothing of it was kept. Its cause is the error of SQLite."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"the store {path} failed ({problem}); nothing of it was kept")
        self.path = path
        self.problem = problem


class Unreadable(StoreError):
    """A row holds no resource: somebody else has written to it. It is kept, and nothing is done because of it."""

    def __init__(self, table: str, name: object, problem: str) -> None:
        super().__init__(f"the row {name!r} of {table} cannot be read ({problem})")
        self.table = table
        self.name = name
        self.problem = problem


class StoreRefused(StoreError):
    """The store cannot be opened; nothing in it was changed.

    Fields: `path` of the file, `problem` as a sentence without its subject.
    """

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(
            f"the store {path} {problem}. Nothing was changed. Restore a backup, or move the file and those named "
            f"{path.name}-wal and {path.name}-shm away to begin anew."
        )
        self.path = path
        self.problem = problem


class StoreDamaged(StoreRefused):
    """The file is not a store, or not whole."""


class StoreTooNew(StoreRefused):
    """A newer version of the service has written the file."""
