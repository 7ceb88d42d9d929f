"""Commands that look at providers, and the one that waits for a sign-in, against a scripted server."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tabmux.cli import login_command
from tabmux.cli.arguments import parse
from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.output import Output
from tabmux.cli.run import COMMANDS
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.v1.provider_pb2 import Provider, ProviderLimit, ProviderStatus, SelectorFinding
from tabmux.v1.session_pb2 import Session
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import LOAD_MILESTONE_COMMITTED, CreateTabResponse, GetTabResponse
from tabmux.v1.warning_pb2 import Warning  # noqa: A004 - the contract's word
from tabmux.v1.web_ai_service_pb2 import (
    GetProviderStatusRequest,
    GetProviderStatusResponse,
    GetSessionResponse,
    ListProvidersResponse,
    ProbeProviderRequest,
    ProbeProviderResponse,
)

from tests.clients.python.scripted import Refuse, ScriptedServer

TAB = "browsers/main/tabs/k3v9x2m7qd"
RESET = Timestamp(seconds=1_700_000_000)
STATUS = ProviderStatus(
    provider="chatgpt", tab=TAB, generation=1, sign_in=ProviderStatus.SIGN_IN_SIGNED_IN,
    composer=ProviderStatus.COMPOSER_BLOCKED, interstitial=ProviderStatus.INTERSTITIAL_EMPTY_SHELL,
    limit=ProviderLimit(evidence="Limit\x1b[2J", reset_time=RESET), descriptor_version="7",
    warnings=[Warning(code="turn-open", message="A turn is open.")],
)  # fmt: skip


async def run(client: Client, line: str, *, terminal: bool = True) -> Exit:
    """Run a command as on a terminal, or piped."""
    arguments = parse(["ai", *line.split()])
    output = Output(as_json=arguments.json)
    output.terminal = terminal
    return await COMMANDS[arguments.command](client, arguments, output)


async def test_status(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal shows what is known, harmless; piped, the whole status is a JSON line."""
    server.script("GetTab", [GetTabResponse(tab=Tab(name=TAB))])
    server.script("GetProviderStatus", [GetProviderStatusResponse(status=STATUS)])

    assert await run(client, "status --tab k3v9x2m7qd") is Exit.OK
    until = datetime.fromtimestamp(RESET.seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    assert [line.split(None, 1) for line in capsys.readouterr().out.splitlines()] == [
        ["WHAT", "VALUE"],
        ["provider", "chatgpt"],
        ["tab", "k3v9x2m7qd"],
        ["ready", "no"],
        ["sign-in", "signed in"],
        ["composer", "blocked"],
        ["page", "empty shell"],
        ["limit", "Limit␛[2J"],
        ["until", until],
        ["descriptor", "7"],
        ["warning", "turn-open: A turn is open."],
    ]
    assert await run(client, "status --tab k3v9x2m7qd", terminal=False) is Exit.OK
    assert json.loads(capsys.readouterr().out)["interstitial"] == "INTERSTITIAL_EMPTY_SHELL"
    assert server.requests("GetProviderStatus") == [GetProviderStatusRequest(tab=TAB)] * 2


async def test_status_of_session(server: ScriptedServer, client: Client) -> None:
    """The tab of a session is looked at; one that has none now is refused, with what to do."""
    server.script("GetSession", [GetSessionResponse(session=Session(name="sessions/s", tab=TAB))])
    server.script("GetProviderStatus", [GetProviderStatusResponse(status=STATUS)])
    assert await run(client, "status s") is Exit.OK
    assert server.requests("GetProviderStatus") == [GetProviderStatusRequest(tab=TAB)]

    server.script("GetSession", [GetSessionResponse(session=Session(name="sessions/s"))])
    with pytest.raises(RefusedError, match="has no tab now"):
        await run(client, "status s")


@pytest.mark.parametrize("line", ["status", "status s --tab t", "providers probe p", "login", "login p --wait x"])
def test_usage(line: str) -> None:
    """What is meant has to be said, once."""
    with pytest.raises(SystemExit) as ended:
        parse(["ai", *line.split()])
    assert ended.value.code == Exit.USAGE


async def test_probe(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal shows a table; piped, each finding is a JSON line."""
    findings = [
        SelectorFinding(
            field="page.send", selector="button", text="Go", match_count=3, visible_count=2, taken_count=1,
            element="button#go",
        ),
        SelectorFinding(field="page.stop", selector="::", problem="no selector"),
    ]  # fmt: skip
    server.script("GetTab", [GetTabResponse(tab=Tab(name=TAB))])
    server.script("ProbeProvider", [ProbeProviderResponse(findings=findings)])

    assert await run(client, "providers probe chatgpt --tab k3v9x2m7qd") is Exit.OK
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["FIELD", "FOUND", "VISIBLE", "TAKEN", "SELECTOR", "ELEMENT"],
        ["page.send", "3", "2", "1", "button", "with", "'Go'", "button#go"],
        ["page.stop", "0", "0", "0", "::", "refused:", "no", "selector"],
    ]
    assert await run(client, "providers probe chatgpt --tab k3v9x2m7qd --json") is Exit.OK
    assert [json.loads(line)["field"] for line in capsys.readouterr().out.splitlines()] == ["page.send", "page.stop"]
    assert server.requests("ProbeProvider") == [ProbeProviderRequest(provider="chatgpt", tab=TAB)] * 2


def _shown(provider: str = "p", code: str = "", **fields: Any) -> list[GetProviderStatusResponse]:  # noqa: ANN401 - fields of the message
    warnings = [Warning(code=code)] if code else []
    return [GetProviderStatusResponse(status=ProviderStatus(provider=provider, tab=TAB, warnings=warnings, **fields))]


SIGNED_IN = _shown(sign_in=ProviderStatus.SIGN_IN_SIGNED_IN)
OPEN = "P is open in the tab k3v9x2m7qd, in front. Sign in there; Ctrl-C ends the waiting alone."


@pytest.fixture
def provided(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """A server with providers, of which two share a host, and no pause between looks."""
    monkeypatch.setattr(login_command, "_INTERVAL", 0)
    providers = [
        Provider(id="p", display_name="P", hosts=["p.example", "q.example"], start_uri="https://p.example/"),
        Provider(id="q", hosts=["q.example"]),
        Provider(id="r", hosts=["r.example"]),
    ]
    server.script("ListProviders", [ListProvidersResponse(providers=providers)])
    server.script("CreateTab", [CreateTabResponse(tab=Tab(name=TAB))])
    return server


async def test_login(provided: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """The start page is opened in front, and the command ends once the page shows that somebody is signed in."""
    provided.script(
        "GetProviderStatus",
        _shown(sign_in=ProviderStatus.SIGN_IN_ANONYMOUS),
        [Refuse(grpc.StatusCode.FAILED_PRECONDITION, "PROVIDER_NOT_SHOWN")],
        _shown("r", sign_in=ProviderStatus.SIGN_IN_SIGNED_IN),
        _shown(interstitial=ProviderStatus.INTERSTITIAL_CHALLENGE),
        _shown(interstitial=ProviderStatus.INTERSTITIAL_CHALLENGE),
        _shown("q", "signed-in-suspected"),
        SIGNED_IN,
    )

    assert await run(client, "login p") is Exit.OK

    told = capsys.readouterr()
    assert told.out == "signed in to P, in the tab k3v9x2m7qd\n"
    assert told.err.splitlines() == [
        OPEN,
        "The page asks for proof of a person; still waiting.",
        "The page seems to be signed in, by a mark that nobody has confirmed; still waiting.",
    ]
    (request,) = provided.requests("CreateTab")
    assert (request.uri, request.activate, request.until) == ("https://p.example/", True, LOAD_MILESTONE_COMMITTED)
    assert provided.requests("CloseTab") == []


async def test_login_json(provided: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Another provider at the same host stands for this one; with --json the status is printed."""
    provided.script("GetProviderStatus", _shown("q", sign_in=ProviderStatus.SIGN_IN_SIGNED_IN))
    assert await run(client, "login p --json") is Exit.OK
    assert json.loads(capsys.readouterr().out)["signIn"] == "SIGN_IN_SIGNED_IN"


@pytest.mark.parametrize(
    ("status", "note"),
    [
        (_shown(), "Nobody was seen to sign in to P in time. The tab stays open: tabmux ai status --tab k3v9x2m7qd"),
        (
            _shown(code="sign-in-unmarked"),
            "The descriptor of P has no mark of a sign-in. The tab stays open: see for yourself.",
        ),
    ],
)
async def test_login_fails(
    status: list[GetProviderStatusResponse],
    note: str,
    provided: ScriptedServer,
    client: Client,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Time that runs out, and a descriptor that cannot tell, end with code 1 and words; the tab stays."""
    provided.script("GetProviderStatus", status)
    assert await run(client, "login p --wait 0.2") is Exit.REFUSED
    assert capsys.readouterr().err.splitlines() == [OPEN, note]


async def test_login_closed(provided: ScriptedServer, client: Client) -> None:
    """A tab that somebody closes ends the waiting, with its reason."""
    provided.script("GetProviderStatus", [Refuse(grpc.StatusCode.FAILED_PRECONDITION, "TAB_CLOSED")])
    with pytest.raises(TabmuxError) as refused:
        await run(client, "login p")
    assert refused.value.reason == "TAB_CLOSED"


async def test_login_unknown(provided: ScriptedServer, client: Client) -> None:
    """A provider that is not known is refused before anything is opened, with those that are."""
    with pytest.raises(RefusedError) as refused:
        await run(client, "login chatgpt")
    assert refused.value.advice == "name one of these: p, q, r"
    assert provided.requests("CreateTab") == []


async def test_login_interrupted(provided: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends the waiting, not the tab, and tells how to look at it."""
    looked = asyncio.Event()

    def script(_request: object) -> list[asyncio.Event]:
        looked.set()
        return [asyncio.Event()]

    provided.script("GetProviderStatus", script)
    waiting = asyncio.ensure_future(run(client, "login p"))
    await looked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    again = "The tab stays open. To see how it stands: tabmux ai status --tab k3v9x2m7qd"
    assert capsys.readouterr().err.splitlines() == [OPEN, "", again]
