"""How writes share a transaction, and what their callers are told."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.session import Session
from tabmuxd.resources.tab import Tab
from tabmuxd.store import Batch, Store, StoreBusy, StoreClosed, StoreFailed, StoreLocked, Transaction

from tests.store.samples import put, session, tab

LIMIT = 15


class Gate:
    """Holds the writer's thread until it is opened, so that a line forms behind it."""

    def __init__(self) -> None:
        self._opened = threading.Event()
        self.entered = threading.Event()

    def open(self) -> None:
        self._opened.set()

    def hold(self, _: Transaction) -> None:
        self.entered.set()
        assert self._opened.wait(LIMIT)


@asynccontextmanager
async def opened(path: Path, **settings: object) -> AsyncGenerator[tuple[Store, list[Batch]]]:
    """An open store and the batches it tells of."""
    batches: list[Batch] = []
    async with Store(path, committed=batches.append, **settings) as store:  # type: ignore[arg-type]
        yield store, batches


async def together(store: Store, works: list[Callable[[Transaction], object]]) -> list[object]:
    """What each of `works` gives or raises, when they wait in line together."""
    gate = Gate()
    first = asyncio.ensure_future(store.write(gate.hold))
    while not gate.entered.is_set():  # noqa: ASYNC110 - it is set on another thread
        await asyncio.sleep(0)  # the gate is on another thread
    rest = [asyncio.ensure_future(store.write(work)) for work in works]
    await asyncio.sleep(0)
    gate.open()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


def create(number: int) -> Callable[[Transaction], int]:
    """Create a tab."""
    return lambda transaction: put(transaction, tab(number))


def create_session(number: int) -> Callable[[Transaction], int]:
    """Create a session."""
    return lambda transaction: put(transaction, session(number))


def refused(_: Transaction) -> None:
    """Refuse before anything is written."""
    raise refuse(Reason.TAB_NOT_FOUND, "no", tab="t")


def spoil(transaction: Transaction) -> None:
    """Refuse after something was written."""
    put(transaction, tab(99))
    raise refuse(Reason.TAB_CAPACITY, "no", limit=1)


async def test_one_commit_for_all_that_wait(directory: Path) -> None:
    """What waits shares one transaction, up to 64, and revisions are given in order."""
    async with opened(directory / "s") as (store, batches):
        revisions = await together(store, [create(number) for number in range(100)])
        commit_count = store.statistics().commit_count
    assert revisions == list(range(1, 101))
    assert [len(batch.entries) for batch in batches if batch.entries] == [64, 36]
    assert commit_count == 3


async def test_refusal_before_writing_takes_nobody_along(directory: Path) -> None:
    """A refusal that wrote nothing goes to its own caller, and the others still share a commit."""
    async with opened(directory / "s") as (store, batches):
        first, second, third = await together(store, [create(1), refused, create(2)])
        regroup_count = store.statistics().regroup_count
    assert isinstance(second, Refused)
    assert (first, third, regroup_count) == (1, 2, 0)
    assert [len(batch.entries) for batch in batches if batch.entries] == [2]


async def test_refusal_after_writing_is_rolled_back_alone(directory: Path) -> None:
    """If one raises after it wrote, nothing of it stays and all others are committed, one by one."""
    async with opened(directory / "s") as (store, batches):
        first, second, third = await together(store, [create(1), spoil, create(2)])
        lost = await store.read(lambda reader: reader.find(Tab, tab(99).name))
        head = (await store.read(lambda reader: reader.history())).head
    assert isinstance(second, Refused)
    assert (second.reason, first, third, lost, head) == (Reason.TAB_CAPACITY, 1, 2, None, 2)
    assert [entry.revision for batch in batches for entry in batch.entries] == [1, 2]
    assert sorted(batches[-1].live.tabs) == [tab(1).name, tab(2).name]


async def test_what_each_sees(directory: Path) -> None:
    """A write sees what those before it in the line wrote, in memory and in the file."""
    async with opened(directory / "s") as (store, _):

        def look(transaction: Transaction) -> tuple[bool, bool, int]:
            name = tab(1).name
            return name in transaction.live().tabs, transaction.find(Tab, name) is not None, transaction.head

        assert (await together(store, [look, create(1), look]))[::2] == [(False, False, 0), (True, True, 1)]


async def test_failed_commit(directory: Path) -> None:
    """If the commit of a group fails each write is run alone; one whose own commit fails tells its caller."""

    class Failing(Store):
        failures = 2

        def _commit(self) -> None:
            if self._connection.in_transaction and self.failures and self._connection.total_changes > 1:
                self.failures -= 1
                raise sqlite3.OperationalError("disk I/O error")
            super()._commit()

    batches: list[Batch] = []
    async with Failing(directory / "s", committed=batches.append) as store:
        first, second = await together(store, [create(1), create(2)])
        history = await store.read(lambda reader: reader.history())
    assert isinstance(first, StoreFailed)
    assert "disk I/O error" in str(first)
    assert (second, history.head) == (1, 1)
    assert sorted(batches[-1].live.tabs) == [tab(2).name]


async def test_published_before_answered(directory: Path) -> None:
    """A caller gets its result after the commit was told, and commits are told in order."""
    seen: list[int] = []
    async with Store(directory / "s", committed=lambda batch: seen.append(batch.history.head)) as store:

        async def one(number: int) -> bool:
            revision = await store.write(create(number))
            return seen[-1] >= revision

        assert all(await asyncio.gather(*(one(number) for number in range(200))))
    assert seen == sorted(seen)


async def test_cancelled_caller(directory: Path) -> None:
    """A caller that is cancelled stops waiting; its write happens whole, and the next caller is served."""
    async with opened(directory / "s") as (store, _):
        gate = Gate()
        holding = asyncio.ensure_future(store.write(gate.hold))
        waiting = asyncio.ensure_future(store.write(create(1)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        gate.open()
        await holding
        assert await store.write(create(2)) == 2
        assert await store.read(lambda reader: reader.find(Tab, tab(1).name)) is not None
        assert store.statistics().waiting_write_count == 0


async def test_line_is_bounded(directory: Path) -> None:
    """One more than may wait is refused at once, and nothing of it happens."""
    async with opened(directory / "s", max_waiting=3) as (store, _):
        gate = Gate()
        waiting = [asyncio.ensure_future(store.write(gate.hold)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(StoreBusy) as caught:
            await store.write(create(1))
        gate.open()
        await asyncio.gather(*waiting)
        assert caught.value.limit == 3
        assert await store.write(create(2)) == 1


async def test_exceptions_pass_through(directory: Path) -> None:
    """What a function raises reaches its caller as it is, and the threads live on."""
    async with opened(directory / "s") as (store, _):

        def stop(_: object) -> None:
            raise StopIteration("1")

        def missing(_: object) -> None:
            raise KeyError

        for call in (store.write, store.read):
            with pytest.raises(RuntimeError, match="StopIteration"):
                await call(stop)
            with pytest.raises(KeyError):
                await call(missing)
        outcomes = await asyncio.gather(store.write(refused), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [Refused]
        assert await store.write(create(1)) == 1


async def test_closed_store(directory: Path) -> None:
    """Closing does what is in line first; then, as before opening, calls are refused."""
    store = Store(directory / "s", committed=lambda _: None)
    with pytest.raises(StoreClosed):
        await store.write(create(1))
    async with store:
        waiting = [asyncio.ensure_future(store.write(create(number))) for number in range(10)]
        await asyncio.sleep(0)
    assert await asyncio.gather(*waiting) == list(range(1, 11))
    with pytest.raises(StoreClosed):
        await store.read(lambda reader: reader.history())
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("store-")] == []


async def test_read_then_update(directory: Path) -> None:
    """8 x 30 read-then-update at once lose nothing, and nobody hears of a lock (STO-01)."""
    async with opened(directory / "s") as (store, _):
        await store.write(create(1))

        def count(transaction: Transaction) -> None:
            found = transaction.find(Tab, tab(1).name)
            assert found is not None
            put(transaction, replace(found, recovery_count=found.recovery_count + 1))

        async def worker() -> None:
            for _ in range(30):
                await store.write(count)
                await store.read(lambda reader: reader.find(Tab, tab(1).name))

        await asyncio.gather(*(worker() for _ in range(8)))
        found = await store.read(lambda reader: reader.find(Tab, tab(1).name))
        assert found is not None
        assert (found.recovery_count, found.revision) == (240, 241)


async def test_concurrent_creates(directory: Path) -> None:
    """200 sessions created at once are 200 rows (STO-02)."""
    async with opened(directory / "s") as (store, batches):
        revisions = await asyncio.gather(*(store.write(create_session(number)) for number in range(200)))
        rows = await store.read(lambda reader: [found.name for _, found in reader.page(Session)])
    assert sorted(revisions) == list(range(1, 201))
    assert sorted(rows) == [session(number).name for number in range(200)]
    assert len(batches[-1].live.sessions) == 200


async def test_reader_does_not_wait_for_writer(directory: Path) -> None:
    """A read is answered while a write is under way, with what was committed before (STO-01)."""
    async with opened(directory / "s") as (store, _):
        gate = Gate()

        def write(transaction: Transaction) -> None:
            put(transaction, tab(1))
            gate.hold(transaction)

        writing = asyncio.ensure_future(store.write(write))
        async with asyncio.timeout(LIMIT):
            assert await store.read(lambda reader: reader.find(Tab, tab(1).name)) is None
        gate.open()
        await writing


async def test_store_held_by_another_process(directory: Path) -> None:
    """While another process holds the file the loop runs on and callers are told; afterwards it works (STO-04)."""
    async with opened(directory / "s", busy_timeout=0.3) as (store, _):
        other = sqlite3.connect(directory / "s", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(store.write(create(1)))
        turns = 0
        while not waiting.done():
            turns += 1
            await asyncio.sleep(0)
        other.execute("ROLLBACK")
        other.close()
        with pytest.raises(StoreLocked):
            await waiting
        assert turns > 100
        assert await store.write(create(2)) == 1
