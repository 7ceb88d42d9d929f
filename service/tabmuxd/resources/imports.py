"""Conversations that another tool kept: what an import asks for, and what became of each record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Final


class ImportSource(IntEnum):
    """A tool that keeps conversations; numbers as in `tabmux.v1.ImportInfo.Source`."""

    AGBROWSE = 1
    CLI_JAW = 2

    @property
    def label(self) -> str:
        """Its name, as in the label `import-source` of a session."""
        return self.name.lower().replace("_", "-")


class SkipCause(IntEnum):
    """Why a record was not imported; numbers as in `tabmux.v1.SkippedRecord.Cause`."""

    MALFORMED = 1
    UNKNOWN_PROVIDER = 2
    ADDRESS_REFUSED = 3
    STILL_LIVE = 4
    DUPLICATE_IN_FILE = 5


MAX_SKIPPED: Final = 10_000  # told of one file


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """`ImportSessions`; `browser` is empty for the only one configured."""

    source: ImportSource
    browser: str
    ttl: timedelta
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that was not imported; `import_id` is empty where it has not the tool's form."""

    index: int
    import_id: str
    cause: SkipCause


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What became of the records of a file; `skipped` tells of at most 10,000 of `skipped_count`, by index."""

    imported_count: int
    unchanged_count: int
    skipped_count: int
    skipped: tuple[SkippedRecord, ...]
