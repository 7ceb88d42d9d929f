"""How far an answer is: a function of directives and time, so that nothing has to be written while it grows."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from math import inf

from tabmuxd.playground.directives import Directives, Failure

PLACEHOLDER_SECONDS = 1.0


class AnswerState(StrEnum):
    """Where an answer stands."""

    COMMITTING = "committing"  # the user's turn does not show yet
    THINKING = "thinking"
    STREAMING = "streaming"
    PAUSED = "paused"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    CUT = "cut"


ENDED = frozenset({AnswerState.DONE, AnswerState.STOPPED, AnswerState.FAILED, AnswerState.CUT})


@dataclass(frozen=True, slots=True)
class Progress:
    """What a page shows of one turn at a time."""

    state: AnswerState
    characters: int = 0  # of the answer, in code points
    stop_shown: bool = False
    placeholder: str = ""  # stands in the answer's place
    finished_mark: bool = False
    banner: str = ""

    @property
    def committed(self) -> bool:
        """The user's turn shows."""
        return self.state is not AnswerState.COMMITTING

    @property
    def ended(self) -> bool:
        """Nothing changes any more."""
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class _Phase:
    seconds: float
    start: Progress
    last_characters: int = 0


def progress_at(directives: Directives, length: int, elapsed: float, stopped: float | None = None) -> Progress:
    """Progress of an answer of `length` code points, `elapsed` seconds after the press.

    `stopped` is when Stop was pressed, in seconds after the press on Send, if it was. A stop after the end changes
    nothing. A clock that went back counts as no time.
    """
    if stopped is None or elapsed < stopped:
        return _unstopped(directives, length, elapsed)
    last = _unstopped(directives, length, stopped)
    if last.ended:
        return last
    return Progress(
        AnswerState.STOPPED,
        last.characters,
        placeholder="" if last.characters else "Stopped thinking",
        finished_mark=last.characters > 0 and directives.finished_mark,
    )


def _unstopped(directives: Directives, length: int, elapsed: float) -> Progress:
    left = max(elapsed, 0.0)
    for phase in _phases(directives, length):
        if left < phase.seconds:
            grown = int((phase.last_characters - phase.start.characters) * left / phase.seconds)
            return replace(phase.start, characters=phase.start.characters + max(grown, 0))
        left -= phase.seconds
    return _end(directives, length)


def _phases(directives: Directives, length: int) -> Iterator[_Phase]:
    half = length // 2
    thinking = Progress(AnswerState.THINKING, stop_shown=True)
    yield _Phase(directives.commit, Progress(AnswerState.COMMITTING, stop_shown=True))
    if directives.silent:
        yield _Phase(inf, thinking)
    yield _Phase(directives.think, thinking)
    if directives.placeholder:
        yield _Phase(PLACEHOLDER_SECONDS, replace(thinking, placeholder="Thinking"))
    if directives.fail is Failure.BANNER:
        yield _Phase(directives.seconds, thinking)
        return
    streaming = Progress(AnswerState.STREAMING, stop_shown=True)
    yield _Phase(directives.seconds / 2, streaming, half)
    if directives.fail is not Failure.NONE:
        return
    paused = Progress(AnswerState.PAUSED, half, stop_shown=True)
    yield _Phase(directives.pause, paused, half)
    yield _Phase(directives.stop_gap, replace(paused, stop_shown=False), half)
    yield _Phase(directives.seconds / 2, replace(streaming, characters=half), length)


def _end(directives: Directives, length: int) -> Progress:
    banner = "Something went wrong while the answer was written."
    match directives.fail:
        case Failure.BANNER:
            return Progress(AnswerState.FAILED, banner=banner)
        case Failure.LATE:
            return Progress(AnswerState.FAILED, length // 2, banner=banner)
        case Failure.CUT:
            return Progress(AnswerState.CUT, length // 2)
        case Failure.NONE:
            return Progress(AnswerState.DONE, length, finished_mark=directives.finished_mark)
