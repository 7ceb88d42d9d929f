"""Which files are read, and what their records are."""

from __future__ import annotations

import json

import pytest
from tabmuxd.resources.imports import ImportSource
from tabmuxd.webai.importing import reading
from tabmuxd.webai.importing.reading import Entry, FileReader, FileRefused

from tests.imports.files import file_of, old_id, record, whole

AGBROWSE, CLI_JAW = ImportSource


def _entries(source: ImportSource, text: bytes) -> list[Entry]:
    reader = FileReader(source)
    for start in range(0, len(text), 1000):
        reader.feed(text[start : start + 1000])
    return list(reader.entries())


def _refusal(source: ImportSource, text: bytes) -> str:
    with pytest.raises(FileRefused) as raised:
        _entries(source, text)
    return raised.value.cause


@pytest.mark.parametrize("source", ImportSource)
def test_records(source: ImportSource) -> None:
    """Each record has its place, those among them that cannot be read too."""
    records = [record(source, 0), 5, None, record(source, 1, status=5), {"sessionId": "x"}, record(source, 2)]

    found = _entries(source, file_of(source, *records))

    assert [(entry.index, entry.import_id, entry.record is not None) for entry in found] == [
        (0, old_id(0, source), True),
        (1, "", False),
        (2, "", False),
        (3, old_id(1, source), False),
        (4, "", False),
        (5, old_id(2, source), True),
    ]


@pytest.mark.parametrize(
    ("source", "text", "cause"),
    [
        (AGBROWSE, file_of(CLI_JAW), "wrong-source"),
        (CLI_JAW, file_of(AGBROWSE), "wrong-source"),
        (CLI_JAW, file_of(CLI_JAW, version=1), "wrong-source"),
        (CLI_JAW, file_of(CLI_JAW, baselines=...), "wrong-source"),
        (CLI_JAW, file_of(CLI_JAW, sessions=...), "corrupt"),
        (CLI_JAW, file_of(CLI_JAW, sessions={}), "corrupt"),
        (AGBROWSE, file_of(AGBROWSE, version=2), "unknown-version"),
        (AGBROWSE, file_of(AGBROWSE, version="1"), "unknown-version"),
        (AGBROWSE, file_of(AGBROWSE, version=True), "unknown-version"),
        (AGBROWSE, file_of(AGBROWSE, version=None), "unknown-version"),
        (AGBROWSE, file_of(AGBROWSE, sessions=5), "corrupt"),
        (AGBROWSE, file_of(AGBROWSE, sessions=...), "corrupt"),
        (AGBROWSE, b"", "corrupt"),
        (AGBROWSE, b"[]", "corrupt"),
        (AGBROWSE, file_of(AGBROWSE, record(AGBROWSE))[:-1], "corrupt"),
        (AGBROWSE, file_of(AGBROWSE, record(AGBROWSE))[:200], "corrupt"),
        (AGBROWSE, file_of(AGBROWSE, record(AGBROWSE, tabState={"x": float("nan")})), "corrupt"),
        (AGBROWSE, file_of(AGBROWSE, record(AGBROWSE)).replace(b"Lisbon", b"Li\xff"), "corrupt"),
        (AGBROWSE, b'{"sessions": [{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}", "corrupt"),
    ],
    ids=range(19),
)
def test_refused(source: ImportSource, text: bytes, cause: str) -> None:
    """A file that cannot be read as a whole, or is another's, is refused: never taken for an empty one."""
    assert _refusal(source, text) == cause


def test_without_version() -> None:
    """A file of agbrowse without a version is of version 1."""
    assert len(_entries(AGBROWSE, file_of(AGBROWSE, record(AGBROWSE), version=...))) == 1


def test_what_stands_elsewhere() -> None:
    """Records that stand elsewhere in the file are none."""
    text = json.dumps(whole(CLI_JAW, record(CLI_JAW, 0), baselines=[record(CLI_JAW, 1)])).encode()

    assert [entry.import_id for entry in _entries(CLI_JAW, text)] == [old_id(0, CLI_JAW)]


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file above the limit is refused before it is held."""
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 500)

    assert _refusal(AGBROWSE, file_of(AGBROWSE, record(AGBROWSE))) == "too-large"
