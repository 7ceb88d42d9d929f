"""A log with few tabs, and the replies of its watches in short."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from tabmuxd.events import Changes, Log
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import Tab

from tests.events.recording import Reply
from tests.events.steps import Clock, know_browser
from tests.store.samples import tab

LIMIT = 20


@asynccontextmanager
async def opened(directory: Path, tail_count: int = 10_000) -> AsyncGenerator[Log]:
    """An open log that knows the browser: revision 1."""
    async with Log(directory / "s", clock=Clock(), tail_count=tail_count) as log:
        if log.progress.revision == 0:
            await log.change(know_browser)
        yield log


async def open_tab(log: Log, number: int) -> Tab:
    """A new tab."""
    return await log.change(lambda changes: changes.record(tab(number), ChangeCause.CLIENT))


async def rename(log: Log, number: int, title: str) -> Tab:
    """A change of a tab."""

    def decide(changes: Changes) -> Tab:
        known = changes.tab(tab(number).name)
        assert known is not None
        return changes.record(replace(known, title=title))

    return await log.change(decide)


def shape(replies: list[Reply]) -> list[tuple[list[tuple[int, str]], int]]:
    """Revisions and kinds of the events, and the place, of each reply."""
    return [
        ([(shown.revision, shown.kind.name) for shown in reply.events], reply.progress.revision) for reply in replies
    ]
