"""Which files are read, and what their records are."""

from __future__ import annotations

import json
import tracemalloc

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


@pytest.mark.parametrize("one", [{}, 5, record(AGBROWSE), record(AGBROWSE, turns=[])])
def test_too_many_records(monkeypatch: pytest.MonkeyPatch, one: object) -> None:
    """A file of more records than are taken at most is refused, whatever they are."""
    monkeypatch.setattr(reading, "MAX_RECORD_COUNT", 3)

    assert len(_entries(AGBROWSE, file_of(AGBROWSE, one, one, one))) == 3
    assert _refusal(AGBROWSE, file_of(AGBROWSE, one, one, one, one)) == "too-large"


def test_too_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is one whose records have more turns than that together."""
    monkeypatch.setattr(reading, "MAX_TURN_COUNT", 3)
    turn = {"index": 1, "status": "complete", "sentAt": "2026-01-02T09:14:20.000Z"}
    two = record(AGBROWSE, turns=[turn, turn])

    assert len(_entries(AGBROWSE, file_of(AGBROWSE, two, record(AGBROWSE)))) == 2
    assert _refusal(AGBROWSE, file_of(AGBROWSE, two, two)) == "too-large"


@pytest.mark.parametrize("source", ImportSource)
def test_memory(source: ImportSource) -> None:
    """What is held of a record is what becomes of it: of its answer 1 MiB, of each other text a few bytes."""
    answer, long = "\U0001f600" + "a" * 1_100_000, "\U0001f600" + "a" * 200_000
    markdown = {"answerArtifact": {"markdown": answer}} if source is CLI_JAW else {}
    values = record(source, answer=answer, vendor=long, status=long, conversationUrl=long, **markdown)
    text = json.dumps(whole(source, values, values), ensure_ascii=False).encode()
    reader = FileReader(source)
    tracemalloc.start()
    try:
        reader.feed(text)
        held, _peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(list(reader.entries())) == 2
    assert held < 3 * 1024 * 1024
