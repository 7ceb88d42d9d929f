"""Descriptor files, checked without a server."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path

import pytest
from tabmuxd.__main__ import main

_GOOD = (
    resources.files("tabmuxd.webai.providers")
    .joinpath("playground-editor.toml")
    .read_text("utf-8")
    .replace("{port}", "1")
)


def _lint(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, list[str]]:
    with pytest.raises(SystemExit) as ended:
        main(["lint", *arguments])
    return ended.value.code, capsys.readouterr().out.splitlines()


def test_lint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each file is told good, or all that is wrong with it, by line; the exit code tells whether all are good."""
    good, bad, none = (str(tmp_path / name) for name in ("good.toml", "bad.toml", "none.toml"))
    Path(good).write_text(_GOOD)
    Path(bad).write_text(_GOOD.replace("user_turn =", "user_tun =").replace("#prompt", "#1"))
    code, lines = _lint(capsys, good, bad, none)
    assert (code, lines[0], lines[1:4], lines[4].split(" [")[0]) == (
        1,
        f"{good}: good: playground-editor, version 1",
        [
            f"{bad}:14: page.user_turn: is missing, and must be a text",
            f"{bad}:17: page.composer[0]: '#1' is no CSS selector: Malformed id selector at position 0",
            f"{bad}:20: page.user_tun: is unknown; did you mean 'user_turn'?",
        ],
        f"{none}:1: cannot be read:",
    )
    assert _lint(capsys, good) == (0, [f"{good}: good: playground-editor, version 1"])


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For programs each file is one JSON object."""
    (tmp_path / "a.toml").write_text(_GOOD)
    (tmp_path / "b.toml").write_text("schema = 2")
    files = [str(tmp_path / name) for name in ("a.toml", "b.toml")]
    code, lines = _lint(capsys, "--json", *files)
    found = [json.loads(line) for line in lines]
    assert (code, found[0], [found[1]["file"], found[1]["provider"], found[1]["problems"][0]["line"]]) == (
        1,
        {"file": files[0], "provider": "playground-editor", "version": "1", "problems": []},
        [files[1], "", 1],
    )
