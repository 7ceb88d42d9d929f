"""What is asked in one run, how the page answers, and what befalls it meanwhile, drawn from a seed: values, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from tests.hostile.script import Answer, Phase, answer, grow, show

VARIANTS: Final = ("plain", "nested", "few", "frames", "rekeyed", "late-turns", "emptied", "keyless")
"""How pages are built; a provider for each, and one more that copies."""
COPYING: Final = "copying"
_TURNS_PER_TALK: Final = 5
_TURNS_PER_CLOSE: Final = 9
_TURNS_PER_SERVER_KILL: Final = 45
_TURNS_PER_BROWSER_KILL: Final = 80
_PLACEHOLDERS: Final = ("Thinking", "Searching...", "Pro thinking \N{BULLET} 3 s", "Thought for 7s")


class End(Enum):
    """How an answer ends in the page, and the reason that a turn tells then."""

    DONE = ""
    BANNER = "PROVIDER_FAILED"
    UNMARKED = "ANSWER_STALLED"
    HALTED = "ANSWER_STOPPED"


class Act(Enum):
    """What befalls all that is under way."""

    CLOSE_TAB = "a person closes a tab"
    KILL_SERVER = "the server is killed"
    KILL_BROWSER = "the browser is killed"


@dataclass(frozen=True)
class Asked:
    """One prompt, and what the page answers."""

    prompt: str
    answer: Answer
    end: End


@dataclass(frozen=True)
class Planned:
    """One conversation with a provider."""

    provider: str
    turns: tuple[Asked, ...]


@dataclass(frozen=True)
class Plan:
    """Conversations in the order in which they begin; an act is due when its number of turns was begun."""

    seed: int
    talks: tuple[Planned, ...]
    acts: tuple[tuple[int, Act], ...]


def plan(seed: int, turn_count: int) -> Plan:
    """The same for the same arguments."""
    random = Random(seed)
    asked = [_asked(random, f"{seed:x}-{number}") for number in range(turn_count)]
    talks = [
        Planned(random.choice((*VARIANTS, COPYING)), tuple(asked[start : start + _TURNS_PER_TALK]))
        for start in range(0, turn_count, _TURNS_PER_TALK)
    ]
    acts: list[tuple[int, Act]] = []
    for act, every in (
        (Act.CLOSE_TAB, _TURNS_PER_CLOSE),
        (Act.KILL_SERVER, _TURNS_PER_SERVER_KILL),
        (Act.KILL_BROWSER, _TURNS_PER_BROWSER_KILL),
    ):
        acts += [(random.randrange(2, turn_count + 1), act) for _ in range(max(1, turn_count // every))]
    return Plan(seed, tuple(talks), tuple(sorted(acts, key=lambda due: due[0])))


def _asked(random: Random, name: str) -> Asked:
    end = random.choices(tuple(End), (20, 2, 1, 1))[0]
    phases: list[Phase] = []
    if random.random() < 0.4:
        phases.append(show(random.uniform(0, 1.5)))
    if random.random() < 0.3 or end is End.HALTED:
        phases.append(show(random.uniform(0.2, 1.0), placeholder=random.choice(_PLACEHOLDERS)))
    if end is End.HALTED:
        return Asked(f"Question {name}", answer(*phases, show(0, placeholder="Stopped thinking", stop=0)), end)
    text = _text(random, name)
    phases += _growing(random, text)
    match end:
        case End.DONE:
            phases.append(show(0, stop=0, done=True))
        case End.BANNER:
            phases.append(show(0, stop=0, banner="Something went wrong."))
        case _:
            phases.append(show(0, stop=0))
    return Asked(f"Question {name}", answer(*phases), end)


def _text(random: Random, name: str) -> str:
    """Words that occur in no other answer; from one letter to some thousand characters."""
    if random.random() < 0.15:
        return random.choice(("4", "Yes.", "\N{GRINNING FACE}", "Thinking aloud"))
    counts = [random.randint(1, 60) for _ in range(random.randint(1, 12))]
    return "\n\n".join(
        " ".join(f"{name}-{place}-{word}" for word in range(count)) for place, count in enumerate(counts)
    )


def _growing(random: Random, text: str) -> Sequence[Phase]:
    phases: list[Phase] = []
    cuts = sorted(random.randrange(len(text)) for _ in range(random.randint(0, 3)))
    for cut in (*cuts, len(text)):
        phases.append(grow(text[:cut], random.uniform(0.02, 0.5), pieces=random.randint(1, 8), stop=1))
        if cut < len(text) and random.random() < 0.6:
            phases.append(show(random.uniform(0, 1.5), stop=random.randint(0, 1)))
    if random.random() < 0.15:
        phases.insert(random.randrange(len(phases)), show(0.1, do="location.reload()"))
    return phases
