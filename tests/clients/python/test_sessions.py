"""Sessions as a whole: what is asked of the server, and what a program gets."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.imports import Source, default_file, read_whole
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.web_ai_service_pb2 import (
    GetSessionRequest,
    GetSessionResponse,
    ImportInfo,
    ImportSessionsRequest,
    ImportSessionsResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    ListTurnsRequest,
    ListTurnsResponse,
    RetireSessionRequest,
    RetireSessionResponse,
    UpdateSessionRequest,
    UpdateSessionResponse,
)

from tests.clients.python.scripted import Refuse, ScriptedServer, duration

NAME = "sessions/s"
SESSION = Session(name=NAME, state=Session.STATE_ACTIVE)
RETIRED = Session(name=NAME, state=Session.STATE_RETIRED)
EVERY = (Session.STATE_ACTIVE, Session.STATE_RECOVERING, Session.STATE_RETIRED)
LONG_AGO = Timestamp(seconds=1_700_000_000)


async def test_sessions(server: ScriptedServer, client: Client) -> None:
    """A list goes over all pages, and leaves retired sessions out unless they are asked for."""
    other = Session(name="sessions/t")
    server.script(
        "ListSessions",
        [ListSessionsResponse(sessions=[SESSION], next_page_token="2")],
        [ListSessionsResponse(sessions=[other])],
    )

    listed = [each async for each in client.sessions(providers=["p"], labels={"a": "b"})]
    await anext(client.sessions(retired=True))

    plain = ListSessionsRequest(providers=["p"], labels={"a": "b"})
    second = ListSessionsRequest(providers=["p"], labels={"a": "b"}, page_token="2")
    assert (listed, server.requests("ListSessions")) == (
        [SESSION, other],
        [plain, second, ListSessionsRequest(states=EVERY)],
    )


async def test_turns(server: ScriptedServer, client: Client) -> None:
    """The turns of a session come over all pages."""
    one, two = Turn(name=f"{NAME}/turns/1"), Turn(name=f"{NAME}/turns/2")
    server.script("ListTurns", [ListTurnsResponse(turns=[one], next_page_token="2")], [ListTurnsResponse(turns=[two])])

    assert [turn async for turn in client.session("s").turns()] == [one, two]
    assert server.requests("ListTurns") == [
        ListTurnsRequest(parent=NAME),
        ListTurnsRequest(parent=NAME, page_token="2"),
    ]


async def test_update_and_retire(server: ScriptedServer, client: Client) -> None:
    """A handle changes and retires its session."""
    server.script("UpdateSession", [UpdateSessionResponse(session=SESSION)])
    server.script("RetireSession", [RetireSessionResponse(session=RETIRED)])
    session = client.session(NAME)

    assert await session.update(labels={"a": ""}, ttl=timedelta(days=1), expected_revision=4) == SESSION
    assert await session.label({"a": "b"}) == SESSION
    assert [await session.retire(), await session.retire("keep")] == [RETIRED, RETIRED]
    assert server.requests("UpdateSession") == [
        UpdateSessionRequest(name=NAME, labels={"a": ""}, ttl=duration(timedelta(days=1)), expected_revision=4),
        UpdateSessionRequest(name=NAME, labels={"a": "b"}),
    ]
    assert server.requests("RetireSession") == [
        RetireSessionRequest(name=NAME),
        RetireSessionRequest(name=NAME, tab_disposition=RetireSessionRequest.TAB_DISPOSITION_KEEP),
    ]


def _unused(name: str, *, owner: str = "local", open_turn: str = "", last_active_time: Timestamp = LONG_AGO) -> Session:
    return Session(
        name=name, owner=owner, open_turn=open_turn, last_active_time=last_active_time, state=Session.STATE_ACTIVE
    )


async def test_prune(server: ScriptedServer, client: Client) -> None:
    """Pruned are the caller's own sessions that nobody used for so long, each as it stands right before."""
    now = Timestamp()
    now.FromDatetime(datetime.now(UTC))
    busy = _unused("sessions/busy")
    listed = [
        _unused("sessions/old"),
        _unused("sessions/another", owner="local/a"),
        _unused("sessions/open", open_turn="sessions/open/turns/t"),
        _unused("sessions/new", last_active_time=now),
        busy,
    ]
    server.script("ListSessions", [ListSessionsResponse(sessions=listed)])
    server.script(
        "GetSession",
        [GetSessionResponse(session=listed[0])],
        [GetSessionResponse(session=_unused(busy.name, open_turn=f"{busy.name}/turns/t"))],
    )
    server.script("RetireSession", [RetireSessionResponse(session=RETIRED)])

    dry = [each.name async for each in client.prune_sessions(timedelta(days=14), dry_run=True)]
    assert (dry, server.requests("RetireSession")) == (["sessions/old", "sessions/busy"], [])
    assert [each async for each in client.prune_sessions(timedelta(days=14))] == [RETIRED]
    assert server.requests("RetireSession") == [RetireSessionRequest(name="sessions/old")]
    assert server.requests("GetSession") == [GetSessionRequest(name=name) for name in dry]


@pytest.mark.parametrize(
    ("source", "environment", "expected"),
    [
        ("agbrowse", {"HOME": "/h"}, "/h/.browser-agent/web-ai-sessions.json"),
        ("agbrowse", {"HOME": "/h", "BROWSER_AGENT_HOME": "~/x"}, "~/x/web-ai-sessions.json"),
        ("cli-jaw", {"HOME": "/h"}, "/h/.cli-jaw/web-ai-sessions.json"),
        ("cli-jaw", {"HOME": "/h", "CLI_JAW_HOME": "~/x"}, "/h/x/web-ai-sessions.json"),
        ("cli-jaw", {"HOME": "/h", "CLI_JAW_HOME": "/x"}, "/x/web-ai-sessions.json"),
    ],
)
def test_default_file(source: Source, environment: dict[str, str], expected: str) -> None:
    """A tool's file is where its variable says; only that of cli-jaw is expanded."""
    assert default_file(source, environment) == Path(expected)


async def test_import(server: ScriptedServer, client: Client, directory: Path) -> None:
    """The file goes to the server in chunks, behind what is asked; nothing else does."""
    report = ImportSessionsResponse(imported_count=3)
    server.script("ImportSessions", [report])
    content = json.dumps({"sessions": ["x" * 300_000]}).encode()
    file = directory / "store.json"
    file.write_bytes(content)

    given = await client.import_sessions("cli-jaw", file, browser="work", ttl=timedelta(days=7), dry_run=True)

    info = ImportInfo(
        source=ImportInfo.SOURCE_CLI_JAW, browser="browsers/work", ttl=duration(timedelta(days=7)), dry_run=True
    )
    assert (given, file.read_bytes()) == (report, content)
    assert server.requests("ImportSessions") == [
        ImportSessionsRequest(info=info),
        ImportSessionsRequest(chunk=content[: 256 * 1024]),
        ImportSessionsRequest(chunk=content[256 * 1024 :]),
    ]


async def test_import_of_nothing(server: ScriptedServer, client: Client, directory: Path) -> None:
    """A tool that has no file has nothing to import; a file that was named has to be there."""
    empty = await client.import_sessions("agbrowse", environment={"HOME": str(directory)})
    with pytest.raises(FileNotFoundError):
        await client.import_sessions("agbrowse", directory / "none.json")

    assert (empty, server.requests("ImportSessions")) == (ImportSessionsResponse(), [])


async def test_import_refused(server: ScriptedServer, client: Client, directory: Path) -> None:
    """What the server refuses is told as any refusal."""
    told = {"field": "chunk", "cause": "wrong-source"}
    server.script("ImportSessions", [Refuse(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", told)])
    (directory / "store.json").write_text("{}")

    with pytest.raises(TabmuxError) as raised:
        await client.import_sessions("agbrowse", directory / "store.json")

    assert (raised.value.reason, raised.value.metadata) == ("INVALID_FIELD", told)


@pytest.mark.parametrize(("whole_after", "reads"), [(0, 1), (2, 3), (9, 4)])
async def test_half_a_file(directory: Path, whole_after: int, reads: int) -> None:
    """A file that its tool is writing is read again, three times at most, 200 ms apart; then it is sent as it is."""
    file = directory / "store.json"
    file.write_text('{"sessions"' if whole_after else "{}")
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == whole_after:
            await asyncio.to_thread(file.write_text, "{}")

    content = await read_whole(file, sleep=sleep)

    assert (pauses, content) == ([0.2] * (reads - 1), b"{}" if whole_after < 9 else b'{"sessions"')
