"""Imports over a real store: once, whole, and told."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from tabmux.v1 import event_pb2
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.event import EventKind
from tabmuxd.resources.imports import ImportOrder, ImportReport, ImportSource, SkipCause, SkippedRecord
from tabmuxd.resources.orders import SessionFilter
from tabmuxd.resources.session import RetireCause, Session, SessionState, TabDisposition
from tabmuxd.store import ResourceKind, StoreBusy, StoreFailed
from tabmuxd.webai.importing import service
from tabmuxd.webai.importing.agbrowse import record_of as agbrowse_record
from tabmuxd.webai.importing.old_records import OldAnswer

from tests.domain.below import Below, below
from tests.domain.values import ADMIN, NOW, told
from tests.events.recording import read_all
from tests.imports.files import agbrowse, cli_jaw, file_of, old_id, providers, record

AGBROWSE, CLI_JAW = ImportSource
ORDER: Final = ImportOrder(AGBROWSE, "", timedelta(days=30))
_ALL: Final = SessionFilter(states=frozenset(SessionState))
_LOST: Final = {"conversationUrl": None, "originalUrl": None}


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def parts(directory: Path) -> AsyncIterator[Below]:
    """A server below its edge that knows the providers."""
    async with _open(directory) as parts:
        yield parts


@asynccontextmanager
async def _open(directory: Path) -> AsyncGenerator[Below]:
    async with below(directory, providers=providers()) as parts:
        yield parts


async def _chunks(text: bytes, size: int = 256 * 1024) -> AsyncGenerator[bytes, None]:
    for start in range(0, len(text), size):
        yield text[start : start + size]


async def _import(parts: Below, text: bytes, order: ImportOrder = ORDER) -> ImportReport:
    return await parts.web_ai.imports.run(ADMIN, order, _chunks(text, 1000 if len(text) < 100_000 else 256 * 1024))


async def _sessions(parts: Below) -> list[Session]:
    return [session for _, session in await parts.web_ai.sessions.list(_ALL, after=0, count=100_000)]


def _report(imported: int = 0, unchanged: int = 0, *skipped: SkippedRecord) -> ImportReport:
    return ImportReport(imported, unchanged, len(skipped), skipped)


@pytest.mark.parametrize("source", ImportSource)
async def test_imported(parts: Below, source: ImportSource) -> None:
    """A record becomes a session with its turns, told by events of their own: CREATED, and ENDED for what has ended."""
    head = parts.log.progress.revision
    lost = {"url": "https://chatgpt.com/"} if source is CLI_JAW else {}
    text = file_of(source, record(source, 0), record(source, 1, conversationUrl=None, **lost))

    report = await _import(parts, text, replace(ORDER, source=source))

    one, two = await _sessions(parts)
    events = [event_pb2.Event.FromString(entry.body) for entry in await read_all(parts.log, head)]
    kinds = [(entry.kind, entry.resource_kind) for entry in await read_all(parts.log, head)]
    assert report == _report(2)
    assert kinds == [
        (EventKind.CREATED, ResourceKind.SESSION),
        (EventKind.ENDED, ResourceKind.TURN),
        (EventKind.CREATED, ResourceKind.SESSION),
        (EventKind.ENDED, ResourceKind.TURN),
        (EventKind.ENDED, ResourceKind.SESSION),
    ]
    assert [event.session.name or event.turn.name for event in events] == [
        one.name, one.last_turn, two.name, two.last_turn, two.name,
    ]  # fmt: skip
    assert (one.state, one.tab, one.open_turn, one.owner, one.expire_time) == (
        SessionState.ACTIVE, "", "", "local", NOW + timedelta(days=30),
    )  # fmt: skip
    assert (two.state, two.retire_cause, two.retire_time, two.expire_time, two.conversation_uri) == (
        SessionState.RETIRED, RetireCause.CONVERSATION_LOST, NOW, None, "",
    )  # fmt: skip
    assert dict(parts.log.live.turns) == {}
    turn = await parts.log.get_turn(one.last_turn)
    assert turn is not None
    assert turn.answer_markdown == ("Lisbon." if source is AGBROWSE else "# Markdown")


async def test_dry_run(parts: Below) -> None:
    """A dry run tells the same and writes nothing."""
    text = file_of(AGBROWSE, agbrowse(0), agbrowse(1, vendor=None), agbrowse(2, **_LOST), 5)
    head = parts.log.progress.revision

    dry = await _import(parts, text, replace(ORDER, dry_run=True))

    assert (parts.log.progress.revision, await _sessions(parts)) == (head, [])
    assert await _import(parts, text) == dry == _report(
        2, 0,
        SkippedRecord(1, old_id(1, AGBROWSE), SkipCause.UNKNOWN_PROVIDER),
        SkippedRecord(3, "", SkipCause.MALFORMED),
    )  # fmt: skip


async def test_twice_is_once(parts: Below) -> None:
    """A record that was imported is left as it is, whatever became of its session, and is no event (O-146)."""
    text = file_of(AGBROWSE, agbrowse(0), agbrowse(1))
    await _import(parts, text)
    one, two = await _sessions(parts)
    await parts.web_ai.sessions.retire(ADMIN, one.name, TabDisposition.UNSPECIFIED)
    before, head = await _sessions(parts), parts.log.progress.revision

    changed = file_of(AGBROWSE, agbrowse(0, status="sent", deadlineAt=None, updatedAt="2026-03-04T05:00:00.000Z"),
                      agbrowse(1, vendor=None, answer="x"))  # fmt: skip
    assert [await _import(parts, text), await _import(parts, changed)] == [_report(0, 2), _report(0, 2)]
    assert (await _sessions(parts), parts.log.progress.revision) == (before, head)
    assert before[1] == two


async def test_after_the_session_is_gone(parts: Below) -> None:
    """What was retired and deleted does not come back by another import."""
    text = file_of(AGBROWSE, agbrowse(0, **_LOST))
    await _import(parts, text)
    parts.clock.now += timedelta(days=31)
    await parts.log.compact()

    assert (await _sessions(parts), await _import(parts, text)) == ([], _report(0, 1))


async def test_same_id_of_two_tools(parts: Below) -> None:
    """Ids are of one tool: a record of the other one with any id is another."""
    await _import(parts, file_of(AGBROWSE, agbrowse(0)))

    assert await _import(parts, file_of(CLI_JAW, cli_jaw(0)), replace(ORDER, source=CLI_JAW)) == _report(1)


async def test_at_once(parts: Below) -> None:
    """Of two imports at once each record is taken by one of them."""
    text = file_of(AGBROWSE, *(agbrowse(number) for number in range(100)))

    reports = await asyncio.gather(_import(parts, text), _import(parts, text))

    assert sum(report.imported_count for report in reports) == 100
    assert [report.imported_count + report.unchanged_count for report in reports] == [100, 100]
    assert len(await _sessions(parts)) == 100


async def test_one_at_a_time(parts: Below) -> None:
    """While a file is imported nothing of another one is read; it has its turn also where the first is given up."""
    read: list[str] = []
    begun = asyncio.Event()

    async def slow() -> AsyncGenerator[bytes, None]:
        begun.set()
        await asyncio.Event().wait()
        yield b""

    async def quick() -> AsyncGenerator[bytes, None]:
        read.append("quick")
        yield file_of(AGBROWSE, agbrowse(0))

    first = asyncio.create_task(parts.web_ai.imports.run(ADMIN, ORDER, slow()))
    await begun.wait()
    second = asyncio.create_task(parts.web_ai.imports.run(ADMIN, ORDER, quick()))
    await parts.log.change(lambda changes: changes.now)
    assert read == []

    first.cancel()
    assert (await second, read) == (_report(1), ["quick"])


async def test_others_go_on(parts: Below) -> None:
    """Others have their turn on the loop while a file of many small records is read and judged."""
    steps, whole = 0, asyncio.Event()

    async def others() -> None:
        nonlocal steps
        while True:
            await asyncio.sleep(0)
            steps += whole.is_set()

    async def chunks() -> AsyncGenerator[bytes, None]:
        yield file_of(AGBROWSE, *[{}] * 20_000)
        whole.set()

    other = asyncio.create_task(others())
    report = await parts.web_ai.imports.run(ADMIN, ORDER, chunks())
    other.cancel()

    assert report.skipped_count == 20_000
    assert steps >= 20


async def test_busy_store(parts: Below, monkeypatch: pytest.MonkeyPatch) -> None:
    """While too many wait for the store an import waits behind them, and loses no record."""
    change, refused = parts.log.change, 0

    async def busy(decide: Any) -> Any:  # noqa: ANN401 - as it is given
        nonlocal refused
        if refused < 100:
            refused += 1
            raise StoreBusy(1)
        return await change(decide)

    monkeypatch.setattr(service, "_BUSY_WAIT", 0)
    monkeypatch.setattr(parts.log, "change", busy)

    assert (await _import(parts, file_of(AGBROWSE, *map(agbrowse, range(50)))), refused) == (_report(50), 100)


async def test_failed_store(parts: Below, monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """An error of the store ends the import as itself, not in a group of errors."""

    async def failed(_decide: object) -> object:
        raise StoreFailed(directory, "full")

    monkeypatch.setattr(parts.log, "change", failed)

    with pytest.raises(StoreFailed):
        await _import(parts, file_of(AGBROWSE, agbrowse(0), agbrowse(1)))


def test_batches() -> None:
    """Records are taken in runs of so many, with so many turns, and so much text; a large one alone."""
    small = agbrowse_record(agbrowse(0))
    (turn,) = small.turns
    many = replace(small, turns=(turn,) * 200)
    large = replace(small, turns=(replace(turn, answer=OldAnswer(b"x" * 1024 * 1024)),) * 9)

    records = [small] * 40 + [many, many, large, small, small]
    found = [[index for index, _ in batch] for batch in service._batches(enumerate(records))]

    assert found == [[*range(32)], [*range(32, 41)], [41], [42], [43, 44]]


async def test_duplicates(parts: Below) -> None:
    """Of records with one id that counts which was changed last, the first of these; records of one chat stay apart."""
    later = "2026-01-03T09:14:52.660Z"
    text = file_of(
        AGBROWSE, agbrowse(0, answer="a"), agbrowse(0, answer="b", updatedAt=later),
        agbrowse(0, answer="c", updatedAt=later), agbrowse(0, answer="d"), agbrowse(1),
    )  # fmt: skip

    report = await _import(parts, text)

    double = [SkippedRecord(index, old_id(0, AGBROWSE), SkipCause.DUPLICATE_IN_FILE) for index in (0, 2, 3)]
    assert report == _report(2, 0, *double)
    sessions = await _sessions(parts)
    turn = await parts.log.get_turn(sessions[0].last_turn)
    assert turn is not None
    assert turn.answer_markdown == "b"
    assert sessions[0].conversation_uri == sessions[1].conversation_uri


async def test_live_record(parts: Below) -> None:
    """A record that is live is left, and taken by the import after its end; the others are taken at once."""
    deadline = "2026-03-04T05:10:00.000Z"
    live = file_of(AGBROWSE, agbrowse(0, status="polling", answer=None, deadlineAt=deadline), agbrowse(1))
    ended = file_of(AGBROWSE, agbrowse(0), agbrowse(1))

    first = await _import(parts, live)
    second = await _import(parts, ended)

    assert first == _report(1, 0, SkippedRecord(0, old_id(0, AGBROWSE), SkipCause.STILL_LIVE))
    assert second == _report(1, 1)
    assert len(await _sessions(parts)) == 2


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (file_of(AGBROWSE, agbrowse(0), agbrowse(1))[:-9], "corrupt"),
        (file_of(AGBROWSE, agbrowse(0), version=2), "unknown-version"),
        (file_of(CLI_JAW, agbrowse(0)), "wrong-source"),
    ],
)
async def test_refused(parts: Below, text: bytes, cause: str) -> None:
    """Of a file that cannot be read as a whole nothing is imported, and the refusal says why."""
    head = parts.log.progress.revision
    with pytest.raises(Refused) as raised:
        await _import(parts, text)

    assert (told(raised.value), raised.value.metadata) == (
        f"INVALID_FIELD:{cause}",
        {"field": "chunk", "cause": cause},
    )
    assert parts.log.progress.revision == head


async def test_browser(directory: Path) -> None:
    """The browser has to be named where there are several, and has to be one of them."""
    found: list[str | None] = []
    async with below(directory, providers=providers(), browsers=("browsers/main", "browsers/work")) as parts:
        for browser in ("", "browsers/none", "browsers/work"):
            try:
                await _import(parts, file_of(AGBROWSE, agbrowse(0)), replace(ORDER, browser=browser))
                found.append(None)
            except Refused as refused:
                found.append(told(refused))
        (session,) = await _sessions(parts)

    assert (found, session.browser) == (["INVALID_FIELD", "BROWSER_NOT_FOUND", None], "browsers/work")


async def test_long_answer(parts: Below) -> None:
    """An answer above 1 MiB is imported, cut on a character's border, with a warning."""
    await _import(parts, file_of(AGBROWSE, agbrowse(0, answer="x" + "é" * 1024 * 1024)))

    (session,) = await _sessions(parts)
    turn = await parts.log.get_turn(session.last_turn)
    assert turn is not None
    assert (turn.answer_size_bytes, turn.answer_markdown[-1], [warning.code for warning in turn.warnings]) == (
        1024 * 1024 - 1, "é", ["imported", "answer-cut"],
    )  # fmt: skip


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=[pytest.mark.long, pytest.mark.timeout(300)])])
async def test_many(parts: Below, count: int) -> None:
    """A file of many records is imported whole, and again without a write."""
    text = file_of(AGBROWSE, *(agbrowse(number) for number in range(count)))

    assert [await _import(parts, text), await _import(parts, text)] == [_report(count), _report(0, count)]
    assert len(await _sessions(parts)) == count


@pytest.mark.timeout(120)
@pytest.mark.parametrize("point", ["before", "after"])
async def test_killed(directory: Path, point: str) -> None:
    """Killed in mid-import each record is there whole or not at all, and a repeat takes the rest (STO-05)."""
    records = [agbrowse(number, turns=[
        {"index": index, "status": "complete", "answer": "a", "sentAt": "2026-01-02T09:14:20.000Z"} for index in (1, 2)
    ]) for number in range(100)]  # fmt: skip
    (directory / "file.json").write_bytes(file_of(AGBROWSE, *records))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.imports.crashing", str(directory), point, "4"
    )
    assert await process.wait() == -9

    async with _open(directory) as parts:
        before = await _sessions(parts)
        for session in before:
            turns = await parts.web_ai.sessions.list_turns(session.name, after=0, count=9)
            assert [turn.name == session.last_turn for _, turn in turns] == [False, True]
        report = await _import(parts, (directory / "file.json").read_bytes())
        assert report == _report(100 - len(before), len(before))
        assert report.imported_count > 0
        assert {session.labels["import-id"] for session in await _sessions(parts)} == {
            old_id(number, AGBROWSE) for number in range(100)
        }
        assert len(await _sessions(parts)) == 100
