"""A real server in a process of its own, with its browser and the local chat pages: started, killed, started again."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import grpc
import grpc.aio
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.event_pb2 import Event, WatchProgress
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import GetBrowserRequest, GetServerInfoRequest, ListTabsRequest, WatchTabsRequest
from tabmux.v1.tab_service_pb2_grpc import TabServiceStub
from tabmux.v1.web_ai_service_pb2 import WatchSessionsRequest
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub

from tests.cdp.browsers import group_members, until

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2_grpc import TabServiceAsyncStub
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub

T = TypeVar("T")

BROWSER: Final = "browsers/main"
LIMIT: Final = 20.0
"""Seconds that anything awaited here may take; generous, since the machine is shared."""

_TABMUXD: Final = (sys.executable, "-m", "tabmuxd")
# By default a channel whose server was away looks for it after one second, then ever more rarely.
_QUICK_RECONNECT: Final = (("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 500))
_ENDED_STATES: Final = (Turn.STATE_SUCCEEDED, Turn.STATE_FAILED, Turn.STATE_CANCELLED)


@dataclass(frozen=True)
class PlaygroundProcess:
    """Chat pages that outlive the servers under test."""

    port: int

    def prompts(self) -> list[str]:
        """Every prompt that was submitted to a page, as often as it was."""
        return [turn["prompt"] for conversation in self._conversations() for turn in conversation["turns"]]

    def stop_answer(self, prompt: str) -> None:
        """End the answer to this prompt in the page, as its Stop button does."""
        kind, turn = next(
            (conversation["kind"], turn["id"])
            for conversation in self._conversations()
            for turn in conversation["turns"]
            if turn["prompt"] == prompt
        )
        _json_from(
            urllib.request.Request(
                f"http://127.0.0.1:{self.port}/api/turns/{turn}/stop",
                data=b"{}",
                headers={"Content-Type": "application/json", "Host": f"{kind}.localhost:{self.port}"},
            )
        )

    def _conversations(self) -> Any:  # noqa: ANN401 - JSON
        return _json_from(f"http://127.0.0.1:{self.port}/api/conversations")


@contextlib.contextmanager
def running_playground(directory: Path) -> Generator[PlaygroundProcess, None, None]:
    """Serve the chat pages from a process of their own; `directory` keeps their conversations."""
    command = [*_TABMUXD, "playground", "--port", "0", "--store", str(directory / "playground.jsonl")]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment()
    ) as process:
        try:
            assert process.stdout is not None
            told = process.stdout.readline()  # "playground: http://textarea.localhost:PORT/ …", or empty at its end
            assert told, f"the playground ended with {process.wait()}"
            yield PlaygroundProcess(port=int(told.split()[1].rstrip("/").rpartition(":")[2]))
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(LIMIT)
            process.kill()


class Server:
    """One state directory and the server on it, which a test may kill and start again as it likes."""

    def __init__(self, state_directory: Path, playground_port: int, *, display: str = "") -> None:
        """Nothing is started yet; the path has to be short, as that of its socket is."""
        self.state_directory = state_directory
        self.playground_port = playground_port
        self.display = display
        self._process: subprocess.Popen[bytes] | None = None
        self._command: tuple[str, ...] = ()
        self._channels: list[grpc.aio.Channel] = []
        self._channel: grpc.aio.Channel | None = None

    # The process

    async def start(self, *command: str) -> None:
        """Start `command` (by default tabmuxd itself) with the flags of a server; it serves, its browser connected."""
        self.begin(*command)
        serving = asyncio.ensure_future(self._await_serving())
        ended = asyncio.ensure_future(self.ended(seconds=4 * LIMIT))
        try:
            await asyncio.wait({serving, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not serving.done():
                raise AssertionError(f"the server ended with {ended.result()} while it started:\n{self.log()}")
            await serving
        finally:
            for task in (serving, ended):
                task.cancel()
            await asyncio.gather(serving, ended, return_exceptions=True)

    def begin(self, *command: str) -> None:
        """As `start`, without waiting for anything."""
        assert self._process is None, "a server runs already"
        self._command = command
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*(command or _TABMUXD), *self.arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment(), "DISPLAY": self.display},
            )
        self._channel = self.channel()

    @property
    def arguments(self) -> list[str]:
        """Command and flags of a server on this state directory."""
        directory, port = str(self.state_directory), str(self.playground_port)
        return ["serve", "--state-dir", directory, "--playground-port", port]

    async def restart(self, *command: str) -> None:
        """Start a server again, after the one before has ended by itself or is killed here."""
        await self.kill()
        await self.start(*command)

    async def run(self, *command: str) -> None:
        """A server serves that was started with this command: the one that runs, or else another."""
        if self._process is None or self._process.poll() is not None or self._command != command:
            await self.restart(*command)

    async def kill(self) -> None:
        """SIGKILL to the server alone; its browser lives on."""
        await self._end(signal.SIGKILL)

    async def terminate(self) -> int:
        """SIGTERM to the server; its exit code."""
        return await self._end(signal.SIGTERM)

    async def ended(self, *, seconds: float = LIMIT) -> int:
        """Exit code of the server once it has ended, negative for a signal."""
        process = self._running
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        if process.poll() is None:
            descriptor = os.pidfd_open(process.pid)
            loop.add_reader(descriptor, gone.set)
            try:
                async with asyncio.timeout(seconds):
                    await gone.wait()
            finally:
                loop.remove_reader(descriptor)
                os.close(descriptor)
        return process.wait()

    async def close(self) -> None:
        """End the server, its browser and the channels, whatever state they are in."""
        with contextlib.suppress(TimeoutError):
            if self._process is not None:
                await self._end(signal.SIGTERM)
        if self._process is not None:
            await self._end(signal.SIGKILL)
        for channel in self._channels:
            await channel.close()
        self._channels.clear()
        end_browsers(self.state_directory)

    async def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(number)
        code = await self.ended()
        self._process = None
        return code

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "no server was started"
        return self._process

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._running.pid

    @property
    def _log_file(self) -> Path:
        return self.state_directory / "server.log"

    def log(self) -> str:
        """What all servers on this state directory have logged."""
        return self._log_file.read_text(errors="replace") if self._log_file.exists() else ""

    async def _await_serving(self) -> None:
        await self.tabs.GetServerInfo(GetServerInfoRequest(), wait_for_ready=True, timeout=2 * LIMIT)
        await self.browser_when(lambda browser: browser.state == Browser.STATE_ACTIVE)

    # Its calls

    def channel(self, as_name: str | None = None) -> grpc.aio.Channel:
        """A channel of its own to the socket, closed with the server; as the program `local/as_name`, if named."""
        named = [] if as_name is None else [_NamedUnary(as_name), _NamedStream(as_name)]
        channel = grpc.aio.insecure_channel(
            f"unix://{self.state_directory / 'tabmuxd.sock'}",
            # Else channels to one address share a connection, and the back-off after a server was killed.
            options=[("grpc.use_local_subchannel_pool", 1), ("grpc.http2.bdp_probe", 0), *_QUICK_RECONNECT],
            interceptors=named,
        )
        self._channels.append(channel)
        return channel

    @property
    def tabs(self) -> TabServiceAsyncStub:
        """Calls of the person to the server that was started last."""
        return TabServiceStub(self._started)

    @property
    def ai(self) -> WebAiServiceAsyncStub:
        """Calls of the person to the server that was started last."""
        return WebAiServiceStub(self._started)

    @property
    def _started(self) -> grpc.aio.Channel:
        assert self._channel is not None, "no server was started"
        return self._channel

    # Its browser

    async def browser(self) -> Browser:
        """The browser and its counts now."""
        return (await self.tabs.GetBrowser(GetBrowserRequest(name=BROWSER), timeout=LIMIT)).browser

    async def when(
        self, look: Callable[[], Awaitable[T]], reached: Callable[[T], bool], *, seconds: float = 2 * LIMIT
    ) -> T:
        """What `look` gives once it is as asked; looked anew with each event of tabs, and each second."""
        seen: list[T] = []
        try:
            async with asyncio.timeout(seconds), contextlib.aclosing(self._moments()) as moments:
                async for _ in moments:
                    seen[:] = [await look()]
                    if reached(seen[0]):
                        return seen[0]
        except TimeoutError:
            raise AssertionError(f"waited in vain; last seen: {seen}") from None
        raise AssertionError("the watch ended")

    async def browser_when(self, reached: Callable[[Browser], bool]) -> Browser:
        """The browser once it is as asked."""
        return await self.when(self.browser, reached)

    async def tabs_when(self, reached: Callable[[Sequence[Tab]], bool]) -> Sequence[Tab]:
        """The tabs that have not closed, once they are as asked."""
        return await self.when(self.list_tabs, reached)

    async def list_tabs(self) -> Sequence[Tab]:
        """The tabs of ours that have not closed."""
        return (await self.tabs.ListTabs(ListTabsRequest(page_size=500), timeout=LIMIT)).tabs

    async def watch_since(self, start: WatchProgress | None) -> tuple[list[Event], WatchProgress]:
        """What was recorded behind `start`, in sessions and tabs, up to now; None gives what there is now."""
        now = start
        if start is not None:
            _, now = await self.watch_since(None)
        request = WatchSessionsRequest(with_tabs=True)
        if start is None:
            request.start.snapshot.SetInParent()
        else:
            request.start.resume.CopyFrom(start)
        request.bookmark_interval.FromSeconds(1)
        events: list[Event] = []
        async for reply in self.ai.WatchSessions(request, timeout=LIMIT):
            events += reply.events
            # 0 means: more of the snapshot follows.
            if reply.progress.revision > 0 and (now is None or reply.progress.revision >= now.revision):
                return events, reply.progress
        raise AssertionError("the watch ended")

    async def _moments(self) -> AsyncGenerator[None, None]:
        request = WatchTabsRequest()
        request.start.snapshot.SetInParent()
        request.bookmark_interval.FromSeconds(1)
        call = self.tabs.WatchTabs(request)
        try:
            async for _ in call:
                yield
        finally:
            call.cancel()

    @property
    def browser_pid(self) -> int:
        """Process id of the browser that the server launched, which leads its process group."""
        record = self.state_directory / "browsers" / "main" / "tabmux-process.json"
        return int(json.loads(record.read_text())["pid"])

    async def page_targets(self) -> dict[str, str]:
        """Address by target id of every page that the browser itself lists, without the server's help."""
        port_file = self.state_directory / "browsers" / "main" / "DevToolsActivePort"
        port = port_file.read_text().split("\n")[0]
        listed = await asyncio.to_thread(_json_from, f"http://127.0.0.1:{port}/json/list")
        return {target["id"]: target["url"] for target in listed if target["type"] == "page"}


class _NamedUnary(grpc.aio.UnaryUnaryClientInterceptor):
    """Gives each unary call the name of a program."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401 - as in grpc
        """Call on with the name."""
        return await continuation(_named(client_call_details, self._name), request)


class _NamedStream(grpc.aio.UnaryStreamClientInterceptor):
    """Gives each streaming call the name of a program."""

    def __init__(self, name: str) -> None:
        self._name = name

    async def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:  # noqa: ANN401 - as in grpc
        """Call on with the name."""
        return await continuation(_named(client_call_details, self._name), request)


def _named(details: Any, name: str) -> Any:  # noqa: ANN401 - as in grpc
    metadata = grpc.aio.Metadata(*(details.metadata or ()), ("authorization", f"Local {name}"))
    return details._replace(metadata=metadata)


@contextlib.asynccontextmanager
async def serving(
    state_directory: Path, playground_port: int, *command: str, display: str = ""
) -> AsyncGenerator[Server, None]:
    """A server that serves, with its browser connected; all of it is gone afterwards.

    `display`: where the windows of its browser appear, if the settings in its state directory want any.
    """
    server = Server(state_directory, playground_port, display=display)
    try:
        await server.start(*command)
        yield server
    finally:
        await server.close()


def environment() -> dict[str, str]:
    """What the processes get of the environment: no setting of tabmuxd but the browser to launch."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TABMUX")}
    if executable := os.environ.get("TABMUX_CHROMIUM"):
        kept["TABMUX_CHROMIUM"] = executable
    return kept


def browser_leaders(state_directory: Path) -> list[int]:
    """Living browser processes, without helpers, on profiles in this state directory."""
    mine = f"--user-data-dir={state_directory}/"
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            if any(word.startswith(mine) for word in words) and not any(word.startswith("--type=") for word in words):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    # A helper has the words of the browser between its fork and its exec.
    return [process for process, parent in parents.items() if parent not in parents]


def end_browsers(state_directory: Path) -> None:
    """Kill what is left of the browsers on profiles in this state directory, and wait until it is gone."""
    for leader in browser_leaders(state_directory):
        with contextlib.suppress(ProcessLookupError):
            if os.getpgid(leader) == leader:
                os.killpg(leader, signal.SIGKILL)
                until(functools.partial(_is_gone, leader))


def _is_gone(group: int) -> bool:
    return not group_members(group)


def ended(turn: Turn) -> bool:
    """Whether a turn has its end."""
    return turn.state in _ENDED_STATES


def _json_from(address: str | urllib.request.Request) -> Any:  # noqa: ANN401 - JSON
    with urllib.request.urlopen(address, timeout=LIMIT) as reply:  # noqa: S310 - a loopback address
        return json.load(reply)
