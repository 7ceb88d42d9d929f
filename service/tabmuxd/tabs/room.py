"""The line of those who wait for room in one browser: first come, first served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, Protocol

from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused

MAX_WAITING: Final = 256
_MAX_ASKING: Final = 64
_LOOK_AGAIN: Final = 1.0
# Who stands further behind looks less often: however long the line is, it keeps nobody else from working.
_LEAST_PAUSE: Final = 0.02
_PAUSE_A_PLACE: Final = 0.005


class Gate(Protocol):
    """What a caller needs beside room, and does not hold while there is none."""

    @property
    def refused(self) -> Refused:
        """Why the caller gets no tab, where there was room and the gate was shut."""
        ...

    def enter(self) -> bool:
        """There may be room; gives whether the gate is open, which it then stays until `step_aside`."""
        ...

    def step_aside(self) -> None:
        """There is no room: others go first."""
        ...


@dataclass(slots=True, eq=False)
class Place:
    """One caller's place: `waiting` once it has been told that there is no room, `left` once it is gone.

    `reserved`: a tab is being closed for it, and the room that this makes is nobody else's. `shut`: there may be room,
    but its gate is shut, so that others behind it may have it. `ask_again`: when what the store alone knows is to be
    looked at once more, in loop time.
    """

    waiting: bool = False
    reserved: bool = False
    shut: bool = False
    left: bool = False
    ask_again: float = 0.0


class Room:
    """Places of callers that want to open a tab. Changed on the loop only; `taken` may be read on any thread."""

    def __init__(self) -> None:
        """Nobody wants to open one."""
        self._places: list[Place] = []
        self.asking = asyncio.Semaphore(_MAX_ASKING)
        """Held while the store is asked: ten thousand who ask at once leave room in its line for others."""

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
            place.left = True
            self._places.remove(place)

    @property
    def is_full(self) -> bool:
        """Whether as many wait as may."""
        return sum(place.waiting for place in self._places) >= MAX_WAITING

    def taken(self, place: Place) -> int:
        """How many free places are somebody else's: of those who wait ahead, and those a tab is being closed for."""
        places = tuple(self._places)
        ahead = places[: places.index(place)] if place in places else places
        if place.reserved:
            return sum(other.reserved for other in places if other is not place)
        wanted = (other.waiting and not other.reserved and not other.shut for other in ahead)
        return sum(other.reserved for other in places) + sum(wanted)

    async def chance(
        self, place: Place, log: Log, revision: int, may: Callable[[], bool], *, timeout: float | None
    ) -> bool:
        """Wait until there `may` be room for this place: looked at when something has changed, or time has passed.

        `revision` is that of the last look. Gives False when `timeout` seconds are over.
        """
        loop = asyncio.get_running_loop()
        deadline = None if timeout is None else loop.time() + timeout
        place.waiting = True
        while deadline is None or loop.time() < deadline:
            limit = _LOOK_AGAIN if deadline is None else min(_LOOK_AGAIN, deadline - loop.time())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await log.moved(revision)
                    await asyncio.sleep(max(_LEAST_PAUSE, _PAUSE_A_PLACE * self._places.index(place)))
            revision = log.progress.revision
            if may():
                return True
        return False
