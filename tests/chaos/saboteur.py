"""Somebody who means no harm to anybody in particular: closes and crashes pages, and kills what serves them."""

from __future__ import annotations

import asyncio
from random import Random

from tabmux.v1.browser_pb2 import Browser

from tests.chaos.browsers import Chrome
from tests.chaos.chronicle import Chronicle
from tests.chaos.plan import Act
from tests.chaos.world import Popup, World
from tests.e2e.serving import LIMIT


class Saboteur:
    """Acts when the plan says so, while the clients go on."""

    def __init__(self, world: World, browser: Chrome, watch: Chronicle) -> None:
        """Nothing is done yet."""
        world.browser_there.set()
        self._world = world
        self._browser = browser
        self._watch = watch
        self._random = Random(f"{world.plan.seed} saboteur")

    async def work(self) -> None:
        """Do all that is planned."""
        for moment, act in self._world.plan.acts:
            await self._world.turns.reached(moment)
            await self.act(act)

    async def act(self, act: Act) -> None:
        """Do one thing."""
        match act:
            case Act.CUT_WATCH:
                self._watch.cut()
            case Act.KILL_SERVER:
                self._world.outages.begin()
                await self._world.server.restart()
                # Until it is connected it sees no page open, nor which one opened it.
                await self._world.server.browser_when(lambda browser: browser.state == Browser.STATE_ACTIVE)
                self._world.outages.end()
            case Act.KILL_BROWSER:
                self._world.browser_there.clear()
                await self._browser.kill()
                self._world.browser_there.set()
            case Act.OPEN_SPARE:
                address = self._world.pages.at(f"/page?title=spare-{len(self._world.spares)}")
                self._world.spares[await self._browser.person.open(address)] = address
            case Act.CLOSE_TAB | Act.CRASH_TAB | Act.OPEN_POPUP:
                await self._spoil(act)

    async def _spoil(self, act: Act) -> None:
        """Close a page that is not the person's, or crash it, or have it open another; nothing is waited for."""
        person = self._browser.person
        pages = await person.pages()
        targets = sorted(pages.keys() - self._browser.foreign.target_ids)
        if not targets:
            return
        target_id = self._random.choice(targets)
        if act is Act.CLOSE_TAB:
            await person.send("Target.closeTarget", targetId=target_id)
            return
        async with asyncio.timeout(LIMIT):
            reply = await (await person.send("Target.attachToTarget", targetId=target_id, flatten=True))
        if (session := reply.get("result", {}).get("sessionId")) is None:
            return  # it is gone already
        if act is Act.CRASH_TAB:
            await person.send("Page.crash", session)
            return
        address = self._world.pages.at(f"/page?title=popup-{len(self._world.popups)}")
        self._world.popups[address] = Popup(target_id, pages[target_id]["url"], self._world.outages.count)
        await person.send("Runtime.evaluate", session, expression=f"window.open('{address}')", userGesture=True)
