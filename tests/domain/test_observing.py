"""The end of an answer that is followed: it is taken once, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from tabmuxd.resources.session import TurnState
from tabmuxd.webai import observing, taking
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.completion import Observation
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.observing import Observer
from tabmuxd.webai.samples import OwnTurn, Sample
from tabmuxd.webai.taking import Taken

from tests.domain.values import chat_session, playground, sample

_LIMIT = 20.0


class _Page:
    """A conversation whose page shows a whole answer, of which `on_copy` makes what is shown once it is copied."""

    def __init__(self, on_copy: Callable[[_Page], None]) -> None:
        descriptor = playground()
        windows = replace(descriptor.windows, done_quiet=0.05, last_done_quiet=0.3, last_quiet=0.3)
        self.name = "sessions/s/turns/t"
        self.descriptor = replace(descriptor, windows=windows)
        self.page_since = 0.0
        self.own = OwnTurn("42", done=True, answered=True, user_key="u", parts=(("a", "42"),))
        self.chat = None
        self.gone = False
        self.copied: list[str] = []
        self.looks_since = 0
        self._on_copy = on_copy

    def show(self, text: str, *, done: bool) -> None:
        self.own = replace(self.own, answer=text, done=done, parts=(("a", text),))

    async def take(self, _conversation: object, shown: str) -> Taken:
        self.copied.append(shown)
        self.looks_since = 0
        self._on_copy(self)
        return Taken(f"**{shown}**", (), pressed=True)

    def turn(self) -> object:
        return SimpleNamespace(state=TurnState.RUNNING, stalled=False)

    def session(self) -> object:
        return replace(chat_session(), title=sample().title)

    async def see(self, _turn: object, _unseen: object = None) -> tuple[Sample, OwnTurn]:
        if self.gone:
            await asyncio.Event().wait()
        self.looks_since += 1
        return sample(), self.own

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.02))


def _observer(page: _Page, monkeypatch: pytest.MonkeyPatch) -> Observer:
    monkeypatch.setattr(taking, "take", page.take)
    return Observer(cast("Conversation", page), Feed())


class _Flickers(_Page):
    """Its mark is away in the two looks after it was copied."""

    async def see(self, _turn: object, _unseen: object = None) -> tuple[Sample, OwnTurn]:
        shown, own = await super().see(_turn)
        away = bool(self.copied) and self.looks_since <= 2
        return shown, replace(own, done=own.done and not away)


async def test_mark_that_is_away_for_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer ends that is copied by a control which is its mark, and looks different then: copied once (FIN-21)."""
    page = _Flickers(lambda _page: None)
    async with asyncio.timeout(_LIMIT):
        answered = await _observer(page, monkeypatch).follow()

    assert (answered.text, page.copied) == ("**42**", ["42"])


async def test_mark_that_does_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """So does one whose mark does not come back, once it stood still for the longer window (FIN-21)."""
    page = _Page(lambda page: page.show("42", done=False))
    async with asyncio.timeout(_LIMIT):
        answered = await _observer(page, monkeypatch).follow()

    assert (answered.text, page.copied) == ("**42**", ["42"])


async def test_answer_that_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that went on while it was copied is copied anew, when it is whole (FIN-09, O-137)."""
    page = _Page(lambda page: page.show("42 and more", done=True))
    async with asyncio.timeout(_LIMIT):
        answered = await _observer(page, monkeypatch).follow()

    assert (answered.text, page.copied) == ("**42 and more**", ["42", "42 and more"])


@pytest.mark.parametrize(
    ("on_copy", "text"),
    [
        (lambda _page: None, "**42**"),
        (lambda page: page.show("42", done=False), "**42**"),
        (lambda page: setattr(page, "gone", True), None),
    ],
    ids=["whole", "mark gone", "page gone"],
)
async def test_last_look(on_copy: Callable[[_Page], None], text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last look ends soon, with the answer, or without one if its page goes away (FIN-25)."""
    monkeypatch.setattr(observing, "FALLBACK", 1.0)
    monkeypatch.setattr(taking, "WAIT", 0.2)
    page = _Page(on_copy)
    observer = _observer(page, monkeypatch)
    observer._seen = Observation(quiet_since=asyncio.get_running_loop().time())
    async with asyncio.timeout(_LIMIT):
        answered = await observer.last_look()

    assert (answered and answered.text, page.copied) == (text, ["42"])
