"""Two things measured alternately in one run, and what their medians say."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

_MILLISECONDS: Final = 1000.0

Measure = Callable[[int], Awaitable[Sequence[float]]]
"""Measures one round, which is given by its number, and gives times in seconds, one at least."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Times in seconds, by round: of what is measured, and of what it is measured against."""

    measured: tuple[tuple[float, ...], ...]
    against: tuple[tuple[float, ...], ...]

    @property
    def ratio(self) -> float:
        """Median of what is measured over the median of what it is measured against."""
        return median(_flat(self.measured)) / median(_flat(self.against))

    @property
    def round_ratios(self) -> tuple[float, ...]:
        """The same ratio of each round alone, lowest first: how far apart they are tells how noisy the run was."""
        rounds = zip(self.measured, self.against, strict=True)
        return tuple(sorted(median(measured) / median(against) for measured, against in rounds))

    def summary(self, measured: str, against: str) -> dict[str, object]:
        """Medians and 95th percentiles in ms under the two names, the count, and the quartiles of the rounds."""
        ratios = self.round_ratios
        return {
            **_times(measured, _flat(self.measured)),
            **_times(against, _flat(self.against)),
            "count": len(_flat(self.measured)),
            "rounds": len(ratios),
            "round_ratio_quartiles": [round(percentile(ratios, 25), 3), round(percentile(ratios, 75), 3)],
        }


async def alternate(measured: Measure, against: Measure, *, rounds: int, progress: Callable[[str], None]) -> Comparison:
    """Measure both in turns. The one that goes first changes from round to round, so that neither has the warmer place.

    Round 0 comes before all others, warms up, and does not count.
    """
    kept: tuple[list[tuple[float, ...]], list[tuple[float, ...]]] = ([], [])
    for number in range(rounds + 1):
        taken: dict[int, tuple[float, ...]] = {}
        for which in (0, 1) if number % 2 else (1, 0):
            taken[which] = tuple(await (measured, against)[which](number))
        if number:
            kept[0].append(taken[0])
            kept[1].append(taken[1])
            here = median(taken[0]) / median(taken[1])
            progress(f"round {number} of {rounds}: {_ms(taken[0])} against {_ms(taken[1])} ms, ratio {here:.2f}")
    return Comparison(tuple(kept[0]), tuple(kept[1]))


def percentile(times: Sequence[float], percent: float) -> float:
    """The smallest of `times` that is not below `percent` of them (nearest rank)."""
    ordered = sorted(times)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def report(
    bench: str, value: float, goal: float, more: Mapping[str, object], *, unit: str = "ratio", better: str = "lower"
) -> str:
    """The line that a benchmark ends with: one JSON object; `better` says which values are, lower or higher ones."""
    line = {"bench": bench, "value": round(value, 3), "unit": unit, "goal": goal, "better": better}
    return json.dumps({**line, **more, "cores": os.cpu_count()})


def tell(text: str) -> None:
    """Show progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def _flat(rounds: Sequence[Sequence[float]]) -> list[float]:
    return [time for times in rounds for time in times]


def _times(name: str, times: Sequence[float]) -> dict[str, object]:
    return {
        f"{name}_p50_ms": round(median(times) * _MILLISECONDS, 3),
        f"{name}_p95_ms": round(percentile(times, 95) * _MILLISECONDS, 3),
    }


def _ms(times: Sequence[float]) -> str:
    return f"{median(times) * _MILLISECONDS:.2f}"
