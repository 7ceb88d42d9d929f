"""The state directory: private, and one server's at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self


class StateDirectoryError(Exception):
    """The state directory cannot be used; the message says why and what to do."""


class StateDirectoryInUse(StateDirectoryError):
    """Another server holds its lock."""


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
        """Make the directory with mode 0700, unless it is there, and take its lock.

        Raises StateDirectoryInUse if another server holds it, StateDirectoryError if others may enter the directory:
        one that was there before is not changed, for it may be meant for them.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if mode := self.path.stat().st_mode & 0o077:
                raise StateDirectoryError(
                    f"the state directory {self.path} can be entered by others (mode bits {mode:03o}). Choose another "
                    f"one, or, if it is for tabmuxd alone, run: chmod 700 {self.path}"
                )
            self._lock = os.open(self.path / "tabmuxd.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateDirectoryError(f"the state directory {self.path} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StateDirectoryInUse(
                f"another tabmuxd uses the state directory {self.path}. Use that one, stop it, or choose another "
                "directory with --state-dir or TABMUX_STATE_DIR."
            ) from error
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Let go of the lock."""
        os.close(self._lock)
