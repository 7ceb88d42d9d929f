"""What all who take part in a round share: the server, the pages, what is known of tabs, and when nobody was there."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.plan import Plan
from tests.e2e.pages import Pages
from tests.e2e.serving import PlaygroundProcess, Server


@dataclass
class Known:
    """What is known of one tab from the answers of the server and from what was asked of it."""

    owner: str
    drivers: set[str] = field(default_factory=set)
    """Everybody who could ever drive it: a later loss of the right is not noted, for the two would race."""
    addresses: set[str] = field(default_factory=set)
    """Every address that anybody ever sent it to."""


@dataclass(frozen=True)
class Popup:
    """A page that another was made to open: target id and address of that one, and how many outages there had been."""

    opener: str
    opener_address: str
    outages: int


class Outages:
    """When the server was not there: what a call that met an outage ends with says nothing."""

    def __init__(self) -> None:
        """The server is there."""
        self.count = 0
        self._down = False

    def begin(self) -> None:
        """The server is about to be killed."""
        self.count += 1
        self._down = True

    def end(self) -> None:
        """It serves again."""
        self._down = False

    def met(self, count_before: int) -> bool:
        """Whether one began since the count was this, or is not over."""
        return self._down or self.count != count_before


class Turns:
    """Numbers the operations of all clients, and tells when how many were begun."""

    def __init__(self, operations: int) -> None:
        """None was begun."""
        self._operations = operations
        self._begun = 0
        self._moved = asyncio.Condition()

    async def next(self) -> bool:
        """Begin one more; False once there were enough."""
        async with self._moved:
            if self._begun >= self._operations:
                return False
            self._begun += 1
            self._moved.notify_all()
            return True

    async def reached(self, count: int) -> None:
        """Return once so many were begun."""
        async with self._moved:
            await self._moved.wait_for(lambda: self._begun >= count)


@dataclass
class World:
    """One round."""

    plan: Plan
    server: Server
    pages: Pages
    playground: PlaygroundProcess
    turns: Turns
    outages: Outages = field(default_factory=Outages)
    tabs: dict[str, Known] = field(default_factory=dict)
    answers: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each method was answered with which reason; with none where it succeeded."""
    spares: dict[str, str] = field(default_factory=dict)
    """Address by target id of pages of the person that anybody may have."""
    popups: dict[str, Popup] = field(default_factory=dict)
    """By address."""
    prompts: set[str] = field(default_factory=set)
    """Texts that were sent as prompts, each perhaps several times under the same request id."""
    turn_names: set[str] = field(default_factory=set)
    browser_there: asyncio.Event = field(default_factory=asyncio.Event)
    """Clear from when the browser is killed until the next one is connected."""
