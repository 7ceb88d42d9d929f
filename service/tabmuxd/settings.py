"""Typed settings of the server: defaults < TOML file < `TABMUX_*` environment < flags."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from pathlib import Path
from typing import Final, cast

MAX_SOCKET_PATH_BYTES: Final = 107  # sun_path of Linux holds 108 bytes with its final zero
_MAX_PORT: Final = 65_535
_DURATION: Final = re.compile(r"(\d{1,6})([smh])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours"}
_LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_NAMES: Final = (
    "address",
    "attach",
    "chromium",
    "log_level",
    "max_principal_watch_count",
    "max_turn_count",
    "max_watch_count",
    "playground",
    "playground_port",
    "providers_directory",
    "safety_preamble_file",
    "scripts",
)


class SettingsError(Exception):
    """A setting that the server cannot start with; the message names the setting and what is right."""


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """One browser: LAUNCHED by us unless `address` names one that runs already.

    `address`: `http://HOST:PORT`, `ws://...` or a profile directory. `profile`: of a launched one, by default
    `browsers/ID` in the state directory. A time that is None means never.
    """

    id: str = "main"
    address: str = ""
    profile: Path | None = None
    executable: Path | None = None
    headless: bool = True
    max_tab_count: int = 20
    max_pooled_tab_count: int = 8
    max_group_pooled_tab_count: int = 3
    idle_timeout: timedelta | None = timedelta(minutes=30)
    pool_timeout: timedelta | None = timedelta(minutes=30)
    reclaim_after: timedelta | None = timedelta(minutes=5)
    extra_arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of one server."""

    state_directory: Path
    socket: Path
    providers_directory: Path
    browsers: tuple[BrowserSettings, ...] = (BrowserSettings(),)
    playground: bool = False
    playground_port: int = 0
    log_level: str = "info"
    max_watch_count: int = 256
    max_principal_watch_count: int = 64
    max_turn_count: int = 5
    safety_preamble_file: Path | None = None
    scripts: bool = True


def default_state_directory(environment: Mapping[str, str]) -> Path:
    """`TABMUX_STATE_DIR`, else `$XDG_STATE_HOME/tabmux`, else `~/.local/state/tabmux`."""
    if named := environment.get("TABMUX_STATE_DIR"):
        return Path(named).absolute()
    state_home = Path(environment.get("XDG_STATE_HOME", ""))
    # The XDG Base Directory Specification 0.8: a relative path there is invalid and to be ignored.
    if state_home.is_absolute():
        return state_home / "tabmux"
    return Path(environment.get("HOME") or Path.home()) / ".local" / "state" / "tabmux"


def load(flags: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Settings from the TOML file, the environment and flags; flags have the names of the settings.

    Raises SettingsError for an unknown setting, a value of the wrong kind, or an address that is not a Unix socket.
    """
    state_directory = (
        Path(flags["state_dir"]).expanduser().absolute()
        if flags.get("state_dir")
        else default_state_directory(environment)
    )
    values = _file_values(state_directory, flags, environment)
    for key in _NAMES:
        if text := environment.get(f"TABMUX_{key.upper()}"):
            values[key] = text
        if key in flags:
            values[key] = flags[key]
    providers = _text("providers_directory", values.get("providers_directory", ""))
    preamble = _text("safety_preamble_file", values.get("safety_preamble_file", ""))
    known = sorted((*_NAMES, "browsers"))
    if unknown := set(values).difference(known):
        raise SettingsError(f"unknown setting {min(unknown)!r}; known are {', '.join(known)}")
    return Settings(
        state_directory=state_directory,
        socket=_socket(_text("address", values.get("address", "")), state_directory),
        providers_directory=Path(providers).expanduser().absolute() if providers else state_directory / "providers",
        browsers=_browsers(values),
        playground=_boolean("playground", values.get("playground", False)),
        playground_port=_integer("playground_port", values.get("playground_port", 0), most=_MAX_PORT),
        log_level=_log_level(values.get("log_level", "info")),
        max_watch_count=_integer("max_watch_count", values.get("max_watch_count", 256)),
        max_principal_watch_count=_integer("max_principal_watch_count", values.get("max_principal_watch_count", 64)),
        max_turn_count=_integer("max_turn_count", values.get("max_turn_count", 5)),
        safety_preamble_file=Path(preamble).expanduser().absolute() if preamble else None,
        scripts=_boolean("scripts", values.get("scripts", True)),
    )


def _file_values(state_directory: Path, flags: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, object]:
    named = flags.get("config") or environment.get("TABMUX_CONFIG")
    path = Path(named).expanduser() if named else state_directory / "tabmuxd.toml"
    try:
        return dict(tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        if named:
            raise SettingsError(f"config: there is no file {path}") from None
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"config: {path} cannot be read: {error}") from error


def _socket(address: str, state_directory: Path) -> Path:
    if address and not address.startswith("unix://"):
        raise SettingsError(
            f"address: {address!r} is refused: this version listens on a Unix socket only (unix:///PATH). "
            "Leave it out to listen on tabmuxd.sock in the state directory."
        )
    socket = Path(address.removeprefix("unix://")) if address else state_directory / "tabmuxd.sock"
    if not socket.is_absolute() or "\0" in str(socket):
        raise SettingsError(f"address: {address!r} is not absolute; write unix:///PATH")
    if len(os.fsencode(socket)) > MAX_SOCKET_PATH_BYTES:
        raise SettingsError(
            f"address: the socket path {socket} has {len(os.fsencode(socket))} bytes, and the system takes at most "
            f"{MAX_SOCKET_PATH_BYTES}. Choose a shorter state directory (TABMUX_STATE_DIR) or address."
        )
    return socket


def _browsers(values: Mapping[str, object]) -> tuple[BrowserSettings, ...]:
    configured = values.get("browsers", {})
    if not isinstance(configured, dict):
        raise SettingsError("browsers: must be tables, such as [browsers.main]")
    tables = cast("dict[str, object]", configured) or {"main": {}}
    executable = _text("chromium", values.get("chromium", ""))
    attach = _text("attach", values.get("attach", ""))
    return tuple(
        _browser(browser_id, entry, executable, attach if index == 0 else "")
        for index, (browser_id, entry) in enumerate(tables.items())
    )


def _browser(browser_id: str, entry: object, executable: str, attach: str) -> BrowserSettings:
    where = f"browsers.{browser_id}"
    if not isinstance(entry, dict):
        raise SettingsError(f"{where}: must be a table")
    table = cast("dict[str, object]", entry)
    allowed = {field.name for field in fields(BrowserSettings)} - {"id"}
    if unknown := set(table) - allowed:
        raise SettingsError(f"{where}: unknown setting {min(unknown)!r}; known are {', '.join(sorted(allowed))}")
    profile = _text(f"{where}.profile", table.get("profile", ""))
    named = _text(f"{where}.executable", table.get("executable", "")) or executable
    return BrowserSettings(
        id=browser_id,
        address=_text(f"{where}.address", table.get("address", "")) or attach,
        profile=Path(profile).expanduser().absolute() if profile else None,
        executable=Path(named) if named else None,
        headless=_boolean(f"{where}.headless", table.get("headless", True)),
        max_tab_count=_integer(f"{where}.max_tab_count", table.get("max_tab_count", 20)),
        max_pooled_tab_count=_integer(f"{where}.max_pooled_tab_count", table.get("max_pooled_tab_count", 8)),
        max_group_pooled_tab_count=_integer(
            f"{where}.max_group_pooled_tab_count", table.get("max_group_pooled_tab_count", 3)
        ),
        idle_timeout=_duration(f"{where}.idle_timeout", table.get("idle_timeout", "30m")),
        pool_timeout=_duration(f"{where}.pool_timeout", table.get("pool_timeout", "30m")),
        reclaim_after=_duration(f"{where}.reclaim_after", table.get("reclaim_after", "5m")),
        extra_arguments=_texts(f"{where}.extra_arguments", table.get("extra_arguments", [])),
    )


def _boolean(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", ""):
        return False
    raise SettingsError(f"{name}: {value!r} is neither true nor false")


def _integer(name: str, value: object, *, most: int | None = None) -> int:
    try:
        number = int(str(value))
    except ValueError:
        raise SettingsError(f"{name}: {value!r} is not a whole number") from None
    if number < 0:
        raise SettingsError(f"{name}: {number} is negative")
    if most is not None and number > most:
        raise SettingsError(f"{name}: {number} is more than {most}")
    return number


def _duration(name: str, value: object) -> timedelta | None:
    """A length of time, such as `90s`, `30m` or `12h`; None for `never`."""
    if value == "never":
        return None
    found = _DURATION.fullmatch(str(value))
    if found is None:
        raise SettingsError(f"{name}: {value!r} is no length of time; write it as 90s, 30m, 12h, or never")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _log_level(value: object) -> str:
    level = _text("log_level", value).lower()
    if level not in _LOG_LEVELS:
        raise SettingsError(f"log_level: {value!r} is none of {', '.join(_LOG_LEVELS)}")
    return level


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{name}: {value!r} is not a text")
    return value


def _texts(name: str, value: object) -> tuple[str, ...]:
    entries = cast("list[object]", value) if isinstance(value, list) else [None]
    texts = tuple(entry for entry in entries if isinstance(entry, str))
    if len(texts) < len(entries):
        raise SettingsError(f"{name}: must be a list of texts")
    return texts
