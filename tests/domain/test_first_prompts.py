"""What a turn holds of its prompt: rendered, and with the preamble where it is the first of its conversation."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.orders import PromptOrder
from tabmuxd.resources.prompt import Preamble, Prompt, PromptParts
from tabmuxd.resources.session import Session, Turn, TurnState
from tabmuxd.settings import SettingsError
from tabmuxd.webai import records
from tabmuxd.webai.preambles import MAX_PREAMBLE_BYTES, SAFETY_PREAMBLE, load_safety_preamble
from tabmuxd.webai.records import Ending
from tabmuxd.webai.rendering import Terms
from tabmuxd.webai.service import _insert_turn

from tests.domain.values import NOW, OWNER, SESSION, chat_session

_TURN = f"{SESSION}/turns/0123456789"
_SAFE = PromptOrder(SESSION, Prompt(PromptParts("q", goal="g"), Preamble.SAFETY), "key", "hash")
_TEXT = "## Goal\n\ng\n\n## Question\n\nq"
_TERMS = Terms("gemini", 1000, "Be honest.")
_HERE = "http://textarea.localhost:8000/c/0123456789ab"


@pytest.fixture
async def log() -> AsyncGenerator[Log]:
    """An empty log."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    async with Log(directory / "t.sqlite3", clock=lambda: NOW) as opened:
        yield opened
    shutil.rmtree(directory)


async def _sent(log: Log, order: PromptOrder, terms: Terms = _TERMS, name: str = _TURN) -> Turn:
    return await log.change(
        lambda changes: _insert_turn(changes, OWNER, order, name, timedelta(minutes=5), terms=terms)
    )


@pytest.mark.parametrize(
    ("session", "text"),
    [
        (chat_session(), f"Be honest.\n\n{_TEXT}"),
        (chat_session(_HERE), _TEXT),
        (replace(chat_session(), prompted=True), _TEXT),
    ],
    ids=["nothing said", "a conversation to go on with", "said, without an address yet"],
)
async def test_first(log: Log, session: Session, text: str) -> None:
    """What is typed is the rendered prompt; the preamble goes before the first of a conversation only (O-133)."""
    await log.change(lambda changes: changes.record(session))
    turn = await _sent(log, _SAFE)
    assert (turn.prompt, turn.prompt_sha256) == (text, sha256(text.encode()).hexdigest())


async def test_after_one_that_was_not_sent(log: Log) -> None:
    """While no prompt was pressed, the next one is still the first of its conversation."""
    await log.change(lambda changes: changes.record(chat_session()))
    first = await _sent(log, _SAFE)
    await log.change(lambda changes: records.end(changes, first.name, Ending(TurnState.CANCELLED)))
    again = await _sent(log, replace(_SAFE, request_id="again"), name=f"{_TURN[:-1]}8")
    assert again.prompt == f"Be honest.\n\n{_TEXT}"


@pytest.mark.parametrize(
    "terms",
    [replace(_TERMS, safety=None), replace(_TERMS, safety="Other words."), replace(_TERMS, max_character_count=1)],
    ids=["no preamble any more", "another preamble", "shorter prompts"],
)
async def test_repeat_after_a_change(log: Log, terms: Terms) -> None:
    """A repeat finds its turn as it was, whatever the provider's descriptor or the operator says meanwhile (O-133)."""
    await log.change(lambda changes: changes.record(chat_session()))
    turn, before = await _sent(log, _SAFE), log.live
    assert await _sent(log, _SAFE, terms, f"{_TURN[:-1]}8") == turn
    assert log.live == before


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        (replace(_TERMS, safety=None), Reason.PROVIDER_UNSUPPORTED),
        (replace(_TERMS, max_character_count=len(_TEXT) + 11), Reason.INVALID_FIELD),
    ],
)
async def test_not_recorded(log: Log, terms: Terms, reason: Reason) -> None:
    """A prompt that the provider does not take is refused, and nothing is recorded of it."""
    await log.change(lambda changes: changes.record(chat_session()))
    before = log.progress.revision
    with pytest.raises(Refused) as caught:
        await _sent(log, _SAFE, terms)
    assert (caught.value.reason, log.progress.revision, dict(log.live.turns)) == (reason, before, {})


def test_operators_preamble(tmp_path: Path) -> None:
    """The operator's own preamble takes the place of ours, without the white space around it."""
    path = tmp_path / "preamble.md"
    path.write_bytes("\ufeff\r\n Sei ehrlich.\n\n- Immer.\n".encode())
    assert load_safety_preamble(path) == "Sei ehrlich.\n\n- Immer."
    assert load_safety_preamble(None) == SAFETY_PREAMBLE


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "cannot be read"),
        (b"\xff", "cannot be read"),
        (b" \n", "is empty"),
        (b"x" * (MAX_PREAMBLE_BYTES + 1), "has more than 65536 bytes"),
    ],
    ids=["no file", "no text", "blank", "too large"],
)
def test_preamble_refused(tmp_path: Path, content: bytes | None, told: str) -> None:
    """A preamble that cannot be used stops the server at its start, by the name of the setting."""
    path = tmp_path / "preamble.md"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=f"^safety_preamble_file: .*preamble.md {told}"):
        load_safety_preamble(path)
