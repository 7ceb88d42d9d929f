"""Sessions that end, or give their tab back, over a real server and a real browser."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import GetTabRequest, UpdateTabRequest
from tabmux.v1.web_ai_service_pb2 import (
    CancelTurnRequest,
    CreateSessionRequest,
    GetSessionRequest,
    GetTurnRequest,
    ListSessionsRequest,
    ListTurnsRequest,
    RetireSessionRequest,
    SendPromptRequest,
    UpdateSessionRequest,
    WaitTurnRequest,
)
from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceStub
from tabmuxd.resources.imports import ImportSource

from tests.e2e.conversing import end_of, text_of
from tests.e2e.refusals import reason
from tests.e2e.serving import LIMIT, Server, environment
from tests.imports.files import agbrowse, descriptors, file_of, old_id

TEXTAREA = "playground-textarea"
SHORT = "{{plain=1 seconds=0.3 think=0.05}}"
LATER = "9000-01-01T00:00:00.000Z"
LONG = "{{plain=1 seconds=60 think=0.05}}"
_DEFAULT, _CLOSE, _KEEP = (
    RetireSessionRequest.TAB_DISPOSITION_UNSPECIFIED,
    RetireSessionRequest.TAB_DISPOSITION_CLOSE,
    RetireSessionRequest.TAB_DISPOSITION_KEEP,
)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


@pytest.fixture(scope="module")
def server_settings(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The server knows the providers of the tools whose conversations are imported."""
    directory = tmp_path_factory.mktemp("providers")
    for name, text in descriptors().items():
        (directory / f"{name}.toml").write_text(text)
    return f'providers_directory = "{directory}"\n'


async def begin(server: Server) -> str:
    """Name of a new session."""
    answer = await server.ai.CreateSession(CreateSessionRequest(provider=TEXTAREA), timeout=LIMIT)
    return answer.session.name


async def send(server: Server, session: str, text: str = SHORT, *, release: bool = False) -> Turn:
    """A prompt that was sent."""
    request = SendPromptRequest(parent=session, request_id=uuid4().hex, release_tab=release)
    request.prompt.text = f"{uuid4().hex} {text}"
    return (await server.ai.SendPrompt(request, timeout=LIMIT)).turn


async def ask(server: Server, session: str, text: str = SHORT, *, release: bool = False) -> Turn:
    """A turn that has ended."""
    return await end_of(server, await send(server, session, text, release=release))


async def get(server: Server, session: str) -> Session:
    """The session as it stands."""
    return (await server.ai.GetSession(GetSessionRequest(name=session), timeout=LIMIT)).session


async def tab_of(server: Server, name: str) -> Tab:
    """A tab as it stands."""
    return (await server.tabs.GetTab(GetTabRequest(name=name), timeout=LIMIT)).tab


async def retire(
    server: Server, session: str, asked: RetireSessionRequest.TabDisposition.ValueType = _DEFAULT
) -> Session:
    """The session, retired."""
    request = RetireSessionRequest(name=session, tab_disposition=asked)
    return (await server.ai.RetireSession(request, timeout=2 * LIMIT)).session


async def test_released(server: Server) -> None:
    """`release_tab` pools the tab with the success; the session is parked, and goes on in a tab of its own (O-142).

    The next prompt is typed into the same conversation, in another tab.
    """
    session = await begin(server)
    first = await ask(server, session, release=True)
    parked = await get(server, session)
    (pooled,) = await server.list_tabs()
    second = await ask(server, session)

    after = await get(server, session)
    assert (first.state, second.state) == (Turn.STATE_SUCCEEDED, Turn.STATE_SUCCEEDED)
    assert (parked.state, parked.tab, parked.close_count) == (Session.STATE_ACTIVE, "", 0)
    assert (pooled.pooled, pooled.owner, pooled.session, pooled.group) == (True, "", "", TEXTAREA)
    assert parked.conversation_uri == after.conversation_uri != ""
    assert after.tab not in ("", pooled.name)


async def test_not_released(server: Server) -> None:
    """A turn that did not succeed keeps the session's tab (O-142)."""
    session = await begin(server)
    turn = await send(server, session, LONG, release=True)
    await text_of(server, turn)
    (tab,) = await server.list_tabs()

    cancelled = (await server.ai.CancelTurn(CancelTurnRequest(name=turn.name), timeout=2 * LIMIT)).turn

    assert cancelled.state == Turn.STATE_CANCELLED
    assert ((await get(server, session)).tab, (await tab_of(server, tab.name)).pooled) == (tab.name, False)


@pytest.mark.parametrize("pinned", [False, True])
async def test_retired_in_mid_answer(server: Server, pinned: bool) -> None:  # noqa: FBT001 - a case
    """RetireSession stops the open turn, keeps its text, and gives the tab back unless it is pinned (O-142, O-138)."""
    session, other = await begin(server), await begin(server)
    await ask(server, other)
    others = await tab_of(server, (await get(server, other)).tab)
    turn = await send(server, session, LONG)
    await text_of(server, turn)
    name = (await get(server, session)).tab
    if pinned:
        await server.tabs.UpdateTab(UpdateTabRequest(name=name, pinned=True), timeout=LIMIT)

    retired = await retire(server, session)
    again = await retire(server, session, _CLOSE)

    wait = WaitTurnRequest(name=turn.name, max_wait_duration=Duration(seconds=1))
    ended = (await server.ai.WaitTurn(wait, timeout=LIMIT)).turn
    tab = await tab_of(server, name)
    assert (retired.state, retired.retire_cause, retired.tab, retired.open_turn) == (
        Session.STATE_RETIRED, Session.RETIRE_CAUSE_CLIENT, "", "",
    )  # fmt: skip
    assert (again, await get(server, session)) == (retired, retired)
    assert (ended.state, bool(ended.answer_markdown), list(ended.warnings)) == (Turn.STATE_CANCELLED, True, [])
    assert (tab.pooled, tab.session, tab.lease, tab.state) == (not pinned, "", "", Tab.STATE_READY)
    assert (await tab_of(server, others.name)).session == other
    if pinned:
        await server.tabs.UpdateTab(UpdateTabRequest(name=name, pinned=False), timeout=LIMIT)


async def test_closed(server: Server) -> None:
    """With TAB_DISPOSITION_CLOSE the tab closes, and its page is gone; with KEEP it stays as it is (O-142, O-25)."""
    closing, keeping = await begin(server), await begin(server)
    for session in (closing, keeping):
        await ask(server, session)
    gone, kept = [await tab_of(server, (await get(server, session)).tab) for session in (closing, keeping)]

    await retire(server, closing, _CLOSE)
    await retire(server, keeping, _KEEP)

    left = await server.tabs_when(lambda tabs: len(tabs) == 1)
    closed = await tab_of(server, gone.name)
    assert (closed.state, closed.close_cause) == (Tab.STATE_CLOSED, Tab.CLOSE_CAUSE_SESSION)
    assert [(tab.name, tab.session, tab.owner, tab.uri) for tab in left] == [(kept.name, "", "local", kept.uri)]
    assert gone.target_id not in await server.page_targets()


async def test_another_principal(server: Server) -> None:
    """Another program changes, retires and sends nothing in a session; it may list and read it (O-8, O-4)."""
    session = await begin(server)
    await ask(server, session)
    before = await get(server, session)
    another = WebAiServiceStub(server.channel("another"))
    prompt = SendPromptRequest(parent=session, request_id="r")
    prompt.prompt.text = "why?"

    refused = [
        await reason(another.RetireSession(RetireSessionRequest(name=session), timeout=LIMIT)),
        await reason(another.UpdateSession(UpdateSessionRequest(name=session, labels={"a": "b"}), timeout=LIMIT)),
        await reason(another.SendPrompt(prompt, timeout=LIMIT)),
        await reason(another.ImportSessions(iter([]), metadata=[("authorization", "Local another")], timeout=LIMIT)),
    ]

    assert refused == ["NOT_OWNER", "NOT_OWNER", "NOT_OWNER", "SCOPE_MISSING"]
    assert await get(server, session) == before
    listed = (await another.ListSessions(ListSessionsRequest(), timeout=LIMIT)).sessions
    assert session in [found.name for found in listed]


async def test_lists(server: Server) -> None:
    """Sessions are listed by label and state, their turns without answers; labels change under a revision."""
    session, mark = await begin(server), uuid4().hex
    turns = [await ask(server, session), await ask(server, session)]
    revision = (await get(server, session)).revision
    update = UpdateSessionRequest(name=session, labels={"mark": mark}, expected_revision=revision)
    changed = (await server.ai.UpdateSession(update, timeout=LIMIT)).session

    assert await reason(server.ai.UpdateSession(update, timeout=LIMIT)) == "REVISION_MISMATCH"
    assert (dict(changed.labels), changed) == ({"mark": mark}, await get(server, session))
    assert await _marked(server, mark) == [session]
    listed = (await server.ai.ListTurns(ListTurnsRequest(parent=session), timeout=LIMIT)).turns
    assert [turn.name for turn in listed] == [turn.name for turn in turns]
    assert [(turn.answer_markdown, turn.answer_size_bytes) for turn in listed] == [
        ("", len(turn.answer_markdown.encode())) for turn in turns
    ]
    await retire(server, session)
    assert (await _marked(server, mark), await _marked(server, mark, [Session.STATE_RETIRED])) == ([], [session])
    assert await reason(server.ai.UpdateSession(UpdateSessionRequest(name=session, labels={"a": "b"}))) == (
        "SESSION_RETIRED"
    )


async def _marked(server: Server, mark: str, states: Sequence[Session.State.ValueType] = ()) -> list[str]:
    request = ListSessionsRequest(labels={"mark": mark}, states=states)
    return [session.name for session in (await server.ai.ListSessions(request, timeout=LIMIT)).sessions]


async def test_imported(server: Server, tmp_path: Path) -> None:
    """The command imports the file of another tool, in chunks, once, and leaves file and browser as they were."""
    answer = "# Lisbon\n" + "x" * 600_000
    content = file_of(
        ImportSource.AGBROWSE, agbrowse(0, answer=answer), agbrowse(1, status="polling", deadlineAt=LATER)
    )
    file = tmp_path / "web-ai-sessions.json"
    file.write_bytes(content)

    code, report = await _import(server, file)
    again = await _import(server, file)

    live = {"index": 1, "importId": old_id(1, ImportSource.AGBROWSE), "cause": "CAUSE_STILL_LIVE"}
    assert (code, report) == (
        0, {"importedCount": 1, "unchangedCount": 0, "skippedCount": 1, "skipped": [live]},
    )  # fmt: skip
    assert again == (0, {**report, "importedCount": 0, "unchangedCount": 1})
    listed = await server.ai.ListSessions(ListSessionsRequest(labels={"import-source": "agbrowse"}), timeout=LIMIT)
    (session,) = listed.sessions
    turn = (await server.ai.GetTurn(GetTurnRequest(name=session.last_turn), timeout=LIMIT)).turn
    assert (session.provider, session.tab, session.owner, session.conversation_uri) == (
        "gemini", "", "local", "https://gemini.google.com/app/7be1f0c29d",
    )  # fmt: skip
    assert (turn.state, turn.answer_markdown) == (Turn.STATE_SUCCEEDED, answer)
    assert (await server.list_tabs(), file.read_bytes()) == ([], content)
    await retire(server, session.name)


async def _import(server: Server, file: Path) -> tuple[int | None, dict[str, object]]:
    address = f"unix://{server.state_directory}/tabmuxd.sock"
    command = ("-m", "tabmux.cli", "--address", address, "ai", "sessions", "import", str(file), "--from", "agbrowse")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--json", stdout=asyncio.subprocess.PIPE, env=environment()
    )
    async with asyncio.timeout(2 * LIMIT):
        out, _ = await process.communicate()
    return process.returncode, json.loads(out)
