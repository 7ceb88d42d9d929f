"""The line of those who wait for room in one browser: first come, first served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import Final

from tabmuxd.events.log import Log

_LOOK_AGAIN: Final = 1.0


@dataclass(slots=True, eq=False)
class Place:
    """One caller's place: `waiting` once it has been told that there is no room.

    `reserved`: a tab is being closed for it, and the room that this makes is nobody else's.
    """

    waiting: bool = False
    reserved: bool = False


class Room:
    """Places of callers that want to open a tab. Changed on the loop only; `taken` may be read on any thread."""

    def __init__(self) -> None:
        """Nobody wants to open one."""
        self._places: list[Place] = []

    def __repr__(self) -> str:
        """How many wait, and for how many a tab is being closed."""
        reserved = sum(place.reserved for place in self._places)
        return f"<Room waiting={sum(place.waiting for place in self._places)} reserved={reserved}>"

    @contextlib.contextmanager
    def place(self) -> Generator[Place]:
        """Stand in line while entered."""
        place = Place()
        self._places.append(place)
        try:
            yield place
        finally:
            self._places.remove(place)

    def taken(self, place: Place) -> int:
        """How many free places are somebody else's: of those who wait ahead, and those a tab is being closed for."""
        places = tuple(self._places)
        ahead = places[: places.index(place)] if place in places else places
        if place.reserved:
            return sum(other.reserved for other in places if other is not place)
        return sum(other.reserved for other in places) + sum(other.waiting and not other.reserved for other in ahead)

    async def chance(self, place: Place, log: Log, revision: int, *, timeout: float | None) -> bool:
        """Wait until there may be room for this place: something has changed behind `revision`, or time has passed.

        Gives False when `timeout` seconds are over.
        """
        place.waiting = True
        limit = _LOOK_AGAIN if timeout is None else min(_LOOK_AGAIN, timeout)
        if limit <= 0:
            return False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                await log.moved(revision)
        return True
