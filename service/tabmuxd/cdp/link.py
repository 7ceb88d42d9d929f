"""Keep one connection to one browser, for as long as the server wants the browser."""

import asyncio
import contextlib
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.endpoint import EndpointError, Located, locate
from tabmuxd.cdp.errors import CdpError, ProtocolError
from tabmuxd.cdp.launcher import (
    BrowserProcess,
    LaunchError,
    LaunchOptions,
    end,
    hold_profile,
    launch_or_take_back,
)
from tabmuxd.cdp.processes import reap

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_LOCATE_SECONDS = 5.0
_OPEN_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
# Together shorter than the 5 s that a server has to stop.
_CLOSE_SECONDS = 1.0
_END_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class BrowserIdentity:
    """Which browser process is at the other end; another `process_key` is another process, whose targets are new."""

    process_key: str
    product: str
    host_port: str
    headless: bool


class BrowserSource(Protocol):
    """Where a link gets its browser from."""

    @property
    def owned(self) -> bool:
        """Whether the browser was launched here, and so may be ended."""
        ...

    def hold(self) -> None:
        """Keep other servers from the browser until `release`; may be repeated. Raises LaunchError if one has it."""
        ...

    async def locate(self) -> Located:
        """Where the browser is now; raises EndpointError or LaunchError."""
        ...

    async def end(self) -> None:
        """End the browser if it is owned; raises EndRefused if it is not surely that one."""
        ...

    def release(self) -> None:
        """Let go of the browser, which lives on."""
        ...


class AttachedSource:
    """A browser that somebody else runs: it is looked for, never launched, ended or signalled."""

    owned = False

    def __init__(self, address: str, *, allow_remote: bool = False) -> None:
        self._address = address
        self._allow_remote = allow_remote

    def hold(self) -> None:
        """Do nothing: others may use it too."""

    async def locate(self) -> Located:
        """Where the browser is now."""
        return await locate(self._address, timeout=_LOCATE_SECONDS, allow_remote=self._allow_remote)

    async def end(self) -> None:
        """Do nothing: it is not ours."""

    def release(self) -> None:
        """Do nothing: nothing is held."""


class LaunchedSource:
    """A browser of ours on a profile directory: launched when there is none, taken back when it outlived a server."""

    owned = True

    def __init__(self, options: LaunchOptions, *, known: BrowserProcess | None = None, timeout: float = 20) -> None:
        self._options = options
        self._timeout = timeout
        self._lock: int | None = None
        self.process = known

    def hold(self) -> None:
        """Hold the profile directory against other servers, until `release` or the end of this process."""
        if self._lock is None:
            self._lock = hold_profile(self._options.profile_directory)

    async def locate(self) -> Located:
        """Where the browser is; holds the profile directory."""
        self.hold()
        launched = await launch_or_take_back(self._options, known=self.process, timeout=self._timeout)
        if launched.process != self.process:
            _log.info("browser_taken_back" if launched.taken_back else "browser_launched", pid=launched.process.pid)
        self.process = launched.process
        return launched.located

    async def end(self) -> None:
        """End the browser that was located last."""
        if self.process is not None:
            await end(self.process, self._options.profile_directory, timeout=_END_SECONDS)

    def release(self) -> None:
        """Let other servers have the profile directory; the browser lives on."""
        if self.process is not None:
            reap(self.process.pid)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after failures: a random part of a time that grows up to a limit."""

    first_seconds: float = 0.1
    factor: float = 1.6
    limit_seconds: float = 5.0
    chance: Callable[[], float] = random.random

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row, 0 after a connection that worked."""
        # 50 steps are far beyond any sensible limit, and not yet beyond what a float holds.
        return self.chance() * min(self.limit_seconds, self.first_seconds * self.factor ** min(failures, 50))


class BrowserLink:
    """Keeps one connection to one browser: connect, tell, wait for its end, tell, back off, again.

    `up` is awaited with each new connection; if it raises a CdpError the attempt has failed, and `down` is not called
    for it. `down` is awaited with the reason when a connection ends whose `up` returned, except on stop. They never
    overlap. Any other exception of theirs is logged as a fault, and the next connection is tried all the same.
    """

    def __init__(
        self,
        source: BrowserSource,
        *,
        up: Callable[[Connection, BrowserIdentity], Awaitable[None]],
        down: Callable[[str], Awaitable[None]],
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.connection: Connection | None = None
        self._source = source
        self._up = up
        self._down = down
        self._backoff = backoff or Backoff()
        self._sleep = sleep
        self._running: asyncio.Task[object] | None = None
        self._stopping = False
        self._failures = 0
        self._told: set[tuple[str, str]] = set()

    async def run(self) -> None:
        """Keep the connection until cancelled or stopped; runs in a task of its own, once."""
        self._running = asyncio.current_task()
        while not self._stopping:
            try:
                await self._serve(*await self._connect())
            except (EndpointError, LaunchError, CdpError, OSError) as error:
                self._tell(error)
            except Exception as error:  # noqa: BLE001 - no fault may leave the browser away for good
                _log.error("browser link failed", error=type(error).__name__, exc_info=error)
            await self._sleep(self._backoff.delay(self._failures))
            self._failures += 1

    async def stop(self, *, end_browser: bool) -> None:
        """Close the connection, end `run`, and, if `end_browser`, end a browser that was launched here; once.

        An attached browser is never ended. Raises EndRefused, with nothing signalled, if the process is not surely
        the one launched.
        """
        self._stopping = True
        ended = end_browser and self._source.owned
        try:
            if self.connection is not None and ended:
                with contextlib.suppress(CdpError):
                    await self.connection.call("Browser.close", timeout=_CLOSE_SECONDS)
            await self._end_run()
            if ended:
                await self._source.end()
        finally:
            self._source.release()

    async def _end_run(self) -> None:
        running = self._running
        if running is not None and running is not asyncio.current_task():
            running.cancel()
            await asyncio.wait({running})

    async def _connect(self) -> tuple[Connection, BrowserIdentity]:
        located = await self._source.locate()
        connection = await Connection.open(located.socket_uri, timeout=_OPEN_SECONDS)
        try:
            return connection, await identify(connection, located)
        except BaseException:
            await asyncio.shield(connection.close())
            raise

    async def _serve(self, connection: Connection, identity: BrowserIdentity) -> None:
        """Tell of the connection, wait until it ends, and tell that."""
        self.connection = connection
        try:
            await self._up(connection, identity)
            self._failures = 0
            self._told.clear()
            _log.info("browser_connected", host_port=identity.host_port, product=identity.product)
            reason = await connection.wait_closed()
        finally:
            self.connection = None
            await asyncio.shield(connection.close())
        if not self._stopping:
            _log.warning("browser_disconnected", host_port=identity.host_port, reason=reason)
            await self._down(reason)

    def _tell(self, error: Exception) -> None:
        """Log a failed attempt, once for each cause until a connection works."""
        cause = (type(error).__name__, str(getattr(error, "cause", "")))
        if cause not in self._told:
            self._told.add(cause)
            _log.warning("browser_unreachable", cause=cause[1] or cause[0], error=str(error))


async def identify(connection: Connection, located: Located) -> BrowserIdentity:
    """Which browser process answers on this connection.

    Where the address alone does not prove it, the operating system's id of the process becomes part of the key, if the
    browser tells it.
    """
    version = await connection.call("Browser.getVersion", timeout=_ANSWER_SECONDS)
    process_key = located.process_key
    if not located.key_proven:
        with contextlib.suppress(ProtocolError):
            answer = await connection.call("SystemInfo.getProcessInfo", timeout=_ANSWER_SECONDS)
            pids = [str(entry["id"]) for entry in answer.get("processInfo", []) if entry.get("type") == "browser"]
            process_key = "/".join((process_key, *pids))
    return BrowserIdentity(
        process_key=process_key,
        product=str(version.get("product", "")),
        host_port=located.host_port,
        headless="HeadlessChrome" in str(version.get("userAgent", "")),
    )
