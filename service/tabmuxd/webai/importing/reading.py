"""The file of another tool, read while it arrives: its records as values, or why it is none of that tool."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from tabmuxd.resources.imports import ImportSource
from tabmuxd.webai.importing import agbrowse, cli_jaw
from tabmuxd.webai.importing.old_records import Malformed, OldRecord
from tabmuxd.webai.importing.splitting import FrameTooLarge, NotJson, Splitter, parsed, piece_number

MAX_FILE_BYTES: Final = 256 * 1024 * 1024
MAX_RECORD_COUNT: Final = 100_000
MAX_TURN_COUNT: Final = 200_000

FileCause = Literal["corrupt", "wrong-source", "unknown-version", "too-large"]


class FileRefused(Exception):
    """Nothing of the file can be imported."""

    def __init__(self, cause: FileCause) -> None:
        """`cause` as the contract names it."""
        super().__init__(cause)
        self.cause: FileCause = cause


@dataclass(frozen=True, slots=True)
class Entry:
    """One record of the file by its position; `record` is None where it is malformed, `import_id` may be known then."""

    index: int
    import_id: str
    record: OldRecord | None


@dataclass(frozen=True, slots=True)
class _Reader:
    record_of: Callable[[object], OldRecord]
    is_ours: Callable[[Mapping[str, object]], bool]
    has_known_version: Callable[[Mapping[str, object]], bool]


_READERS: Final[Mapping[ImportSource, _Reader]] = {
    ImportSource.AGBROWSE: _Reader(agbrowse.record_of, agbrowse.is_ours, agbrowse.has_known_version),
    ImportSource.CLI_JAW: _Reader(cli_jaw.record_of, cli_jaw.is_ours, lambda _whole: True),
}


class FileReader:
    """Takes the bytes of a file in order. What is kept of it is what its records become, not the text."""

    def __init__(self, source: ImportSource) -> None:
        """Nothing has come yet."""
        self._reader = _READERS[source]
        self._splitter = Splitter()
        self._size_bytes = 0
        self._piece_count = 0
        self._turn_count = 0
        self._good: dict[int, OldRecord] = {}
        self._ids: dict[int, str] = {}

    def feed(self, text: bytes) -> None:
        """Take the next bit; raises FileRefused."""
        self._size_bytes += len(text)
        if self._size_bytes > MAX_FILE_BYTES:
            raise FileRefused("too-large")
        try:
            for piece in self._splitter.feed(text):
                self._take(piece)
        except NotJson:
            raise FileRefused("corrupt") from None
        except FrameTooLarge:
            raise FileRefused("too-large") from None

    def _take(self, piece: bytes | None) -> None:
        # Whether it stands among the records is known at the end only; what is none of them is dropped then.
        number, self._piece_count = self._piece_count, self._piece_count + 1
        if number == MAX_RECORD_COUNT:
            raise FileRefused("too-large")
        if piece is None:
            return
        try:
            record = self._reader.record_of(parsed(piece))
        except Malformed as error:
            if error.import_id:
                self._ids[number] = error.import_id
            return
        self._turn_count += len(record.turns)
        if self._turn_count > MAX_TURN_COUNT:
            raise FileRefused("too-large")
        self._good[number] = record

    def entries(self) -> Iterator[Entry]:
        """The records, one by one, once all has come; raises FileRefused at once."""
        try:
            whole = self._splitter.frame()
        except NotJson:
            raise FileRefused("corrupt") from None
        if not self._reader.is_ours(whole):
            raise FileRefused("wrong-source")
        if not self._reader.has_known_version(whole):
            raise FileRefused("unknown-version")
        placeholders = whole.get("sessions")
        if not isinstance(placeholders, list):
            raise FileRefused("corrupt")
        entries = cast("list[object]", placeholders)
        if len(entries) > MAX_RECORD_COUNT:
            raise FileRefused("too-large")
        return map(self._entry, itertools.count(), entries)

    def _entry(self, index: int, placeholder: object) -> Entry:
        number = piece_number(placeholder)
        if number is None:
            return Entry(index, "", None)
        record = self._good.get(number)
        return Entry(index, record.id if record else self._ids.get(number, ""), record)
