"""Entering: the prompt goes into the composer of the session's page, and is read back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.session import Artifact
from tabmuxd.webai import attachments, submission
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.choosing import Choosing
from tabmuxd.webai.conversation import RETRY, Conversation
from tabmuxd.webai.outgoing import Outgoing
from tabmuxd.webai.samples import Sample, keys

_ATTEMPTS: Final = 3
_ARRIVAL: Final = 1.0
_KEPT_LOOK: Final = 0.15
# How long what a look saw is taken to be so: a commit is written by then, unless the machine is busy.
_MOMENT: Final = 0.005
# A page enables its send control with the next frame it paints, and tells of that.
_QUICK_LOOKS: Final = 4


@dataclass(frozen=True, slots=True)
class Entered:
    """The prompt stands in the composer as a whole. `baseline`: the turns shown before it; `reading`: the last look.

    `reading` is None where the page sent by itself what was typed: then nothing is to be pressed.
    """

    baseline: tuple[str, ...]
    reading: int | None


Note = Callable[[tuple[str, ...], str], Awaitable[bool]]
"""Keeps the turns shown and the touch of the page, right before a prompt is typed; whether that had to be kept."""


class Entry:
    """One prompt on its way into the composer of one page; what was `typed` is taken back if it is not pressed."""

    def __init__(
        self,
        conversation: Conversation,
        chat: ChatPage,
        prompt: str,
        outgoing: Outgoing,
        before: tuple[str, ...] | None = None,
        *,
        untouched: str = "",
        note: Note | None = None,
        files: Sequence[Artifact] = (),
        choosing: Choosing | None = None,
    ) -> None:
        """Nothing is done yet; what `chat` sends is heard while it is.

        `before`: the turns shown before an earlier entry of this prompt, which was cut off; `untouched`: the page's
        touch then, if it was no longer than that. `note` keeps for a later entry what is known before the first key.
        `files`: those that the composer has to show, and no others. `choosing`: what has to be chosen before the prompt
        is typed.
        """
        self.typed = False
        self.before = before
        self._note, self._untouched = note, untouched
        self._outgoing = outgoing
        self._may_be_sent = before is not None
        # What was typed stands in the composer, or was cleared there by us.
        self._at_hand = self._cleared = False
        self._typed_at = 0.0
        self._conversation = conversation
        self._chat = chat
        self._prompt = prompt
        self._files = files
        self._choosing = choosing if choosing and choosing.is_wanted else None
        self._way_made = False
        loop = asyncio.get_running_loop()
        self._now = loop.time
        self._deadline = loop.time() + conversation.descriptor.windows.composer_wait

    async def enter(self) -> Entered:
        """Make room, type, and read back until the composer holds the prompt and send can be pressed.

        What did not arrive whole is cleared and typed again, unless the page may have sent it. Raises Refused, Barred,
        CdpError, PageNotAnswering.
        """
        try:
            return await self._enter()
        except _SentByPage:
            pass
        except Refused:
            if not self._may_be_gone:
                raise
        return Entered(self.before or (), None)

    async def _enter(self) -> Entered:
        sample = await self._usable()
        if sample.files and not self._files:
            raise self._not_pressed("files")
        sample = await self._choose(sample)
        if self.before is None:
            await self._conversation.check_continuity(self._chat)
            self.before = keys(sample)
        for attempt in range(1, _ATTEMPTS + 1):
            sample = await self._make_room(sample)
            sample = await self._noted(sample)
            sample = await self._type(sample)
            sample = await self._read_back(sample, last=attempt == _ATTEMPTS)
            if submission.held(sample, self._prompt) == "whole":
                return Entered(keys(sample), sample.reading)
        raise self._not_pressed("changed")

    # Looks

    async def _look(self, *, at_once: bool = False, focus: bool = True, ready_within: float = 0.0) -> Sample:
        """A look in which an empty composer may get the focus.

        Raises _SentByPage where the page has sent by itself what was typed, also if it came to a conversation with it.
        """
        try:
            sample = await self._conversation.look_here(
                self._chat, self.before, at_once=at_once, focus=focus, ready_within=ready_within
            )
        except Refused as refused:
            if refused.reason is Reason.PROVIDER_CONVERSATION_CHANGED and self._may_be_sent:
                self._check(await self._conversation.look_past(self._chat, self.before))
            raise
        self._check(sample)
        return sample

    def _check(self, sample: Sample) -> None:
        if self._untouched and sample.touch == self._untouched:
            # The earlier entry was cut off before its first key.
            self._may_be_sent, self.before = False, None
        if self._may_be_sent and submission.sent_by_page(sample, self.before or (), self._prompt):
            raise _SentByPage
        self._at_hand = submission.is_own_leftover(sample, self._prompt) or self._cleared

    @property
    def _may_be_gone(self) -> bool:
        """Whether what was typed is neither at hand nor known not to have been sent."""
        return self._may_be_sent and self._outgoing.may_hold_prompt and not self._at_hand

    async def _usable(self) -> Sample:
        """A look at a page whose composer takes a prompt and whose turns are all there; waits up to its window."""
        descriptor, tab = self._conversation.descriptor, self._chat.page.tab
        sample, settling = None, submission.Settling()
        empty = not self._conversation.session().conversation_uri
        while sample is None or self._now() < self._deadline:
            try:
                sample = await self._look(at_once=sample is None)
            except PageNotAnswering:
                if self._now() >= self._deadline:
                    break
                await self._chat.changed(RETRY)
                continue
            settling = settling.after(sample, self._now(), empty=empty)
            match submission.may_type(descriptor, sample, tab):
                case None if settling.settled:
                    return sample
                case Refused() as refused:
                    raise refused
                case _:
                    await self._make_way(sample)
                    await self._chat.changed(RETRY)
        if sample is not None and submission.may_type(descriptor, sample, tab) is None:
            raise submission.unsettled(descriptor, tab)
        raise submission.unusable(descriptor, sample, tab)

    async def _make_way(self, sample: Sample) -> None:
        """Once, close the menu in which this prompt's model is chosen, where an entry that was cut off left it open."""
        if self._choosing is not None and sample.composer == "blocked" and not self._way_made:
            self._way_made = True
            await self._choosing.make_way(self._chat)

    async def _choose(self, sample: Sample) -> Sample:
        """A look at a page that is as in `sample`, and shows as chosen what the prompt asks for besides."""
        if self._choosing is None:
            return sample
        sample = await self._make_room(sample)
        if self._may_be_gone:
            raise _SentByPage
        if not await self._choosing.choose(self._chat, whole=sample.whole):
            return sample
        if not self._may_be_sent:
            self._outgoing.not_typed_yet()
        self._deadline = self._now() + self._conversation.descriptor.windows.composer_wait
        return await self._usable()

    async def _make_room(self, sample: Sample) -> Sample:
        """A look in which the composer is empty and has the focus; waits for one that the page replaces or covers.

        Own leftovers are cleared, and others' text as the provider's policy says.
        """
        descriptor, tab = self._conversation.descriptor, self._chat.page.tab
        clears = 0
        while not sample.focused:
            if sample.composer_text.strip():
                if clears == _ATTEMPTS or (descriptor.draft == "refuse" and not await self._is_own(sample)):
                    raise submission.occupied(descriptor, tab)
                clears += 1
                self._cleared = await self._chat.clear(sample.reading) and self._at_hand
            elif self._now() >= self._deadline:
                raise submission.unusable(descriptor, sample, tab)
            else:
                await self._chat.changed(RETRY)
            sample = await self._look()
        return sample

    async def _is_own(self, sample: Sample) -> bool:
        """Whether the service put there what the composer holds: for this prompt, or for one that was not sent."""
        own, text = submission.is_own_leftover(sample, self._prompt), sample.composer_text
        if own and (self._may_be_sent or submission.is_telling(text, self._prompt)):
            return True
        return await self._conversation.was_left_behind(sample)

    async def _noted(self, sample: Sample) -> Sample:
        """A look in which the composer has the focus still, once it is kept that the prompt is about to be typed."""
        began = self._now()
        if self._note is None or self._may_be_gone or not await self._note(self.before or (), sample.touch):
            return sample
        if self._now() - began <= _MOMENT or await self._chat.focus(urlsplit(sample.uri).path) == "focused":
            return sample
        return await self._make_room(await self._look())

    async def _type(self, sample: Sample) -> Sample:
        """Type the prompt where the focus is; gives a look at it, once send is ready if that is soon."""
        if self._may_be_gone:
            raise _SentByPage
        self.typed, self._may_be_sent, self._cleared, self._untouched = True, True, False, ""
        text, path = submission.with_line_feeds(self._prompt), urlsplit(sample.uri).path
        self._typed_at = self._now()
        self._deadline = self._typed_at + self._conversation.descriptor.windows.composer_wait
        look = partial(self._look, at_once=True, focus=False, ready_within=RETRY)
        if len(submission.pieces(text)) == 1:
            # Both orders go out at once: the page looks at itself when the text has come.
            return await _both(self._chat.type(text, path), look())
        if self._conversation.descriptor.long_text != "paste" or not await self._chat.paste(text):
            await self._chat.type(text, path)
        self._typed_at = self._now()
        return await look()

    async def _read_back(self, sample: Sample, *, last: bool) -> Sample:
        """A look at the composer with the whole prompt and send ready, or, unless `last`, with less than it.

        The first is `sample`.
        """
        quick = _QUICK_LOOKS
        while True:
            held, typed_for = submission.held(sample, self._prompt), self._now() - self._typed_at
            attached = attachments.standing(sample, self._files) == "ready"
            pressable = sample.send_count == 1 and not sample.stop and sample.composer == "usable"
            if held == "whole" and attached and pressable:
                if submission.is_kept(sample, typed_for):
                    return sample
                wait = _KEPT_LOOK
            else:
                if held != "whole" and typed_for >= _ARRIVAL:
                    if held == "other" and self._conversation.descriptor.draft == "refuse":
                        raise self._not_pressed("changed")
                    if not last:
                        return sample
                if self._now() >= max(self._deadline, self._typed_at + _ARRIVAL):
                    raise self._not_pressed(_why(sample, held) if attached or held != "whole" else "files")
                wait = RETRY
            await self._chat.changed(wait)
            sample = await self._look(at_once=quick > 0, focus=False)
            quick -= 1

    def _not_pressed(self, why: str) -> Refused:
        if why == "files" and self._files:
            return attachments.refused(self._conversation.descriptor, self._files[0], "dropped")
        return submission.not_pressed(
            self._conversation.descriptor, self._chat.page.tab, why, self._conversation.session()
        )


async def _both(typing: Awaitable[None], looking: Awaitable[Sample]) -> Sample:
    """What the look gives, once both have ended; raises what one of them raised."""
    typed, looked = asyncio.ensure_future(typing), asyncio.ensure_future(looking)
    await asyncio.gather(typed, looked, return_exceptions=True)
    typed.result()
    return looked.result()


class _SentByPage(Exception):
    """Nothing is to be typed or pressed any more."""


async def take_back(chat: ChatPage, is_own: Callable[[Sample], bool]) -> None:
    """Empty the composer of what was typed and not sent, if it is that and nothing else.

    Raises CdpError, PageNotAnswering.
    """
    sample = await chat.look(None, at_once=True)
    if sample.composer_text and is_own(sample):
        await chat.clear(sample.reading)


def _why(sample: Sample, held: submission.Held) -> str:
    if held != "whole":
        return "absent" if sample.composer == "absent" else "changed"
    if sample.composer != "usable":
        return sample.composer
    if sample.stop:
        return "busy"
    return "ambiguous" if sample.send_count > 1 else "disabled"
