"""What can be written on the command line."""

from datetime import timedelta

import pytest
from tabmux.cli.arguments import Since, parse


def test_global_options_stand_anywhere() -> None:
    """Options of every command stand before or behind it; what stands before is kept."""
    before = parse(["--json", "--as", "a", "--timeout", "5s", "--address", "h:1", "tab", "list"])
    behind = parse(["tab", "list", "--json", "--as", "a", "--timeout", "5s", "--address", "h:1"])
    assert vars(before) == vars(behind)
    assert (before.command, before.json, before.as_, before.timeout) == ("tab list", True, "a", timedelta(seconds=5))


def test_two_times() -> None:
    """The time of a call stands before `ai query`, that of the answer behind it."""
    parsed = parse(["--timeout", "5", "ai", "query", "chatgpt", "hi", "--timeout", "10m"])
    assert (parsed.timeout, parsed.answer_timeout) == (timedelta(seconds=5), timedelta(minutes=10))


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("1.5h", 5400), ("10m", 600), ("500ms", 0.5)])
def test_times(text: str, seconds: float) -> None:
    """A time has a unit; without one it is in seconds."""
    assert parse(["--timeout", text, "server", "info"]).timeout == timedelta(seconds=seconds)


@pytest.mark.parametrize(("text", "expected"), [("7", Since("", 7)), ("h-1:0", Since("h-1", 0))])
def test_since(text: str, expected: Since) -> None:
    """A place is a revision, with its history or without."""
    assert parse(["tab", "watch", "--since", text]).since == expected


def test_prompt_as_given() -> None:
    """A prompt is taken as it is written."""
    parsed = parse(["ai", "query", "gemini", " two  words\n", "--session", "sessions/standup", "--key", "Job:7"])
    assert (parsed.prompt, parsed.session, parsed.key) == (" two  words\n", "standup", "Job:7")


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["tab"],
        ["tabs", "list"],
        ["tab", "close"],
        ["tab", "list", "--al"],
        ["tab", "new", "--until", "idle"],
        ["tab", "new", "--label", "novalue"],
        ["tab", "watch", "--since", "-1"],
        ["tab", "watch", "--since", str(2**63)],
        ["--timeout", "0", "server", "info"],
        ["--timeout", "5 parsecs", "server", "info"],
        ["--timeout", "9" * 30 + "h", "server", "info"],
        ["ai", "query", "chatgpt", "  "],
        ["ai", "query", "chatgpt", "hi", "--session", "Stand up"],
        ["ai", "query", "chatgpt", "hi", "--key", "Job:7"],
        ["ai", "query", "chatgpt", "hi", "--key", "a b", "--session", "s"],
        ["ai", "send", "chatgpt", "hi", "--pooled", "--reuse-tab"],
        ["ai", "query", "chatgpt", "hi", "--tab", "x", "--pooled"],
        ["ai", "recover"],
        ["ai", "watch", "sessions/s/turns/t", "--since", "3"],
    ],
)
def test_usage_errors(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be understood, misspelt and shortened options too, ends with code 2 and a message."""
    with pytest.raises(SystemExit) as caught:
        parse(line)
    assert (caught.value.code, "error:" in capsys.readouterr().err) == (2, True)


def test_help_lists_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    """The help lists every exit code."""
    with pytest.raises(SystemExit):
        parse(["--help"])
    shown = capsys.readouterr().out
    assert [code for code in ("  0 ", "  1 ", "  2 ", "  3 ", "  4 ", "  130 ") if code not in shown] == []
