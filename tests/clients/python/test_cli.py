"""The command as a process of its own, against a scripted server."""

import asyncio
import contextlib
import json
import os
import pty
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tabmux.cli import main
from tabmux.cli.live import screen
from tabmux.v1.error_reason_pb2 import Failure
from tabmux.v1.event_pb2 import (
    CHANGE_CAUSE_CLIENT,
    EVENT_KIND_CREATED,
    EVENT_KIND_EXISTING,
    Event,
    WatchProgress,
    WatchSnapshot,
    WatchStart,
)
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    LOAD_MILESTONE_DOM_CONTENT_LOADED,
    ActivateTabResponse,
    CloseTabResponse,
    CreateTabRequest,
    CreateTabResponse,
    EvaluateScriptRequest,
    EvaluateScriptResponse,
    GetTabResponse,
    ListTabsResponse,
    Navigation,
    WatchTabsRequest,
    WatchTabsResponse,
)
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionResponse,
    GetSessionResponse,
    RecoverSessionResponse,
    SendPromptResponse,
    StreamAnswerRequest,
    StreamAnswerResponse,
    WatchSessionsResponse,
)

from tests.clients.python.scripted import Refuse, ScriptedServer, sha

TURN = "sessions/s/turns/t"
TAB = Tab(name="browsers/main/tabs/k3v9x2m7qd", state=Tab.STATE_READY, origin=Tab.ORIGIN_MANAGED, title="A\x1b[2Jb")
OTHER = Tab(name="browsers/main/tabs/k4aaaaaaaa", state=Tab.STATE_READY, origin=Tab.ORIGIN_MANAGED)
RUNNING = Turn(name=TURN, state=Turn.STATE_RUNNING)
DONE = Turn(name=TURN, state=Turn.STATE_SUCCEEDED)


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int | None
    out: str
    err: str


@asynccontextmanager
async def started(
    directory: Path, *arguments: str, stdout: int = asyncio.subprocess.PIPE, environment: Mapping[str, str] = {}
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    """A command that runs, with the server of `directory`; it is ended if it has not."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tabmux.cli",
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=stdout,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(directory), "TABMUX_STATE_DIR": str(directory), **environment},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def tabmux(directory: Path, *arguments: str, text: str = "", environment: Mapping[str, str] = {}) -> Ended:
    """Run a command to its end, with `text` on its standard input."""
    async with started(directory, *arguments, environment=environment) as process, asyncio.timeout(25):
        out, err = await process.communicate(text.encode())
    return Ended(process.returncode, out.decode(), err.decode())


def piece(offset: int, text: str, turn: Turn | None = None, whole: str | None = None) -> StreamAnswerResponse:
    """A reply that puts `text` at `offset`; the last one with the hash of the `whole` text."""
    size = offset + len(text.encode())
    hash_ = "" if whole is None else sha(whole)
    return StreamAnswerResponse(offset_bytes=offset, text=text, size_bytes=size, turn=turn, sha256=hash_)


def conversation(server: ScriptedServer, *, created: bool = True) -> None:
    """Let the server take a prompt."""
    server.script("CreateSession", [CreateSessionResponse(session=Session(name="sessions/s"), created=created)])
    server.script("SendPrompt", [SendPromptResponse(turn=RUNNING)])


async def test_server_info(server: ScriptedServer, directory: Path) -> None:
    """`server info` shows server and caller, as a table and as one JSON line."""
    shown = await tabmux(directory, "server", "info")
    line = await tabmux(directory, "--json", "server", "info")
    assert (shown.code, shown.err, "you are       local\n" in shown.out) == (0, "", True)
    assert line == Ended(0, line.out, "")
    assert json.loads(line.out) == {
        "version": "0.1.0",
        "principal": "local",
        "scopes": ["read", "drive", "ai", "admin"],
        "progress": {"historyId": "h1", "revision": "7"},
        "disabledMethods": [],
    }
    assert {call.method for call in server.calls} == {"GetServerInfo"}


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ((), {}, None),
        ((), {"TABMUX_AS": "night"}, "Local night"),
        (("--as", "day"), {"TABMUX_AS": "night"}, "Local day"),
        ((), {"TABMUX_TOKEN": "t"}, "Bearer t"),
    ],
)
async def test_caller(
    server: ScriptedServer,
    directory: Path,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    expected: str | None,
) -> None:
    """The command is the person unless it is given a name or a token."""
    assert (await tabmux(directory, "server", "info", *arguments, environment=environment)).code == 0
    assert server.calls[0].metadata.get("authorization") == expected


async def test_no_server(directory: Path) -> None:
    """Without a server the command says so, that nothing was done and what to do, and ends with code 3."""
    ended = await tabmux(directory, "tab", "list")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.splitlines() == [
        f"tabmux: no server listens at unix://{directory}/tabmuxd.sock: there is no such socket",
        "  done: nothing was done",
        "  next: start the server with `tabmuxd`, or name its address with --address or TABMUX_ADDRESS",
    ]


async def test_dead_socket(directory: Path) -> None:
    """A socket that nobody serves any more ends with code 3 too, in JSON on standard error."""
    server = await asyncio.start_unix_server(lambda _reader, _writer: None, directory / "tabmuxd.sock")
    server.close()
    await server.wait_closed()
    (directory / "tabmuxd.sock").touch()
    ended = await tabmux(directory, "--json", "tab", "list")
    error = json.loads(ended.err)["error"]
    assert (ended.code, ended.out, error["code"], error["done"]) == (3, "", "UNAVAILABLE", "nothing was done")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--address", "nowhere", "tab", "list"), "write unix:///PATH or HOST:PORT"),
        (("--as", "No Name", "tab", "list"), "is not a name for a program"),
        (("--address", "unix:///" + "a" * 120, "tab", "list"), "at most 107"),
        (("tab",), "usage:"),
    ],
)
async def test_usage(directory: Path, arguments: tuple[str, ...], message: str) -> None:
    """What cannot be used as it is ends with code 2."""
    ended = await tabmux(directory, *arguments)
    assert (ended.code, ended.out, message in ended.err, "Traceback" in ended.err) == (2, "", True, False)


async def test_tab_new(server: ScriptedServer, directory: Path) -> None:
    """`tab new` passes on its options, and prints the tab and what has to be said of the way there."""
    navigation = Navigation(outcome=Navigation.OUTCOME_LOADING)
    server.script("CreateTab", [CreateTabResponse(tab=TAB, navigation=navigation)])
    options = ("https://example.test/", "--group", "night", "--label", "a=b=c", "--pin", "--activate", "--until", "dom")
    shown = await tabmux(directory, "tab", "new", *options)
    (request,) = server.requests("CreateTab")
    assert (shown.code, shown.err) == (0, "The page is still loading.\n")
    assert shown.out.splitlines()[1].split() == ["k3v9x2m7qd", "READY", "A␛[2Jb"]
    assert request == CreateTabRequest(
        uri="https://example.test/",
        group="night",
        labels={"a": "b=c"},
        pinned=True,
        activate=True,
        until=LOAD_MILESTONE_DOM_CONTENT_LOADED,
        request_id=request.request_id,
    )
    line = json.loads((await tabmux(directory, "tab", "new", "--json")).out)
    assert (line["tab"]["name"], line["tab"]["state"], line["navigation"]["outcome"]) == (
        TAB.name,
        "STATE_READY",
        "OUTCOME_LOADING",
    )


async def test_tab_list(server: ScriptedServer, directory: Path) -> None:
    """`tab list` prints all pages as one table, or a JSON object a line with times as RFC 3339."""
    dated = Tab(name=OTHER.name, create_time=Timestamp(seconds=1_700_000_000))
    foreign = Tab(origin=Tab.ORIGIN_FOREIGN, target_id="F00")
    pages = [[ListTabsResponse(tabs=[TAB, dated], next_page_token="2")], [ListTabsResponse(tabs=[foreign])]]
    server.script("ListTabs", *pages)
    shown = await tabmux(directory, "tab", "list", "--foreign", "--all", "--group", "night")
    assert [line.split()[:2] for line in shown.out.splitlines()] == [
        ["ID", "STATE"],
        ["k3v9x2m7qd", "READY"],
        ["k4aaaaaaaa", "UNSPECIFIED"],
        ["target", "F00"],
    ]
    request = server.requests("ListTabs")[0]
    assert (len(request.states), len(request.origins), list(request.groups)) == (6, 4, ["night"])
    server.script("ListTabs", *pages)
    lines = [json.loads(line) for line in (await tabmux(directory, "--json", "tab", "list")).out.splitlines()]
    assert [line["name"] for line in lines] == [TAB.name, OTHER.name, ""]
    assert (lines[0]["title"], lines[0]["pinned"], lines[1]["createTime"]) == (
        "A\x1b[2Jb",
        False,
        "2023-11-14T22:13:20Z",
    )


async def test_no_tabs(server: ScriptedServer, directory: Path) -> None:
    """No tabs are no error; the list is empty."""
    server.script("ListTabs", [ListTabsResponse()])
    assert await tabmux(directory, "tab", "list") == Ended(0, "", "No tabs.\n")
    assert await tabmux(directory, "tab", "list", "--json") == Ended(0, "", "")


async def test_tab_close(server: ScriptedServer, directory: Path) -> None:
    """One tab that is refused does not keep the others open; the command ends with code 1 and says why."""
    server.script("ListTabs", [ListTabsResponse(tabs=[TAB, OTHER])])
    pinned = Refuse(grpc.StatusCode.FAILED_PRECONDITION, "TAB_PINNED", {"tab": TAB.name}, message="pinned")
    server.script("CloseTab", [pinned], [CloseTabResponse(tab=OTHER)])
    ended = await tabmux(directory, "tab", "close", "k3", "k4", "--force")
    assert (ended.code, ended.out) == (1, f"closed {OTHER.name}\n")
    assert ended.err.splitlines() == [
        f"tabmux: TAB_PINNED: pinned [tab={TAB.name}]",
        "  done: nothing was done",
        "  next: close it with --force",
    ]
    assert [(request.name, request.force) for request in server.requests("CloseTab")] == [
        (TAB.name, True),
        (OTHER.name, True),
    ]


async def test_ambiguous_tab(server: ScriptedServer, directory: Path) -> None:
    """A beginning that several tabs have is refused with all of them, code 2, and nothing is done. Scenario CLI-09."""
    server.script("ListTabs", [ListTabsResponse(tabs=[TAB, OTHER])])
    ended = await tabmux(directory, "tab", "switch", "k")
    assert (ended.code, TAB.name in ended.err, OTHER.name in ended.err) == (2, True, True)
    assert server.requests("ActivateTab") == []


async def test_tab_switch(server: ScriptedServer, directory: Path) -> None:
    """`tab switch` says whether the tab was seen in front."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    server.script(
        "ActivateTab", [ActivateTabResponse(tab=Tab(name=TAB.name, front=True))], [ActivateTabResponse(tab=TAB)]
    )
    seen = await tabmux(directory, "tab", "switch", "k3v9x2m7qd")
    unseen = await tabmux(directory, "tab", "switch", "k3v9x2m7qd")
    assert (seen.out, unseen.out) == (
        f"in front: {TAB.name}\n",
        f"brought forward, but not seen in front: {TAB.name}\n",
    )


async def test_tab_eval(server: ScriptedServer, directory: Path) -> None:
    """`tab eval` prints the value as JSON that steers no terminal, nothing for `undefined`; - is standard input."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    server.script(
        "EvaluateScript",
        [EvaluateScriptResponse(result_json='{"a":"é\x9b\u202e\U000e0001"}', tab=TAB)],
        [EvaluateScriptResponse(tab=TAB)],
        [Refuse(grpc.StatusCode.FAILED_PRECONDITION, "SCRIPT_FAILED", {"page_touched": "yes", "retry": "never"})],
    )
    shown = await tabmux(directory, "tab", "eval", "k3v9x2m7qd", "a")
    silent = await tabmux(directory, "tab", "eval", "k3v9x2m7qd", "-", "--await", text="b\nc")
    failed = await tabmux(directory, "tab", "eval", "k3v9x2m7qd", "d")
    assert (shown.out, silent.out, failed.out) == ('{"a":"é\\u009b\\u202e\\udb40\\udc01"}\n', "", "")
    assert (shown.code, silent.code, failed.code == 0) == (0, 0, False)
    assert server.requests("EvaluateScript") == [
        EvaluateScriptRequest(name=TAB.name, script="a"),
        EvaluateScriptRequest(name=TAB.name, script="b\nc", await_promise=True),
        EvaluateScriptRequest(name=TAB.name, script="d"),
    ]


async def test_tab_watch(server: ScriptedServer, directory: Path) -> None:
    """`tab watch` prints events as they come, from a revision; interrupted it ends with 130 and tells how to go on."""
    event = Event(revision=9, kind=EVENT_KIND_CREATED, cause=CHANGE_CAUSE_CLIENT, tab=TAB)
    at = WatchProgress(history_id="h1", revision=9)
    server.script("WatchTabs", [WatchTabsResponse(events=[event], progress=at), asyncio.Event()])
    async with started(directory, "tab", "watch", "--since", "8", "--json") as process, asyncio.timeout(25):
        assert process.stdout is not None
        line = json.loads(await process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
    assert (line["revision"], line["kind"], line["tab"]["name"]) == ("9", "EVENT_KIND_CREATED", TAB.name)
    assert (process.returncode, err.decode()) == (130, "To go on from here: tabmux tab watch --since h1:9\n")
    resume = WatchStart(resume=WatchProgress(history_id="h1", revision=8))
    assert server.requests("WatchTabs") == [WatchTabsRequest(start=resume)]


async def test_ai_watch_changes(server: ScriptedServer, directory: Path) -> None:
    """Piped, `ai watch` prints each change as JSON, and a watch that cannot go on ends with code 1."""
    event = Event(revision=9, kind=EVENT_KIND_CREATED, turn=Turn(name=TURN, state=Turn.STATE_BLOCKED))
    at = WatchProgress(history_id="h1", revision=9)
    compacted = Refuse(grpc.StatusCode.OUT_OF_RANGE, "REVISION_COMPACTED", message="gone")
    server.script("WatchSessions", [WatchSessionsResponse(events=[event], progress=at), compacted])
    ended = await tabmux(directory, "ai", "watch")
    told = json.loads(ended.out)
    assert (ended.code, told["revision"], told["kind"], told["turn"]["name"]) == (1, "9", "EVENT_KIND_CREATED", TURN)
    assert ended.err.startswith("tabmux: REVISION_COMPACTED: gone\n")


async def test_query_piped(server: ScriptedServer, directory: Path) -> None:
    """Without a terminal the answer is printed once, exactly, when it is whole; the prompt can come by a pipe."""
    conversation(server)
    server.script("StreamAnswer", [piece(0, "Hal", RUNNING), piece(0, "Hé\x1bllo"), piece(7, "", DONE, "Hé\x1bllo")])
    asked = ["-", "--timeout", "2m", "--key", "job-7", "--model", "extra-high"]
    ended = await tabmux(directory, "ai", "query", "chatgpt", *asked, text="was?\n")
    assert ended == Ended(0, "Hé\x1bllo\n", "")
    (request,) = server.requests("SendPrompt")
    assert (request.prompt.text, request.answer_timeout.seconds, request.request_id) == ("was?\n", 120, "job-7")
    assert request.model == "extra-high"
    assert server.requests("CreateSession")[0].session_id == "job-7"


async def test_query_json(server: ScriptedServer, directory: Path) -> None:
    """With --json the turn is one line, with its answer."""
    conversation(server)
    server.script("StreamAnswer", [piece(0, "a\nb", RUNNING), piece(3, "", DONE, "a\nb")])
    ended = await tabmux(directory, "ai", "query", "chatgpt", "hi", "--json", "--session", "s")
    (line,) = ended.out.splitlines()
    turn = json.loads(line)
    assert (ended.code, turn["name"], turn["state"], turn["answerMarkdown"]) == (0, TURN, "STATE_SUCCEEDED", "a\nb")


async def test_query_failed(server: ScriptedServer, directory: Path) -> None:
    """A turn that failed ends with code 4; the answer there was is printed, and what happened on standard error."""
    conversation(server)
    failed = Turn(
        name=TURN,
        state=Turn.STATE_FAILED,
        submit_time=Timestamp(seconds=1),
        error=Failure(reason="ANSWER_STALLED", message="quiet for too long", metadata={"page_touched": "yes"}),
    )
    server.script("StreamAnswer", [piece(0, "half", RUNNING), piece(4, "", failed, "half")])
    ended = await tabmux(directory, "ai", "query", "chatgpt", "hi")
    assert (ended.code, ended.out) == (4, "half\n")
    assert ended.err.splitlines() == [
        "tabmux: ANSWER_STALLED: quiet for too long [page_touched=yes]",
        "  done: the prompt was submitted; what there is of the answer is kept",
        "  next: look at the conversation: what there is may be all or a part",
    ]


async def test_query_new(server: ScriptedServer, directory: Path) -> None:
    """With --new a conversation that exists is refused, and no prompt is sent."""
    conversation(server, created=False)
    ended = await tabmux(directory, "ai", "query", "chatgpt", "hi", "--session", "s", "--new")
    assert (ended.code, ended.out, server.requests("SendPrompt")) == (1, "", [])
    assert ended.err.startswith("tabmux: the session s exists; the prompt was not sent\n  done: nothing was done\n")


@pytest.mark.parametrize(
    ("options", "policy"),
    [
        ((), None),
        (("--pooled",), "pooled_tab"),
        (("--reuse-tab",), "front_tab"),
        (("--tab", TAB.name), "tab"),
    ],
)
async def test_send(server: ScriptedServer, directory: Path, options: tuple[str, ...], policy: str | None) -> None:
    """`ai send` prints the turn and does not wait for it; the conversation begins in the tab that was asked for."""
    conversation(server)
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    ended = await tabmux(directory, "ai", "send", "chatgpt", "hi", *options)
    assert ended == Ended(0, f"{TURN}\n", "")
    (request,) = server.requests("CreateSession")
    assert (request.WhichOneof("tab_policy"), request.tab) == (policy, TAB.name if policy == "tab" else "")


async def test_recover(server: ScriptedServer, directory: Path) -> None:
    """`ai recover` tells how the session came back."""
    strategy = RecoverSessionResponse.STRATEGY_TAB_RECOVERED
    server.script("RecoverSession", [RecoverSessionResponse(session=Session(name="sessions/s"), strategy=strategy)])
    assert await tabmux(directory, "ai", "recover", "s") == Ended(0, "its tab was recovered\n", "")
    line = await tabmux(directory, "ai", "recover", "sessions/s", "--json")
    told = json.loads(line.out)
    assert (told["session"]["name"], told["strategy"]) == ("sessions/s", "STRATEGY_TAB_RECOVERED")
    assert {request.name for request in server.requests("RecoverSession")} == {"sessions/s"}


async def test_query_interrupted(server: ScriptedServer, directory: Path) -> None:
    """Ctrl-C ends the wait, not the turn, and tells how to pick it up. SUB-02."""
    conversation(server)
    watched = asyncio.Event()

    def script(_request: object) -> list[StreamAnswerResponse | asyncio.Event]:
        watched.set()
        return [piece(0, "half", RUNNING), asyncio.Event()]

    server.script("StreamAnswer", script)
    async with started(directory, "ai", "query", "chatgpt", "hi") as process, asyncio.timeout(25):
        await watched.wait()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out) == (130, b"")
    assert err.decode() == f"\nThe turn goes on. To pick it up again: tabmux ai watch {TURN}\n"
    assert server.requests("CancelTurn") == []


@pytest.mark.parametrize("given", [TURN, "s"])
async def test_ai_watch_turn(server: ScriptedServer, directory: Path, given: str) -> None:
    """`ai watch` with a turn, or with a session for its last one, prints that answer."""
    server.script("GetSession", [GetSessionResponse(session=Session(name="sessions/s", last_turn=TURN))])
    server.script("StreamAnswer", [piece(0, "whole", DONE, "whole")])
    assert await tabmux(directory, "ai", "watch", given) == Ended(0, "whole\n", "")
    assert server.requests("StreamAnswer") == [StreamAnswerRequest(name=TURN)]


async def on_a_terminal(directory: Path, *arguments: str, until: str) -> tuple[str, str]:
    """What a command shows on a terminal up to `until`, and what it says once it is interrupted then."""
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    loop = asyncio.get_running_loop()
    shown, ready = "", asyncio.Event()
    loop.add_reader(ours, ready.set)
    try:
        async with started(directory, *arguments, stdout=theirs) as process, asyncio.timeout(25):
            while until not in shown:
                await ready.wait()
                ready.clear()
                with contextlib.suppress(BlockingIOError):
                    shown += os.read(ours, 65_536).decode()
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
    finally:
        loop.remove_reader(ours)
        os.close(ours)
        os.close(theirs)
    return shown.replace("\r\n", "\n"), err.decode()


async def test_tab_watch_on_a_terminal(server: ScriptedServer, directory: Path) -> None:
    """On a terminal `tab watch` is a table of the tabs, drawn anew in its place after each change."""
    at = WatchProgress(history_id="h1", revision=7)
    then = WatchProgress(history_id="h1", revision=9)
    server.script(
        "WatchTabs",
        [
            WatchTabsResponse(events=[Event(revision=1, kind=EVENT_KIND_EXISTING, tab=TAB)], progress=at),
            WatchTabsResponse(events=[Event(revision=9, kind=EVENT_KIND_CREATED, tab=OTHER)], progress=then),
            asyncio.Event(),
        ],
    )
    shown, err = await on_a_terminal(directory, "tab", "watch", until="k4aaaaaaaa")
    *_, last = shown.split("\x1b[J")
    assert [line.split()[:2] for line in last.splitlines()] == [
        ["ID", "STATE"],
        ["k3v9x2m7qd", "READY"],
        ["k4aaaaaaaa", "READY"],
    ]
    assert err == "To go on from here: tabmux tab watch --since h1:9\n"
    assert server.requests("WatchTabs") == [WatchTabsRequest(start=WatchStart(snapshot=WatchSnapshot()))]


async def test_ai_watch_on_a_terminal(server: ScriptedServer, directory: Path) -> None:
    """On a terminal `ai watch` is a table of the sessions with the state of their open turns."""
    session = Session(name="sessions/s", provider="grok", owner="local/a", open_turn=TURN, title="T")
    events = [
        Event(revision=1, kind=EVENT_KIND_EXISTING, session=session),
        Event(revision=2, kind=EVENT_KIND_EXISTING, turn=RUNNING),
    ]
    at = WatchProgress(history_id="h1", revision=7)
    server.script("WatchSessions", [WatchSessionsResponse(events=events, progress=at), asyncio.Event()])
    shown, err = await on_a_terminal(directory, "ai", "watch", until="T\r\n")
    assert [line.split() for line in shown.splitlines()] == [
        ["ID", "PROVIDER", "OWNER", "TURN", "TAB", "TITLE"],
        ["s", "grok", "local/a", "RUNNING", "T"],
    ]
    assert err == "To go on from here: tabmux ai watch --since h1:7\n"


def test_screen() -> None:
    """A table that is too long for the terminal tells how many rows are not shown."""
    found = screen(("A",), [(str(number),) for number in range(10)], columns=80, height=6)
    assert found == ["A", "0", "1", "2", "… and 7 more"]


async def test_query_on_a_terminal(server: ScriptedServer, directory: Path) -> None:
    """On a terminal the answer grows, harmless; what the page changed is printed again under a mark."""
    conversation(server)
    blocked = Turn(
        name=TURN,
        state=Turn.STATE_BLOCKED,
        error=Failure(reason="PROVIDER_SIGN_IN_REQUIRED", message="sign in"),
    )
    server.script(
        "StreamAnswer",
        [
            piece(0, "", blocked),
            piece(0, "one\ntw", RUNNING),
            piece(6, "o\x1b"),
            piece(4, "2"),
            piece(5, "", DONE, "one\n2"),
        ],
    )
    ours, theirs = pty.openpty()
    try:
        async with started(directory, "ai", "query", "grok", "hi", stdout=theirs) as process, asyncio.timeout(25):
            _, err = await process.communicate()
        os.set_blocking(ours, False)
        shown = os.read(ours, 65_536).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)
    assert (process.returncode, err.decode()) == (
        0,
        "waiting for a person: PROVIDER_SIGN_IN_REQUIRED: sign in\n",
    )
    assert shown == "one\ntwo␛\n--- the page changed its answer, from line 2 on it is: ---\n2\n"


def test_no_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A bug of the command itself is one line, and code 1."""
    monkeypatch.setattr("tabmux.cli.run.find_place", lambda *_arguments: 1 / 0)
    assert main(["server", "info"]) == 1
    assert capsys.readouterr().err == "tabmux: an error of the command itself: ZeroDivisionError: division by zero\n"


async def test_not_built_yet(server: ScriptedServer, directory: Path) -> None:
    """A method that the server does not have ends with code 1 and names it."""
    assert server.requests("CreateTab") == []
    ended = await tabmux(directory, "tab", "new")
    assert (ended.code, ended.err.splitlines()) == (
        1,
        [
            "tabmux: UNIMPLEMENTED: CreateTab is not built yet",
            "  done: nothing was done",
            "  next: do without: this server does not have it yet",
        ],
    )


async def test_closed_pipe(server: ScriptedServer, directory: Path) -> None:
    """A reader that goes away ends the command without a traceback."""
    many = [Tab(name=f"browsers/main/tabs/{number}", title="x" * 200) for number in range(2000)]
    server.script("ListTabs", [ListTabsResponse(tabs=many)])
    readable, writable = os.pipe()
    os.close(readable)
    try:
        async with started(directory, "tab", "list", "--json", stdout=writable) as process, asyncio.timeout(25):
            _, err = await process.communicate()
    finally:
        os.close(writable)
    assert (process.returncode, err) == (1, b"")
