"""A person in the browser, and whoever else has a DevTools connection of their own: what tests do behind our back."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from tests.e2e.serving import LIMIT


@dataclass(frozen=True)
class Looks:
    """What a page shows of itself: nothing of this may change behind its owner's back."""

    uri: str
    title: str
    history: int


class Person:
    """A DevTools connection of its own, that of nobody we know."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = 0
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: dict[tuple[str, str], asyncio.Future[dict[str, Any]]] = {}
        self.attached: set[str] = set()
        """Target ids to which somebody was seen to be attached."""

    async def listen(self) -> None:
        """Read until the connection ends."""
        async for message in self._socket:
            told = message.json()
            if (reply := self._replies.pop(told.get("id", 0), None)) is not None and not reply.done():
                reply.set_result(told)
            waiting = self._events.pop((told.get("method", ""), told.get("sessionId", "")), None)
            if waiting is not None and not waiting.done():
                waiting.set_result(told["params"])
            info = told.get("params", {}).get("targetInfo", {})
            if told.get("method") == "Target.targetInfoChanged" and info.get("attached"):
                self.attached.add(info["targetId"])

    async def call(self, method: str, session: str = "", **params: object) -> dict[str, Any]:
        """Result of one command, of the browser or of an attached session."""
        async with asyncio.timeout(LIMIT):
            reply = await (await self.send(method, session, **params))
        assert "error" not in reply, reply
        return reply["result"]

    async def send(self, method: str, session: str = "", **params: object) -> asyncio.Future[dict[str, Any]]:
        """Send a command whose answer may never come."""
        self._ids += 1
        reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._replies[self._ids] = reply
        where = {"sessionId": session} if session else {}
        await self._socket.send_json({"id": self._ids, "method": method, "params": params, **where})
        return reply

    async def watch_attaches(self) -> None:
        """From now on see who is attached to what."""
        await self.call("Target.setDiscoverTargets", discover=True)

    async def open(self, uri: str) -> str:
        """Open a page that is nobody's but this person's; its target id."""
        result = await self.call("Target.createTarget", url=uri)
        return str(result["targetId"])

    async def open_loaded(self, uri: str) -> str:
        """As `open`, once the page has loaded."""
        target_id = await self.open("about:blank")
        session = await self.attach(target_id)
        loaded = self.event("Page.loadEventFired", session)
        await self.call("Page.enable", session)
        await self.call("Page.navigate", session, url=uri)
        async with asyncio.timeout(LIMIT):
            await loaded
        await self.call("Target.detachFromTarget", sessionId=session)
        return target_id

    def event(self, method: str, session: str) -> asyncio.Future[dict[str, Any]]:
        """The next event of this name in a session."""
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._events[method, session] = waiting
        return waiting

    async def close(self, target_id: str) -> None:
        """Close a page, whoever it belongs to; returns once it is gone."""
        # Chrome 156 says that it closes a page whose document was committed a moment ago, and often does not. One that
        # hangs is closed half a second after the last order: each order anew begins that time again.
        async with asyncio.timeout(2 * LIMIT):
            while target_id in await self.pages():
                await self.send("Target.closeTarget", targetId=target_id)
                await self._gone(target_id, seconds=2)

    async def _gone(self, target_id: str, *, seconds: float) -> None:
        """Return once the page is gone, or after this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while target_id in await self.pages():  # noqa: ASYNC110 - nothing tells of it
                    await asyncio.sleep(0.02)

    async def raise_page(self, target_id: str) -> None:
        """Bring a page to the front."""
        await self.call("Target.activateTarget", targetId=target_id)

    async def attach(self, target_id: str) -> str:
        """Attach to a page; the session's id."""
        result = await self.call("Target.attachToTarget", targetId=target_id, flatten=True)
        return str(result["sessionId"])

    async def evaluate(self, session: str, expression: str, *, promised: bool = False) -> Any:  # noqa: ANN401 - JSON
        """Value of an expression in a page, or what it promises."""
        reply = await self.call(
            "Runtime.evaluate", session, expression=expression, returnByValue=True, awaitPromise=promised
        )
        return reply["result"].get("value")

    async def touch(self, session: str) -> None:
        """Click near the upper left corner, as a person would."""
        at = {"x": 100, "y": 100, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", session, type=kind, **at)

    async def pages(self) -> dict[str, dict[str, Any]]:
        """What the browser says of each page, by target id."""
        listed = await self.call("Target.getTargets")
        return {info["targetId"]: info for info in listed["targetInfos"] if info["type"] == "page"}

    async def looks(self, target_id: str) -> Looks:
        """Address, title and history of a page; attaches for a moment."""
        session = await self.attach(target_id)
        history = await self.call("Page.getNavigationHistory", session)
        await self.call("Target.detachFromTarget", sessionId=session)
        info = (await self.pages())[target_id]
        return Looks(info["url"], info["title"], len(history["entries"]))

    async def front(self) -> list[str]:
        """Titles of the tabs that are shown in their windows."""
        listed = await self.call("Target.getTargets", filter=[{"type": "tab"}])
        return [info["title"] for info in listed["targetInfos"] if info.get("embedderData", {}).get("tabActive")]


@contextlib.asynccontextmanager
async def person_at(profile: Path) -> AsyncGenerator[Person]:
    """Somebody with a connection of their own to the browser on this profile."""
    port, path = (profile / "DevToolsActivePort").read_text().split("\n")[:2]
    async with (
        aiohttp.ClientSession() as http,
        http.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as socket,
    ):
        person = Person(socket)
        listening = asyncio.ensure_future(person.listen())
        try:
            yield person
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
