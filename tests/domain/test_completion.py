from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.completion import Broken, Complete, Empty, GivenUp, Observation, Running, Verdict, judge, observe
from tabmuxd.webai.providers.descriptor import Windows
from tabmuxd.webai.samples import OwnTurn

from tests.domain.values import sample

_WINDOWS = Windows(done_quiet=1.0, stalled_after=5.0, give_up_after=60.0)
_PLACEHOLDERS = frozenset({"thinking", "searching..."})


@dataclass(frozen=True)
class Look:
    """One look `after` seconds: the answer (None: no own turn), the finished mark, Stop, a banner."""

    after: float
    answer: str | None = ""
    done: bool = False
    stop: bool = False
    failure: str = ""


def _played(*looks: Look) -> list[tuple[Verdict, str]]:
    """Verdict and text after each look, on a clock that starts at 100; a final verdict ends the play."""
    now = 100.0
    seen = Observation(quiet_since=now)
    found: list[tuple[Verdict, str]] = []
    for look in looks:
        now += look.after
        shown = replace(sample(), stop=look.stop, failure=look.failure)
        own = None if look.answer is None else OwnTurn(look.answer, done=look.done, answered=bool(look.answer))
        seen = observe(seen, shown, own, _PLACEHOLDERS, now)
        verdict = judge(seen, shown, _WINDOWS, now)
        found.append((verdict, seen.text))
        if not isinstance(verdict, Running):
            break
    return found


def _last(*looks: Look) -> tuple[Verdict, str]:
    return _played(*looks)[-1]


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


_LOOKS = st.builds(
    Look,
    after=st.sampled_from([0.0, 0.5, 1.0, 3.0, 10.0]),
    answer=st.none() | st.sampled_from(["", "Thinking", "a", "ab", "abc", "b"]),
    done=st.booleans(),
    stop=st.booleans(),
    failure=st.sampled_from(["", "", "", "Oops"]),
)


@given(st.lists(_LOOKS, min_size=1, max_size=12))
def test_complete(looks: Sequence[Look]) -> None:
    """Complete only with the mark, without Stop, and with this text or none for the whole window."""
    played = _played(*looks)
    verdict, text = played[-1]
    if not isinstance(verdict, Complete):
        return

    used = looks[: len(played)]
    quiet = 0.0
    for look in reversed(used):
        assert (look.done, look.stop) == (True, False)
        assert look.answer in (text, "", "Thinking")
        if quiet >= _WINDOWS.done_quiet:
            break
        quiet += look.after
    assert text in [look.answer for look in used]
    assert verdict.quiet >= _WINDOWS.done_quiet


@given(st.lists(_LOOKS.map(lambda look: replace(look, done=False)), max_size=12))
def test_quiet_alone(looks: Sequence[Look]) -> None:
    """Without the finished mark nothing is complete or empty, however long it is quiet (FIN-02, O-137)."""
    assert not [verdict for verdict, _text in _played(*looks) if isinstance(verdict, Complete | Empty)]


@given(st.lists(_LOOKS, max_size=12))
def test_text_stays(looks: Sequence[Look]) -> None:
    """Once there is text there is text, and no placeholder is one."""
    texts = [text for _verdict, text in _played(*looks)]

    assert all(after or not before for before, after in pairwise(texts))
    assert "Thinking" not in texts
