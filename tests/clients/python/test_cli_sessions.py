"""Commands about sessions, run in this process against a scripted server."""

import argparse
import json
from pathlib import Path

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tabmux.cli.arguments import parse
from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.output import Output
from tabmux.cli.run import COMMANDS
from tabmux.client import Client
from tabmux.v1.error_reason_pb2 import Failure
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.web_ai_service_pb2 import (
    GetSessionResponse,
    ImportSessionsResponse,
    ListSessionsRequest,
    ListSessionsResponse,
    ListTurnsResponse,
    RetireSessionRequest,
    RetireSessionResponse,
    SkippedRecord,
    UpdateSessionRequest,
    UpdateSessionResponse,
)

from tests.clients.python.scripted import Refuse, ScriptedServer

EVERY = (Session.STATE_ACTIVE, Session.STATE_RECOVERING, Session.STATE_RETIRED)
LONG_AGO = Timestamp(seconds=1_700_000_000)
SESSION = Session(
    name="sessions/s", state=Session.STATE_ACTIVE, provider="p", owner="local", title="A\x1b[2Jb",
    last_active_time=LONG_AGO, create_time=LONG_AGO, labels={"a": "b"},
)  # fmt: skip
OTHER = Session(name="sessions/t", state=Session.STATE_ACTIVE, owner="local", last_active_time=LONG_AGO)


def said(line: str) -> argparse.Namespace:
    """The values of a command line."""
    return parse(["ai", "sessions", *line.split()])


async def run(client: Client, line: str, *, terminal: bool = True) -> Exit:
    """Run a command as on a terminal, or piped."""
    arguments = said(line)
    output = Output(as_json=arguments.json)
    output.terminal = terminal
    return await COMMANDS[arguments.command](client, arguments, output)


async def test_list(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal shows a table, harmless; piped, each session is a JSON line."""
    server.script("ListSessions", [ListSessionsResponse(sessions=[SESSION, OTHER])])

    assert await run(client, "list --all --provider p --label a=b") is Exit.OK
    shown = capsys.readouterr().out.splitlines()
    assert await run(client, "list", terminal=False) is Exit.OK
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [line.split()[:3] for line in shown] == [
        ["ID", "STATE", "PROVIDER"],
        ["s", "ACTIVE", "p"],
        ["t", "ACTIVE", "local"],
    ]
    assert "A␛[2Jb" in shown[1]
    assert [line["name"] for line in lines] == ["sessions/s", "sessions/t"]
    assert server.requests("ListSessions") == [
        ListSessionsRequest(states=EVERY, providers=["p"], labels={"a": "b"}),
        ListSessionsRequest(),
    ]


async def test_none(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """No sessions are no error."""
    server.script("ListSessions", [ListSessionsResponse()])

    assert [await run(client, "list"), await run(client, "prune --older-than 14d")] == [Exit.OK, Exit.OK]
    assert capsys.readouterr() == ("", "No sessions.\nNo session of yours was unused for so long.\n")


async def test_show_and_turns(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """One session and its turns are shown; what is empty is left out."""
    failed = Turn(
        name="sessions/s/turns/t", state=Turn.STATE_FAILED, error=Failure(reason="TAB_GONE"), create_time=LONG_AGO
    )
    server.script("GetSession", [GetSessionResponse(session=SESSION)])
    server.script("ListTurns", [ListTurnsResponse(turns=[failed])])

    assert [await run(client, "show s"), await run(client, "turns sessions/s")] == [Exit.OK, Exit.OK]
    words = [line.split() for line in capsys.readouterr().out.splitlines()]
    first = [line[0] for line in words]
    assert first[:-2] == ["WHAT", "name", "state", "provider", "owner", "title", "labels", "created", "last"]
    assert first[-2:] == ["TURN", "sessions/s/turns/t"]
    assert (words[6], words[-1][1], words[-1][-2:]) == (["labels", "a=b"], "FAILED", ["0", "TAB_GONE"])


async def test_label(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels are set, and removed by an empty value."""
    server.script("UpdateSession", [UpdateSessionResponse(session=SESSION)])

    assert await run(client, "label s a=b c=", terminal=False) is Exit.OK
    assert json.loads(capsys.readouterr().out)["labels"] == {"a": "b"}
    assert server.requests("UpdateSession") == [UpdateSessionRequest(name="sessions/s", labels={"a": "b", "c": ""})]


async def test_retire(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """One session that is refused does not keep the others."""
    refused = Refuse(grpc.StatusCode.PERMISSION_DENIED, "NOT_OWNER")
    server.script("RetireSession", [refused], [RetireSessionResponse(session=OTHER)])

    assert await run(client, "retire s t --tab close") is Exit.REFUSED
    assert capsys.readouterr().out == "retired sessions/t\n"
    assert server.requests("RetireSession") == [
        RetireSessionRequest(name=name, tab_disposition=RetireSessionRequest.TAB_DISPOSITION_CLOSE)
        for name in ("sessions/s", "sessions/t")
    ]


async def test_prune(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run only says which sessions would be retired."""
    server.script("ListSessions", [ListSessionsResponse(sessions=[SESSION])])
    server.script("GetSession", [GetSessionResponse(session=SESSION)])
    server.script("RetireSession", [RetireSessionResponse(session=SESSION)])

    await run(client, "prune --older-than 14d --dry-run")
    assert (capsys.readouterr().out, server.requests("RetireSession")) == ("would retire sessions/s\n", [])
    await run(client, "prune --older-than 14d")
    assert capsys.readouterr().out == "retired sessions/s\n"


@pytest.mark.parametrize(
    ("causes", "code"),
    [
        ([], Exit.OK),
        ([SkippedRecord.CAUSE_STILL_LIVE], Exit.OK),
        ([SkippedRecord.CAUSE_STILL_LIVE, SkippedRecord.CAUSE_MALFORMED], Exit.REFUSED),
    ],
)
async def test_import(  # noqa: PLR0917 - fixtures
    server: ScriptedServer,
    client: Client,
    directory: Path,
    capsys: pytest.CaptureFixture[str],
    causes: list[SkippedRecord.Cause.ValueType],
    code: Exit,
) -> None:
    """An import tells its counts and what was left out, and ends with 0 if all of that is still live."""
    (directory / "f.json").write_text("{}")
    skipped = [SkippedRecord(index=index, import_id="id", cause=cause) for index, cause in enumerate(causes)]
    report = ImportSessionsResponse(imported_count=2, unchanged_count=1, skipped_count=len(skipped), skipped=skipped)
    server.script("ImportSessions", [report])

    assert await run(client, f"import {directory}/f.json --source agbrowse --dry-run") is code
    shown = capsys.readouterr()
    assert shown.out == f"2 would be imported, 1 unchanged, {len(skipped)} skipped\n"
    assert shown.err.splitlines() == [
        f"skipped: record {index} id {'still-live' if index == 0 else 'malformed'}" for index in range(len(causes))
    ]
    assert await run(client, f"import {directory}/f.json --from agbrowse --json") is code
    assert json.loads(capsys.readouterr().out)["importedCount"] == 2


async def test_import_without_file(client: Client, directory: Path) -> None:
    """A file that is not there is told in a sentence, with what was done."""
    with pytest.raises(RefusedError, match="nothing was imported"):
        await run(client, f"import {directory}/none.json --from cli-jaw")


@pytest.mark.parametrize(
    "line", ["import f", "import f --from other", "prune", "prune --older-than x", "retire", "retire s --tab x"]
)
def test_usage(line: str) -> None:
    """What lacks a word, or has a wrong one, is not run."""
    with pytest.raises(SystemExit):
        said(line)
