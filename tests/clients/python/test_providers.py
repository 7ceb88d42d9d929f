"""Providers: listed over all pages, and their files checked without a server."""

import json
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from tabmux.cli.arguments import parse
from tabmux.cli.exits import Exit
from tabmux.cli.output import Output
from tabmux.cli.run import COMMANDS
from tabmux.client import Client
from tabmux.v1.provider_pb2 import (
    PROVIDER_CAPABILITY_CANCELLATION,
    PROVIDER_CAPABILITY_PARTIAL_ANSWERS,
    Provider,
)
from tabmux.v1.warning_pb2 import Warning as WarningMessage
from tabmux.v1.web_ai_service_pb2 import ListProvidersRequest, ListProvidersResponse

from tests.clients.python.scripted import ScriptedServer

ONE = Provider(
    id="a", display_name="A\x1b[2J", start_uri="https://a.example/", descriptor_version="2",
    capabilities=[PROVIDER_CAPABILITY_CANCELLATION, PROVIDER_CAPABILITY_PARTIAL_ANSWERS],
    models=["fast", "deep"],
    warnings=[WarningMessage(code="descriptor-broken", message="a.toml:1: x\na.toml:2: y")],
)  # fmt: skip
TWO = Provider(id="b", display_name="B")


async def run(client: Client, *, terminal: bool) -> Exit:
    """Run `ai providers list` as on a terminal, or piped."""
    arguments = parse(["ai", "providers", "list"])
    output = Output(as_json=False)
    output.terminal = terminal
    return await COMMANDS[arguments.command](client, arguments, output)


async def test_providers(server: ScriptedServer, client: Client) -> None:
    """A list goes over all pages."""
    server.script(
        "ListProviders",
        [ListProvidersResponse(providers=[ONE], next_page_token="2")],
        [ListProvidersResponse(providers=[TWO])],
    )
    assert [each async for each in client.providers()] == [ONE, TWO]
    assert server.requests("ListProviders") == [ListProvidersRequest(), ListProvidersRequest(page_token="2")]


async def test_list(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal shows a table, harmless, and what is wrong with files; piped, each provider is a JSON line."""
    server.script("ListProviders", [ListProvidersResponse(providers=[ONE, TWO])])

    assert await run(client, terminal=True) is Exit.OK
    shown = capsys.readouterr()
    assert await run(client, terminal=False) is Exit.OK
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert [re.split(r" {2,}", line.strip()) for line in shown.out.splitlines()] == [
        ["ID", "VERSION", "NAME", "START", "CAN", "MODELS"],
        ["a", "2", "A␛[2J", "https://a.example/", "cancellation partial-answers", "fast deep"],
        ["b", "B"],
    ]
    assert shown.err.splitlines() == [f"warning: descriptor-broken: {line}" for line in ("a.toml:1: x", "a.toml:2: y")]
    assert [line["id"] for line in lines] == ["a", "b"]


async def test_none(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """No providers are no error."""
    server.script("ListProviders", [ListProvidersResponse()])
    assert await run(client, terminal=True) is Exit.OK
    assert capsys.readouterr() == ("", "No providers.\n")


@pytest.mark.long
def test_lint(tmp_path: Path) -> None:
    """Files are checked where no server runs; the exit code tells whether all are good."""
    text = resources.files("tabmuxd.webai.providers").joinpath("playground-editor.toml").read_text("utf-8")
    (tmp_path / "good.toml").write_text(text.replace("{port}", "1"))
    (tmp_path / "-bad.toml").write_text("schema = 1\n[page")
    command = [sys.executable, "-m", "tabmux.cli", "--address", "unix:///none", "ai", "providers", "lint"]
    files = ["good.toml", "./-bad.toml"]
    ended = subprocess.run([*command, *files], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr, ended.stdout.splitlines()) == (
        Exit.REFUSED,
        "",
        [
            "good.toml: good: playground-editor, version 1",
            "./-bad.toml:2: is no TOML: Expected ']' at the end of a table declaration",
        ],
    )
