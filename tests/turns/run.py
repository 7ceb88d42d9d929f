"""One run: programs ask in many conversations at once, and go on whatever is killed or closed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Final, TypeVar

import grpc
import grpc.aio
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_service_pb2 import CloseTabRequest
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    GetSessionRequest,
    SendPromptRequest,
    WaitTurnRequest,
)

from tests.e2e.person import person_at
from tests.e2e.serving import LIMIT, Server, ended
from tests.hostile.descriptors import describe
from tests.hostile.site import Site
from tests.turns.plan import COPYING, VARIANTS, Act, Asked, Plan, Planned
from tests.turns.verdict import Seen, fault

_AT_ONCE: Final = 5
_ANSWER_SECONDS: Final = 90
# How a call ends that meets an outage; what it was to do is asked for again, under the same ids.
_OUTAGES: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED, grpc.StatusCode.DEADLINE_EXCEEDED)

T = TypeVar("T")


class Run:
    """What all who take part share."""

    def __init__(self, drawn: Plan, server: Server, site: Site) -> None:
        """Nothing was begun."""
        self.plan = drawn
        self.server = server
        self.site = site
        self.faults: list[str] = []
        self.ends: Counter[str] = Counter()
        self._acts = 0
        self._acting = False
        self._begun = 0
        self._moved = asyncio.Condition()

    async def play(self) -> None:
        """Do all that is planned; every turn has its end then."""
        waiting = list(reversed(self.plan.talks))

        async def work() -> None:
            while waiting:
                await self._talk(waiting.pop())

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work())
            group.create_task(self._act())

    async def _talk(self, planned: Planned) -> None:
        """Ask one after another; where something befell a turn that failed, go on in another session."""
        session = ""
        for asked in planned.turns:
            session = session or (await self._persist(partial(self._create, planned.provider))).name
            async with self._moved:
                self._begun += 1
                self._moved.notify_all()
            acts, acting = self._acts, self._acting
            self.site.answer(asked.prompt, asked.answer)
            turn = await self._ask(session, asked.prompt)
            befallen = acting or self._acting or acts != self._acts
            self._judge(asked, turn, befallen=befallen)
            # Where it is not known what became of a prompt, the page may show a conversation that is not the session's.
            if befallen and turn.state != Turn.STATE_SUCCEEDED:
                await self._leave(session)
                session = ""
        if session:
            await self._leave(session)

    async def _leave(self, session: str) -> None:
        tab = (await self._persist(partial(self._get, session))).tab
        if tab:
            await self._persist(partial(self._close, tab))

    def _judge(self, asked: Asked, turn: Turn, *, befallen: bool) -> None:
        received = len(self.site.received(asked.prompt))
        page_text = asked.answer.last.text
        succeeded = turn.state == Turn.STATE_SUCCEEDED
        seen = Seen(succeeded, turn.error.reason, turn.answer_markdown, page_text, received, asked.end, befallen)
        self.ends[turn.error.reason or Turn.State.Name(turn.state)] += 1
        if wrong := fault(seen):
            self.faults.append(f"{turn.name} {asked.prompt!r}: {wrong}; {_told(seen)}")

    # Calls

    async def _create(self, provider: str) -> Session:
        request = CreateSessionRequest(provider=provider)
        return (await self.server.ai.CreateSession(request, timeout=LIMIT, wait_for_ready=True)).session

    async def _get(self, session: str) -> Session:
        request = GetSessionRequest(name=session)
        return (await self.server.ai.GetSession(request, timeout=LIMIT, wait_for_ready=True)).session

    async def _close(self, tab: str) -> None:
        await self.server.tabs.CloseTab(CloseTabRequest(name=tab, force=True), timeout=LIMIT, wait_for_ready=True)

    async def _ask(self, session: str, prompt: str) -> Turn:
        request = SendPromptRequest(parent=session, request_id=prompt.replace(" ", "-"))
        request.prompt.text = prompt
        request.answer_timeout.FromSeconds(_ANSWER_SECONDS)

        async def send() -> Turn:
            return (await self.server.ai.SendPrompt(request, timeout=LIMIT, wait_for_ready=True)).turn

        turn = await self._persist(send)
        wait = WaitTurnRequest(name=turn.name)
        wait.max_wait_duration.FromSeconds(int(LIMIT))

        async def end() -> Turn:
            return (await self.server.ai.WaitTurn(wait, timeout=2 * LIMIT, wait_for_ready=True)).turn

        while not ended(turn):
            turn = await self._persist(end)
        return turn

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        """What a call gives, made again and again while the server is away."""
        while True:
            try:
                return await call()
            except grpc.aio.AioRpcError as error:
                if error.code() not in _OUTAGES:
                    raise
                await asyncio.sleep(0.1)

    # What befalls it

    async def _act(self) -> None:
        random = Random(f"{self.plan.seed} acts")
        for moment, act in self.plan.acts:
            async with self._moved:
                await self._moved.wait_for(partial(self._has_begun, moment))
            await asyncio.sleep(random.uniform(0, 1.0))
            self._acting = True
            await self._do(act, random)
            self._acts += 1
            self._acting = False

    def _has_begun(self, count: int) -> bool:
        return self._begun >= count

    async def _do(self, act: Act, random: Random) -> None:
        server = self.server
        match act:
            case Act.KILL_SERVER:
                await server.restart()
            case Act.KILL_BROWSER:
                generation = (await server.browser()).generation
                os.kill(server.browser_pid, signal.SIGKILL)
                await server.browser_when(
                    lambda browser: browser.generation > generation and browser.state == Browser.STATE_ACTIVE
                )
            case Act.CLOSE_TAB:
                async with person_at(server.state_directory / "browsers" / "main") as person:
                    pages = sorted(target for target, info in (await person.pages()).items() if "/v/" in info["url"])
                    if pages:
                        await person.send("Target.closeTarget", targetId=random.choice(pages))
                        await person.pages()


def _told(seen: Seen) -> str:
    """What was seen, with no more of long texts than tells them apart."""
    return f"{replace(seen, text=seen.text[-40:], page_text=seen.page_text[-40:])} of {len(seen.text)} characters"


@asynccontextmanager
async def at_work(drawn: Plan, directory: Path, site: Site) -> AsyncGenerator[Run]:
    """A server that knows the hostile pages, ready for a run; all of it is gone afterwards."""
    windows = {"give_up_after": 8.0, "stalled_after": 2.0, "commit_wait": 15.0, "composer_wait": 15.0}
    for variant in VARIANTS:
        describe(directory, site, variant, provider=variant, host=f"{variant}.localhost", windows=windows)
    copy = {"copy": ['button[data-testid="copy-turn-action-button"]']}
    describe(directory, site, provider=COPYING, host=f"{COPYING}.localhost", page=copy, windows=windows)
    server = Server(directory, 0)
    try:
        await server.start()
        yield Run(drawn, server, site)
    finally:
        await server.close()
