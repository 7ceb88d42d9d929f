"""A server below its edge, without a browser: a real log, tabs and conversations, and a clock that tests move."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tabmuxd.cdp.link import AttachedSource
from tabmuxd.events.log import Log
from tabmuxd.resources.browser import BrowserLimits, BrowserOptions, Ownership
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai.answers import Feeds
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.providers.loading import Providers
from tabmuxd.webai.service import WebAi, lost_tab_hook

from tests.domain.values import NOW


@dataclass
class Clock:
    """Shows the time that a test says."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


@dataclass
class Below:
    """The parts of a server whose browsers are away."""

    log: Log
    tabs: Tabs
    web_ai: WebAi
    clock: Clock


@asynccontextmanager
async def below(
    directory: Path,
    *,
    limits: BrowserLimits | None = None,
    providers: Mapping[str, Descriptor] | None = None,
    descriptors: Path | None = None,
    browsers: tuple[str, ...] = ("browsers/main",),
) -> AsyncGenerator[Below]:
    """The parts over a store in this directory."""
    clock = Clock()
    async with Log(directory / "t.sqlite3", clock=clock) as log, Tasks() as tasks:
        feeds = Feeds()
        hosts = [
            BrowserHost(
                BrowserOptions(name, Ownership.ATTACHED, limits or BrowserLimits()),
                AttachedSource("http://127.0.0.1:9"),
                log,
                tasks,
                lost_tab_hook(feeds),
                random=secrets.token_bytes,
            )
            for name in browsers
        ]
        tabs = Tabs(Hosts(hosts), log, tasks, secrets.token_bytes, clock)
        web_ai = WebAi(
            Providers(providers or {}, descriptors),
            tabs,
            log,
            tasks,
            random=secrets.token_bytes,
            clock=clock,
            feeds=feeds,
        )
        for host in hosts:
            await host.introduce()
        yield Below(log, tabs, web_ai, clock)
