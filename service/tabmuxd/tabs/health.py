"""How our tabs are, and what they are titled: one look that changes nothing in the page, on demand and in rounds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, assert_never

from tabmuxd.cdp.errors import CdpError, ConnectionLost, TargetGone
from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import HealthStatus, Tab, TabHealth, TabState
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.page import Page
from tabmuxd.tasks import Tasks

PROBE_TIMEOUT: Final = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class Finding:
    """What a look found; `generation` is that of the tab that was looked at."""

    tab: str
    generation: int
    health: TabHealth


async def probe(page: Page, *, timeout: float) -> tuple[HealthStatus, timedelta | None, bool]:
    """Whether the page answers within `timeout` seconds, how long that took, and whether it takes itself for visible.

    A dialog holds everything up, so that a page with one is UNRESPONSIVE at once. Raises ConnectionLost.
    """
    if page.dialog is not None:
        return HealthStatus.UNRESPONSIVE, None, False
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        shown = await page.value_apart("document.visibilityState", timeout=timeout)
    except ConnectionLost:
        raise
    except TargetGone as error:
        return HealthStatus.CRASHED if error.crashed else HealthStatus.GONE, None, False
    except CdpError:
        return HealthStatus.UNRESPONSIVE, None, False
    return HealthStatus.ALIVE, timedelta(seconds=loop.time() - began), shown == "visible"


class Health:
    """Looks at tabs. A look waits in no line, is no activity, and what it finds is recorded where it has changed."""

    def __init__(self, hosts: Hosts, log: Log, tasks: Tasks, lines: Lines, clock: Callable[[], datetime]) -> None:
        """Nothing is looked at yet."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._lines = lines
        self._clock = clock

    async def check(self, tab: Tab, *, timeout: timedelta = PROBE_TIMEOUT) -> Tab:
        """The tab with what a look at it found; BROWSER_UNREACHABLE where nothing can be found.

        A closed one is GONE, for good.
        """
        if tab.ended:
            return replace(tab, health=TabHealth(HealthStatus.GONE, self._clock()))
        host = self._hosts.of(tab.name)
        finding, _ = await asyncio.gather(self._look(host, tab, timeout.total_seconds()), host.look())
        if finding is None:
            raise faults.unreachable(tab.browser_name)
        await self._log.change(lambda changes: _record(changes, [finding]))
        now = self._log.live.tab(tab.name) or await self._log.get_tab(tab.name)
        if now is None:
            raise rules.unknown_tab(tab.name)
        # The tab may be another one meanwhile; what was found is the answer.
        return now if now.health == finding.health else replace(now, health=finding.health)

    def check_soon(self, name: str) -> None:
        """Look at a tab at once, so that watchers learn how it is; nobody waits for that."""
        self._tasks.spawn(self._check_quietly(name), f"look at {name}")

    async def _check_quietly(self, name: str) -> None:
        tab = self._log.live.tab(name)
        if tab is not None and tab.state is TabState.READY:
            try:
                await self.check(tab)
            except Refused as refused:
                if refused.reason is not Reason.BROWSER_UNREACHABLE:
                    raise

    async def sweep(self) -> None:
        """Look at each READY tab that no call is at work on and no dialog holds up, all at once; one transaction."""
        at_work = self._lines.at_work
        looked = [
            self._look(host, tab, PROBE_TIMEOUT.total_seconds())
            for host in self._hosts
            if host.targets is not None
            for tab in self._log.live.tabs.values()
            if tab.browser_name == host.name
            and tab.state is TabState.READY
            and tab.dialog is None
            and tab.name not in at_work
        ]
        # Chromium 156 tells nobody of a title that a script has set: it is asked for all of them at once.
        titles = asyncio.gather(*(host.look() for host in self._hosts))
        found, _ = await asyncio.gather(asyncio.gather(*looked), titles)
        findings = [finding for finding in found if finding is not None]
        if findings:
            await self._log.change(lambda changes: _record(changes, findings))

    async def _look(self, host: BrowserHost, tab: Tab, timeout: float) -> Finding | None:
        """What is found within `timeout` seconds; None where the browser is away."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        status, latency, visible = HealthStatus.UNRESPONSIVE, None, False
        match tab.state:
            case TabState.READY if tab.name in host.discarded:
                pass  # whoever wants its page would have it loaded again
            case TabState.READY | TabState.OPENING:
                try:
                    page = host.pages.get(tab.name) or await host.page(tab.name, timeout=timeout)
                    status, latency, visible = await probe(page, timeout=deadline - loop.time())
                    if status is HealthStatus.GONE and page.session.target_id in host.connected().pages:
                        status = HealthStatus.UNRESPONSIVE  # only its session has ended
                except ConnectionLost:
                    return None
                except Refused as refused:
                    if refused.reason is Reason.BROWSER_UNREACHABLE:
                        return None
                    if refused.reason is not Reason.TAB_UNRESPONSIVE:
                        status = HealthStatus.GONE
            case TabState.CRASHED:
                status = HealthStatus.CRASHED
            case _:
                status = HealthStatus.GONE
        return Finding(tab.name, tab.generation, TabHealth(status, self._clock(), latency, visible))


def _record(changes: Changes, findings: Sequence[Finding]) -> None:
    """Record what has changed, keep the rest; what was found of another target than the present one is nothing."""
    for finding in findings:
        tab = changes.tab(finding.tab)
        if tab is None or tab.ended or tab.generation != finding.generation or not _fits(tab, finding.health):
            continue
        after = replace(tab, health=finding.health)
        if tab.health is None or (tab.health.status, tab.health.visible) != (
            finding.health.status,
            finding.health.visible,
        ):
            changes.record(after, ChangeCause.PAGE)
        else:
            changes.keep(after)


def _fits(tab: Tab, health: TabHealth) -> bool:
    """Whether the tab is still in the state that this was found in; the end of a page is recorded by its own event."""
    match health.status:
        case HealthStatus.ALIVE | HealthStatus.UNRESPONSIVE:
            return tab.state in (TabState.READY, TabState.OPENING)
        case HealthStatus.CRASHED:
            return tab.state is TabState.CRASHED
        case HealthStatus.GONE:
            return tab.state in (TabState.LOST, TabState.RECOVERING)
    assert_never(health.status)
