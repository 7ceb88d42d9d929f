from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.completion import (
    Broken,
    Complete,
    Empty,
    GivenUp,
    Halted,
    Limited,
    Observation,
    Running,
    Verdict,
    judge,
    judge_last,
    observe,
)
from tabmuxd.webai.providers.descriptor import Descriptor, Windows
from tabmuxd.webai.samples import Barrier, OwnTurn

from tests.domain.values import playground, sample

_MARKED = replace(
    playground(),
    placeholders=frozenset({"thinking", "searching..."}),
    placeholder_prefixes=("pro thinking",),
    halted_texts=frozenset({"stopped thinking"}),
    answer_prefix=re.compile(r"(?i)thought for [^\n]+(\n|$)"),
    windows=Windows(done_quiet=1.0, stalled_after=5.0, give_up_after=60.0),
)
_UNMARKED = replace(_MARKED, marks=replace(_MARKED.marks, done_mark=(), hint_mark=(".copy",)))
_WINDOWS = _MARKED.windows


@dataclass(frozen=True)
class Look:
    """One look `after` seconds: the answer (None: no own turn), marks, Stop, a banner, whether the page painted."""

    after: float
    answer: str | None = ""
    done: bool = False
    stop: bool = False
    failure: str = ""
    hint: bool = False
    files: bool = False
    painted: bool = True
    limit: bool = False


def _played(*looks: Look, descriptor: Descriptor = _MARKED, last: Look | None = None) -> list[tuple[Verdict, str]]:
    """Verdict and text after each look, on a clock that starts at 100; a final verdict ends the play.

    `last` is the look after the time is over.
    """
    now, frames = 100.0, 1
    seen = Observation(quiet_since=now)
    found: list[tuple[Verdict, str]] = []
    for look in looks if last is None else [*looks, last]:
        now += look.after
        frames += look.painted
        barrier: Barrier = "limit" if look.limit else ""
        shown = replace(sample(), stop=look.stop, failure=look.failure, frames=frames, barrier=barrier)
        own = None
        if look.answer is not None:
            there = bool(look.answer) or look.done or look.files
            own = OwnTurn(look.answer, done=look.done, answered=there, hint=look.hint, files=look.files)
        seen = observe(seen, shown, own, descriptor, now)
        verdict = (judge_last if look is last else judge)(seen, shown, descriptor, now)
        found.append((verdict, seen.text))
        if not isinstance(verdict, Running):
            break
    return found


def _last(*looks: Look, descriptor: Descriptor = _MARKED) -> tuple[Verdict, str]:
    return _played(*looks, descriptor=descriptor)[-1]


_GOES_ON = Running(stalled=False, look_within=None)
_STALLED = Running(stalled=True, look_within=None)


def test_long_way() -> None:
    """One letter, a pause, a preamble, Stop gone for 3 s, tools, a gap of 10 s, the mark: complete once (FIN-01)."""
    assert _played(
        Look(0, "I", stop=True),
        Look(4, "I", stop=True),
        Look(0, "I will look.", stop=True),
        Look(3, "I will look."),
        Look(2, "I will look.", stop=True),
        Look(4, "I will look.\n\nFound", stop=True),
        Look(10, "I will look.\n\nFound it."),
        Look(0.5, "I will look.\n\nFound it.", done=True),
        Look(0.5, "I will look.\n\nFound it.", done=True),
        Look(0.5, "I will look.\n\nFound it.", done=True),
    ) == [
        (_GOES_ON, "I"),
        (_GOES_ON, "I"),
        (_GOES_ON, "I will look."),
        (_GOES_ON, "I will look."),
        (_STALLED, "I will look."),
        (_GOES_ON, "I will look.\n\nFound"),
        (_GOES_ON, "I will look.\n\nFound it."),
        (Running(stalled=False, look_within=1.0), "I will look.\n\nFound it."),
        (Running(stalled=False, look_within=0.5), "I will look.\n\nFound it."),
        (Complete(1.0), "I will look.\n\nFound it."),
    ]


@pytest.mark.parametrize("stop", [False, True])
@pytest.mark.parametrize("pause", [5.0, 20.0, 59.0])
def test_pauses(pause: float, *, stop: bool) -> None:
    """A pause in mid-answer is RUNNING and `stalled`, with and without Stop; more text ends it (FIN-02, O-137)."""
    assert _played(Look(0, "a", stop=stop), Look(pause, "a", stop=stop), Look(0, "ab", stop=stop)) == [
        (_GOES_ON, "a"),
        (_STALLED, "a"),
        (_GOES_ON, "ab"),
    ]


def test_given_up() -> None:
    """Quiet for too long without the mark is given up with its text, never complete (FIN-10, O-137)."""
    assert _last(Look(0, "a", stop=True), Look(1, "a"), Look(60, "a")) == (GivenUp(), "a")
    assert _last(Look(0, "a"), Look(59.9, "a")) == (_STALLED, "a")
    assert _last(Look(0, None), Look(60, None)) == (GivenUp(), "")


def test_stop_for_ever() -> None:
    """While Stop is shown nothing is complete and nothing given up (FIN-10)."""
    shown = [Look(30, "a", done=True, stop=True)] * 100

    assert set(_played(Look(0, "a", done=True, stop=True), *shown)) == {(_GOES_ON, "a"), (_STALLED, "a")}


def test_stop_never_shown() -> None:
    """An answer whose page never shows Stop is complete by its mark (FIN-10)."""
    assert _last(Look(0, "a"), Look(1, "ab", done=True), Look(1, "ab", done=True)) == (Complete(1.0), "ab")


def test_stop_comes_back() -> None:
    """Finished, then Stop again: running, and the quiet begins anew when Stop goes (FIN-09)."""
    assert _played(
        Look(0, "a", done=True),
        Look(0.75, "a", done=True, stop=True),
        Look(2, "a", done=True),
        Look(0.5, "a", done=True),
        Look(0.5, "a", done=True),
    ) == [
        (Running(stalled=False, look_within=1.0), "a"),
        (_GOES_ON, "a"),
        (Running(stalled=False, look_within=1.0), "a"),
        (Running(stalled=False, look_within=0.5), "a"),
        (Complete(1.0), "a"),
    ]


def test_mark_goes() -> None:
    """A mark that goes again, or text that changes under it, begins the quiet anew (FIN-09)."""
    assert _last(Look(0, "a", done=True), Look(0.9, "a"), Look(9, "a")) == (_STALLED, "a")
    assert _last(Look(0, "a", done=True), Look(0.75, "ab", done=True), Look(0.75, "ab", done=True)) == (
        Running(stalled=False, look_within=0.25),
        "ab",
    )


def test_older_answer() -> None:
    """Until something stands behind the own prompt nothing is taken (FIN-03)."""
    assert _played(Look(0, None), Look(4, ""), Look(0, "x", stop=True)) == [
        (_GOES_ON, ""),
        (_GOES_ON, ""),
        (_GOES_ON, "x"),
    ]


def test_shorter() -> None:
    """A later read that is shorter, or empty, never replaces a longer one in a pause (FIN-04, FIN-14)."""
    assert _last(Look(0, "abcdef", stop=True), Look(1, "abc")) == (_GOES_ON, "abcdef")
    assert _last(Look(0, "abcdef", stop=True), Look(1, "")) == (_GOES_ON, "abcdef")
    assert _last(Look(0, "abcdef", stop=True), Look(1, None)) == (_GOES_ON, "abcdef")
    assert _last(Look(0, "abcdef", stop=True), Look(1, "", stop=True)) == (_GOES_ON, "abcdef")


def test_rewritten() -> None:
    """What the page writes anew, shorter too, is the text: while it writes, and at the end."""
    assert _last(Look(0, "abcdef", stop=True), Look(1, "xy", stop=True)) == (_GOES_ON, "xy")
    assert _last(Look(0, "draft of it", stop=True), Look(1, "it", done=True), Look(1, "it", done=True)) == (
        Complete(1.0),
        "it",
    )
    assert _last(Look(0, "abc"), Look(1, "xyz")) == (_GOES_ON, "xyz")


def test_placeholders() -> None:
    """A placeholder is no answer, in whatever case; the same words in an answer are (FIN-11)."""
    assert _played(
        Look(0, "Thinking", stop=True),
        Look(1, " SEARCHING... ", stop=True),
        Look(1, "Thinking about it", stop=True),
        Look(1, "Thinking"),
    ) == [(_GOES_ON, ""), (_GOES_ON, ""), (_GOES_ON, "Thinking about it"), (_GOES_ON, "Thinking about it")]


@pytest.mark.parametrize("answer", ["4", "42", "Yes.", "\N{GRINNING FACE}", "fifteen letters"])
def test_short(answer: str) -> None:
    """A short answer is complete by its mark like any other (FIN-12)."""
    assert _last(Look(0, answer, done=True), Look(1, answer, done=True)) == (Complete(1.0), answer)


@pytest.mark.parametrize("answer", ["", " \n", "Thinking"])
def test_empty(answer: str) -> None:
    """A finished answer without text is an outcome of its own, after the same window (FIN-12)."""
    verdicts = [verdict for verdict, _text in _played(Look(0, answer, done=True), Look(1, answer, done=True))]

    assert verdicts == [Running(stalled=False, look_within=1.0), Empty()]


def test_there_at_once() -> None:
    """An answer that is there before the first look is complete after the window (FIN-20)."""
    assert _played(Look(0, "42", done=True), Look(1, "42", done=True)) == [
        (Running(stalled=False, look_within=1.0), "42"),
        (Complete(1.0), "42"),
    ]


def test_banner() -> None:
    """A banner ends the answer with the text there was, never as its text, and not while it is written (FIN-07)."""
    assert _played(Look(0, "par", stop=True, failure="Oops"), Look(1, "part", failure="Oops")) == [
        (_GOES_ON, "par"),
        (Broken(), "part"),
    ]


def test_limit() -> None:
    """A limit ends an answer that is not finished, with the text there was; one behind a finished answer does not."""
    assert _played(
        Look(0, "part", stop=True, limit=True), Look(1, "part", limit=True), Look(1, "part", limit=True)
    ) == [(_GOES_ON, "part"), (_GOES_ON, "part"), (Limited(), "part")]
    assert _last(Look(0, "all", done=True, limit=True), Look(1, "all", done=True, limit=True)) == (Complete(1.0), "all")


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        ("Thought for 12s\n\n42", "42"),
        ("  Thought for 3m 2s\n42", "42"),
        ("Thought for 12s", ""),
        ("Pro thinking \N{BULLET} 40 s", ""),
        ("I thought for 12s", "I thought for 12s"),
        ("Stopped thinking about it", "Stopped thinking about it"),
    ],
)
def test_prefixes(shown: str, text: str) -> None:
    """What the page puts before an answer is cut off; alone it is a placeholder (FIN-11)."""
    assert _last(Look(0, shown, stop=True)) == (_GOES_ON, text)


def test_halted() -> None:
    """An answer that was stopped before its first word is told as stopped, never as an answer (FIN-11)."""
    for descriptor in (_MARKED, _UNMARKED):
        looks = (Look(0, "Thinking", stop=True), Look(1, "Stopped thinking"), Look(1, "Stopped thinking"))
        assert _played(*looks, descriptor=descriptor)[1:] == [
            (Running(stalled=False, look_within=1.0), ""),
            (Halted(), ""),
        ]
    again = (Look(0, "Stopped thinking"), Look(0.5, "On we go", stop=True), Look(9, "On we go"))
    assert _last(*again) == (_STALLED, "On we go")


def test_mark_without_text() -> None:
    """A mark on a text that is only remembered counts if it was seen with the text before (FIN-14)."""
    ends: list[Verdict] = []
    for first in (False, True):
        seen = Observation(quiet_since=0.0)
        verdict: Verdict | None = None
        for now, done, remembered in ((0.0, first, False), (0.5, True, True), (2.0, True, True)):
            own = OwnTurn("part", done=done, answered=True, remembered=remembered)
            seen = observe(seen, sample(), own, _MARKED, now)
            verdict = judge(seen, sample(), _MARKED, now)
        assert verdict is not None
        ends.append(verdict)

    assert ends == [_GOES_ON, Complete(2.0)]


def test_mark_on_emptied() -> None:
    """A mark on an answer that the page shows emptied says nothing of the text seen before (FIN-14)."""
    seen = observe(Observation(quiet_since=0.0), sample(), OwnTurn("One", done=False, answered=True), _MARKED, 0.0)
    emptied = OwnTurn("", done=True, answered=True)
    for now in (0.5, 2.0, 4.0):
        seen = observe(seen, sample(), emptied, _MARKED, now)
        assert (judge(seen, sample(), _MARKED, now), seen.text) == (_GOES_ON, "One")

    whole = replace(emptied, answer="One and two")
    seen = observe(seen, sample(), whole, _MARKED, 5.0)
    assert (judge(seen, sample(), _MARKED, 6.0), seen.text) == (Complete(1.0), "One and two")


def test_files_only() -> None:
    """An answer of files alone is whole without a text: with its mark, or quiet for the longest window (FIN-12)."""
    assert _last(Look(0, "", done=True, files=True), Look(1, "", done=True, files=True)) == (Complete(1.0), "")
    image = Look(0, "", files=True)
    assert _last(image, replace(image, after=7.5), descriptor=_UNMARKED)[0] == Running(stalled=False, look_within=0.5)
    assert _last(image, replace(image, after=8), descriptor=_UNMARKED) == (Complete(8.0, done=False), "")


def test_empty_unmarked() -> None:
    """Where there is no mark, a place that stays empty is an outcome of its own in the end (FIN-12)."""
    node = Look(0, "", stop=True, done=True)
    assert _last(node, Look(1, "", done=True), Look(2, "", done=True), descriptor=_UNMARKED) == (Empty(), "")
    assert _last(Look(0, "Thinking"), Look(60, "Thinking"), descriptor=_UNMARKED) == (Empty(), "")
    assert _last(Look(0, None), Look(60, None), descriptor=_UNMARKED) == (GivenUp(), "")


@pytest.mark.parametrize(
    ("length", "window"), [(1, 8.0), (15, 8.0), (16, 3.0), (39, 3.0), (40, 2.0), (499, 2.0), (500, 3.0), (60_000, 3.0)]
)
def test_quiet_by_length(length: int, window: float) -> None:
    """Without a finished mark the quiet that completes depends on the length of the text (FIN-12, O-137)."""
    text = "x" * length
    looks = (Look(0, text), Look(window - 0.5, text), Look(0.5, text))

    assert _played(*looks, descriptor=_UNMARKED)[1:] == [
        (Running(stalled=False, look_within=0.5), text),
        (Complete(window, done=False), text),
    ]


def test_hint() -> None:
    """A hint that an unmarked answer is finished makes the quiet shorter, and is no mark."""
    looks = (Look(0, "Yes.", hint=True), Look(1.5, "Yes.", hint=True))

    assert _last(*looks, descriptor=_UNMARKED) == (Complete(1.5, done=False), "Yes.")
    assert _last(*looks) == (_GOES_ON, "Yes.")


def test_stop_between_phases() -> None:
    """Stop that comes back begins an unmarked answer's quiet anew (FIN-02, FIN-09)."""
    text = "y" * 40
    looks = (Look(0, text, stop=True), Look(1.5, text), Look(1.5, text), Look(0.4, text, stop=True), Look(1.9, text))

    assert _last(*looks, descriptor=_UNMARKED) == (Running(stalled=False, look_within=2.0), text)


def test_not_painting() -> None:
    """A page that does not paint is quiet whatever it has: that is no end until it paints again (FIN-19)."""
    text = "z" * 40
    hidden = [Look(2, text, painted=False)] * 2

    assert _last(Look(0, text), *hidden, descriptor=_UNMARKED) == (_GOES_ON, text)
    assert _last(Look(0, text), *hidden, Look(0.5, text), descriptor=_UNMARKED) == (Complete(4.5, done=False), text)


def test_loaded_again() -> None:
    """A page that is loaded again shows less for a while, also with Stop: what was captured stays (FIN-18, FIN-04)."""
    assert _last(Look(0, "abcdef", stop=True), Look(1, "abc", stop=True)) == (_GOES_ON, "abcdef")
    assert _last(Look(0, "abcdef", stop=True), Look(1, "abc", stop=True), Look(1, "abcdefg", stop=True)) == (
        _GOES_ON,
        "abcdefg",
    )


def test_last_look() -> None:
    """When time is over a last look may find an answer whole, by longer windows, never with Stop (FIN-04)."""
    quiet = (Look(0, "ab", done=True), Look(0.5, "ab", done=True))

    assert _played(*quiet, last=Look(2.5, "ab", done=True))[-1] == (Complete(3.0), "ab")
    assert _played(*quiet, last=Look(0.5, "ab", done=True))[-1] == (Running(stalled=False, look_within=2.0), "ab")
    assert _played(*quiet, last=Look(9, "ab", done=True, stop=True))[-1][0] == _STALLED
    assert _played(Look(0, "ab"), last=Look(9, "ab"))[-1][0] == _STALLED
    text = "x" * 50
    assert _played(Look(0, text), last=Look(4, text), descriptor=_UNMARKED)[-1] == (
        Running(stalled=False, look_within=1.0),
        text,
    )
    assert _played(Look(0, text), Look(1, text), last=Look(4, text), descriptor=_UNMARKED)[-1] == (
        Complete(5.0, done=False),
        text,
    )


_LOOKS = st.builds(
    Look,
    after=st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0]),
    answer=st.none() | st.sampled_from(["", "Thinking", "Stopped thinking", "a", "ab", "abc", "b"]),
    done=st.booleans(),
    stop=st.booleans(),
    failure=st.sampled_from(["", "", "", "Oops"]),
    hint=st.booleans(),
    files=st.booleans(),
    painted=st.booleans(),
)
_NO_TEXTS = ("", "Thinking", "Stopped thinking", None)


@given(st.lists(_LOOKS, min_size=1, max_size=12))
def test_complete(looks: Sequence[Look]) -> None:
    """Complete only with the mark, without Stop, and with this text or none for the whole window (O-137)."""
    played = _played(*looks)
    verdict, text = played[-1]
    if not isinstance(verdict, Complete):
        return

    used = looks[: len(played)]
    quiet = 0.0
    for look in reversed(used):
        assert (look.done, look.stop) == (True, False)
        assert look.answer == text or look.answer in _NO_TEXTS
        if quiet >= _WINDOWS.done_quiet:
            break
        quiet += look.after
    assert text in [look.answer for look in used] or (text == "" and any(look.files for look in used))
    assert verdict.done
    assert verdict.quiet >= _WINDOWS.done_quiet


@given(st.lists(_LOOKS.map(lambda look: replace(look, done=False)), min_size=1, max_size=12))
def test_complete_unmarked(looks: Sequence[Look]) -> None:
    """Without marks complete only after the window of the text's length, without Stop in it, and painted (O-137)."""
    played = _played(*looks, descriptor=_UNMARKED)
    verdict, text = played[-1]
    if not isinstance(verdict, Complete):
        return

    used = looks[: len(played)]
    window = _WINDOWS.hint_quiet if used[-1].hint else _WINDOWS.quiet_for(len(text))
    assert verdict.quiet >= window
    assert not verdict.done
    quiet = 0.0
    for look in reversed(used):
        assert not look.stop
        assert look.answer is None or look.answer in _NO_TEXTS or len(look.answer) <= len(text)
        if quiet >= window:
            break
        quiet += look.after
    times = list(accumulate(look.after for look in used))
    assert any(look.painted for look, time in zip(used, times, strict=True) if time >= times[-1] - verdict.quiet)


@given(st.lists(_LOOKS.map(lambda look: replace(look, done=False)), max_size=12))
def test_quiet_alone(looks: Sequence[Look]) -> None:
    """Where there is a finished mark nothing is complete or empty without it, however long it is quiet (O-137)."""
    assert not [verdict for verdict, _text in _played(*looks) if isinstance(verdict, Complete | Empty)]


@given(looks=st.lists(_LOOKS, max_size=12), marked=st.booleans())
def test_text_stays(looks: Sequence[Look], *, marked: bool) -> None:
    """Once there is text there is text, and no placeholder is one."""
    texts = [text for _verdict, text in _played(*looks, descriptor=_MARKED if marked else _UNMARKED)]

    assert all(after or not before for before, after in pairwise(texts))
    assert not set(texts) & {"Thinking", "Stopped thinking"}
