"""Choosing: the model or mode that a prompt asks for, in the page, before anything is typed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Final

from tabmuxd.resources.errors import Refused
from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word
from tabmuxd.webai import choice_rules
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.choice_rules import Act, ChoiceLook, Progress
from tabmuxd.webai.conversation import Conversation

_BETWEEN: Final = 0.25
_CALLS: Final[Mapping[Act, str]] = {
    "open": "open",
    "pick": "pick",
    "enter": "enter",
    "lower": "focusSlider",
    "raise": "focusSlider",
    "close": "close",
    "toggle": "toggle",
}
_KEYS: Final[Mapping[Act, tuple[str, int]]] = {"lower": ("ArrowLeft", 37), "raise": ("ArrowRight", 39)}


class Choosing:
    """What one turn asks for besides its prompt. Nothing is read or touched before a page is there."""

    def __init__(self, conversation: Conversation, model: str) -> None:
        """`model`: the id of what is to be chosen, empty for nothing."""
        descriptor = conversation.descriptor
        self._conversation = conversation
        self._model = model
        self._choice = descriptor.choices.offered.get(model)
        self._modes = json.dumps(choice_rules.modes_of(descriptor.choices))
        choice = self._choice
        self.wanted = (
            "null"
            if choice is None
            else json.dumps(choice_rules.asked_for(choice, descriptor.choices, conversation.name))
        )
        self._opened: ChatPage | None = None

    def __repr__(self) -> str:
        """What is to be chosen."""
        return f"<Choosing {self._model!r}>"

    @property
    def is_wanted(self) -> bool:
        """Whether anything is to be chosen."""
        return bool(self._model)

    async def choose(self, chat: ChatPage, *, whole: bool) -> bool:
        """Choose what is wanted, unless the page shows it as chosen; whether anything was done in the page.

        `whole`: the page took a prompt before. Raises PROVIDER_MODEL_UNAVAILABLE, and what a look does.
        """
        if not self._model:
            return False
        choice, descriptor = self._choice, self._conversation.descriptor
        if choice is None:  # another descriptor than that by which it was asked for
            raise choice_rules.unavailable(descriptor, self._model, "not-offered")
        now = asyncio.get_running_loop().time
        progress = Progress(now())
        while True:
            look = await self._look(chat)
            progress = progress.after_look(look, now())
            match choice_rules.next_step(choice, look, progress, now(), descriptor.windows.choice_wait, whole=whole):
                case "chosen":
                    self._opened = None
                    return progress.is_touched
                case ("refuse", cause):
                    told = look.conflict if cause == "mode-on" else look.model
                    raise choice_rules.unavailable(descriptor, self._model, cause, told)
                case "wait":
                    pass
                case act:
                    self._opened = chat
                    done = await self._act(chat, act)
                    progress = progress.after_act(act, look, now(), done=done)
            await chat.changed(_BETWEEN)
            # What stands in the way of a prompt does so here too.
            await self._conversation.look_here(chat, None)

    async def make_way(self, chat: ChatPage) -> None:
        """Close the menu of what is wanted, if it stands open over the composer: one that was left by a run cut off."""
        if self._choice is not None and (await self._look(chat)).open:
            await chat.choosing(f"close({self.wanted})")

    async def confirm(self, chat: ChatPage) -> tuple[str, tuple[Warning, ...]]:
        """What the page shows as chosen now, in its own words, and warnings for what is on unasked.

        Raises PROVIDER_MODEL_UNAVAILABLE where that is not what is wanted any more, CdpError, PageNotAnswering.
        """
        descriptor = self._conversation.descriptor
        if not descriptor.marks.shown_model and not descriptor.choices.modes:
            return "", ()
        try:
            told = choice_rules.told_of(await chat.choosing(f"told({self._modes}, {self.wanted})"))
        except ValueError as error:
            raise PageNotAnswering from error
        if self._choice is not None and (told.conflict or told.shown != "shown"):
            cause: choice_rules.Cause = "mode-on" if told.conflict else "unverified"
            raise choice_rules.unavailable(descriptor, self._model, cause, told.conflict or told.model)
        return told.model, choice_rules.unasked(told.modes, self._model)

    def lost(self) -> Refused:
        """PROVIDER_MODEL_UNAVAILABLE: at the very last it was not shown any more, and nothing was pressed."""
        return choice_rules.unavailable(self._conversation.descriptor, self._model, "unverified")

    async def leave(self, chat: ChatPage) -> None:
        """Close the menu that was opened in this page, if it still is. Raises CdpError, PageNotAnswering."""
        opened, self._opened = self._opened, None
        if opened is chat:
            await chat.choosing(f"close({self.wanted})")

    async def _look(self, chat: ChatPage) -> ChoiceLook:
        try:
            return choice_rules.choice_look_of(await chat.choosing(f"look({self.wanted})"))
        except ValueError as error:
            raise PageNotAnswering from error

    async def _act(self, chat: ChatPage, act: Act) -> bool:
        """Do one thing in the page; whether it was done."""
        if act == "settle":
            return True
        done = await chat.choosing(f"{_CALLS[act]}({self.wanted})") is True
        if done and act in _KEYS:
            await chat.press_key(*_KEYS[act])
        return done
