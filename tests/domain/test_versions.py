"""Which version of a descriptor a session goes by, while its file changes under a server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.orders import PromptOrder, SessionOrder
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import TurnState
from tabmuxd.webai import records
from tabmuxd.webai.records import Ending

from tests.domain.below import Below, below
from tests.domain.values import OWNER, SESSION, chat_session

_PROVIDER = "playground-textarea"


@dataclass
class Operator:
    """Who edits the file, and asks."""

    parts: Below
    path: Path

    async def writes(self, version: str, more: str = "") -> None:
        """Save the file; the server has looked twice."""
        _write(self.path, version, more)
        await self.looks()

    async def looks(self) -> None:
        """The server looks at the files twice."""
        await self.parts.web_ai.reload_providers()
        await self.parts.web_ai.reload_providers()

    async def asks(self, key: str, state: TurnState) -> tuple[str, str]:
        """Versions that the turn of a prompt and its session go by; the turn then ends so."""
        web_ai, log = self.parts.web_ai, self.parts.log
        turn = await web_ai.send_prompt(OWNER, PromptOrder(SESSION, Prompt("why?"), key, key))
        runner, _ = web_ai._running[turn.name]
        used = runner._conversation.descriptor.version
        await log.change(lambda changes: records.end(changes, turn.name, Ending(state)))
        return used, log.live.sessions[SESSION].descriptor_version


def _write(path: Path, version: str, more: str = "") -> None:
    text = resources.files("tabmuxd.webai.providers").joinpath(f"{_PROVIDER}.toml").read_text("utf-8")
    path.write_text(text.replace("{port}", "1").replace('version = "1"', f'version = "{version}"') + more, "utf-8")


@pytest.fixture
async def operator() -> AsyncGenerator[Operator]:
    """A session that began with version 1, whose file is there."""
    directory = Path(tempfile.mkdtemp(prefix="tm"))
    _write(directory / "a.toml", "1")
    try:
        async with below(directory, descriptors=directory) as parts:
            await parts.log.change(lambda changes: changes.record(chat_session()))
            yield Operator(parts, directory / "a.toml")
    finally:
        shutil.rmtree(directory)


async def test_kept(operator: Operator) -> None:
    """A session goes by the version that it began with, as long as its turns succeed."""
    assert await operator.asks("a", TurnState.SUCCEEDED) == ("1", "1")
    await operator.writes("2")
    assert [await operator.asks(key, TurnState.SUCCEEDED) for key in ("b", "c")] == [("1", "1")] * 2


@pytest.mark.parametrize("state", [TurnState.FAILED, TurnState.CANCELLED])
async def test_repaired(operator: Operator, state: TurnState) -> None:
    """After a turn that did not succeed the session goes by what its file says now, and keeps that."""
    assert await operator.asks("a", state) == ("1", "1")
    await operator.writes("2")
    assert await operator.asks("b", TurnState.SUCCEEDED) == ("2", "2")
    await operator.writes("3")
    assert await operator.asks("c", TurnState.SUCCEEDED) == ("2", "2")


async def test_broken(operator: Operator) -> None:
    """A file that was broken by an edit is not used, nor by sessions whose last turn failed."""
    assert await operator.asks("a", TurnState.FAILED) == ("1", "1")
    await operator.writes("2", "\n[page]\n")
    assert await operator.asks("b", TurnState.FAILED) == ("1", "1")
    assert [one.warnings[0].code for one in operator.parts.web_ai.list_providers()] == ["descriptor-broken"]


async def test_open_turn(operator: Operator) -> None:
    """An open turn keeps what it began with, whatever becomes of the file."""
    web_ai = operator.parts.web_ai
    turn = await web_ai.send_prompt(OWNER, PromptOrder(SESSION, Prompt("why?"), "a", "a"))
    await operator.writes("2")
    runner, _ = web_ai._running[turn.name]
    assert runner._conversation.descriptor.version == "1"
    assert (await web_ai.cancel_turn(OWNER, turn.name)).state is TurnState.CANCELLED


async def test_gone(operator: Operator) -> None:
    """Where the file is gone its sessions go on, and no new one begins (PROVIDER_NOT_FOUND)."""
    operator.path.unlink()
    await operator.looks()
    assert await operator.asks("a", TurnState.FAILED) == ("1", "1")
    assert await operator.asks("b", TurnState.FAILED) == ("1", "1")
    with pytest.raises(Refused) as caught:
        await operator.parts.web_ai.create_session(OWNER, SessionOrder(_PROVIDER))
    assert caught.value.reason.name == "PROVIDER_NOT_FOUND"


async def test_restarted(operator: Operator) -> None:
    """A server that has not read the version of a session goes by the one in use, from the next prompt on."""
    await operator.writes("2")
    operator.parts.web_ai.providers._earlier.clear()
    assert await operator.asks("a", TurnState.SUCCEEDED) == ("2", "2")


async def test_limits(operator: Operator) -> None:
    """The line at a provider follows the limits of its file, so that turns that wait in it may go."""
    await operator.asks("a", TurnState.SUCCEEDED)
    await operator.writes("2", "\n[limits]\nturns = 0\n")
    assert "of 0 " in repr(operator.parts.web_ai._lines[_PROVIDER])
    await operator.writes("3", "\n[limits]\nturns = 4\n")
    assert "of 4 " in repr(operator.parts.web_ai._lines[_PROVIDER])
