"""Every open turn is run until its end, whoever goes away and whatever fails meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest
from tabmuxd.events.changes import Changes
from tabmuxd.resources.orders import PromptOrder, SessionOrder
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import Turn, TurnState
from tabmuxd.store.errors import StoreBusy, StoreFailed, StoreLocked
from tabmuxd.webai.runner import TurnRunner

from tests.domain.below import Below, below
from tests.domain.values import OWNER, playground

_PROVIDERS: Final = {"playground-textarea": playground()}
_FAULTS: Final = (StoreLocked(Path("t")), StoreBusy(1000), StoreFailed(Path("t"), "disk full"), ValueError("secret"))


async def _order(parts: Below) -> PromptOrder:
    session, _ = await parts.web_ai.create_session(OWNER, SessionOrder(provider="playground-textarea"))
    return PromptOrder(session.name, Prompt("why?"), "key", "hash")


async def test_sender_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The turn of a client that goes away while its call is written goes on to its end (O-139, SUB-02)."""
    async with below(tmp_path, providers=_PROVIDERS) as parts:
        order = await _order(parts)
        go = threading.Event()
        slow = asyncio.ensure_future(parts.log.change(lambda _changes: go.wait(10)))
        change, writing = parts.log.change, asyncio.Event()

        def changing(decide: Callable[[Changes], Turn]) -> Awaitable[Turn]:
            writing.set()
            return change(decide)

        monkeypatch.setattr(parts.log, "change", changing)
        sending = asyncio.ensure_future(parts.web_ai.send_prompt(OWNER, order))
        await writing.wait()
        sending.cancel()
        await asyncio.wait({sending})
        go.set()
        await slow
        while not parts.log.live.turns:
            await parts.log.moved(parts.log.progress.revision)
        await parts.log.change(lambda _changes: None)

        assert list(parts.log.live.turns) == [parts.log.live.sessions[order.session].open_turn]
        assert repr(parts.web_ai).startswith("<WebAi running=1")


@pytest.mark.parametrize("fault", _FAULTS, ids=lambda fault: type(fault).__name__)
async def test_fault_of_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    """A turn goes on after a fault that nobody expected, and the log does not tell what that said (SES-07, O-143)."""
    work, faults, again = TurnRunner._work_in_time, [fault], asyncio.Event()

    async def faulty(runner: TurnRunner) -> None:
        if faults:
            raise faults.pop()
        again.set()
        await work(runner)

    monkeypatch.setattr(TurnRunner, "_work_in_time", faulty)
    async with below(tmp_path, providers=_PROVIDERS) as parts:
        turn = await parts.web_ai.send_prompt(OWNER, await _order(parts))
        async with asyncio.timeout(20):
            await again.wait()
        assert [parts.log.live.turns[turn.name].state] == [TurnState.PENDING]
    assert "secret" not in "".join(capsys.readouterr())


async def test_cancel_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn whose end could not be recorded when it was cancelled is run again, and can be cancelled (O-138)."""
    cancel, faults = TurnRunner.cancel, [StoreFailed(Path("t"), "disk full")]

    async def faulty(runner: TurnRunner) -> object:
        if faults:
            raise faults.pop()
        return await cancel(runner)

    monkeypatch.setattr(TurnRunner, "cancel", faulty)
    async with below(tmp_path, providers=_PROVIDERS) as parts:
        turn = await parts.web_ai.send_prompt(OWNER, await _order(parts))
        with pytest.raises(StoreFailed):
            await parts.web_ai.cancel_turn(OWNER, turn.name)
        await asyncio.sleep(0)
        assert repr(parts.web_ai).startswith("<WebAi running=1")
        assert (await parts.web_ai.cancel_turn(OWNER, turn.name)).state is TurnState.CANCELLED
