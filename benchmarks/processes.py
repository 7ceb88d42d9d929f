"""Processes that a benchmark starts and ends: the server under test, and others beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import grpc
from tabmux.channel import open_channel
from tabmux.places import find_place
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.tab_service_pb2 import ListBrowsersRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmuxd.cdp import launcher
from tabmuxd.cdp.profile import read_record

_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 40.0
_LOOK_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class Server:
    """A server under test, with its browser up. The state directory is its own, and goes with it."""

    state_directory: Path
    pid: int

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"unix://{self.state_directory}/tabmuxd.sock"

    @property
    def profile(self) -> Path:
        """Profile directory of its browser."""
        return self.state_directory / "browsers" / "main"

    def channel(self) -> grpc.aio.Channel:
        """A channel to it, as the client makes them."""
        return open_channel(find_place(self.address, {}))


@asynccontextmanager
async def tabmuxd(
    *arguments: str, settings: str = "", prepare: Callable[[Path], Awaitable[None]] | None = None
) -> AsyncGenerator[Server]:
    """Run `tabmuxd serve` with these arguments as others run it, its log in a file; in the end all of it is gone.

    `settings`: lines of its settings file. `prepare` fills the state directory before it starts.
    """
    directory = Path(tempfile.mkdtemp(prefix="tm"))  # the path of a socket must be short
    (directory / "tabmuxd.toml").write_text(settings)
    command = ("-m", "tabmuxd", "serve", "--state-dir", str(directory), *arguments)
    try:
        if prepare is not None:
            await prepare(directory)
        async with python(command, log=directory / "log") as process:
            server = Server(directory, process.pid)
            await _browser_is_up(server)
            yield server
    finally:
        await _end_browser(directory / "browsers" / "main")
        shutil.rmtree(directory, ignore_errors=True)


@asynccontextmanager
async def python(arguments: Sequence[str], *, log: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run Python with these arguments; it is asked to end, and killed where it does not."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TABMUX")}
    if chromium := os.environ.get("TABMUX_CHROMIUM"):
        environment["TABMUX_CHROMIUM"] = chromium
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            sys.executable, *arguments, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=file, stderr=file
        )
        try:
            yield process
        except BaseException:
            _show_end(log)
            raise
        finally:
            await _end(process)


def _show_end(log: Path) -> None:
    sys.stderr.write(log.read_text(errors="replace")[-2000:])


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_END_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()


async def _end_browser(profile: Path) -> None:
    """End the browser of a server that could not do so itself."""
    if (left := read_record(profile)) is not None:
        await launcher.end(left, profile)


async def _browser_is_up(server: Server) -> None:
    async with asyncio.timeout(_START_SECONDS), server.channel() as channel:
        while True:
            reply = await TabServiceStub(channel).ListBrowsers(ListBrowsersRequest(), wait_for_ready=True)
            if any(browser.state == Browser.STATE_ACTIVE for browser in reply.browsers):
                return
            await asyncio.sleep(_LOOK_SECONDS)
