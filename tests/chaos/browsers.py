"""The browser of a round: launched by the server or run by somebody else, with a person in it; both can be killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

from tabmux.v1.browser_pb2 import Browser

from tests.cdp.browsers import RunningChromium, running_chromium, until
from tests.chaos.foreign import Foreign, open_foreign
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.serving import Server

MAX_TABS: Final = 12


class Chrome:
    """One browser over a round, and the person whose pages are in it; after a kill both begin anew."""

    def __init__(self, server: Server, pages: Pages, attached: Path | None) -> None:
        """`attached`: profile directory of a browser that the server does not launch."""
        self.server = server
        self._pid = 0
        self._pages = pages
        self._attached = attached
        self._running: contextlib.AbstractContextManager[RunningChromium] | None = None
        self._person_stack = contextlib.AsyncExitStack()
        self._person: Person | None = None
        self._foreign: Foreign | None = None

    @property
    def profile(self) -> Path:
        """Its profile directory."""
        return self._attached or self.server.state_directory / "browsers" / "main"

    @property
    def person(self) -> Person:
        """The person in it now."""
        assert self._person is not None
        return self._person

    @property
    def foreign(self) -> Foreign:
        """The person's pages in it now."""
        assert self._foreign is not None
        return self._foreign

    async def start(self) -> None:
        """Run it where the server does not."""
        if self._attached is not None:
            self._running = running_chromium(self._attached)
            self._pid = (await asyncio.to_thread(self._running.__enter__)).pid

    async def enter(self) -> None:
        """The server is connected: the person comes, and opens pages."""
        if self._attached is None:
            self._pid = self.server.browser_pid
        self._person = await self._person_stack.enter_async_context(person_at(self.profile))
        self._foreign = await open_foreign(self._person, self._pages)

    async def kill(self) -> None:
        """SIGKILL; returns once the next one is connected, with the person in it again."""
        generation = (await self.server.browser()).generation
        await self._person_stack.aclose()
        os.kill(self._pid, signal.SIGKILL)
        await self._end()
        await self.start()
        await self.server.browser_when(
            lambda browser: browser.generation > generation and browser.state == Browser.STATE_ACTIVE
        )
        await self.enter()

    async def close(self) -> None:
        """End what is left of it; one that the server launched is the server's to end."""
        await self._person_stack.aclose()
        await self._end()

    async def _end(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            await asyncio.to_thread(running.__exit__, None, None, None)


@contextlib.asynccontextmanager
async def chrome(server: Server, pages: Pages, attached: Path | None) -> AsyncGenerator[Chrome]:
    """The settings of a round are written, its browser runs, the server serves, and the person is there."""
    address = "" if attached is None else f'address = "{attached}"\n'
    (server.state_directory / "tabmuxd.toml").write_text(f"[browsers.main]\nmax_tab_count = {MAX_TABS}\n{address}")
    browser = Chrome(server, pages, attached)
    try:
        await browser.start()
        await server.start()
        await browser.enter()
        yield browser
    finally:
        await server.close()
        await browser.close()


def left_of(*directories: Path) -> list[str]:
    """Command lines of the processes that name one of these directories."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            if entry.name.isdecimal() and any(str(directory) in words for directory in directories):
                found.append(words)
    return found


def nothing_left(*directories: Path) -> None:
    """Wait until no process with these directories is left; it fails if one stays."""
    with contextlib.suppress(AssertionError):
        until(lambda: not left_of(*directories))
    assert left_of(*directories) == []
