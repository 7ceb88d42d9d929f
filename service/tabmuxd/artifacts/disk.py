"""The files themselves, below one directory: `ID.part` while they come, `ID/NAME` once they are whole.

These functions are run on the thread of the files, one at a time.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

_PART: Final = ".part"
_FLAGS: Final = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW


class Incoming:
    """A file that comes in pieces; nothing of it can be seen as a file of ours until `finish`."""

    def __init__(self, directory: Path, artifact_id: str) -> None:
        """Nothing is there before `begin`."""
        self._directory = directory
        self._id = artifact_id
        self._part = directory / f"{artifact_id}{_PART}"
        self._descriptor = -1
        self._hash = hashlib.sha256()

    def begin(self) -> None:
        """Make it, readable for its owner only; raises OSError, as the others do."""
        self._descriptor = os.open(self._part, _FLAGS, 0o600)

    def append(self, chunk: bytes) -> None:
        """Write a piece."""
        self._hash.update(chunk)
        left = memoryview(chunk)
        while left:
            left = left[os.write(self._descriptor, left) :]

    @property
    def sha256(self) -> str:
        """Hash of what came so far, in lower-case hex."""
        return self._hash.hexdigest()

    def finish(self, display_name: str) -> None:
        """Make it safe against the loss of power, and give it its name."""
        os.fsync(self._descriptor)
        self.close()
        home = self._directory / self._id
        home.mkdir(mode=0o700)
        self._part.rename(home / display_name)
        _sync(home)
        _sync(self._directory)

    def close(self) -> None:
        """No more comes; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Opened:
    """A file that is read; it can be, though it is deleted meanwhile."""

    def __init__(self, path: Path) -> None:
        """Nothing is opened before `begin`."""
        self._path = path
        self._descriptor = -1

    def begin(self) -> None:
        """Open it; raises FileNotFoundError."""
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)

    def read(self, offset_bytes: int, count: int) -> bytes:
        """At most `count` bytes from an offset on; none at the end."""
        return os.pread(self._descriptor, count, offset_bytes)

    def close(self) -> None:
        """It is read no more; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def path_of(directory: Path, artifact_id: str, display_name: str) -> Path:
    """Where a file that is whole lies."""
    return directory / artifact_id / display_name


def remove(directory: Path, artifact_id: str) -> None:
    """Delete what there is of a file, whole or not."""
    with suppress(FileNotFoundError):
        (directory / f"{artifact_id}{_PART}").unlink()
    with suppress(FileNotFoundError):
        shutil.rmtree(directory / artifact_id)


def entries(directory: Path) -> frozenset[str]:
    """Ids of all there is something of; whatever else lies there is named as it is."""
    return frozenset(entry.name.removesuffix(_PART) for entry in directory.iterdir())


def missing(directory: Path, expected: Mapping[str, tuple[str, int]]) -> frozenset[str]:
    """Ids of those, by name and size, that are not there as a whole."""
    return frozenset(
        artifact_id
        for artifact_id, (name, size_bytes) in expected.items()
        if _size(path_of(directory, artifact_id, name)) != size_bytes
    )


def beginning(path: Path, count: int) -> bytes:
    """The first bytes of a file; raises FileNotFoundError."""
    with path.open("rb") as opened:
        return opened.read(count)


def _size(path: Path) -> int:
    try:
        return path.stat(follow_symlinks=False).st_size
    except OSError:
        return -1


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
