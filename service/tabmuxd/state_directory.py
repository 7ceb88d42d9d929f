"""The state directory: private, and one server's at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class StateDirectoryError(Exception):
    """The state directory cannot be used; the message says why and what to do."""


class StateDirectory:
    """Holds the directory's lock while entered; it ends with the process, whatever becomes of it."""

    def __init__(self, path: Path) -> None:
        """Nothing is made before it is entered."""
        self.path = path
        self._lock = -1

    @property
    def database(self) -> Path:
        """File of the store."""
        return self.path / "tabmuxd.sqlite3"

    def __enter__(self) -> Self:
        """Make the directory with mode 0700 and take its lock; StateDirectoryError if another server holds it."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.path.chmod(0o700)
            self._lock = os.open(self.path / "tabmuxd.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateDirectoryError(f"the state directory {self.path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StateDirectoryError(
                f"another tabmuxd uses the state directory {self.path}. Use that one, stop it, or choose another "
                "directory with --state-dir or TABMUX_STATE_DIR."
            ) from error
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Let go of the lock."""
        os.close(self._lock)
