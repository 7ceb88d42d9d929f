"""Leases of clients: acquired, renewed, released, listed, and ended when their time is over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.names import RandomBytes, lease_name, new_id
from tabmuxd.resources.orders import LeaseOrder
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import CloseCause, Tab, TabState
from tabmuxd.tabs import lease_records, lease_rules, rules
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.lines import Lines
from tabmuxd.tabs.rights import Rights
from tabmuxd.tasks import Tasks

_OPENING_WAIT: Final = 5.0


class Leases:
    """The leases of all tabs. All runs on the loop."""

    def __init__(
        self,
        hosts: Hosts,
        log: Log,
        tasks: Tasks,
        lines: Lines,
        *,
        random: RandomBytes,
        clock: Callable[[], datetime],
        tried_again: Callable[[str], bool] = lambda _tab: False,
    ) -> None:
        """`clock` is that of the log; `tried_again`: whether the close of a tab has failed and goes its own way."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._lines = lines
        self._tried_again = tried_again
        self._random = random
        self._clock = clock
        self._rights = Rights(log, clock)
        self._closing: dict[str, asyncio.Task[None]] = {}

    def __repr__(self) -> str:
        """How many leases live, and how many tabs close because theirs expired."""
        return f"<Leases live={len(self._log.live.leases)} closing={len(self._closing)}>"

    def new_name(self) -> str:
        """A name for a lease, never used before."""
        return lease_name(new_id(self._random))

    async def acquire(self, caller: Principal, order: LeaseOrder) -> Lease:
        """Lease a tab, in whatever state it is but CLOSED; the same `request_id` gets the same lease while that lives.

        Waits until the tab is open, and for its turn in the line: from the first moment no other call is at work.
        """
        while True:
            tab = await self._rights.tab(order.tab)
            order = replace(order, tab=tab.name)
            if refused := rules.may_drive(caller, tab):
                raise refused
            await self._settle(tab)
            if known := self._held(caller, order):
                return known
            await self._opened(tab)
            async with self._lines.turn(tab.name):
                lease = await self._log.change(
                    partial(lease_records.acquire, caller=caller, order=order, name=self.new_name())
                )
            if lease is not None:
                return lease

    async def renew(self, caller: Principal, name: str) -> Lease:
        """Extend a lease by its time to live from now; LEASE_LOST once it has ended."""
        return await self._log.change(partial(lease_records.renew, caller=caller, name=name))

    async def release(self, caller: Principal, name: str) -> Lease:
        """Give a lease back, without waiting for a call at work under it; one that has ended is given as it is."""
        return await self._log.change(partial(lease_records.release, caller=caller, name=name))

    async def list(self, tab: str, *, after: int, count: int) -> Sequence[tuple[int, Lease]]:
        """At most `count` live leases granted after the revision `after`, each with that of its grant, oldest first.

        With `tab`, the one that holds it, which may have been granted on its opener.
        """
        if not tab:
            return await self._log.list_leases(after=after, count=count)
        held = self._log.live.holder(await self._rights.tab(tab))
        return [] if held is None or after else [(held.revision, held)]

    async def granted(self, name: str, tab: str, owner: str, request_id: str) -> Lease | None:
        """The lease of this name, ended or not; else the live one on the tab that `owner` got under this request."""
        if found := await self._log.get_lease(name):
            return found
        now = self._clock()
        return next(
            (
                lease
                for lease in self._log.live.leases.values()
                if request_id
                and (lease.tab, lease.owner, lease.request_id) == (tab, owner, request_id)
                and lease_rules.holding(lease, now)
            ),
            None,
        )

    async def prolong(self) -> None:
        """Give each live lease its time to live once more; called once, at start."""
        await self._log.change(lease_records.prolong)

    async def expire(self) -> None:
        """End every lease whose time is over, and begin the closes that are owed for it; run once a second."""
        now = self._clock()
        if any(lease_rules.is_over(lease, now) for lease in self._log.live.leases.values()):
            await self._log.change(lease_records.expire)
        for tab in tuple(self._log.live.tabs.values()):
            self._begin_close(tab)

    def _held(self, caller: Principal, order: LeaseOrder) -> Lease | None:
        """The lease of an earlier request that this one repeats; LEASE_HELD at once where another holds the tab."""
        now = self._clock()
        if known := lease_rules.repeated(self._log.live.leases.values(), caller.name, order, now):
            return known
        tab = self._log.live.tab(order.tab)
        held = lease_rules.holding(self._log.live.holder(tab), now) if tab else None
        if tab is not None and held is not None:
            raise lease_rules.is_held(tab.name, held, now)
        return None

    async def _settle(self, tab: Tab) -> None:
        """Bring to its end what holds the tab beyond its time, before anybody else gets it."""
        held = self._log.live.holder(tab)
        if held is not None and lease_rules.is_over(held, self._clock()):
            await self._log.change(lease_records.expire)
        now = self._log.live.tab(tab.name)
        if now is not None and (closing := self._begin_close(now)):
            await asyncio.shield(closing)

    async def _opened(self, tab: Tab) -> None:
        """Wait until the tab is not OPENING any more: whoever opens it may get a lease with it."""
        try:
            async with asyncio.timeout(_OPENING_WAIT):
                while (now := self._log.live.tab(tab.name)) is not None and now.state is TabState.OPENING:
                    await self._log.moved(self._log.progress.revision)
        except TimeoutError:
            raise refuse(
                Reason.CALL_CAPACITY,
                f"{tab.name} is still being opened; nothing was done. Repeat the call later.",
                retry_after=1,
                tab=tab.name,
                cause="line_slow",
            ) from None

    def _begin_close(self, tab: Tab) -> asyncio.Task[None] | None:
        """Close a tab whose expired lease asked for it, in a task of its own; None if it cannot be, or need not."""
        if running := self._closing.get(tab.name):
            return running
        if tab.close_owed is not CloseCause.LEASE or tab.browser_name not in self._hosts:
            return None
        if self._tried_again(tab.name):
            return None
        if tab.state is not TabState.LOST and self._hosts.of(tab.name).targets is None:
            return None  # the browser is away: the close stays owed
        closing = self._tasks.spawn(self._close(tab.name), f"close {tab.name} for its lease")
        self._closing[tab.name] = closing
        closing.add_done_callback(lambda _task: self._closing.pop(tab.name, None))
        return closing

    async def _close(self, name: str) -> None:
        """Wait for the tab's turn, judge again, and close it; what fails is tried again by the next run."""
        with contextlib.suppress(Refused):
            async with self._lines.turn(name):
                tab = await self._log.change(partial(lease_records.owed_close, name=name))
                if tab is not None:
                    await self._hosts.of(name).close(tab, CloseCause.LEASE, ChangeCause.EXPIRY)
