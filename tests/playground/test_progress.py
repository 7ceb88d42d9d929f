"""Progress: a function of directives and time."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.playground.directives import Directives, Failure
from tabmuxd.playground.progress import AnswerState, Progress, progress_at

THINKING = Progress(AnswerState.THINKING, stop_shown=True)
BANNER = "Something went wrong while the answer was written."


def course(directives: Directives, *times: float, stopped: float | None = None) -> list[Progress]:
    """Progress of an answer of 100 characters at these times."""
    return [progress_at(directives, 100, time, stopped) for time in times]


def test_usual_course() -> None:
    """FIN-03: the user's turn, then a short silence, then the text grows evenly, then the finished mark shows."""
    assert course(Directives(), -5, 0, 0.1, 0.75, 1.25, 1.75, 2.25, 1e9) == [
        THINKING,
        THINKING,
        THINKING,
        Progress(AnswerState.STREAMING, 25, stop_shown=True),
        Progress(AnswerState.STREAMING, 50, stop_shown=True),
        Progress(AnswerState.STREAMING, 75, stop_shown=True),
        Progress(AnswerState.DONE, 100, finished_mark=True),
        Progress(AnswerState.DONE, 100, finished_mark=True),
    ]


def test_silences() -> None:
    """FIN-01, FIN-02: in the middle come a pause with Stop, and then one without it."""
    assert course(Directives(think=0, pause=10, stop_gap=4), 0.5, 1, 10.9, 11, 14.9, 15.5, 16) == [
        Progress(AnswerState.STREAMING, 25, stop_shown=True),
        Progress(AnswerState.PAUSED, 50, stop_shown=True),
        Progress(AnswerState.PAUSED, 50, stop_shown=True),
        Progress(AnswerState.PAUSED, 50),
        Progress(AnswerState.PAUSED, 50),
        Progress(AnswerState.STREAMING, 75, stop_shown=True),
        Progress(AnswerState.DONE, 100, finished_mark=True),
    ]


def test_late_commit_and_placeholder() -> None:
    """SUB-05, FIN-11: the user's turn shows late, and "Thinking" stands in the answer's place for a second."""
    directives = Directives(commit=8, think=4, placeholder=True)
    assert course(directives, 7.9, 8, 12, 12.9, 13.5) == [
        Progress(AnswerState.COMMITTING, stop_shown=True),
        THINKING,
        replace(THINKING, placeholder="Thinking"),
        replace(THINKING, placeholder="Thinking"),
        Progress(AnswerState.STREAMING, 25, stop_shown=True),
    ]


@pytest.mark.parametrize(
    ("directives", "end"),
    [
        (Directives(fail=Failure.BANNER), Progress(AnswerState.FAILED, banner=BANNER)),
        (Directives(fail=Failure.LATE), Progress(AnswerState.FAILED, 50, banner=BANNER)),
        (Directives(fail=Failure.CUT), Progress(AnswerState.CUT, 50)),
        (Directives(finished_mark=False), Progress(AnswerState.DONE, 100)),
        (Directives(silent=True), THINKING),
        (Directives(seconds=0, think=0), Progress(AnswerState.DONE, 100, finished_mark=True)),
    ],
)
def test_ends(directives: Directives, end: Progress) -> None:
    """FIN-07, FIN-10: each way to end is a state of its own, and a silent page never ends."""
    assert course(directives, 1e6) == [end]


def test_stop() -> None:
    """FIN-05, FIN-11: Stop keeps what was written; before the first word it leaves "Stopped thinking"."""
    assert [
        *course(Directives(), 0.75, 99, stopped=0.75),
        *course(Directives(), 99, stopped=0.1),
        *course(Directives(finished_mark=False), 99, stopped=0.75),
        *course(Directives(), 99, stopped=5),
        *course(Directives(silent=True), 99, stopped=50),
    ] == [
        Progress(AnswerState.STOPPED, 25, finished_mark=True),
        Progress(AnswerState.STOPPED, 25, finished_mark=True),
        Progress(AnswerState.STOPPED, placeholder="Stopped thinking"),
        Progress(AnswerState.STOPPED, 25),
        Progress(AnswerState.DONE, 100, finished_mark=True),
        Progress(AnswerState.STOPPED, placeholder="Stopped thinking"),
    ]


seconds = st.floats(0, 30)


@given(
    st.builds(Directives, seconds=seconds, commit=seconds, think=seconds, pause=seconds, stop_gap=seconds),
    st.integers(0, 10_000),
    st.lists(st.floats(0, 200), min_size=2).map(sorted),
)
def test_never_shrinks(directives: Directives, length: int, times: list[float]) -> None:
    """Text only grows, is never longer than the answer, and what has ended stays as it is."""
    seen = [progress_at(directives, length, time) for time in times]
    counts = [progress.characters for progress in seen]
    ended = [progress.ended for progress in seen]
    assert (counts, ended, max(counts) <= length) == (sorted(counts), sorted(ended), True)
