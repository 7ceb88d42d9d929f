"""Rows that somebody else has written to: kept, told, and nothing is done because of them."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tabmuxd.resources.browser import Browser
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.store import Batch, Live, Reader, Store, Transaction
from tabmuxd.store.codec import Codec, Column

from tests.cdp.browsers import fresh_profile
from tests.store.samples import MAIN, NOW, put, tab

SPOILT, OTHER = replace(tab(1), state=TabState.READY, target_id="T", browser_generation=2), tab(2)


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """A store with a browser and two tabs, to copy."""
    with fresh_profile() as directory:
        asyncio.run(written(directory / "store.db"))
        yield directory / "store.db"


async def written(path: Path) -> None:
    """Write that store."""
    async with Store(path, committed=lambda _: None) as store:
        for resource in (MAIN, SPOILT, OTHER):
            await store.write(_putting(resource))


def _putting(resource: Browser | Tab) -> Callable[[Transaction], int]:
    return lambda transaction: put(transaction, resource)


def spoil(path: Path, column: str, value: str, table: str = "tabs") -> list[object]:
    """Write SQL in place of a value; gives the row as it is then, but for texts that are none."""
    connection = sqlite3.connect(path)
    connection.text_factory = bytes
    connection.execute(f'UPDATE {table} SET "{column}" = {value} WHERE created <= 2')  # noqa: S608 - of a table below
    connection.commit()
    row = connection.execute(f"SELECT * FROM {table} WHERE created <= 2").fetchone()  # noqa: S608 - as above
    connection.close()
    return list(row)


def of(column: Column) -> list[str]:
    """What cannot be a value of this column."""
    return ["x'00ff'", "CAST(x'ff41' AS TEXT)"] if column.text else ["'garbage'", "x'01'", "1.5"]


async def opened(path: Path) -> tuple[Live, int, Tab | None, Tab | None, list[str]]:
    """What is live, how many rows cannot be read, the spoilt tab by name and by target, and the tabs of a list."""
    batches: list[Batch] = []
    async with Store(path, committed=batches.append) as store:

        def look(reader: Reader) -> tuple[Tab | None, Tab | None, list[str]]:
            listed = [each.name for _, each in reader.page(Tab)]
            return reader.find(Tab, SPOILT.name), reader.find_tab_by_target("browsers/main", "T"), listed

        return batches[0].live, store.statistics().unreadable_count, *(await store.read(look))


@pytest.mark.parametrize("column", Codec(Tab).columns, ids=lambda column: column.name)
async def test_each_column(directory: Path, whole: Path, column: Column) -> None:
    """Whatever stands in one column of a tab, the store opens, all else is there, and the row stays (O-125, STO-06)."""
    for number, value in enumerate(of(column)):
        path = directory / f"store{number}.db"
        shutil.copy(whole, path)
        row = spoil(path, column.name, value)
        live, count, found, behind, listed = await opened(path)
        assert (list(live.tabs.values())[-1].name, count) == (OTHER.name, 1)
        assert (found, behind) == (None, None)
        assert listed == [OTHER.name]
        assert spoil(path, column.name, value) == row


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("state", "99"), ("state", "0"), ("state", "6"), ("origin", "9"), ("generation", "0"), ("generation", "-1"),
        ("browser_generation", "-1"), ("owner", "''"), ("owner", "'not a principal'"), ("name", "'tabs/1'"),
        ("labels", "'{'"), ("labels", "'[1]'"), ("labels", "'{\"a\":1}'"), ("shared_with", "'[1]'"), ("dialog", "'3'"),
        ("create_time", "9223372036854775807"),
    ],
)  # fmt: skip
async def test_what_no_tab_has(directory: Path, whole: Path, column: str, value: str) -> None:
    """A value of the right kind that no tab can have makes the row as unreadable as one of another kind (O-125)."""
    shutil.copy(whole, directory / "store.db")
    spoil(directory / "store.db", column, value)
    live, count, _, behind, _ = await opened(directory / "store.db")
    assert ([name for name in live.tabs if name != OTHER.name], count, behind) == ([], 1, None)


async def test_closed_row(directory: Path) -> None:
    """A closed tab is found by its last target, unless its row says two things (O-123, O-125)."""
    closed = replace(SPOILT, state=TabState.CLOSED, close_cause=CloseCause.IDLE, close_time=NOW)
    async with Store(directory / "store.db", committed=lambda _: None) as store:
        await store.write(lambda transaction: put(transaction, MAIN))
        await store.write(lambda transaction: put(transaction, closed))
    _, count, _, behind, _ = await opened(directory / "store.db")
    assert (count, behind and behind.name) == (0, SPOILT.name)
    spoil(directory / "store.db", "state", "2")
    _, count, _, behind, _ = await opened(directory / "store.db")
    assert (count, behind) == (0, None)


async def test_browser(directory: Path, whole: Path) -> None:
    """A browser whose record cannot be read is recorded anew (O-125)."""
    path = directory / "store.db"
    shutil.copy(whole, path)
    spoil(path, "generation", "'garbage'", table="browsers")
    batches: list[Batch] = []
    async with Store(path, committed=batches.append) as store:
        assert (batches[0].live.browsers, store.statistics().unreadable_count) == ({}, 1)
        await store.write(lambda transaction: put(transaction, replace(MAIN, generation=7)))
        found = await store.read(lambda reader: reader.find(Browser, MAIN.name))
    assert found is not None
    assert found.generation == 7
