"""Recorded changes a second, 64 callers at once, against bare SQLite with a transaction for each row."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from tabmuxd.clock import steady_clock
from tabmuxd.events import Changes, Log
from tabmuxd.resources.browser import Browser, BrowserState, Ownership
from tabmuxd.resources.tab import Tab, TabOrigin, TabState

from benchmarks.comparison import Measure, alternate, report, tell

GOAL: Final = 1.0
_CALLERS: Final = 64
_CHANGES: Final = 50  # of each caller in a round
_ROUNDS: Final = 20
_BROWSER: Final = "browsers/main"


async def run() -> str:
    """Measure, and give the line that says what came out.

    On our side a change is an event and the resource it changes, a tab; each caller has one, and makes its next change
    when the last is committed and published. Bare is one thread that inserts the bytes of such an event, a row at a
    time. Both in this process, on the same disk, in WAL mode, each commit flushed.
    """
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    bare = sqlite3.connect(directory / "bare.sqlite3", isolation_level=None)
    try:
        async with Log(directory / "log.sqlite3", clock=steady_clock()) as log:
            await log.change(_open_tabs)
            (entry,) = await log.entries(log.progress.revision - 1, count=1, size_bytes=1)
            _prepare(bare)
            comparison = await alternate(_ours(log), _bare(bare, entry.body), rounds=_ROUNDS, progress=tell)
    finally:
        bare.close()
        shutil.rmtree(directory)
    more = {"event_bytes": len(entry.body), "callers": _CALLERS, **comparison.summary("change", "bare")}
    return report("append", 1 / comparison.ratio, GOAL, more, better="higher")


def _open_tabs(changes: Changes) -> None:
    changes.record(Browser(_BROWSER, BrowserState.ACTIVE, Ownership.LAUNCHED))
    for number in range(_CALLERS):
        changes.record(_tab(number))


def _tab(number: int) -> Tab:
    name, now = f"{_BROWSER}/tabs/{number:010d}", datetime.now(UTC)
    return Tab(name, TabState.READY, TabOrigin.MANAGED, "local/benchmark", now, now, labels={"job": "benchmark"})


def _ours(log: Log) -> Measure:
    async def caller(number: int, round_number: int) -> None:
        for count in range(_CHANGES):
            await log.change(lambda changes: _retitle(changes, number, f"Page {count} of {round_number}"))  # noqa: B023 - waited for

    async def measure(round_number: int) -> list[float]:
        begin = time.perf_counter()
        await asyncio.gather(*(caller(number, round_number) for number in range(_CALLERS)))
        return [(time.perf_counter() - begin) / (_CALLERS * _CHANGES)]

    return measure


def _retitle(changes: Changes, number: int, title: str) -> None:
    tab = changes.tab(f"{_BROWSER}/tabs/{number:010d}")
    assert tab is not None
    changes.record(replace(tab, title=title))


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = wal")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE event (revision INTEGER PRIMARY KEY, body BLOB NOT NULL)")


def _bare(connection: sqlite3.Connection, body: bytes) -> Measure:
    async def measure(_round: int) -> list[float]:
        count = _CALLERS * _CHANGES
        begin = time.perf_counter()
        for _ in range(count):
            connection.execute("INSERT INTO event (body) VALUES (?)", (body,))  # a transaction of its own
        return [(time.perf_counter() - begin) / count]

    return measure


if __name__ == "__main__":
    print(asyncio.run(run()))
