"""Starting and stopping the playground."""

import asyncio
import sys
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from aiohttp import web

from tabmuxd.playground.application import Handlers
from tabmuxd.playground.conversations import Conversations
from tabmuxd.playground.journal import Journal
from tabmuxd.playground.kinds import Kind

ADDRESS = "127.0.0.1"
SHUTDOWN_SECONDS = 2.0


class Playground:
    """A running playground, on the loopback address only.

    Use it with `async with`, on the loop that serves it. Port 0 takes a free one. With a store, a file, the
    conversations outlive it; entering raises `JournalError` if the file is damaged or used by another process, and
    `OSError` if the port is taken.
    """

    def __init__(self, *, port: int = 0, store: Path | None = None) -> None:
        """Set port and store; nothing is opened yet."""
        self.port = port
        self._store = store
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Begin to serve."""
        async with AsyncExitStack() as starting:
            journal = starting.enter_context(Journal(self._store)) if self._store else None
            handlers = Handlers(Conversations(_now, journal), _now)
            runner = web.AppRunner(handlers.application(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
            await runner.setup()
            starting.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, ADDRESS, self.port).start()
            self.port = int(runner.addresses[0][1])
            self._open = starting.pop_all()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the watches of running answers, then the server; pages that are open find it again later."""
        await self._open.aclose()

    def start_uri(self, kind: str) -> str:
        """Address of a new conversation of a kind: `textarea`, `editor` or `shadow`."""
        return f"http://{Kind(kind).host}:{self.port}/"


async def serve(port: int, store: Path | None) -> None:
    """Run a playground until cancelled; one line with the addresses is printed when it listens."""
    async with Playground(port=port, store=store) as playground:
        sys.stdout.write("playground: " + " ".join(playground.start_uri(kind) for kind in Kind) + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


def _now() -> datetime:
    return datetime.now(UTC)
