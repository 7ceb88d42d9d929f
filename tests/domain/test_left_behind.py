"""What a composer holds from an earlier turn of the session is known as the service's own."""

from __future__ import annotations

import secrets
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tabmuxd.events.changes import Changes
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.session import Turn, TurnState
from tabmuxd.webai.chat_page import ChatPage
from tabmuxd.webai.conversation import Conversation, Surroundings
from tabmuxd.webai.samples import Sample, SeenTurn, lookup_hash

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
        around = Surroundings(parts.tabs, parts.log, secrets.token_bytes, parts.clock, parts.web_ai.artifacts)
        conversation = Conversation(f"{SESSION}/turns/x", playground(), around)

        texts = ("Prompt 0", "Prompt 1000", "Prompt 1001", "Prompt 1002", "Prompt 1003", "A draft")
        own = [await conversation.was_left_behind(replace(sample(), composer_text=text)) for text in texts]

    assert own == [True, True, False, True, False, False]


async def test_continuity(tmp_path: Path) -> None:
    """A conversation without an address is known by a prompt of the session's that it shows (O-140).

    Where none was ever seen in it, or where it has an address, nothing of the kind is asked.
    """

    class Page:
        page = SimpleNamespace(tab="browsers/main/tabs/t")

    async with below(tmp_path) as parts:
        around = Surroundings(parts.tabs, parts.log, secrets.token_bytes, parts.clock, parts.web_ai.artifacts)
        conversation = Conversation(f"{SESSION}/turns/x", playground(), around)
        shown: list[str] = []

        async def look_here(_chat: object, _known: object, *, at_once: bool = False) -> Sample:
            assert at_once
            return replace(sample(), turns=tuple(SeenTurn(text, "user", text) for text in shown))

        conversation.look_here = look_here  # type: ignore[method-assign, assignment]

        async def continues(uri: str, *texts: str) -> bool:
            await parts.log.change(
                lambda changes: changes.record(replace(chat_session(), prompted=True, conversation_uri=uri))
            )
            shown[:] = texts
            try:
                await conversation.check_continuity(cast("ChatPage", Page()))
            except Refused as refused:
                return refused.reason is not Reason.PROVIDER_CONVERSATION_CHANGED
            return True

        found = [await continues(""), await continues("", "Prompt 9")]
        unseen, seen = _turn(1, TurnState.FAILED), _turn(2, TurnState.SUCCEEDED)
        await parts.log.change(lambda changes: changes.record(unseen))
        found += [await continues("", "Prompt 9")]
        await parts.log.change(lambda changes: changes.record(replace(seen, submit_time=NOW)))
        found += [await continues(""), await continues("", "Prompt 9"), await continues("", "Prompt 2", "Prompt 9")]
        found += [await continues("http://chat.example/c/1")]

    assert found == [True, True, True, False, False, True, True]
