"""What the tests of `cdp` share: a Chromium of their own, stub listeners, and a proxy that can be cut."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

EXECUTABLE = os.environ.get("TABMUX_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")

_HEADLESS = ("--headless=new",)
_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",  # as the service, for speed
    "--no-startup-window",
    "--remote-debugging-port=0",
)


@dataclass(frozen=True)
class RunningChromium:
    """A Chromium that a test may do with as it likes; `pid` leads its process group."""

    pid: int
    profile: Path
    uri: str

    @property
    def host_port(self) -> str:
        return self.uri.split("/")[2]

    @property
    def port(self) -> int:
        return int(self.host_port.rpartition(":")[2])

    @property
    def process_key(self) -> str:
        return self.uri.rpartition("/")[2]


def removed(directory: Path) -> bool:
    """Remove the directory, and tell whether it is gone."""
    shutil.rmtree(directory, ignore_errors=True)
    return not directory.exists()


@contextlib.contextmanager
def fresh_profile() -> Generator[Path, None, None]:
    """A directory with a short name, gone afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="tm", dir="/tmp")).resolve()
    try:
        yield directory
    finally:
        # A helper process may still write while the folder is emptied.
        until(lambda: removed(directory))


@contextlib.contextmanager
def running_chromium(profile: Path, *extra: str, display: str = "") -> Generator[RunningChromium, None, None]:
    """A Chromium on this profile, ended with all its helpers afterwards; it has windows if `display` says where."""
    assert EXECUTABLE is not None, "no Chromium on PATH; see scripts/chromium"
    port_file = profile / "DevToolsActivePort"
    port_file.unlink(missing_ok=True)
    with subprocess.Popen(
        [EXECUTABLE, *(() if display else _HEADLESS), *_ARGUMENTS, *extra, f"--user-data-dir={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "DISPLAY": display},
    ) as process:
        try:
            until(lambda: port_file.exists() and port_file.read_text().count("\n") > 0)
            port, path = port_file.read_text().split("\n")[:2]
            yield RunningChromium(pid=process.pid, profile=profile, uri=f"ws://127.0.0.1:{port}{path}")
        finally:
            # The leader is reaped only after this, so the group's number cannot be another's.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            until(lambda: not group_members(process.pid))


def current_task() -> asyncio.Task[object]:
    """The task that runs now."""
    task = asyncio.current_task()
    assert task is not None
    return task


def until(condition: Callable[[], object], seconds: float = 20) -> None:
    """Wait until the condition holds, for what tells no event."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.02)


def group_members(group: int) -> list[int]:
    """Processes of a group, dead ones that nobody has reaped included only if they are children of ours."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            state, parent, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and (state not in "ZX" or int(parent) == os.getpid()):
                found.append(int(entry.name))
    return found


@contextlib.asynccontextmanager
async def listener(
    reply: bytes | None, host: str = "127.0.0.1", requests: list[bytes] | None = None
) -> AsyncGenerator[int, None]:
    """A port on which each connection gets this reply to its first bytes, or never one if it is None."""
    ended = asyncio.Event()
    serving: list[asyncio.Task[object]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(current_task())
        with contextlib.suppress(ConnectionError):
            if received := await reader.read(4096):
                if requests is not None:
                    requests.append(received)
                if reply is None:
                    await ended.wait()
                else:
                    writer.write(reply)
                    await writer.drain()
            writer.close()
            await writer.wait_closed()

    server = await asyncio.start_server(serve, host, 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        ended.set()
        await asyncio.gather(*serving)


def http(status: str, body: str, *headers: str) -> bytes:
    """An HTTP answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", body]
    return "\r\n".join(lines).encode()


@dataclass
class Proxy:
    """Passes one port on to another until it is cut; connections are accepted again at once."""

    target: int
    port: int = 0
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _serving: list[asyncio.Task[object]] = field(default_factory=list)

    def cut(self) -> None:
        """Reset all connections that are open."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while part := await reader.read(65536):
                writer.write(part)
                await writer.drain()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.append(current_task())
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers += [writer, back]
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncGenerator["Proxy", None]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self
            self.cut()
            await asyncio.gather(*self._serving)
