"""The file that holds the conversations: one JSON object a line, in the order in which things happened."""

import fcntl
import json
import os
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self, TypedDict, cast

from tabmuxd.playground.refusals import PlaygroundError

FORMAT = "tabmux-playground-1"


class Record(TypedDict):
    """One line of the file."""

    what: str  # "submitted" or "stopped"
    turn: str
    time: str  # RFC 3339
    key: str  # the next four are empty for "stopped"
    conversation: str
    kind: str
    prompt: str


class JournalError(PlaygroundError):
    """The file cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        """Say which file it is, and what is wrong with it."""
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class Journal:
    """An append-only file, held by one process at a time.

    A record has been handed to the operating system when `append` returns, so it survives the end of the process; it
    is not forced to the disk, which would hold up the loop that serves the pages. A last line that was cut off is
    dropped at the next opening; any other damage is refused. Use it as a context manager.
    """

    def __init__(self, path: Path) -> None:
        """Name the file; it is opened, and made if need be, on entering."""
        self.path = path
        self._file = -1
        self._size_bytes = 0

    def __enter__(self) -> Self:
        """Open and lock the file; raises `JournalError` if another process holds it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._file)
            raise JournalError(self.path, "another process uses it") from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file, which also ends the lock."""
        os.close(self._file)

    def read(self) -> list[Record]:
        """All records, oldest first; drops a last line that was cut off, and begins an empty file."""
        with open(self._file, "rb", closefd=False) as file:
            content = file.read()
        self._size_bytes = content.rfind(b"\n") + 1
        if self._size_bytes < len(content):
            os.ftruncate(self._file, self._size_bytes)
        lines = content[: self._size_bytes].split(b"\n")[:-1]
        if not lines:
            self._write(json.dumps({"format": FORMAT}).encode() + b"\n")
            return []
        if self._object(lines[0], 1).get("format") != FORMAT:
            raise JournalError(self.path, "not a file of conversations")
        return [self._record(line, number) for number, line in enumerate(lines[1:], start=2)]

    def append(self, record: Record) -> None:
        """Write one record, whole or not at all."""
        self._write(json.dumps(record, ensure_ascii=False).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
        except OSError as error:
            # What is left of half a line would spoil the next one.
            os.ftruncate(self._file, self._size_bytes)
            raise JournalError(self.path, error.strerror or "cannot be written") from error
        self._size_bytes += len(line)

    def _object(self, line: bytes, number: int) -> dict[str, object]:
        try:
            value: object = json.loads(line)
        except ValueError as error:
            raise JournalError(self.path, f"line {number} is damaged") from error
        if not isinstance(value, dict):
            raise JournalError(self.path, f"line {number} is damaged")
        return cast("dict[str, object]", value)

    def _record(self, line: bytes, number: int) -> Record:
        value = self._object(line, number)
        texts = {name: value.get(name) for name in Record.__annotations__}
        if not all(isinstance(text, str) for text in texts.values()) or not _is_time(str(texts["time"])):
            raise JournalError(self.path, f"line {number} is damaged")
        return cast("Record", texts)


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
