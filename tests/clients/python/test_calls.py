"""Calls have a deadline and are repeated only where that is safe. Scenario SUB-02."""

import asyncio
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from tabmux.client import Client, connect
from tabmux.errors import TabmuxError
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    CreateTabResponse,
    GetServerInfoResponse,
    GetTabResponse,
    NavigateTabResponse,
    Navigation,
)
from tabmux.v1.web_ai_service_pb2 import CreateSessionResponse, SendPromptResponse
from tabmux.versions import CompatibilityWarning, versions_fit

from tests.clients.python.scripted import Connected, Refuse, ScriptedServer

TAB = Tab(name="browsers/main/tabs/k3v9x2m7qd")


async def test_repeated_under_one_request_id(server: ScriptedServer, client: Client) -> None:
    """CreateTab is repeated on UNAVAILABLE under the request id of the first try."""
    away = [Refuse(grpc.StatusCode.UNAVAILABLE)]
    server.script("CreateTab", away, away, [CreateTabResponse(tab=TAB)])
    tab = await client.open("https://example.test/")
    ids = [request.request_id for request in server.requests("CreateTab")]
    assert (tab.resource, len(ids), len(set(ids)), len(ids[0])) == (TAB, 3, 1, 36)


async def test_prompt_repeated_under_one_key(server: ScriptedServer, client: Client) -> None:
    """CreateSession and SendPrompt are repeated under the ids of the first try, made up by the client."""
    away = [Refuse(grpc.StatusCode.UNAVAILABLE)]
    server.script("CreateSession", away, [CreateSessionResponse(session=Session(name="sessions/s"), created=True)])
    server.script("SendPrompt", away, [SendPromptResponse(turn=Turn(name="sessions/s/turns/t"))])
    answer = await client.ask("chatgpt", "hi")
    sessions = [request.session_id for request in server.requests("CreateSession")]
    prompts = [request.request_id for request in server.requests("SendPrompt")]
    assert (answer.name, len(sessions), len(set(sessions)), len(prompts), len(set(prompts))) == (
        "sessions/s/turns/t",
        2,
        1,
        2,
        1,
    )
    assert len(sessions[0]) == 10


async def test_step_not_repeated(server: ScriptedServer, client: Client) -> None:
    """NavigateTab without a request id is tried once: the page may have been touched."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    server.script("NavigateTab", [Refuse(grpc.StatusCode.UNAVAILABLE)])
    tab = await client.tab(TAB.name)
    with pytest.raises(TabmuxError) as caught:
        await tab.navigate("https://example.test/")
    assert (caught.value.code, len(server.requests("NavigateTab"))) == ("UNAVAILABLE", 1)


@pytest.mark.parametrize(
    ("request_id", "metadata"),
    [("", {"retry": "safe", "page_touched": "no"}), ("aa0e8400-e29b-41d4-a716-446655440000", {})],
)
async def test_safe_step_repeated(
    server: ScriptedServer, client: Client, request_id: str, metadata: dict[str, str]
) -> None:
    """NavigateTab is repeated where the service calls that safe, or under a request id."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    reason = "BROWSER_UNREACHABLE" if metadata else ""
    answer = NavigateTabResponse(tab=TAB, navigation=Navigation(outcome=Navigation.OUTCOME_REACHED))
    server.script("NavigateTab", [Refuse(grpc.StatusCode.UNAVAILABLE, reason, metadata)], [answer])
    tab = await client.tab(TAB.name)
    navigation = await tab.navigate("https://example.test/", request_id=request_id)
    assert (navigation, tab.navigation) == (answer.navigation, answer.navigation)


@pytest.mark.parametrize("code", ["ABORTED", "RESOURCE_EXHAUSTED", "INTERNAL", "CANCELLED"])
async def test_other_codes_not_repeated(server: ScriptedServer, client: Client, code: str) -> None:
    """Only UNAVAILABLE is repeated."""
    server.script("GetTab", [Refuse(grpc.StatusCode[code])])
    with pytest.raises(TabmuxError):
        await client.tab(TAB.name)
    assert len(server.requests("GetTab")) == 1


async def test_repeats_end_with_the_deadline(server: ScriptedServer, client: Client) -> None:
    """A call is not repeated when the server asks for a delay that is longer than the time left."""
    away = Refuse(grpc.StatusCode.UNAVAILABLE)
    for_long = Refuse(grpc.StatusCode.UNAVAILABLE, "DRAINING", retry_delay=timedelta(hours=1))
    server.script("GetTab", [away], [for_long])
    with pytest.raises(TabmuxError) as caught:
        await client.tab(TAB.name)
    assert (caught.value.reason, len(server.requests("GetTab"))) == ("DRAINING", 2)


async def test_time_is_over_during_a_repeat(server: ScriptedServer, connected: Connected) -> None:
    """When the time is over during a repeat the refusal before is raised, not that the time is over."""
    async with connected() as client:
        server.script("GetServerInfo", [Refuse(grpc.StatusCode.UNAVAILABLE)], [asyncio.Event()])
        with pytest.raises(TabmuxError) as caught:
            await client.server_info(timeout=timedelta(seconds=3))
    assert (caught.value.code, len(server.requests("GetServerInfo"))) == ("UNAVAILABLE", 3)


async def test_default_deadline(server: ScriptedServer, client: Client) -> None:
    """Without a time of the caller's own a call has that of its method."""
    server.script("CreateTab", [CreateTabResponse(tab=TAB)])
    await client.open(milestone_timeout=timedelta(seconds=20))
    (remaining,) = [call.time_remaining for call in server.calls if call.method == "CreateTab"]
    assert remaining is not None
    assert 30 < remaining < 36  # the wire rounds


async def test_no_server(directory: Path) -> None:
    """Where no server listens, connecting fails with UNAVAILABLE when patience ends."""
    with pytest.raises(TabmuxError) as caught:
        async with connect(f"unix://{directory}/s", environment={}, patience=timedelta(seconds=1)):
            pass
    assert (caught.value.code, caught.value.reason) == ("UNAVAILABLE", "")


async def test_server_comes_back(server: ScriptedServer, client: Client) -> None:
    """A call finds a server that was started again behind the same address. Scenario CLI-01."""
    server.script("GetTab", [GetTabResponse(tab=TAB)])
    await server.restart()
    assert (await client.tab(TAB.name)).resource == TAB


@pytest.mark.parametrize(
    ("client_version", "server_version", "expected"),
    [
        ("0.1.0", "0.1.7", True),
        ("0.1.0", "0.2.0", False),
        ("1.4.0", "1.9.2", True),
        ("1.4.0", "2.0.0", False),
        ("0", "1.0.0", True),
        ("1.0.0", "", True),
    ],
)
def test_versions(client_version: str, server_version: str, expected: object) -> None:
    """Versions fit within a major version, and before 1.0 within a minor one."""
    assert versions_fit(client_version, server_version) is expected


async def test_version_warning(server: ScriptedServer, connected: Connected) -> None:
    """A server of another major version is used, with a warning."""
    server.script("GetServerInfo", [GetServerInfoResponse(version="99.0.0")])
    with pytest.warns(CompatibilityWarning, match="server 99.0.0"):
        async with connected() as client:
            assert client.info.version == "99.0.0"
