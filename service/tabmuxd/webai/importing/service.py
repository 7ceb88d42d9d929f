"""Importing: each record becomes a session in a transaction of its own, once, however often its file comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

import structlog

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, invalid_field
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.imports import MAX_SKIPPED, ImportOrder, ImportReport, SkipCause, SkippedRecord
from tabmuxd.resources.names import RandomBytes, new_id, session_name, turn_name
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import RetireCause
from tabmuxd.store import StoreBusy
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import retiring
from tabmuxd.webai.importing.becoming import Become, become
from tabmuxd.webai.importing.old_records import OldRecord
from tabmuxd.webai.importing.reading import Entry, FileReader, FileRefused
from tabmuxd.webai.providers.descriptor import Descriptor

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# Read and judged at a time, so that the loop is not held up.
_BITE_BYTES: Final = 4 * 1024
_STEP_COUNT: Final = 1000
# Records that wait for the store together, so that they share commits, with so many turns and so much text at most.
_AT_ONCE: Final = 32
_TURNS_AT_ONCE: Final = 256
_BYTES_AT_ONCE: Final = 8 * 1024 * 1024
_BUSY_WAIT: Final = 0.1

_PROBLEMS: Final = {
    "corrupt": "this is not a whole JSON file of the tool",
    "wrong-source": "this is the file of another tool",
    "unknown-version": "this version of the file is not known",
    "too-large": "the file has more than 256 MiB, 100,000 records or 200,000 turns",
}


T = TypeVar("T")


@dataclass(slots=True)
class _Tally:
    """What has become of the records so far."""

    imported: int = 0
    unchanged: int = 0
    skipped: int = 0
    told: list[SkippedRecord] = field(default_factory=list[SkippedRecord])

    def skip(self, index: int, import_id: str, cause: SkipCause) -> None:
        """Count a record that is left out."""
        self.skipped += 1
        if len(self.told) < MAX_SKIPPED:
            self.told.append(SkippedRecord(index, import_id, cause))

    def report(self) -> ImportReport:
        """What there is to tell."""
        told = sorted(self.told, key=lambda skipped: skipped.index)
        return ImportReport(self.imported, self.unchanged, self.skipped, tuple(told))


class Importing:
    """Imports files of other tools, one at a time. Opens no tab, and sends nothing."""

    def __init__(
        self,
        providers: Mapping[str, Descriptor],
        tabs: Tabs,
        log: Log,
        *,
        random: RandomBytes,
        clock: Callable[[], datetime],
    ) -> None:
        """`clock` is that of the log."""
        self._providers = providers
        self._tabs = tabs
        self._log = log
        self._random = random
        self._clock = clock
        self._turn = asyncio.Lock()  # what is held of a file can be large

    async def run(self, caller: Principal, order: ImportOrder, chunks: AsyncIterator[bytes]) -> ImportReport:
        """Import a file that comes in `chunks`; INVALID_FIELD with a `cause` where it cannot be read as a whole.

        While another one is at work nothing of it is read. Cancelled, or with the server gone, each record was imported
        whole or not at all; a repeat does the rest.
        """
        browser = self._browser(order.browser)
        async with self._turn:
            return await self._import(caller, order, browser, chunks)

    async def _import(
        self, caller: Principal, order: ImportOrder, browser: str, chunks: AsyncIterator[bytes]
    ) -> ImportReport:
        tally = _Tally()
        records = await _without_duplicates(await _read(order, chunks), tally)
        known = await _patiently(partial(self._log.imported_ids, order.source.label))
        fresh: list[tuple[int, OldRecord]] = []
        for index, record in records:
            if record.id in known:
                tally.unchanged += 1
            else:
                fresh.append((index, record))
        for several in _batches(fresh):
            try:
                async with asyncio.TaskGroup() as group:
                    for index, record in several:
                        group.create_task(self._take(caller, order, browser, index, record, tally))
            except ExceptionGroup as failed:
                raise failed.exceptions[0] from None
        report = tally.report()
        _log.info(
            "imported",
            source=order.source.label,
            imported=report.imported_count,
            unchanged=report.unchanged_count,
            skipped=report.skipped_count,
            dry_run=order.dry_run,
        )
        return report

    def _browser(self, named: str) -> str:
        if named:
            self._tabs.browser(named)
            return named
        match self._tabs.browsers():
            case [(browser, _)]:
                return browser.name
            case _:
                raise invalid_field("info.browser", "must name one of the browsers, since there are several")

    async def _take(  # noqa: PLR0917 - one record with all that it depends on
        self, caller: Principal, order: ImportOrder, browser: str, index: int, record: OldRecord, tally: _Tally
    ) -> None:
        session = session_name(new_id(self._random))
        names = [session, *(turn_name(session, new_id(self._random)) for _ in record.turns)]

        def made(now: datetime) -> Become | SkipCause:
            descriptor = self._providers.get(record.vendor or "")
            models = descriptor.choices.offered if descriptor else ()
            return become(
                record,
                descriptor,
                names=names,
                owner=caller.name,
                browser=browser,
                ttl=order.ttl,
                models=models,
                now=now,
            )

        judged = made(self._clock())
        if isinstance(judged, SkipCause):
            tally.skip(index, record.id, judged)
        elif order.dry_run or await _patiently(partial(self._log.change, partial(_record, record=record, made=made))):
            tally.imported += 1
        else:
            tally.unchanged += 1


def _record(changes: Changes, record: OldRecord, made: Callable[[datetime], Become | SkipCause]) -> bool:
    """Record a session with its turns; False where another import was faster."""
    source, found = record.source.label, made(changes.now)
    if isinstance(found, SkipCause) or changes.import_of(source, record.id):
        return False
    changes.remember_import(source, record.id, found.session.name)
    session = changes.record(found.session, ChangeCause.CLIENT)
    for turn in found.turns:
        changes.record(turn, ChangeCause.CLIENT)
    if found.lost:
        changes.record(retiring.retired(session, RetireCause.CONVERSATION_LOST, changes.now), ChangeCause.CLIENT)
    return True


async def _patiently(step: Callable[[], Awaitable[T]]) -> T:
    """What `step` gives; while too many wait for the store already, an import goes behind them."""
    while True:
        try:
            return await step()
        except StoreBusy:
            await asyncio.sleep(_BUSY_WAIT)


async def _read(order: ImportOrder, chunks: AsyncIterator[bytes]) -> Iterator[Entry]:
    reader = FileReader(order.source)
    try:
        async for chunk in chunks:
            for start in range(0, len(chunk), _BITE_BYTES):
                reader.feed(chunk[start : start + _BITE_BYTES])
                await asyncio.sleep(0)
        return reader.entries()
    except FileRefused as refused:
        raise _refused(refused) from None


def _refused(refused: FileRefused) -> Refused:
    told = {"field": "chunk", "cause": refused.cause}
    return Refused(Reason.INVALID_FIELD, f"chunk: {_PROBLEMS[refused.cause]}; nothing was imported.", told)


async def _without_duplicates(entries: Iterable[Entry], tally: _Tally) -> list[tuple[int, OldRecord]]:
    """Of records of one id that which was changed last, the first of these; the others, and what is malformed, go."""
    chosen: dict[str, tuple[int, OldRecord]] = {}
    for number, entry in enumerate(entries):
        if number % _STEP_COUNT == 0:
            await asyncio.sleep(0)
        if entry.record is None:
            tally.skip(entry.index, entry.import_id, SkipCause.MALFORMED)
            continue
        before = chosen.get(entry.import_id)
        if before is None or before[1].updated < entry.record.updated:
            chosen[entry.import_id] = (entry.index, entry.record)
        if before is not None:
            loser = before[0] if chosen[entry.import_id] is not before else entry.index
            tally.skip(loser, entry.import_id, SkipCause.DUPLICATE_IN_FILE)
    return sorted(chosen.values(), key=lambda found: found[0])


def _batches(records: Iterable[tuple[int, OldRecord]]) -> Iterator[Sequence[tuple[int, OldRecord]]]:
    """The records in runs of as many as are taken at once."""
    batch: list[tuple[int, OldRecord]] = []
    turn_count = size_bytes = 0
    for index, record in records:
        turn_count += len(record.turns)
        size_bytes += sum(len(turn.answer.text) for turn in record.turns)
        full = len(batch) == _AT_ONCE or turn_count > _TURNS_AT_ONCE or size_bytes > _BYTES_AT_ONCE
        if batch and full:
            yield batch
            batch = []
            turn_count = len(record.turns)
            size_bytes = sum(len(turn.answer.text) for turn in record.turns)
        batch.append((index, record))
    if batch:
        yield batch
