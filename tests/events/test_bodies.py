"""Two ways to read events: whole, and only what a watch sends."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tabmuxd.events import Log, WatchFilter, session_filter, tab_filter
from tabmuxd.resources.event import EventKind
from tabmuxd.store import Entry, Reader

from tests.events.recording import read_all
from tests.events.steps import Clock, know_browser, step
from tests.store.samples import session, tab

FILTERS = (
    tab_filter(),
    tab_filter(parent="browsers/main", kinds=[EventKind.CREATED]),
    tab_filter(parent="browsers/other"),
    tab_filter(tabs=[tab(1).name, f"browsers/-/tabs/{2:010d}"]),
    session_filter(with_tabs=True),
    session_filter(sessions=[session(1).name], with_tabs=True),
)


def expected(
    truth: list[Entry], wanted: WatchFilter, after: int, count: int, size_bytes: int
) -> tuple[int, list[bytes]]:
    """What the rule of a step says: of so many events those that the filter takes, up to so many bytes, but one."""
    looked_at = [entry for entry in truth if after < entry.revision <= after + count]
    taken: list[Entry] = []
    for entry in looked_at:
        if not wanted.wants(entry.kind, entry.resource_kind, entry.place):
            continue
        if taken and sum(len(each.body) for each in taken) + len(entry.body) > size_bytes:
            return entry.revision - 1, [each.body for each in taken]
        taken.append(entry)
    return (looked_at[-1].revision if looked_at else after), [each.body for each in taken]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 2)), min_size=1, max_size=20),
    st.sampled_from(FILTERS),
    st.integers(0, 25),
    st.integers(1, 6),
    st.integers(1, 1_000),
)
def test_bodies(kinds: list[tuple[int, int]], wanted: WatchFilter, after: int, count: int, size_bytes: int) -> None:
    """Bodies are those of the entries that the filter wants, under the same limits (W4, W8)."""

    async def read(path: Path) -> None:
        async with Log(path, clock=Clock(), tail_count=1) as log:
            await log.change(know_browser)
            for kind, number in kinds:
                await log.change(step(kind, number))
            truth = await read_all(log, 0)

            def bodies(reader: Reader) -> tuple[int, list[bytes]]:
                return reader.bodies(wanted.wanted, after=after, last=log.head, count=count, size_bytes=size_bytes)

            assert await log.reading(bodies) == expected(truth, wanted, after, count, size_bytes)

    with tempfile.TemporaryDirectory(prefix="tm") as directory:
        asyncio.run(read(Path(directory) / "s"))
