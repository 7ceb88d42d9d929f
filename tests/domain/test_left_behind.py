"""What a composer holds from an earlier turn of the session is known as the service's own."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path

from tabmuxd.events.changes import Changes
from tabmuxd.resources.session import Turn, TurnState
from tabmuxd.webai.conversation import Conversation, Surroundings
from tabmuxd.webai.samples import lookup_hash

from tests.domain.below import below
from tests.domain.values import NOW, SESSION, chat_session, playground, sample


def _turn(number: int, state: TurnState, session: str = SESSION) -> Turn:
    return Turn(
        name=f"{session}/turns/{number:010}",
        state=state,
        request_id=str(number),
        prompt_sha256="",
        payload_sha256="",
        create_time=NOW,
        expire_time=NOW,
        end_time=NOW,
        lookup_sha256=lookup_hash(f"Prompt {number}"),
    )


async def test_left_behind(tmp_path: Path) -> None:
    """The prompt of any turn of the session that was not answered is no person's draft (SUB-08)."""
    async with below(tmp_path) as parts:

        def decide(changes: Changes) -> None:
            changes.record(chat_session())
            for number in range(1001):
                changes.record(_turn(number, TurnState.CANCELLED))
            changes.record(_turn(1001, TurnState.SUCCEEDED))  # it was answered
            changes.record(_turn(1002, TurnState.FAILED))
            changes.record(_turn(1003, TurnState.FAILED, f"{SESSION}9"))  # it is another session's

        await parts.log.change(decide)
        around = Surroundings(parts.tabs, parts.log, secrets.token_bytes, parts.clock)
        conversation = Conversation(f"{SESSION}/turns/x", playground(), around)

        texts = ("Prompt 0", "Prompt 1000", "Prompt 1001", "Prompt 1002", "Prompt 1003", "A draft")
        own = [await conversation.was_left_behind(replace(sample(), composer_text=text)) for text in texts]

    assert own == [True, True, False, True, False, False]
