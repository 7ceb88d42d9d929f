"""Steps that a client orders in a page: one at a time in each tab, judged when asked and when their turn comes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, replace

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.health import Health
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lease_records import fence
from tabmuxd.tabs.lease_rules import Right
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.rights import Rights


@dataclass(frozen=True, slots=True)
class Step:
    """A step whose turn has come: the tab is held for it until `deadline`, which is loop time."""

    right: Right
    deadline: float

    @property
    def tab(self) -> Tab:
        """The tab as it was when the turn came."""
        return self.right.tab

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - asyncio.get_running_loop().time()


class Driving:
    """Gives each step its turn, its page, and a record of what it came to."""

    def __init__(self, hosts: Hosts, log: Log, rights: Rights, lines: Lines, health: Health) -> None:
        """All belong to the same tabs."""
        self._hosts = hosts
        self._log = log
        self._rights = rights
        self._lines = lines
        self._health = health

    def __repr__(self) -> str:
        """What is at work."""
        return f"<Driving {self._lines}>"

    @contextlib.asynccontextmanager
    async def step(
        self, caller: Principal, name: str, *, lease: str, expected_generation: int, seconds: float
    ) -> AsyncGenerator[Step]:
        """Hold the tab for one step, within `seconds` from now; every refusal tells whether the page was touched.

        Raises what `Rights.judged` does, TAB_REPLACED, DIALOG_OPEN, CALL_CAPACITY.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        try:
            right = await self._rights.judged(caller, name, lease)
            async with self._lines.turn(right.tab.name, seconds=seconds):
                right = await self._rights.judged(caller, name, lease)
                if refused := rules.has_generation(right.tab, expected_generation) or rules.has_no_dialog(right.tab):
                    raise refused
                with self.looking_after(right.tab.name):
                    yield Step(right, deadline)
        except Refused as refused:
            raise with_outcome(refused, faults.touched(refused)) from refused

    async def page(self, step: Step, *, again: bool = False) -> Page:
        """The live page, waited for within the time of the step; raises as `BrowserHost.page`.

        `again`: it went away before the step was handed over; a browser that is away may come back in time.
        """
        host = self._hosts.of(step.tab.name)
        if again:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(step.left):
                    await host.back()
        return await host.page(step.tab.name, timeout=step.left)

    async def record(self, step: Step, page: Page) -> Tab:
        """The tab as it stands after the step, with the address that the page shows; LEASE_LOST."""
        return await self._log.change(lambda changes: _record_visit(changes, step.right, page))

    @contextlib.contextmanager
    def looking_after(self, tab: str) -> Generator[None]:
        """Look at the tab at once where a call finds that its page does not answer, so that watchers learn of it."""
        try:
            yield
        except Refused as refused:
            if refused.reason is Reason.TAB_UNRESPONSIVE:
                self._health.check_soon(tab)
            raise


def _record_visit(changes: Changes, right: Right, page: Page) -> Tab:
    fence(changes, right, "yes")
    tab = changes.tab(right.tab.name)
    if tab is None or tab.state is not TabState.READY or not page.shown_uri:
        return tab or right.tab
    tab = changes.keep(replace(tab, last_active_time=changes.now))
    after = replace(tab, uri=page.shown_uri)
    return tab if after == tab else changes.record(after, ChangeCause.CLIENT)
