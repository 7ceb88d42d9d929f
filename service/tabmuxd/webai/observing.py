"""Observing: the answer of a turn that was submitted is followed to its end, or stopped."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, assert_never

from tabmuxd.cdp.errors import CdpError
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.session import CompletionEvidence, TurnState, Warning  # noqa: A004 - the contract's word
from tabmuxd.webai import completion, failures, records, taking
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.chat_page import PageNotAnswering
from tabmuxd.webai.completion import Failed, Observation
from tabmuxd.webai.conversation import FALLBACK, Conversation
from tabmuxd.webai.noting import Noting
from tabmuxd.webai.records import TurnEnded
from tabmuxd.webai.samples import Sample
from tabmuxd.webai.taking import Taken

_STOP_WAIT: Final = 5.0
_LOOK_AGAIN: Final = 0.2
# How long the text has to stand still after Stop was pressed, and where no Stop was there to press, in seconds.
_STILL: Final = 0.2
_STILL_UNPRESSED: Final = 1.0
_WITHOUT_TEXT: Final = Warning("answer-without-text", "The answer has no text, only files.")


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer in Markdown, why it is taken to be whole, and what is to be told besides."""

    text: str
    completion: CompletionEvidence
    warnings: tuple[Warning, ...] = ()


class Observer:
    """Looks at the answer of one turn, and shows it in `feed` as it grows."""

    def __init__(self, conversation: Conversation, feed: Feed) -> None:
        """Nothing is seen yet."""
        self._conversation = conversation
        self._feed = feed
        self._seen: Observation | None = None
        # What was taken of an answer that looked so, where the page's copy control may have been pressed for it.
        self._taken: tuple[Observation, Taken] | None = None
        self.noting = Noting(conversation)

    async def follow(self) -> Answered:
        """Follow the answer until it is whole; raises what else it ended with."""
        while True:
            sample = await self._look()
            now = asyncio.get_running_loop().time()
            verdict = self._judged(sample, now)
            if isinstance(verdict, completion.Running):
                await self._record_stalled(stalled=verdict.stalled)
                await self._conversation.pause(self._next_look(verdict, now))
            elif not isinstance(verdict, completion.Complete):
                raise self._failure(verdict, sample)
            elif answered := await self._take(verdict):
                return answered

    def _judged(self, sample: Sample, now: float, *, last: bool = False) -> completion.Verdict:
        """What the answer is; one that was copied is whole without its mark too, if it stands still for longer.

        A copy control that is the mark may look different once it was pressed, for a moment or for ever.
        """
        seen, descriptor = self._known, self._conversation.descriptor
        if self._taken is not None and self._taken[0].text == seen.text and self._taken[0].done and not seen.done:
            return completion.judge_last(replace(seen, done=True), sample, descriptor, now)
        judge = completion.judge_last if last else completion.judge
        return judge(seen, sample, descriptor, now)

    def _next_look(self, verdict: completion.Running, now: float) -> float:
        """After how many seconds to look again, if the page tells of no change: also when the answer is to stall."""
        stalls = self._known.quiet_since + self._conversation.descriptor.windows.stalled_after - now
        return min(verdict.look_within or FALLBACK, FALLBACK if verdict.stalled else max(_LOOK_AGAIN, stalls))

    async def last_look(self) -> Answered | None:
        """The answer, where it is whole though its time is over: looked at once more, by longer windows."""
        if self._seen is None or self._conversation.turn().state is not TurnState.RUNNING:
            return None  # nothing was observed in time, or a person has to act first
        loop, windows = asyncio.get_running_loop(), self._conversation.descriptor.windows
        try:
            async with asyncio.timeout(max(windows.last_done_quiet, windows.last_quiet) + FALLBACK + taking.WAIT):
                while True:
                    verdict = self._judged(await self._look(), loop.time(), last=True)
                    if isinstance(verdict, completion.Complete):
                        if answered := await self._take(verdict):
                            return answered
                    elif isinstance(verdict, completion.Running) and verdict.look_within is not None:
                        await self._conversation.pause(verdict.look_within)
                    else:
                        return None
        except TimeoutError:
            return None

    async def stop(self) -> bool:
        """Press Stop and see it go, and the text stand still; True if the page writes no more."""
        loop = asyncio.get_running_loop()
        pressed = False
        try:
            async with asyncio.timeout(_STOP_WAIT):
                while True:
                    sample = await self._look()
                    if self._has_stopped(loop.time(), pressed=pressed):
                        return True
                    chat = await self._conversation.present()
                    if sample.stop and not pressed:
                        pressed = await chat.press_stop()
                    await chat.changed(_LOOK_AGAIN)
        except (TimeoutError, CdpError, PageNotAnswering, Refused, TurnEnded):
            return False

    def _has_stopped(self, now: float, *, pressed: bool) -> bool:
        """Whether Stop is gone and the text stands still; where none was there to press, for longer."""
        seen = self._known
        if seen.writing or (self._conversation.own is None and not pressed):
            return False
        return seen.done or now - seen.quiet_since >= (_STILL if pressed else _STILL_UNPRESSED)

    async def _look(self) -> Sample:
        """One look, and what is known after it."""
        conversation, loop = self._conversation, asyncio.get_running_loop()
        if self._seen is None:
            self._seen = Observation(quiet_since=loop.time())
        sample, own = await conversation.see(conversation.turn(), self._note_silence)
        await self.noting.note(sample, is_own=own is not None)
        seen = self._seen
        if conversation.page_since > seen.quiet_since:
            # Another page shows the answer: how long it has been quiet is counted from here.
            seen = replace(seen, quiet_since=conversation.page_since, frames=sample.frames)
        self._seen = completion.observe(seen, sample, own, conversation.descriptor, loop.time())
        self._feed.set(self._seen.text)
        return sample

    async def _note_silence(self) -> None:
        """A page that does not answer shows no text: after a while that is `stalled` as well."""
        silent = asyncio.get_running_loop().time() - self._known.quiet_since
        if silent >= self._conversation.descriptor.windows.stalled_after:
            await self._record_stalled(stalled=True)

    async def _take(self, verdict: completion.Complete) -> Answered | None:
        """The whole answer in Markdown; None if it went on while it was read."""
        seen = self._known
        taken = await self._taken_of(seen)
        sample = await self._look()
        if sample.failure or replace(self._known, frames=0) != replace(seen, frames=0):
            return None
        self._feed.set(taken.text)
        evidence = CompletionEvidence(done_mark=verdict.done, stable_duration=timedelta(seconds=verdict.quiet))
        return Answered(taken.text, evidence, taken.warnings if taken.text.strip() else (_WITHOUT_TEXT,))

    async def _taken_of(self, seen: Observation) -> Taken:
        """What is taken of an answer that looks so; the page's copy control is pressed once for one text."""
        if self._taken is not None and self._taken[0].text == seen.text:
            return self._taken[1]
        taken = await taking.take(self._conversation, seen.text)
        self._taken = (seen, taken) if taken.pressed else None
        return taken

    def _failure(self, verdict: Failed, sample: Sample) -> Refused:
        """What an answer fails with that ended so."""
        turn = self._conversation.name
        broken = failures.broken(turn, self._conversation.descriptor.id)
        match verdict:
            case completion.Empty():
                return failures.empty(turn)
            case completion.Halted():
                return failures.halted(turn)
            case completion.Broken():
                return broken
            case completion.Limited():
                return self._conversation.limited(sample) or broken
            case completion.GivenUp():
                return failures.stalled(turn)
            case _:
                assert_never(verdict)

    async def _record_stalled(self, *, stalled: bool) -> None:
        conversation = self._conversation
        turn = conversation.turn()
        if stalled != turn.stalled and turn.state is TurnState.RUNNING:
            await conversation.change(lambda changes: records.stall(changes, conversation.name, stalled=stalled))

    @property
    def _known(self) -> Observation:
        assert self._seen is not None, "nothing was looked at"  # noqa: S101 - true by construction
        return self._seen
