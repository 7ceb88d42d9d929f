"""What a hostile page shows of an answer, and when: plain values that a test writes as a table.

An answer is a row of phases. Each changes some of what is shown, the rest stays as it was, and holds for its time; the
last one holds for ever.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Final

HELD: Final = 3600.0
"""Seconds of a phase that lasts until a test lets the page go on."""
_PIECES: Final = 8


@dataclass(frozen=True, slots=True)
class View:
    """What the page shows of one turn.

    `text` is split into paragraphs at empty lines; `html` takes its place. `copied`: what the copy button writes, if
    not `text`. `user`: the own prompt shows, in the conversation's own address. `place`: the node of the answer is
    there, also without text. `stop`: number of Stop controls. `do`: a script that the page runs once.
    """

    text: str = ""
    html: str = ""
    copied: str | None = None
    user: bool = True
    place: bool = False
    placeholder: str = ""
    stop: int = 1
    done: bool = False
    banner: str = ""
    limit: str = ""
    do: str = ""


@dataclass(frozen=True)
class Phase:
    """Changes of the view that hold for `seconds`; a text that begins with the one before grows in `pieces`."""

    seconds: float
    changes: Mapping[str, Any]
    pieces: int = 1


def show(seconds: float, **changes: Any) -> Phase:  # noqa: ANN401 - fields of a View
    """These are shown from now on, and nothing else changes for so long."""
    return Phase(seconds, changes)


def grow(text: str, seconds: float, *, pieces: int = _PIECES, **changes: Any) -> Phase:  # noqa: ANN401 - as above
    """The text grows piece by piece until it is this one."""
    return Phase(seconds, {"text": text, **changes}, pieces)


@dataclass(frozen=True)
class Answer:
    """An answer in phases. `stop_seconds`: how long it goes on after Stop was pressed; `stopped`: what changes then."""

    phases: tuple[Phase, ...]
    stop_seconds: float = 0.0
    stopped: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _views(self) -> list[View]:
        views: list[View] = []
        now = View()
        for phase in self.phases:
            before, now = now, replace(now, **{"do": "", **phase.changes})
            start = len(before.text) if now.text.startswith(before.text) else 0
            for piece in range(1, phase.pieces + 1):
                end = start + (len(now.text) - start) * piece // phase.pieces
                views.append(replace(now, text=now.text[:end], do=now.do if piece == 1 else ""))
        return views

    @cached_property
    def _starts(self) -> list[float]:
        seconds = [phase.seconds / phase.pieces for phase in self.phases for _ in range(phase.pieces)]
        return [0.0, *accumulate(seconds)][:-1]

    @property
    def seconds(self) -> float:
        """When the last phase begins."""
        return self._starts[-1]

    @property
    def last(self) -> View:
        """What is shown in the end, if nobody presses Stop."""
        return self._views[-1]

    def at(self, elapsed: float, stopped: float | None = None) -> tuple[int, View, float | None]:
        """Number of what is shown then, the view, and when it changes next; `stopped` is when Stop was pressed."""
        end = None if stopped is None else stopped + self.stop_seconds
        if end is not None and elapsed >= end:
            view = self._views[self._number(end)]
            if not (view.done or self._number(end) == len(self._views) - 1):
                view = replace(view, **{"stop": 0, "done": bool(view.text), "do": "", **self.stopped})
            return len(self._views), view, None
        number = self._number(elapsed)
        following = self._starts[number + 1] if number + 1 < len(self._starts) else None
        if end is not None and (following is None or end < following):
            following = end
        return number, self._views[number], following

    def _number(self, elapsed: float) -> int:
        return max(0, bisect_right(self._starts, elapsed) - 1)


def answer(*phases: Phase, stop_seconds: float = 0.0, **stopped: Any) -> Answer:  # noqa: ANN401 - fields of a View
    """An answer in these phases."""
    return Answer(phases, stop_seconds, stopped)


def plain(text: str, seconds: float = 0.3) -> Answer:
    """An answer as one wishes for: it grows, Stop goes, and the finished mark comes."""
    return answer(show(0.05), grow(text, seconds), show(0, stop=0, done=True))
