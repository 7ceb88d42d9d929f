"""Descriptors that are written and repaired while a server runs, by the example of docs/providers.md."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from tabmux.v1.provider_pb2 import Provider
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_service_pb2 import CreateTabRequest
from tabmux.v1.web_ai_service_pb2 import CreateSessionRequest, GetSessionRequest, ListProvidersRequest

from tests.domain.selector_cases import BAD, GOOD
from tests.e2e.person import Person
from tests.e2e.serving import LIMIT, Server
from tests.e2e.test_conversations import Talk

_EXAMPLE = Path(__file__).parents[2] / "docs/example"

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.long,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is inherited
        """Nothing."""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The page of the example, on a port of its own."""
    handler = functools.partial(_Quiet, directory=str(_EXAMPLE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield served.server_address[1]
        served.shutdown()
        thread.join()


def _descriptor(port: int) -> str:
    return (_EXAMPLE / "echo.toml").read_text("utf-8").replace("8765", str(port))


@pytest.fixture(scope="module")
def describe_providers(port: int) -> Callable[[Path], None]:
    """The descriptor as somebody wrote it who took another button for the box."""

    def write(directory: Path) -> None:
        (directory / "providers").mkdir()
        text = _descriptor(port).replace("form.ask textarea", "form.ask .prompt") + "[windows]\ncomposer_wait = 1\n"
        (directory / "providers" / "echo.toml").write_text(text, "utf-8")

    return write


async def _listed(server: Server) -> Sequence[Provider]:
    found = (await server.ai.ListProviders(ListProvidersRequest(), timeout=LIMIT)).providers
    return [provider for provider in found if provider.id == "echo"]


async def _when_listed(server: Server, reached: Callable[[Provider], bool]) -> Provider:
    return (await server.when(lambda: _listed(server), lambda found: bool(found) and reached(found[0])))[0]


async def test_repair(server: Server, port: int) -> None:
    """A session whose turn failed goes on once its descriptor is repaired; a broken file in between changes nothing."""
    path = server.state_directory / "providers" / "echo.toml"
    session = (await server.ai.CreateSession(CreateSessionRequest(provider="echo"), timeout=LIMIT)).session
    talk = Talk(server, session.name)
    first = await talk.answer("Is anybody there?")
    assert (first.state, first.error.metadata["page_touched"]) == (Turn.STATE_FAILED, "no")

    path.write_text(_descriptor(port).replace("button.go'", "button.go"), "utf-8")
    broken = await _when_listed(server, lambda provider: bool(provider.warnings))
    assert (broken.descriptor_version, [warning.code for warning in broken.warnings]) == ("1", ["descriptor-broken"])
    assert broken.warnings[0].message.startswith(f"{path}:18: is no TOML: ")

    path.write_text(_descriptor(port).replace('version = "1"', 'version = "2"'), "utf-8")
    repaired = await _when_listed(server, lambda provider: provider.descriptor_version == "2")
    assert list(repaired.warnings) == []

    second, third = await talk.answer("Is anybody there now?"), await talk.answer("And again?")
    assert [(turn.state, turn.answer_markdown, turn.error.reason) for turn in (second, third)] == [
        (Turn.STATE_SUCCEEDED, "You said: Is anybody there now?", ""),
        (Turn.STATE_SUCCEEDED, "You said: And again?", ""),
    ]
    shown = (await server.ai.GetSession(GetSessionRequest(name=session.name), timeout=LIMIT)).session
    assert (session.descriptor_version, shown.descriptor_version) == ("1", "2")
    assert server.log().count("descriptor not usable") == 1


async def test_selectors(server: Server, person: Person, port: int) -> None:
    """What is said of a selector without a browser is what Chromium says of it."""
    uri = f"http://127.0.0.1:{port}/chat.html"
    tab = (await server.tabs.CreateTab(CreateTabRequest(uri=uri), timeout=LIMIT)).tab
    selectors = [*GOOD, *BAD]
    judge = "(selector) => { try { document.querySelector(selector); return true } catch { return false } }"
    page = await person.attach(tab.target_id)
    judged = await person.evaluate(page, f"{json.dumps(selectors)}.map({judge})")
    assert dict(zip(selectors, judged, strict=True)) == {**dict.fromkeys(GOOD, True), **dict.fromkeys(BAD, False)}
