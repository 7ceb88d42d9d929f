"""Who gets a new tab: a repeat gets the tab of the first request, and the limit is met before anything opens."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine
from datetime import timedelta
from functools import partial
from typing import Final

from tabmuxd.events.changes import Changes
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.names import RandomBytes, new_id, tab_name
from tabmuxd.resources.orders import OpenedTab, TabOrder
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import rules
from tabmuxd.tabs.addresses import check_address
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.opening import Ready, open_target
from tabmuxd.tasks import Tasks

_CREATE_METHOD: Final = "CreateTab"
_REPEAT_WINDOW: Final = timedelta(hours=24)


class Admission:
    """Opens tabs, each in a task of its own, so that a caller who goes away does not leave one half open."""

    def __init__(self, hosts: Hosts, log: Log, tasks: Tasks, random: RandomBytes) -> None:
        """Nothing opens yet."""
        self._hosts = hosts
        self._log = log
        self._tasks = tasks
        self._random = random
        self._openings: dict[str, asyncio.Task[OpenedTab]] = {}

    def __repr__(self) -> str:
        """How many tabs open now."""
        return f"<Admission opening={len(self._openings)}>"

    async def admit(self, owner: str, order: TabOrder, ready: Ready) -> OpenedTab:
        """Open a tab for `owner`; `ready` runs in the transaction that makes it READY."""
        task = await self._begun(owner, order, ready)
        return task if isinstance(task, OpenedTab) else await asyncio.shield(task)

    async def _begun(self, owner: str, order: TabOrder, ready: Ready) -> asyncio.Task[OpenedTab] | OpenedTab:
        uri = check_address(order.uri)
        host = self._hosts.named(order.browser)
        host.connected()
        while True:
            name = tab_name(host.name, new_id(self._random))
            marker = hashlib.sha256(self._random(32)).hexdigest()[:32]
            tab, made = await self._log.change(
                partial(self._insert, host=host, owner=owner, order=order, name=name, marker=marker)
            )
            if made:
                return self._begin(open_target(host, self._log, tab, order, uri=uri, ready=ready), tab.name)
            # Of two calls at once the one whose row it is was told first, so its task is there.
            running = self._openings.get(tab.name)
            if running is not None or tab.state is not TabState.OPENING:
                return running or OpenedTab(tab, None)
            # The rest of a call that died with its server: it ends, by proof, before this one begins anew.
            await host.close(tab, CloseCause.CLIENT, ChangeCause.CLIENT)

    def _begin(self, opening: Coroutine[object, object, OpenedTab], tab: str) -> asyncio.Task[OpenedTab]:
        task = self._tasks.spawn(opening, f"open {tab}", awaited=True)
        self._openings[tab] = task
        task.add_done_callback(lambda _task: self._openings.pop(tab, None))
        return task

    def _insert(
        self, changes: Changes, *, host: BrowserHost, owner: str, order: TabOrder, name: str, marker: str
    ) -> tuple[Tab, bool]:
        if order.request_id and (known := self._repeat(changes, owner, order)):
            return known, False
        if refused := rules.has_room(changes.tabs(host.name), host.name, host.options.limits):
            raise refused
        tab = Tab(
            name=name,
            state=TabState.OPENING,
            origin=TabOrigin.MANAGED,
            owner=owner,
            create_time=changes.now,
            last_active_time=changes.now,
            group=order.group,
            pinned=order.pinned,
            labels=dict(order.labels),
            dialog_policy=order.dialog_policy,
            marker=marker,
        )
        tab = changes.record(tab, ChangeCause.CLIENT)
        if order.request_id:
            expire_time = changes.now + _REPEAT_WINDOW
            changes.remember_request(owner, _CREATE_METHOD, order.request_id, order.payload_sha256, name, expire_time)
        return tab, True

    def _repeat(self, changes: Changes, owner: str, order: TabOrder) -> Tab | None:
        """The tab that this request made before; None for a first request, or one that left no tab."""
        known = changes.request(owner, _CREATE_METHOD, order.request_id)
        if known is None:
            return None
        if known.payload_sha256 != order.payload_sha256:
            raise refuse(
                Reason.REQUEST_ID_REUSED,
                f"The request id {order.request_id} was used for another CreateTab; nothing was done.",
                request_id=order.request_id,
                resource=known.resource,
            )
        tab = changes.tab(known.resource)
        never_ready = tab is None or (tab.ended and not tab.uri)
        return None if never_ready else tab
