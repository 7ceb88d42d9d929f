"""One open turn, from line to end: gets the tab, types, presses once, watches the answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar, assert_never

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, lease_name, new_id, session_of
from tabmuxd.resources.orders import TabOrder
from tabmuxd.resources.session import CompletionEvidence, Session, Turn, TurnState, Warning  # noqa: A004 - the contract's word
from tabmuxd.resources.tab import LoadMilestone, Tab
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import completion, failures, records, submission
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.records import Ending, TabLost, TurnEnded
from tabmuxd.webai.samples import OwnTurn, Sample, keys, lookup_hash, own_turn

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_FALLBACK: Final = 2.0
_RETRY: Final = 0.5
_STOP_WAIT: Final = 3.0
_LOOK_AGAIN: Final = 0.2
_CLEAR_WAIT: Final = 2.0
# While a page is sought, nothing is typed: of a tab that was lost while it opened another one takes the place.
# Whoever waited for room until then is told so, not that time ran out.
_ROOM_MARGIN: Final = timedelta(seconds=1)
_WAITABLE: Final = frozenset(
    {
        Reason.BROWSER_UNREACHABLE,
        Reason.CALL_CAPACITY,
        Reason.OUTCOME_UNKNOWN,
        Reason.TAB_CAPACITY,
        Reason.TAB_CLOSED,
        Reason.TAB_GONE,
        Reason.TAB_UNRESPONSIVE,
    }
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a runner works with."""

    tabs: Tabs
    log: Log
    random: RandomBytes
    clock: Callable[[], datetime]


class TurnRunner:
    """Drives one open turn. `run` may be started anew in any state, also by another process: it never presses twice."""

    def __init__(self, turn: Turn, descriptor: Descriptor, around: Surroundings, feed: Feed) -> None:
        """`turn` as it is in the store."""
        self.name = turn.name
        self._descriptor = descriptor
        self._around = around
        self._feed = feed
        self._chat: ChatPage | None = None
        self._last_refusal: Refused | None = None
        self._typed = False
        self._page_since = 0.0

    def __repr__(self) -> str:
        """Which turn."""
        return f"<TurnRunner {self.name}>"

    async def run(self) -> None:
        """Bring the turn to its end; returns when it has one, whoever recorded it."""
        try:
            left = (self._turn().expire_time - self._around.clock()).total_seconds()
            async with asyncio.timeout(max(0.0, left)):
                await self._work()
        except TurnEnded:
            return
        except TimeoutError:
            await self._take_back()
            turn = self._around.log.live.turns.get(self.name)
            refused = failures.out_of_time(self.name, turn.state if turn else None, self._last_refusal)
            await self._end(TurnState.FAILED, refused=refused)
        except Refused as refused:
            await self._take_back()
            await self._end(TurnState.FAILED, refused=refused)
        self._drop_page()

    async def cancel(self) -> Turn:
        """Stop the answer in the page, keep its text, and record CANCELLED; the task of `run` has ended before."""
        warnings: tuple[Warning, ...] = ()
        with contextlib.suppress(TurnEnded):
            if self._turn().state in (TurnState.SUBMITTING, TurnState.RUNNING) and not await self._stop_answer():
                warnings = (Warning("stop-unconfirmed", "The provider was not seen to stop."),)
        await self._take_back()
        self._drop_page()
        return await self._end(TurnState.CANCELLED, warnings=warnings, cause=ChangeCause.CLIENT)

    async def _take_back(self) -> None:
        """Empty the composer of what was typed and not pressed, so that the next prompt finds it as it was."""
        if not self._typed or self._chat is None:
            return
        with contextlib.suppress(TimeoutError, CdpError, PageNotAnswering):
            async with asyncio.timeout(_CLEAR_WAIT):
                await self._chat.clear()
        self._typed = False

    # Steps

    async def _work(self) -> None:
        turn = self._turn()
        if turn.state is TurnState.PENDING:
            await self._submit(turn)
        if self._turn().state is TurnState.SUBMITTING:
            await self._confirm()
        await self._observe()

    async def _submit(self, turn: Turn) -> None:
        """Type the prompt and press send: SUBMITTING is recorded in between."""
        while True:
            try:
                page = await self._patiently(self._get_page)
                chat = self._on(page)
                typed_into = self._tab_of(page)
                baseline, length = await self._type(chat, turn.prompt)
                await self._record_submit(typed_into, baseline)
                break
            except (CdpError, PageNotAnswering, TabLost) as error:
                # Nothing was pressed: the tab may be gone, and the turn goes on in another.
                _log.info("typing interrupted", turn=self.name, error=type(error).__name__)
                await asyncio.sleep(_RETRY)
        self._typed = False
        try:
            verdict = await chat.press(length)
        except (CdpError, PageNotAnswering):
            return  # it may have been pressed: look, never press again
        if verdict != "pressed":
            self._typed = verdict != "changed"
            raise submission.not_pressed(self._descriptor, page.tab, verdict)

    async def _get_page(self) -> Page:
        """The session's page, at its conversation, under a lease of the service."""
        session = self._session()
        lease = lease_name(new_id(self._around.random))
        record = self._around.log.live.tab(session.tab) if session.tab else None
        if record is None:
            order = TabOrder(
                browser=session.browser,
                uri=session.conversation_uri or self._descriptor.start_uri,
                group=session.new_tab_group or session.provider,
                activate=session.new_tab_activate,
                until=LoadMilestone.DOM_CONTENT_LOADED,
                room_timeout=max(timedelta(0), self._turn().expire_time - self._around.clock() - _ROOM_MARGIN),
            )
            opened = await self._around.tabs.open_for(
                session.owner, order, lambda changes, tab: records.bind(changes, self.name, tab, lease)
            )
            return await self._around.tabs.wait_for_page(opened.tab.name, timeout=_FALLBACK)

        # Whoever closes tabs by itself holds the line while it does: nobody takes one that is about to close.
        async with self._around.tabs.turn(record.name):
            await self._around.log.change(lambda changes: records.take_tab(changes, self.name, lease))
        return await self._around.tabs.wait_for_page(record.name, timeout=_FALLBACK)

    async def _type(self, chat: ChatPage, prompt: str) -> tuple[tuple[str, ...], int]:
        """Put the prompt into the composer; gives the baseline and the length that send has to find there."""
        sample = await self._composer(chat)
        if sample.composer_text.strip():
            if not submission.is_own_leftover(sample, prompt):
                raise submission.occupied(self._descriptor, chat.page.tab)
            await chat.clear()
            sample = await self._composer(chat)
            if sample.composer_text.strip():
                raise submission.occupied(self._descriptor, chat.page.tab)
        self._typed = True
        if not await chat.type(prompt):
            raise submission.unusable(self._descriptor, sample, chat.page.tab)
        deadline = asyncio.get_running_loop().time() + self._descriptor.windows.composer_wait
        while True:
            sample = await self._look_here(chat, keys(sample))
            if submission.holds(sample, prompt) and sample.send_count > 0:
                return keys(sample), submission.utf16_length(sample.composer_text)
            if asyncio.get_running_loop().time() > deadline:
                raise submission.not_pressed(
                    self._descriptor, chat.page.tab, "disabled" if submission.holds(sample, prompt) else "changed"
                )
            await chat.changed(_RETRY)

    async def _composer(self, chat: ChatPage) -> Sample:
        """A look at a page whose composer takes a prompt; waits for it up to its window."""
        deadline = asyncio.get_running_loop().time() + self._descriptor.windows.composer_wait
        sample: Sample | None = None
        while asyncio.get_running_loop().time() < deadline:
            try:
                sample = await self._look_here(chat, ())
            except PageNotAnswering:
                await chat.changed(_RETRY)
                continue
            match submission.may_type(self._descriptor, sample, chat.page.tab):
                case None:
                    return sample
                case "wait":
                    await chat.changed(_RETRY)
                case Refused() as refused:
                    raise refused
        raise submission.unusable(self._descriptor, sample, chat.page.tab)

    async def _look_here(self, chat: ChatPage, known: tuple[str, ...]) -> Sample:
        """A look that is refused where the page shows anything but the session's conversation."""
        sample = await chat.look(known)
        session = self._session()
        submitted = self._turn().state is not TurnState.PENDING
        if refused := submission.where(self._descriptor, sample, session, chat.page.tab, submitted=submitted):
            raise refused
        return sample

    async def _confirm(self) -> None:
        """Look for the prompt in the conversation, and record RUNNING; without evidence it is SUBMIT_UNCONFIRMED."""
        turn = self._turn()
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            sample, own = await self._see(turn)
            # A page that came back has the whole time to show the prompt.
            deadline = max(began, self._page_since) + self._descriptor.windows.commit_wait
            # What still stands in the composer was not taken; at the end it goes, also if another process typed it.
            self._typed = lookup_hash(sample.composer_text) == turn.lookup_sha256
            if own is not None and not self._typed:
                break
            if loop.time() > deadline:
                raise failures.unconfirmed(self.name)
            await self._pause(min(_RETRY, max(0.0, deadline - loop.time())))
        uri = self._descriptor.conversation_of(sample.uri)

        def record(changes: Changes) -> None:
            records.run(changes, self.name)
            # In one step, so that what is lost from here on comes back.
            records.note_conversation(changes, self.name, uri, sample.title)

        await self._around.log.change(record)

    async def _observe(self) -> None:
        """Follow the answer to its end."""
        loop = asyncio.get_running_loop()
        turn = self._turn()
        seen = completion.Observation(quiet_since=loop.time())
        while True:
            sample, own = await self._see(turn)
            await self._note(sample)
            if self._page_since > seen.quiet_since:
                # Another page shows the answer: how long it has been quiet is counted from here.
                seen = completion.Observation(quiet_since=self._page_since, text=seen.text)
            seen = completion.observe(seen, sample, own, self._descriptor.placeholders, loop.time())
            self._feed.set(seen.text)
            verdict = completion.judge(seen, sample, self._descriptor.windows, loop.time())
            match verdict:
                case completion.Running(stalled, look_within):
                    if stalled != self._turn().stalled:
                        await self._record_stalled(stalled)
                    await self._pause(look_within or _FALLBACK)
                case completion.Complete(quiet):
                    evidence = CompletionEvidence(done_mark=True, stable_duration=timedelta(seconds=quiet))
                    await self._end(TurnState.SUCCEEDED, completion=evidence)
                    return
                case completion.Empty():
                    raise failures.empty(self.name)
                case completion.Broken():
                    raise failures.broken(self.name, self._descriptor.id)
                case completion.GivenUp():
                    raise failures.stalled(self.name)
                case _:
                    assert_never(verdict)

    async def _record_submit(self, typed_into: Tab, baseline: tuple[str, ...]) -> None:
        await self._around.log.change(lambda changes: records.submit(changes, self.name, typed_into, baseline))

    async def _record_stalled(self, stalled: bool) -> None:  # noqa: FBT001 - what is recorded
        await self._around.log.change(lambda changes: records.stall(changes, self.name, stalled=stalled))

    async def _see(self, turn: Turn) -> tuple[Sample, OwnTurn | None]:
        """One look at the conversation, through the page that stands behind the tab now; waits while there is none."""
        while True:
            try:
                chat = self._on(await self._patiently(self._present_page))
                sample = await self._look_here(chat, turn.baseline)
                return sample, own_turn(sample, turn.lookup_sha256)
            except (CdpError, PageNotAnswering):
                await asyncio.sleep(_RETRY)

    async def _present_page(self) -> Page:
        session = self._session()
        if not session.tab:
            raise records.turn_ended(self.name)
        return await self._around.tabs.wait_for_page(session.tab, timeout=_FALLBACK)

    async def _note(self, sample: Sample) -> None:
        uri = self._descriptor.conversation_of(sample.uri)
        session = self._session()
        if session.title != sample.title or (uri and not session.conversation_uri):
            await self._around.log.change(
                lambda changes: records.note_conversation(changes, self.name, uri, sample.title)
            )

    async def _stop_answer(self) -> bool:
        """Press Stop and see it go; True if the page writes no more."""
        turn = self._turn()
        pressed = False
        try:
            async with asyncio.timeout(_STOP_WAIT):
                chat = self._on(await self._present_page())
                while True:
                    sample = await chat.look(turn.baseline)
                    if own := own_turn(sample, turn.lookup_sha256):
                        self._feed.set(own.answer)
                    if not sample.stop and (pressed or own is not None):
                        return True
                    if sample.stop and not pressed:
                        pressed = await chat.press_stop()
                    await chat.changed(_LOOK_AGAIN)
        except (TimeoutError, CdpError, PageNotAnswering, Refused, TurnEnded):
            return False

    # Means

    def _turn(self) -> Turn:
        turn = self._around.log.live.turns.get(self.name)
        if turn is None:
            raise records.turn_ended(self.name)
        return turn

    def _session(self) -> Session:
        session = self._around.log.live.sessions.get(session_of(self.name))
        if session is None:
            raise records.turn_ended(self.name)
        return session

    def _tab_of(self, page: Page) -> Tab:
        """The tab as it stands with this page; TabLost where it has another, or none."""
        tab = self._around.log.live.tab(page.tab)
        if tab is None or tab.target_id != page.session.target_id:
            raise TabLost(page.tab)
        return tab

    def _on(self, page: Page) -> ChatPage:
        if self._chat is None or self._chat.page is not page:
            self._drop_page()
            self._chat = ChatPage(page, self._descriptor)
            self._page_since = asyncio.get_running_loop().time()
        return self._chat

    def _drop_page(self) -> None:
        if self._chat is not None:
            self._chat.close()
            self._chat = None

    async def _pause(self, seconds: float) -> None:
        if self._chat is None:
            await asyncio.sleep(min(seconds, _RETRY))
        else:
            await self._chat.changed(seconds)

    async def _patiently(self, get: Callable[[], Awaitable[T]]) -> T:
        """What `get` gives, again and again while a browser is away, a tab is gone, or there is no room."""
        while True:
            try:
                self._turn()
                return await get()
            except Refused as refused:
                if refused.reason not in _WAITABLE:
                    raise
                self._last_refusal = refused
                await asyncio.sleep(_RETRY)

    async def _end(
        self,
        state: TurnState,
        *,
        completion: CompletionEvidence | None = None,
        refused: Refused | None = None,
        warnings: tuple[Warning, ...] = (),
        cause: ChangeCause = ChangeCause.NONE,
    ) -> Turn:
        ending = Ending(state, self._feed.text.decode(), completion, refused, warnings)
        return await self._around.log.change(lambda changes: records.end(changes, self.name, ending, cause))
