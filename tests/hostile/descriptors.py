"""Descriptors of the hostile page, one a provider, for the `providers` directory of a server's state directory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.hostile.site import Site

Mark = dict[str, str]
Role = dict[str, str | list[str]]
TomlValue = str | float | int | list[str] | list[Mark] | list[str | Role] | list[list[float]]

_PAGE: Final[Mapping[str, TomlValue]] = {
    "ready": 'html[data-ready="1"]',
    "composer": ["#prompt"],
    "send": ['button[data-testid="send-button"]'],
    "stop": ['button[data-testid="stop-button"]'],
    "user_turn": '[data-turn="user"]',
    "assistant_turn": '[data-turn="assistant"]',
    "turn_key": "data-turn-id",
    "prompt_text": ".prompt",
    "answer_text": ".markdown",
    "done_mark": ['button[data-testid="copy-turn-action-button"]'],
    "failure": ["#transcript > .failure"],
    "answer_files": ["img.made"],
}
_WINDOWS: Final[Mapping[str, TomlValue]] = {
    "done_quiet": 0.3,
    "hint_quiet": 0.3,
    "quiet": [[16, 1.5], [40, 1.0]],
    "quiet_longer": 0.8,
    "last_done_quiet": 0.6,
    "last_quiet": 2.0,
    "stalled_after": 1.0,
    "give_up_after": 4.0,
    "composer_wait": 4.0,
    "commit_wait": 6.0,
}
_TOP: Final[Mapping[str, TomlValue]] = {
    "schema": 1,
    "version": "1",
    "conversation_path": "/v/[a-z0-9,-]+/c/[0-9a-f]{12}",
    "answer_timeout_seconds": 60,
    "max_prompt_characters": 1048576,
    "placeholders": ["Thinking", "Searching..."],
    "placeholder_prefixes": ["Pro thinking"],
    "halted_texts": ["Stopped thinking"],
    "answer_prefix": "(?i)thought for [^\\n]+(\\n|$)",
}


def describe(
    directory: Path,
    site: Site,
    variant: str = "plain",
    *,
    provider: str = "",
    host: str = "127.0.0.1",
    top: Mapping[str, TomlValue] | None = None,
    page: Mapping[str, TomlValue] | None = None,
    windows: Mapping[str, TomlValue] | None = None,
    tables: Mapping[str, Mapping[str, TomlValue]] | None = None,
) -> str:
    """Write the descriptor of a provider whose page is this variant, for a server that is not started yet; its id.

    `host`: a name that leads to loopback, since a browser holds few connections to one name. `top`, `page` and
    `windows` change single fields; `tables` are whole ones besides.
    """
    identity = provider or f"hostile-{variant.replace(',', '-')}"
    hosts = [host, *(name for name in ("127.0.0.1", "localhost") if name != host)]
    start_uri = site.at(variant, host=host)
    head = {"id": identity, "display_name": identity, "start_uri": start_uri, "hosts": hosts, **_TOP, **(top or {})}
    found: dict[str, Mapping[str, TomlValue]] = {
        "page": {**_PAGE, **(page or {})},
        "windows": {**_WINDOWS, **(windows or {})},
        "limits": {"cool_down": 0},
        **(tables or {}),
    }
    lines = [_line(name, value) for name, value in head.items()]
    for name, fields in found.items():
        lines += ["", f"[{name}]", *(_line(key, value) for key, value in fields.items())]
    (directory / "providers").mkdir(exist_ok=True)
    (directory / "providers" / f"{identity}.toml").write_text("\n".join(lines) + "\n", "utf-8")
    return identity


def _line(name: str, value: TomlValue) -> str:
    return f"{name} = {_toml(value)}"


def _toml(value: object) -> str:
    # JSON's strings and numbers are TOML's as well.
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml(text)}" for key, text in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(entry) for entry in value) + "]"
    return json.dumps(value)
