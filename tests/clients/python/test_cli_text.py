"""What a command prints is harmless, and says what happened."""

import json
from datetime import timedelta

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from tabmux.cli.advice import ADVICE
from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError, UnreachableError, done, exit_of, json_of_error, lines_of
from tabmux.cli.growing import GrowingText
from tabmux.cli.output import json_line
from tabmux.cli.text import harmless, harmless_line, table
from tabmux.errors import AmbiguousNameError, PlaceError, TabmuxError, TurnFailed
from tabmux.reasons import CODES
from tabmux.v1.session_pb2 import Turn

UNSAFE = [*map(chr, range(32)), *map(chr, range(0x7F, 0xA0)), *"\u061c\u200e\u200f\u202a\u202e\u2028\u2066\u2069"]


@pytest.mark.parametrize("character", [each for each in UNSAFE if each not in "\n\t"], ids=ascii)
def test_control_characters(character: str) -> None:
    """Each character that steers a terminal or reorders text becomes another one, in texts and in JSON."""
    assert character not in harmless(f"a{character}b")
    assert len(harmless(f"a{character}b")) == 3
    line = json_line({"title": f"a{character}b"})
    assert character not in line
    assert json.loads(line) == {"title": f"a{character}b"}


def test_ordinary_text_stays() -> None:
    """Letters of all scripts, joined emoji, lines and tabs stay as they are; one line has neither."""
    text = "Grüße 日本 👩‍💻\tx\ny"
    assert harmless(text) == text
    assert harmless_line("a\r\nb\tc\nd") == "a b c d"


def test_table() -> None:
    """Columns line up by cells of the terminal, and lines are cut to its width."""
    rows = [("1", "日本", "x" * 10), ("22", "a\nb", "\x1b[31m")]
    assert table(("ID", "NAME", "TEXT"), rows, None) == [
        "ID  NAME  TEXT",
        "1   日本  xxxxxxxxxx",
        "22  a b   ␛[31m",
    ]
    assert table(("ID", "NAME", "TEXT"), rows, 12)[1] == "1   日本  x…"


def test_growth_is_appended() -> None:
    """While a text grows only what is new is printed."""
    growing = GrowingText()
    assert [growing.update(text) for text in ("", "a", "ab\n", "ab\nc")] == ["", "a", "b\n", "c"]
    assert growing.end() == "\n"


def test_rewriting_is_said() -> None:
    """Where the page changed what was printed, the lines from there on are printed again under a mark."""
    growing = GrowingText()
    growing.update("one\ntwo\nthree")
    assert growing.update("one\ntwenty\nthree") == (
        "\n--- the page changed its answer, from line 2 on it is: ---\ntwenty\nthree"
    )
    assert growing.update("one\n") == "\n--- the page changed its answer, from line 2 on it is: ---\n"
    assert growing.end() == ""


@given(st.lists(st.text(alphabet="ab\n\r", max_size=8), min_size=1, max_size=6))
def test_last_text_stands_at_the_end(texts: list[str]) -> None:
    """Whatever an answer went through, what was printed ends with the text from the line last said, or all of it."""
    growing = GrowingText()
    printed = "".join(growing.update(text) for text in texts)
    last_lines = printed.rsplit("on it is: ---\n", 1)[-1]
    assert harmless(texts[-1]).endswith(last_lines)
    if "---" not in printed:
        assert printed == harmless(texts[-1])


def test_advice_for_every_reason() -> None:
    """There is a next step for each reason of the contract, and for no other."""
    assert set(ADVICE) == set(CODES)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TabmuxError("x", reason="TAB_PINNED", code="FAILED_PRECONDITION"), Exit.REFUSED),
        (TabmuxError("x", reason="BROWSER_UNREACHABLE", code="UNAVAILABLE"), Exit.REFUSED),
        (TabmuxError("x", code="UNAVAILABLE"), Exit.UNREACHABLE),
        (UnreachableError("x"), Exit.UNREACHABLE),
        (RefusedError("x", "y"), Exit.REFUSED),
        (PlaceError("x"), Exit.USAGE),
        (AmbiguousNameError("k", ["k1", "k2"]), Exit.USAGE),
        (TurnFailed("x", turn=Turn(), reason="ANSWER_TIMEOUT"), Exit.TURN_FAILED),
    ],
)
def test_exits(error: TabmuxError, expected: Exit) -> None:
    """Each kind of error has the exit code that the help lists."""
    assert exit_of(error) is expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TabmuxError("x", reason="TAB_PINNED", code="FAILED_PRECONDITION"), "nothing was done"),
        (TabmuxError("x", reason="DIALOG_OPEN", metadata={"page_touched": "no"}), "nothing was done on the page"),
        (TabmuxError("x", reason="NAVIGATION_FAILED", metadata={"page_touched": "yes"}), "the page was acted on"),
        (TabmuxError("x", reason="SCRIPT_FAILED"), "the page was acted on"),
        (TabmuxError("x", reason="OUTCOME_UNKNOWN"), "it is not known whether it was done"),
        (TabmuxError("x", code="DEADLINE_EXCEEDED"), "it is not known whether it was done"),
        (TabmuxError("x", code="UNIMPLEMENTED"), "nothing was done"),
        (
            TurnFailed("x", turn=Turn(submit_time=Timestamp(seconds=1))),
            "the prompt was submitted; what there is of the answer is kept",
        ),
        (TurnFailed("x", turn=Turn(), metadata={"page_touched": "no"}), "the prompt was not submitted"),
        (
            TurnFailed("x", turn=Turn(), reason="SUBMIT_UNCONFIRMED", metadata={"page_touched": "unknown"}),
            "it is not known whether the prompt was submitted; it was not submitted again",
        ),
    ],
)
def test_done(error: TabmuxError, expected: str) -> None:
    """An error tells whether anything was done, and says so where that is not known."""
    assert done(error) == expected


def test_lines() -> None:
    """People read what happened, whether anything was done and what to do next, harmless."""
    error = TabmuxError(
        "no room\x1b[2J",
        reason="TAB_CAPACITY",
        code="RESOURCE_EXHAUSTED",
        metadata={"limit": "20", "browser": "browsers/main"},
        retry_delay=timedelta(seconds=5),
    )
    assert lines_of(error) == [
        "tabmux: TAB_CAPACITY: no room␛[2J [browser=browsers/main, limit=20]",
        "  done: nothing was done",
        "  next: close a tab, or try again later (after 5 s)",
    ]
    assert json.loads(json_of_error(error)) == {
        "error": {
            "reason": "TAB_CAPACITY",
            "code": "RESOURCE_EXHAUSTED",
            "message": "no room\x1b[2J",
            "metadata": {"limit": "20", "browser": "browsers/main"},
            "done": "nothing was done",
            "next": "close a tab, or try again later (after 5 s)",
            "retryDelay": "5s",
        },
    }
