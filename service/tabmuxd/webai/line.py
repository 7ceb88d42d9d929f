"""The line at a provider: at most so many turns at work there at once; the first first, among those that can go.

A turn that waits for something else, such as room for its tab, stands aside: it keeps its place in the line, and those
behind it go meanwhile. Once the provider has shown a limit of its own, nobody is let in for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.webai.providers.descriptor import Descriptor

MAX_TURN_COUNT: Final = 5


class Standing(Enum):
    """How a turn stands in the line."""

    WAITING = auto()
    """It could go now."""
    ASIDE = auto()
    """Something else is in its way."""
    AT_WORK = auto()
    """It was let in."""


def let_in(line: Sequence[Standing], limit: int) -> list[int]:
    """Who goes now, by their numbers in the line: those who wait, the first first, as many as there are places free."""
    free = max(0, limit - line.count(Standing.AT_WORK))
    return [number for number, standing in enumerate(line) if standing is Standing.WAITING][:free]


class ProviderLine:
    """All open turns of one provider, in the order in which they came. All runs on the loop."""

    def __init__(self, provider: str, limit: int, cool_down: float = 0.0) -> None:
        """`limit`: how many may be at work at once; 0 lets none in. `cool_down`: seconds after a limit was shown."""
        self._provider = provider
        self._limit = limit
        self._cool_down = cool_down
        self._places: list[LinePlace] = []
        self._limited: Refused | None = None

    def __repr__(self) -> str:
        """How many are at work, and how many wait or stand aside."""
        at_work = sum(place.standing is Standing.AT_WORK for place in self._places)
        return f"<ProviderLine {self._provider} at_work={at_work} of {self._limit} open={len(self._places)}>"

    def follow(self, descriptor: Descriptor, max_turn_count: int) -> None:
        """Have the limits of another descriptor of the provider."""
        self._limit, self._cool_down = _limit_of(descriptor, max_turn_count), descriptor.cool_down
        self.settle()

    def join(self, *, at_work: bool) -> LinePlace:
        """A place at the end of the line, to be left in the end.

        `at_work`: the prompt may have been submitted, so that it is at work already, whatever the limit.
        """
        place = LinePlace(self, Standing.AT_WORK if at_work else Standing.ASIDE)
        self._places.append(place)
        return place

    def leave(self, place: LinePlace) -> None:
        """The turn has ended."""
        if place in self._places:
            self._places.remove(place)
            self.settle()

    def cool_down(self, limited: Refused) -> None:
        """The provider has shown a limit: let nobody in for a while, at most until its end where that is told."""
        seconds = self._cool_down
        if limited.retry_delay is not None:
            seconds = min(seconds, limited.retry_delay.total_seconds())
        if seconds > 0:
            self._limited = limited
            asyncio.get_running_loop().call_later(seconds, self._cooled_down, limited)

    def _cooled_down(self, limited: Refused) -> None:
        if self._limited is limited:
            self._limited = None
            self.settle()

    def settle(self) -> None:
        """Let in who can go."""
        if self._limited is not None:
            return
        for number in let_in([place.standing for place in self._places], self._limit):
            self._places[number].open()

    def full(self) -> Refused:
        """What a turn fails with that was not let in within its time: PROVIDER_LIMITED, or else TURN_CAPACITY."""
        if self._limited is not None:
            return self._limited.with_metadata(tab="")
        return refuse(
            Reason.TURN_CAPACITY,
            f"{self._limit} turns may be at work at {self._provider} at once, and this one was not let in within its"
            " time; nothing was typed. Repeat it later, or give it more time.",
            retry_after=5,
            provider=self._provider,
            limit=self._limit,
        )


def line_of(descriptor: Descriptor, max_turn_count: int) -> ProviderLine:
    """The line of a provider; `max_turn_count` is for one whose descriptor does not say."""
    return ProviderLine(descriptor.id, _limit_of(descriptor, max_turn_count), descriptor.cool_down)


def _limit_of(descriptor: Descriptor, max_turn_count: int) -> int:
    return max_turn_count if descriptor.max_turn_count is None else descriptor.max_turn_count


class LinePlace:
    """The place of one turn in its provider's line."""

    def __init__(self, line: ProviderLine, standing: Standing) -> None:
        """Made by `ProviderLine.join`."""
        self._line = line
        self._opened = asyncio.Event()
        self.standing = standing

    def __repr__(self) -> str:
        """How it stands."""
        return f"<LinePlace {self.standing.name}>"

    @property
    def refused(self) -> Refused:
        """What to tell of a turn that was not let in within its time."""
        return self._line.full()

    def enter(self) -> bool:
        """It could go now; gives whether it may. If not it waits, and may be let in at any moment."""
        if self.standing is Standing.ASIDE:
            self._opened.clear()
            self.standing = Standing.WAITING
            self._line.settle()
        return self.standing is Standing.AT_WORK

    async def entered(self) -> None:
        """Wait until it is let in."""
        while not self.enter():
            await self._opened.wait()

    def step_aside(self) -> None:
        """Something else is in its way: let others go first."""
        if self.standing is not Standing.ASIDE:
            self.standing = Standing.ASIDE
            self._line.settle()

    def cool_down(self, limited: Refused) -> None:
        """It has met a limit of the provider."""
        self._line.cool_down(limited)

    def leave(self) -> None:
        """The turn has ended; may be repeated."""
        self._line.leave(self)

    def open(self) -> None:
        """For the line: it is let in."""
        self.standing = Standing.AT_WORK
        self._opened.set()
