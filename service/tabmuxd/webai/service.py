"""Sessions and turns: what the contract's `WebAiService` promises."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from tabmuxd.artifacts.service import Artifacts
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, new_id, session_of, turn_name
from tabmuxd.resources.orders import PromptOrder, RecoveredSession, SessionOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.prompt import Prompt, RenderedPrompt
from tabmuxd.resources.provider import Provider
from tabmuxd.resources.session import Session, Turn, TurnState
from tabmuxd.resources.tab import Tab
from tabmuxd.tabs.endings import ServedHook
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai import choice_rules, enclosing, records, rendering, whereabouts
from tabmuxd.webai.addressing import Addressing
from tabmuxd.webai.answers import AnswerPart, Feeds, parts, resumed
from tabmuxd.webai.conversation import Surroundings
from tabmuxd.webai.importing.service import Importing
from tabmuxd.webai.line import MAX_TURN_COUNT, LinePlace, ProviderLine, line_of
from tabmuxd.webai.onlooker import Onlooker
from tabmuxd.webai.owning import active, may_act_in, owned
from tabmuxd.webai.preambles import SAFETY_PREAMBLE
from tabmuxd.webai.providers.describing import described
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.providers.loading import Providers
from tabmuxd.webai.rendering import Terms
from tabmuxd.webai.returning import Returning
from tabmuxd.webai.runner import TurnRunner
from tabmuxd.webai.samples import lookup_hash
from tabmuxd.webai.sessions import Sessions
from tabmuxd.webai.starting import Starting

_LEAST_TIMEOUT: Final = timedelta(seconds=10)
_MOST_TIMEOUT: Final = timedelta(hours=4)
_ALIVE: Final = 15.0
_TEXT_INTERVAL: Final = 0.1


Run = tuple[TurnRunner, asyncio.Task[None]]
"""Who brings a turn to its end, and the task in which that happens."""


class WebAi:
    """Holds conversations; each open turn has one runner, whoever waits for it."""

    def __init__(
        self,
        providers: Providers,
        tabs: Tabs,
        log: Log,
        tasks: Tasks,
        *,
        random: RandomBytes,
        clock: Callable[[], datetime],
        feeds: Feeds,
        max_turn_count: int = MAX_TURN_COUNT,
        safety_preamble: str = SAFETY_PREAMBLE,
    ) -> None:
        """`max_turn_count`: turns at work at once of each whose descriptor does not say.

        `safety_preamble` is that of every provider which has one.
        """
        self.providers = providers
        self._tabs = tabs
        self._log = log
        self._tasks = tasks
        self._random = random
        self._feeds = feeds
        self._safety_preamble = safety_preamble
        self.artifacts = Artifacts(log, tasks, random=random, clock=clock)
        self._around = Surroundings(tabs, log, random, clock, self.artifacts)
        self._starting = Starting(tabs, log, random)
        self._returning = Returning(tabs, log, tasks)
        self._addressing = Addressing(tabs, log, tasks)
        self._max_turn_count = max_turn_count
        self._lines: dict[str, ProviderLine] = {}
        self._running: dict[str, Run] = {}
        self._cancelling: dict[str, asyncio.Task[Turn]] = {}
        self.imports = Importing(providers, tabs, log, random=random, clock=clock)
        self.onlooker = Onlooker(providers, self._descriptor_for, tabs, log, clock)
        self.sessions = Sessions(tabs, log, tasks, feeds, clock, self.cancel_turn)

    def __repr__(self) -> str:
        """How many turns are open, and the lines of the providers."""
        return f"<WebAi running={len(self._running)} {list(self._lines.values())}>"

    def resume(self) -> None:
        """Take up every turn that the store has open; called once, at start."""
        for turn in self._log.live.turns.values():
            self._start(turn)

    def list_providers(self) -> Sequence[Provider]:
        """The providers that the server has descriptors for, by id."""
        return [described(one, self.providers.fault(one.id)) for _, one in sorted(self.providers.items())]

    async def reload_providers(self) -> None:
        """Take up what has changed in the operator's descriptors; an open turn keeps the one that it began with."""
        for provider in self.providers.reload():
            if (line := self._lines.get(provider)) is not None and (descriptor := self.providers.get(provider)):
                line.follow(descriptor, self._max_turn_count)

    async def create_session(self, caller: Principal, order: SessionOrder) -> tuple[Session, bool]:
        """Start a session, or get the caller's own of that id; tells whether this call made it."""
        return await self._starting.start(caller, order, self._provider(order.provider))

    async def recover_session(self, caller: Principal, name: str) -> RecoveredSession:
        """A session at its conversation, in a tab whose page answers, and how it came there; as `Returning.recover`."""
        session = await self.sessions.get(name)
        if refused := may_act_in(caller, session):
            raise refused
        return await self._returning.recover(session, await self._descriptor_for(session))

    async def send_prompt(self, caller: Principal, order: PromptOrder) -> Turn:
        """Record a turn and return at once; the same `request_id` always gives the same turn."""
        session = await self.sessions.get(order.session)
        descriptor = await self._descriptor_for(session)
        terms = self._terms(descriptor)
        timeout = min(max(order.answer_timeout or descriptor.default_answer_timeout, _LEAST_TIMEOUT), _MOST_TIMEOUT)
        name = turn_name(session.name, new_id(self._random))

        def insert(changes: Changes) -> Turn:
            return _insert_turn(changes, caller, order, name, timeout, terms=terms, descriptor=descriptor)

        # A task of its own: a caller that goes away must not leave a turn that nobody runs.
        sending = self._tasks.spawn(self._send(session, name, insert), f"send {name}", awaited=True)
        return await asyncio.shield(sending)

    async def _send(self, session: Session, name: str, insert: Callable[[Changes], Turn]) -> Turn:
        """Record the turn of this name, or find the one that was sent before it, and have it run."""
        lease = self._tabs.leases.new_name()

        def decide(changes: Changes) -> Turn:
            turn = insert(changes)
            if free and turn.name == name:
                records.take_tab(changes, name, lease)
            return turn

        # Where a call is at work on the session's tab, the runner waits for its turn there.
        async with self._tabs.if_free(session.tab) as free:
            turn = await self._log.change(decide)
        if not turn.ended and turn.name not in self._running and turn.name not in self._cancelling:
            self._start(turn)
        return turn

    def render_prompt(self, provider: str, prompt: Prompt) -> RenderedPrompt:
        """A prompt as it would be sent as the first of a conversation; as `rendering.preview`, PROVIDER_NOT_FOUND."""
        return rendering.preview(prompt, self._terms(self._provider(provider)))

    async def get_turn(self, name: str) -> Turn:
        """A turn, with its answer once it has ended; TURN_NOT_FOUND."""
        turn = self._log.live.turns.get(name)
        if turn is not None:
            return replace(turn, answer_size_bytes=len(self._feeds.text(name)))
        turn = await self._log.get_turn(name)
        if turn is None:
            raise records.unknown_turn(name)
        return turn

    async def wait_turn(self, name: str, *, max_wait: timedelta, after_revision: int) -> Turn:
        """The turn once it has ended, or has a revision above `after_revision` (unless 0), or the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + max_wait.total_seconds()
        while True:
            head = self._log.progress.revision
            turn = await self.get_turn(name)
            left = deadline - loop.time()
            if turn.ended or 0 < after_revision < turn.revision or left <= 0:
                return turn
            try:
                async with asyncio.timeout(left):
                    await self._log.moved(head)
            except TimeoutError:
                continue

    async def cancel_turn(self, caller: Principal, name: str) -> Turn:
        """Stop a turn and keep its text; a turn that has ended is given as it is."""
        turn = await self.get_turn(name)
        if refused := may_act_in(caller, await self.sessions.get(session_of(name))):
            raise refused
        if turn.ended:
            return turn
        cancelling = self._cancelling.get(name)
        if cancelling is None:
            running = self._running.get(name) or self._start(turn)
            if running is None:
                return await self.get_turn(name)
            # A task of its own: a caller that goes away must not leave a turn that nobody runs.
            cancelling = self._tasks.spawn(_cancel(*running), f"cancel {name}", awaited=True)
            self._cancelling[name] = cancelling
            cancelling.add_done_callback(lambda task: self._cancelled(name, task))
        return await asyncio.shield(cancelling)

    async def stream_answer(
        self, name: str, *, known_size_bytes: int, known_sha256: str
    ) -> AsyncGenerator[AnswerPart, None]:
        """The answer as it grows, by the rules A1 to A7 of the contract; ends with the turn's end."""
        sent: bytes | None = None
        shown_revision = -1
        while True:
            moved = self._feeds.of(name).moved() if name in self._log.live.turns else None
            head = self._log.progress.revision
            turn = await self.get_turn(name)
            latest = turn.answer_markdown.encode() if turn.ended else self._feeds.text(name)
            if sent is None:
                sent = resumed(latest, known_size_bytes, known_sha256)
            found = parts(sent, latest)
            sent = latest
            news = turn if turn.revision != shown_revision else None
            shown_revision = turn.revision
            if turn.ended:
                for part in _last(found, latest, turn):
                    yield part
                return
            if news is not None:
                first = found[0] if found else AnswerPart(len(latest), "", len(latest))
                found[:1] = [replace(first, turn=news)]
            for part in found:
                yield part
            if not await self._next(moved, head, turn.name):
                yield AnswerPart(len(sent), "", len(sent))
            await asyncio.sleep(_TEXT_INTERVAL)

    async def _next(self, moved: asyncio.Future[None] | None, head: int, name: str) -> bool:
        """Wait for more text or a change of the turn; False if there was neither for 15 s."""
        shown = self._log.live.turns.get(name)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ALIVE
        while moved is not None and loop.time() < deadline:
            news = asyncio.ensure_future(self._log.moved(head))
            try:
                await asyncio.wait({moved, news}, timeout=deadline - loop.time(), return_when=asyncio.FIRST_COMPLETED)
            finally:
                news.cancel()
            head = self._log.progress.revision
            if moved.done() or self._log.live.turns.get(name) is not shown:
                return True
        return moved is None

    def _start(self, turn: Turn) -> Run | None:
        """Run an open turn; None where its provider is not known any more: then the turn is ended, for nobody can."""
        session = self._log.live.sessions.get(session_of(turn.name))
        provider = session.provider if session else ""
        descriptor = self.providers.of_version(provider, session.descriptor_version if session else "")
        if descriptor is None:
            ending = records.Ending(TurnState.FAILED, refused=whereabouts.unknown_provider(provider))
            self._tasks.spawn(
                self._log.change(lambda changes: records.end(changes, turn.name, ending)), f"end {turn.name}"
            )
            return None
        place = self._line(descriptor).join(at_work=turn.step is not TurnState.PENDING)
        runner = TurnRunner(turn, descriptor, self._around, self._feeds.of(turn.name), place)
        task = self._tasks.spawn(runner.run(), f"run {turn.name}")
        self._running[turn.name] = (runner, task)
        task.add_done_callback(lambda _task: self._ended(turn.name, place, descriptor))
        return runner, task

    def _ended(self, name: str, place: LinePlace, descriptor: Descriptor) -> None:
        self._running.pop(name, None)
        self._addressing.expect(session_of(name), descriptor)
        cancelling = self._cancelling.get(name)
        if cancelling is None:
            self._feeds.drop(name)
            place.leave()
        else:
            # The page may still write: until it was stopped, the turn is at work.
            cancelling.add_done_callback(lambda _task: place.leave())

    def _cancelled(self, name: str, cancelling: asyncio.Task[Turn]) -> None:
        self._cancelling.pop(name, None)
        turn = self._log.live.turns.get(name)
        if turn is not None and not cancelling.cancelled() and cancelling.exception() is not None:
            self._start(turn)  # its end could not be recorded
            return
        self._feeds.drop(name)
        self._tabs.settle_owed()  # of a success that was recorded while it was cancelled

    def _terms(self, descriptor: Descriptor) -> Terms:
        safety = self._safety_preamble if "safety" in descriptor.preambles else None
        return Terms(descriptor.id, descriptor.max_prompt_character_count, safety)

    def _line(self, descriptor: Descriptor) -> ProviderLine:
        """The line of a provider, with the limits of the descriptor in use."""
        line = self._lines.get(descriptor.id)
        if line is None:
            present = self.providers.get(descriptor.id, descriptor)
            line = self._lines[descriptor.id] = line_of(present, self._max_turn_count)
        return line

    async def _descriptor_for(self, session: Session) -> Descriptor:
        """The descriptor for what comes next in a session: of the version that it began with, as long as that works.

        After a turn that did not succeed it is the one in use: who has repaired the file wants the session to go on.
        """
        kept = self.providers.of_version(session.provider, session.descriptor_version)
        present = self.providers.get(session.provider)
        if kept is None:
            raise whereabouts.unknown_provider(session.provider)
        if present is None or kept is present or not session.last_turn:
            return kept
        last = await self.get_turn(session.last_turn)
        return kept if last.state is TurnState.SUCCEEDED or not last.ended else present

    def _provider(self, provider: str) -> Descriptor:
        descriptor = self.providers.get(provider)
        if descriptor is None:
            raise whereabouts.unknown_provider(provider)
        return descriptor


async def _cancel(runner: TurnRunner, task: asyncio.Task[None]) -> Turn:
    task.cancel()
    await asyncio.wait({task})
    return await runner.cancel()


def lost_tab_hook(feeds: Feeds) -> ServedHook:
    """What tabs call inside the transaction in which a session loses its tab."""

    def hook(changes: Changes, tab: Tab, refused: Refused, cause: ChangeCause) -> None:
        records.lose_tab(changes, tab, refused, cause, lambda turn: feeds.text(turn).decode())

    return hook


def _insert_turn(
    changes: Changes,
    caller: Principal,
    order: PromptOrder,
    name: str,
    timeout: timedelta,
    *,
    terms: Terms,
    descriptor: Descriptor | None = None,
) -> Turn:
    """Record a turn; `descriptor` is the one that it goes by, None for that of the session's version."""
    session = owned(changes, caller, order.session)
    known = changes.turn_by_request(session.name, order.request_id)
    if known is not None:
        if known.payload_sha256 == order.payload_sha256 and enclosing.has_files(changes, known, order.attachments):
            return known
        raise refuse(
            Reason.REQUEST_ID_REUSED,
            f"The request id {order.request_id} was used for another prompt; nothing was sent.",
            request_id=order.request_id,
            resource=known.name,
        )
    active(session, session.name)
    if session.open_turn:
        raise records.in_progress(session)
    if refused := records.may_prompt(changes, session):
        raise refused
    if descriptor is not None and (refused := choice_rules.may_ask(descriptor, order.model)):
        raise refused
    files = enclosing.enclose(changes, caller, order.attachments, descriptor, open_for=timeout)
    text = rendering.render(order.prompt, terms, first=whereabouts.is_unbegun(session))
    turn = changes.record(
        Turn(
            name=name,
            state=TurnState.PENDING,
            request_id=order.request_id,
            prompt_sha256=hashlib.sha256(text.encode()).hexdigest(),
            payload_sha256=order.payload_sha256,
            create_time=changes.now,
            expire_time=changes.now + timeout,
            prompt=text,
            lookup_sha256=lookup_hash(text),
            release_tab=order.release_tab,
            attachments=files,
            model=order.model,
        ),
        ChangeCause.CLIENT,
    )
    changes.record(
        replace(
            session,
            open_turn=name,
            last_turn=name,
            expire_time=None,
            last_active_time=changes.now,
            descriptor_version=descriptor.version if descriptor else session.descriptor_version,
        ),
        ChangeCause.CLIENT,
    )
    return turn


def _last(found: list[AnswerPart], latest: bytes, turn: Turn) -> list[AnswerPart]:
    last = found.pop() if found else AnswerPart(len(latest), "", len(latest))
    return [*found, replace(last, turn=turn, sha256=hashlib.sha256(latest).hexdigest())]
