"""Submitting over several tries: what a page sends in any moment, also between two of them, is not sent again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.cdp.errors import CallTimeout
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.session import Turn, TurnState
from tabmuxd.tabs.page import Page
from tabmuxd.webai import entering, runner
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.barriers import Barred
from tabmuxd.webai.chat_page import PageNotAnswering
from tabmuxd.webai.conversation import Surroundings
from tabmuxd.webai.line import ProviderLine
from tabmuxd.webai.outgoing import Outgoing
from tabmuxd.webai.runner import TurnRunner
from tabmuxd.webai.samples import Sample, lookup_hash

from tests.domain.test_entering import PROMPT, FakeChatPage, FakeConversation, FakeSession, heard
from tests.domain.values import NOW, SESSION, playground

_TURN: Final = f"{SESSION}/turns/0123456789"
_STEPS: Final = ("", "", "", "", "forget", "half", "barred", "unanswered", "timeout", "silent", "send")
_GAPS: Final = ("", "enter", "show", "forget")
_SLEEP: Final = asyncio.sleep


@dataclass
class _ChatPage(FakeChatPage):
    """One that also does not answer, is barred, and is used by a person between two tries."""

    def happen(self) -> None:
        happening = next(self.happenings, "")
        match happening:
            case "barred":
                raise Barred(Refused(Reason.PROVIDER_SIGN_IN_REQUIRED, "", {}))
            case "unanswered":
                raise PageNotAnswering
            case "timeout":
                raise CallTimeout("Runtime.evaluate", handed_over=True)
            case _:
                self.happenings = iter((happening, *self.happenings))
                super().happen()

    def between(self, happening: str) -> None:
        """What happens while nobody looks."""
        match happening:
            case "enter" if self.text.strip():
                self.sent.append(self.text)
                self.text = ""
                self.session.post()
            case "show":
                self.turns.extend(one for one in self.sent if one not in self.turns)
            case "forget":
                self.text = ""
            case _:
                pass

    async def press(self, reading: int, _wanted: str) -> str:
        """Send, if all is as it was looked at."""
        if (reading, self.text) != (self.reading, self.looked):
            return "changed"
        assert not any(one and PROMPT.startswith(one) for one in self.sent), "pressed after it was sent"
        self.sent.append(self.text)
        return "pressed"


@dataclass
class _Conversation(FakeConversation):
    """The turn's, in that page alone."""

    chat: _ChatPage
    gaps: Iterator[str]
    name: str = _TURN
    tab: SimpleNamespace = field(default_factory=SimpleNamespace)

    async def look_here(self, chat: FakeChatPage, known: tuple[str, ...] | None, **how: Any) -> Sample:  # noqa: ANN401
        await _SLEEP(0)  # the page has confirmed meanwhile that it tells of its network
        return await super().look_here(chat, known, **how)

    async def patiently(self, _get: object) -> object:
        return self.chat.page

    def on(self, _page: object) -> _ChatPage:
        return self.chat

    def tab_of(self, _page: object) -> object:
        return self.tab

    def turn(self) -> object:
        return SimpleNamespace(typed="")

    async def change(self, _decide: object) -> None:
        return

    async def blocked(self, _barred: object) -> None:
        self.chat.between(next(self.gaps, ""))

    async def pause(self, _seconds: float) -> None:
        self.chat.between(next(self.gaps, ""))


async def _submit(steps: list[str], gaps: list[str]) -> None:
    chat = _ChatPage(iter(steps))
    conversation = _Conversation(playground(), chat, iter(gaps))
    turn = Turn(
        name=_TURN,
        state=TurnState.PENDING,
        request_id="r",
        prompt_sha256="",
        payload_sha256="",
        create_time=NOW,
        expire_time=NOW,
        prompt=PROMPT,
        lookup_sha256=lookup_hash(PROMPT),
    )
    place = ProviderLine("p", 5).join(at_work=False)
    running = TurnRunner(turn, playground(), cast("Surroundings", SimpleNamespace()), Feed(), place)
    running._conversation = cast("Any", conversation)

    class Entry(entering.Entry):
        """One by the clock of that page."""

        def __init__(self, *given: Any, **named: Any) -> None:  # noqa: ANN401 - as it is called
            super().__init__(*given, **named)
            self._now = lambda: chat.now
            self._deadline = chat.now + 15.0

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(Refused):
        patch.setattr(entering, "Entry", Entry)
        patch.setattr(runner, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": conversation.pause}))
        await running._submit(turn)


@pytest.mark.parametrize("interrupted", ["barred", "unanswered", "timeout"])
def test_sent_in_between(interrupted: str) -> None:
    """A person who presses Enter between two tries sends the prompt, also if the page shows it late (O-132, SUB-12)."""
    asyncio.run(_submit(["", "", interrupted], ["enter"]))


@given(st.lists(st.sampled_from(_STEPS), max_size=14), st.lists(st.sampled_from(_GAPS), max_size=6))
def test_any_interleaving(steps: list[str], gaps: list[str]) -> None:
    """Whatever happens at each step and between tries, what was sent is neither typed nor pressed again (O-132)."""
    asyncio.run(_submit(steps, gaps))


# What may hold the prompt

_ASKED: Final = "What is the answer to this?"
_IN_ADDRESS: Final = "//chat.example/ask?q=What+is+the+answer+to+this%3F"


@pytest.mark.parametrize(
    ("method", "told", "may_hold"),
    [
        ("Network.requestWillBeSent", {"request": {"method": "POST", "url": "https://chat.example/"}}, True),
        ("Network.requestWillBeSent", {"request": {"method": "GET", "url": f"https:{_IN_ADDRESS}"}}, True),
        ("Network.requestWillBeSent", {"request": {"method": "GET", "url": "https://chat.example/a.js"}}, False),
        ("Network.webSocketCreated", {"url": f"wss:{_IN_ADDRESS}"}, True),
        ("Network.webSocketCreated", {"url": "wss://chat.example/"}, False),
        ("Network.webSocketFrameSent", {}, True),
    ],
)
async def test_heard(method: str, told: Mapping[str, object], *, may_hold: bool) -> None:
    """A body, a frame, and an address with the prompt in it count as sent (O-132)."""
    session = FakeSession()
    page = SimpleNamespace(session=session, network_heard=heard, end_cause="")
    async with Outgoing(_ASKED) as outgoing:
        await outgoing.listen(cast("Page", page), typed=False)
        await asyncio.sleep(0)
        assert not outgoing.may_hold_prompt
        session.tell(method, dict(told))
        assert outgoing.may_hold_prompt == may_hold
    assert session.is_heard is False


@pytest.mark.parametrize(
    ("end_cause", "typed", "may_hold"),
    [
        ("", True, True),
        ("connection_lost", True, True),
        ("connection_lost", False, False),
        ("tab_crashed", True, False),
        ("tab_gone", True, False),
    ],
)
async def test_another_page(end_cause: str, *, typed: bool, may_hold: bool) -> None:
    """A page that was typed into, and may live on where nobody hears it, may have sent the prompt (O-132)."""
    pages = [SimpleNamespace(session=FakeSession(), network_heard=heard, end_cause="") for _ in range(2)]
    async with Outgoing(_ASKED) as outgoing:
        await outgoing.listen(cast("Page", pages[0]), typed=False)
        pages[0].end_cause = end_cause
        await outgoing.listen(cast("Page", pages[1]), typed=typed)
        await asyncio.sleep(0)
        assert outgoing.may_hold_prompt == may_hold


async def test_before_the_first() -> None:
    """Nobody heard what a page sent that was typed into by a server which was killed (O-132)."""
    page = SimpleNamespace(session=FakeSession(), network_heard=heard, end_cause="")
    async with Outgoing(_ASKED) as outgoing:
        await outgoing.listen(cast("Page", page), typed=True)
        await asyncio.sleep(0)
        assert outgoing.may_hold_prompt
