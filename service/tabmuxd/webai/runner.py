"""One open turn, from line to end: gets the tab, types, presses once, watches the answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import Final

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.incidents import trace_of
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.session import CompletionEvidence, Turn, TurnState, Warning  # noqa: A004 - the contract's word
from tabmuxd.resources.tab import Tab
from tabmuxd.webai import attachments, entering, failures, records, seating, shells, submission
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.attaching import Attaching
from tabmuxd.webai.barriers import Barred
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.choosing import Choosing
from tabmuxd.webai.conversation import RETRY, Conversation, Surroundings
from tabmuxd.webai.line import LinePlace
from tabmuxd.webai.long_answers import whole_of
from tabmuxd.webai.observing import Answered, Observer
from tabmuxd.webai.outgoing import Outgoing
from tabmuxd.webai.parting import Parting, parting
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.records import Ending, TabLost, TurnEnded
from tabmuxd.webai.samples import Sample, lookup_hash

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_CLEAR_WAIT: Final = 2.0
_FILES_CLEAR_WAIT: Final = 5.0
_LONGEST_PAUSE: Final = 30.0
# Where the composer let the prompt go and the page is at work, it has several times as long to show it.
_IN_FLIGHT: Final = 3.0
# Why send was not pressed where the composer does not hold the prompt any more.
_GONE: Final = frozenset({"absent", "moved", "changed"})


class TurnRunner:
    """Drives one open turn. `run` may be started anew in any state, also by another process: it never presses twice."""

    def __init__(self, turn: Turn, descriptor: Descriptor, around: Surroundings, feed: Feed, place: LinePlace) -> None:
        """`turn` as it is in the store; `place` in its provider's line."""
        self.name = turn.name
        self._conversation = Conversation(turn.name, descriptor, around)
        self._place = place
        self._feed = feed
        self._observer = Observer(self._conversation, feed)
        self._choosing = Choosing(self._conversation, turn.model)
        # Tells what the service put into the composer and has not pressed, or not seen to be taken.
        self._is_own: Callable[[Sample], bool] | None = None
        self._before: tuple[str, ...] | None = None
        self._reload_done = False
        self._attaching = Attaching(self._conversation, turn.attachments, put=turn.attaching)
        self._warnings: tuple[Warning, ...] = ()

    def __repr__(self) -> str:
        """Which turn."""
        return f"<TurnRunner {self.name}>"

    async def run(self) -> None:
        """Bring the turn to its end; returns when it has one, whoever recorded it.

        What nobody expected, such as a store that fails for a moment, is logged, and the turn goes on with what is
        recorded of it until its time is over.
        """
        pause = RETRY
        while True:
            try:
                return await self._run()
            except Exception as error:  # noqa: BLE001 - whatever it is: an open turn has to be run
                _log.error("turn interrupted", turn=self.name, trace=trace_of(error))
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _run(self) -> None:
        conversation = self._conversation
        try:
            await self._work_in_time()
        except TurnEnded:
            return
        except TimeoutError:
            await self._take_back()
            if not await self._late_end():
                turn = conversation.around.log.live.turns.get(self.name)
                state, error = (turn.state, turn.error) if turn else (None, None)
                refused = failures.out_of_time(self.name, state, error, conversation.last_refusal)
                await self._end(TurnState.FAILED, refused=refused)
        except Refused as refused:
            if refused.reason is Reason.PROVIDER_LIMITED:
                self._place.cool_down(refused)
            await self._take_back()
            await self._end(TurnState.FAILED, refused=refused)
        conversation.drop_page()

    async def cancel(self) -> Turn:
        """Stop the answer in the page, keep its text, and record CANCELLED; the task of `run` has ended before."""
        warnings: tuple[Warning, ...] = ()
        with contextlib.suppress(TurnEnded):
            turn = self._conversation.turn()
            # Behind what blocks a turn its provider may still write; nothing is pressed there.
            if turn.step is not TurnState.PENDING and (
                turn.state is TurnState.BLOCKED or not await self._observer.stop()
            ):
                warnings = (Warning("stop-unconfirmed", "The provider was not seen to stop."),)
        await self._take_back()
        self._conversation.drop_page()
        return await self._end(TurnState.CANCELLED, warnings=warnings, cause=ChangeCause.CLIENT)

    async def _take_back(self) -> None:
        """Empty the composer of what was typed and not sent, so that the next prompt finds it as it was.

        A menu that was left open is closed.
        """
        chat, is_own = self._conversation.chat, self._is_own
        if chat is None or self._conversation.is_barred():
            return
        with contextlib.suppress(TimeoutError, CdpError, PageNotAnswering):
            async with asyncio.timeout(_CLEAR_WAIT):
                await self._choosing.leave(chat)
                if is_own is not None:
                    await entering.take_back(chat, is_own)
        with contextlib.suppress(TimeoutError, CdpError, PageNotAnswering):
            async with asyncio.timeout(_FILES_CLEAR_WAIT):
                await self._attaching.take_back(chat)
        self._is_own = None

    # Steps

    async def _work_in_time(self) -> None:
        left = (self._conversation.turn().expire_time - self._conversation.around.clock()).total_seconds()
        if left <= 0:
            raise TimeoutError  # it ran out while no server ran: nothing is begun any more
        async with asyncio.timeout(left):
            await self._work()

    async def _work(self) -> None:
        turn = self._conversation.turn()
        if turn.state is TurnState.BLOCKED:
            await self._conversation.blocked()
        if turn.step is TurnState.PENDING:
            await self._submit(turn)
        if self._conversation.turn().state is TurnState.SUBMITTING:
            await self._confirm()
        await self._succeed(await self._observer.follow())

    async def _submit(self, turn: Turn) -> None:
        """Type the prompt and press send: SUBMITTING is recorded in between."""
        conversation = self._conversation
        untouched = ""
        if turn.typed and self._before is None:
            # Another run was cut off while it typed, and nobody heard what the page sent since.
            self._before, untouched = turn.baseline, turn.typed
        async with Outgoing(turn.prompt) as outgoing:
            while True:
                try:
                    page = await conversation.patiently(partial(seating.seat, conversation, self._place))
                    chat = conversation.on(page)
                    typed_into = conversation.tab_of(page)
                    at_hand = partial(_at_hand, prompt=turn.prompt, untouched=untouched)
                    await self._attaching.attach(chat, None if self._before is None else at_hand)
                    await outgoing.listen(page, typed=self._before is not None)
                    entry = entering.Entry(
                        conversation,
                        chat,
                        turn.prompt,
                        outgoing,
                        self._before,
                        untouched=untouched,
                        note=partial(self._note_typing, typed_into),
                        files=self._attaching.files,
                        choosing=self._choosing,
                    )
                    entered = await self._enter(entry, turn.prompt)
                    shown = await self._told(chat, entered)
                    submit = partial(records.submit, name=self.name, typed_into=typed_into, shown=shown)
                    await conversation.change(partial(submit, baseline=entered.baseline))
                    return await self._press(chat, entered, outgoing)
                except Refused as refused:
                    if not await self._reloaded(refused):
                        raise
                except Barred as barred:
                    self._place.step_aside()
                    await conversation.blocked(barred)
                except (CdpError, PageNotAnswering, TabLost) as error:
                    # Nothing was pressed: the tab may be gone, and the turn goes on in another.
                    _log.info("typing interrupted", turn=self.name, error=type(error).__name__)
                    await asyncio.sleep(RETRY)

    async def _reloaded(self, refused: Refused) -> bool:
        """Whether a page that showed nothing is loaded again: once for a turn, and never after anything was typed."""
        chat = self._conversation.chat
        if self._reload_done or self._before is not None or chat is None or not shells.may_be_shell(refused):
            return False
        self._reload_done = True
        with contextlib.suppress(CdpError, PageNotAnswering, Refused):
            return await shells.reload(chat, self._conversation.descriptor)
        return False

    async def _told(self, chat: ChatPage, entered: entering.Entered) -> tuple[str, tuple[Warning, ...]]:
        """Which model the page shows right before the press, and what is to be said of that.

        Raises PROVIDER_MODEL_UNAVAILABLE where it is not the one asked for any more, CdpError, PageNotAnswering.
        """
        if entered.reading is not None:
            return await self._choosing.confirm(chat)
        with contextlib.suppress(Refused, CdpError, PageNotAnswering):
            return await self._choosing.confirm(chat)  # the page has sent the prompt by itself, whatever it shows
        return "", ()

    async def _press(self, chat: ChatPage, entered: entering.Entered, outgoing: Outgoing) -> None:
        """Press send, once; where the prompt is gone already and the page may have sent it, that is to be seen."""
        typed, self._is_own = self._is_own, None
        if entered.reading is None:
            return  # the page sent it by itself
        try:
            verdict = await chat.press(entered.reading, self._choosing.wanted)
        except (CdpError, PageNotAnswering):
            return  # it may have been pressed: look, never press again
        if verdict == "pressed" or (verdict in _GONE and outgoing.may_hold_prompt):
            return
        self._is_own = typed
        if verdict == "model":
            raise self._choosing.lost()
        conversation = self._conversation
        if verdict == "files" and self._attaching.files:
            raise attachments.refused(conversation.descriptor, self._attaching.files[0], "dropped")
        raise submission.not_pressed(conversation.descriptor, chat.page.tab, verdict, conversation.session())

    async def _note_typing(self, typed_into: Tab, baseline: tuple[str, ...], touch: str) -> bool:
        if self._conversation.turn().typed:
            return False
        await self._conversation.change(
            partial(records.note_typing, name=self.name, typed_into=typed_into, baseline=baseline, touch=touch)
        )
        return True

    async def _enter(self, entry: entering.Entry, prompt: str) -> entering.Entered:
        """Put the prompt into the composer; what was typed is told to be our own, also if it is interrupted."""
        try:
            return await entry.enter()
        finally:
            if entry.typed:
                self._before = entry.before
                self._is_own = partial(submission.is_own_leftover, prompt=prompt)

    async def _confirm(self) -> None:
        """Look for the prompt in the conversation, and record RUNNING; without evidence it is SUBMIT_UNCONFIRMED."""
        conversation = self._conversation
        turn, loop = conversation.turn(), asyncio.get_running_loop()
        began, fresh = loop.time(), not conversation.session().conversation_uri
        while True:
            sample, _own = await conversation.see(turn)
            # What still stands in the composer was not taken; at the end it goes, also if another process typed it.
            self._is_own = partial(_holds, lookup_sha256=turn.lookup_sha256)
            if submission.committed(sample, turn.lookup_sha256, turn.baseline, fresh=fresh):
                self._is_own, self._attaching.put = None, False
                self._warnings = submission.restarted(sample, turn.baseline, fresh=fresh)
                break
            wait = conversation.descriptor.windows.commit_wait
            if submission.in_flight(sample, turn.lookup_sha256, conversation.descriptor, fresh=fresh):
                wait *= _IN_FLIGHT
            # A page that came back has the whole time to show the prompt.
            deadline = max(began, conversation.page_since) + wait
            if loop.time() > deadline:
                raise conversation.limited(sample) or failures.unconfirmed(self.name)
            await conversation.pause(min(RETRY, max(0.0, deadline - loop.time())))
        uri = conversation.descriptor.conversation_of(sample.uri)

        def record(changes: Changes) -> None:
            records.run(changes, self.name)
            # In one step, so that what is lost from here on comes back.
            records.note_conversation(changes, self.name, uri, sample.title)

        await conversation.change(record)

    async def _late_end(self) -> bool:
        """Whether a last look after the time was over found the answer whole: it is recorded then."""
        try:
            answered = await self._observer.last_look()
            if answered is not None:
                await self._succeed(answered)
        except (TurnEnded, Refused):
            return False
        return answered is not None

    async def _succeed(self, answered: Answered) -> None:
        await self._end(
            TurnState.SUCCEEDED, completion=answered.completion, warnings=(*self._warnings, *answered.warnings)
        )

    async def _end(
        self,
        state: TurnState,
        *,
        completion: CompletionEvidence | None = None,
        refused: Refused | None = None,
        warnings: tuple[Warning, ...] = (),
        cause: ChangeCause = ChangeCause.NONE,
    ) -> Turn:
        conversation = self._conversation
        async with whole_of(conversation, self._feed.text) as whole:
            ending = Ending(state, self._feed.text.decode(), completion, refused, warnings, whole)
            return await self._record_end(state, ending, cause)

    async def _record_end(self, state: TurnState, ending: Ending, cause: ChangeCause) -> Turn:
        conversation = self._conversation
        noted = self._observer.noting.waiting

        def decide(changes: Changes, how: Parting | None = None) -> Turn:
            if noted is not None:
                records.note_conversation(changes, self.name, *noted)
            return records.end(changes, self.name, ending, cause, how)

        turn = conversation.around.log.live.turns.get(self.name)
        if state is not TurnState.SUCCEEDED or turn is None or not turn.release_tab:
            return await conversation.change(decide)
        conversation.drop_page()
        async with parting(conversation.around.tabs, conversation.session().tab) as how:
            return await conversation.change(partial(decide, how=how))


def _at_hand(sample: Sample, prompt: str, untouched: str) -> bool:
    """Whether a prompt that may have been typed surely was not sent: it stands in the composer, or was not typed."""
    return bool(untouched and sample.touch == untouched) or submission.is_own_leftover(sample, prompt)


def _holds(sample: Sample, lookup_sha256: str) -> bool:
    return lookup_hash(sample.composer_text) == lookup_sha256
