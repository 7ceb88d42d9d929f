"""Tabs without a server over them: the domain in this process, on a Chromium, with a clock that tests move."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest
from tabmuxd.cdp.link import AttachedSource
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import BrowserLimits, BrowserOptions, Ownership
from tabmuxd.resources.orders import TabOrder
from tabmuxd.resources.principal import Principal, Scope
from tabmuxd.resources.tab import LoadMilestone, Tab, TabState
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai.answers import Feeds
from tabmuxd.webai.service import lost_tab_hook

from tests.e2e.serving import LIMIT

PERSON: Final = Principal("local", frozenset(Scope))
BROWSER: Final = "browsers/main"


class Clock:
    """Shows the time that a test says."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, time: timedelta) -> None:
        """Let time pass."""
        self.now += time


@dataclass(frozen=True)
class World:
    """The parts of a server below its edge."""

    tabs: Tabs
    log: Log
    host: BrowserHost
    clock: Clock

    async def open(self, uri: str = "", group: str = "") -> Tab:
        """A tab of the person, once its document is there."""
        order = TabOrder(uri=uri, group=group, until=LoadMilestone.COMMITTED)
        return (await self.tabs.create(PERSON, order)).tab

    def tab(self, name: str) -> Tab:
        """A tab that has not closed."""
        return self.log.live.tabs[name]

    async def until(self, reached: Callable[[], object]) -> None:
        """Return once it is so, looked at anew with each change."""
        try:
            async with asyncio.timeout(2 * LIMIT):
                while not reached():
                    await self.log.moved(self.log.progress.revision)
        except TimeoutError:
            pytest.fail(f"it never came to that; {self.host}, {self.tabs}, {list(self.log.live.tabs.values())}")

    async def until_state(self, name: str, state: TabState) -> Tab:
        """The tab once it is in this state."""
        await self.until(lambda: self.tab(name).state is state)
        return self.tab(name)


@contextlib.asynccontextmanager
async def world_at(directory: Path, uri: str, *, limits: BrowserLimits | None = None) -> AsyncGenerator[World]:
    """All parts over the browser at this address, connected; its tabs stay when it is left."""
    clock = Clock()
    async with Log(directory / "t.sqlite3", clock=clock) as log, Tasks() as tasks:
        options = BrowserOptions(BROWSER, Ownership.ATTACHED, limits or BrowserLimits(max_tab_count=500))
        source, served = AttachedSource(uri), lost_tab_hook(Feeds())
        host = BrowserHost(options, source, log, tasks, served, random=secrets.token_bytes)
        tabs = Tabs(Hosts([host]), log, tasks, secrets.token_bytes, clock)
        await host.introduce()
        running = tasks.spawn(host.run(), "host")
        try:
            async with asyncio.timeout(LIMIT):
                await host.back()
            yield World(tabs, log, host, clock)
        finally:
            await host.stop()
            await asyncio.gather(running, return_exceptions=True)
