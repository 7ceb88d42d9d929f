"""Directives: typed, bounded, and never in the way of a prompt."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.playground.directives import Directives, Failure, Press, directives_in, without_directives


def test_every_directive_is_read() -> None:
    """Each directive that the page knows changes its own field, wherever it stands."""
    prompt = (
        "Hello {{seconds=0.5 characters=40 commit=8}} there\n{{think=4 placeholder=1 pause=20 stop_gap=3 press=deaf}}"
        "{{fail=late silent=1 done=never plain=1 code=1}}"
    )
    assert directives_in(prompt) == Directives(
        seconds=0.5,
        characters=40,
        commit=8.0,
        think=4.0,
        placeholder=True,
        pause=20.0,
        stop_gap=3.0,
        press=Press.DEAF,
        fail=Failure.LATE,
        silent=True,
        finished_mark=False,
        plain=True,
        code=True,
    )


@pytest.mark.parametrize(
    "prompt",
    [
        "nothing",
        "{{}}",
        "{{seconds}} {{=1}} {{other=2}}",
        "{{seconds=soon characters=-1 press=hard fail=often}}",
        "{{seconds=nan characters=1e3 characters=²}}",
        "{seconds=1} {{ {seconds=1} }}",
        "{{characters=" + "9" * 5000 + "}}",
    ],
)
def test_unknown_ones_are_ignored(prompt: str) -> None:
    """Names, values and braces that mean nothing leave the defaults."""
    assert directives_in(prompt) == Directives()


def test_numbers_are_cut_to_their_range() -> None:
    """Seconds are at least 0 and at most a week, characters at most a million."""
    assert directives_in("{{seconds=-1 pause=1e9 stop_gap=inf characters=999999999}}") == Directives(
        seconds=0.0, pause=604800.0, stop_gap=604800.0, characters=1_000_000
    )


def test_the_last_counts() -> None:
    """Of two equal names the last one counts."""
    assert directives_in("{{seconds=1}} {{seconds=3}}") == Directives(seconds=3.0)


def test_taken_out() -> None:
    """Directives are taken out of a text, and nothing else is."""
    assert without_directives("a{{seconds=1}}b {c} {{d") == "a b {c} {{d"


@given(st.text())
def test_any_text_is_a_prompt(prompt: str) -> None:
    """No text makes the parser fail."""
    assert directives_in(prompt).seconds >= 0
