"""How all who wait for news are woken at once."""

from __future__ import annotations

import asyncio


class Bell:
    """Those who wait for the next ring. Each has a future of its own: one that is cancelled takes no other along.

    To be used on the loop only.
    """

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Future[bool], None] = {}

    def __repr__(self) -> str:
        return f"<Bell waiting={len(self._waiting)}>"

    def listen(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[bool]:
        """A future that is False at the next ring. Whoever takes it calls `leave` with it in the end."""
        future: asyncio.Future[bool] = asyncio.Future(loop=loop)
        self._waiting[future] = None
        return future

    def leave(self, future: asyncio.Future[bool]) -> None:
        """Nobody waits for this future any more."""
        self._waiting.pop(future, None)

    def ring(self) -> None:
        """Wake all who wait now."""
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(False)
