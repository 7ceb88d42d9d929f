"""What one round of chaos does, drawn from its seed: plain values, no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final


class Stage(Enum):
    """Whose browser it is, and whether it may be killed: the person's pages outlive a round only where it is not."""

    ATTACHED = "attached"
    LAUNCHED_KILLED = "launched-killed"
    ATTACHED_KILLED = "attached-killed"

    @property
    def attached(self) -> bool:
        """Whether the server finds the browser instead of launching it."""
        return self is not Stage.LAUNCHED_KILLED

    @property
    def killed(self) -> bool:
        """Whether the saboteur kills the browser."""
        return self is not Stage.ATTACHED


class Act(Enum):
    """What the saboteur does once."""

    CLOSE_TAB = "close a tab"
    CRASH_TAB = "crash a tab"
    OPEN_POPUP = "open a popup"
    OPEN_SPARE = "open a page that may be adopted"
    CUT_WATCH = "cut the watch"
    KILL_SERVER = "kill the server"
    KILL_BROWSER = "kill the browser"


_LIGHT: Final[Mapping[Act, int]] = {
    Act.CLOSE_TAB: 4,
    Act.CRASH_TAB: 2,
    Act.OPEN_POPUP: 2,
    Act.OPEN_SPARE: 1,
    Act.CUT_WATCH: 1,
}
_OPERATIONS_PER_LIGHT_ACT: Final = 8
_OPERATIONS_PER_SERVER_KILL: Final = 100
_OPERATIONS_PER_BROWSER_KILL: Final = 170


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done and by how many; an act is due when its number of operations was begun."""

    seed: int
    stage: Stage
    operations: int
    clients: int
    acts: Sequence[tuple[int, Act]]


def plan(seed: int, stage: Stage, *, operations: int, clients: int) -> Plan:
    """Draw a round from its seed: each kind of kill at least once, the acts spread over all operations."""
    random = Random(seed)
    acts = random.choices(list(_LIGHT), list(_LIGHT.values()), k=operations // _OPERATIONS_PER_LIGHT_ACT)
    acts += [Act.KILL_SERVER] * max(1, operations // _OPERATIONS_PER_SERVER_KILL)
    if stage.killed:
        acts += [Act.KILL_BROWSER] * max(1, operations // _OPERATIONS_PER_BROWSER_KILL)
    random.shuffle(acts)
    moments = sorted(random.randrange(operations // 10, operations) for _ in acts)
    return Plan(seed, stage, operations, clients, tuple(zip(moments, acts, strict=True)))
