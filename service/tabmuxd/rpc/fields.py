"""Fields of requests, checked: each function gives the value or raises INVALID_FIELD with the field's path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from enum import IntEnum
from typing import Final, TypeVar

from google.protobuf.duration_pb2 import Duration

from tabmuxd.resources import names
from tabmuxd.resources.errors import invalid_field
from tabmuxd.wire import span_of

ANY_BROWSER: Final = "browsers/-"
MAX_LABELS: Final = 16
MAX_LABEL_CHARACTERS: Final = 63
MAX_URI_BYTES: Final = 8 * 1024
_LEASE: Final = re.compile(r"leases/[0-9a-hjkmnp-tv-z]{10}")

Choice = TypeVar("Choice", bound=IntEnum)


def tab_name(field: str, value: str) -> str:
    """Name of a tab; `browsers/-` is allowed."""
    return _formed(field, value, names.is_tab_name, "must be browsers/{browser}/tabs/{tab}, with the id we gave it")


def browser_name(field: str, value: str) -> str:
    """Name of one browser."""
    if value == ANY_BROWSER:
        raise invalid_field(field, "must name one browser, as browsers/{browser}")
    return _formed(field, value, names.is_browser_name, "must be browsers/{browser}")


def first_browser(field: str, value: str) -> str:
    """Name of one browser, or empty for the first one configured."""
    return browser_name(field, value) if value else ""


def any_browser(field: str, value: str) -> str:
    """Name of one browser, or empty, also for `browsers/-`, for all."""
    return "" if value in ("", ANY_BROWSER) else browser_name(field, value)


def session_name(field: str, value: str) -> str:
    """Name of a session."""
    return _formed(field, value, names.is_session_name, "must be sessions/{session}")


def turn_name(field: str, value: str) -> str:
    """Name of a turn."""
    return _formed(field, value, names.is_turn_name, "must be sessions/{session}/turns/{turn}")


def artifact_name(field: str, value: str) -> str:
    """Name of a file."""
    return _formed(field, value, names.is_artifact_name, "must be artifacts/{artifact}")


def lease_name(field: str, value: str) -> str:
    """Name of a lease, or empty."""
    if value and _LEASE.fullmatch(value) is None:
        raise invalid_field(field, "must be leases/{lease}, or empty")
    return value


def group(field: str, value: str) -> str:
    """A group, or empty for none."""
    return _formed(field, value, names.is_group, "must be at most 63 characters of a-z, 0-9, -, _ and .")


def uuid(field: str, value: str) -> str:
    """A request id that is a UUID, in lower case, or empty for none."""
    if value and not names.is_uuid(value):
        raise invalid_field(field, "must be a UUID, or empty")
    return value.lower()


def new_labels(field: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Labels to start with or to match: at most 16; keys and values have 1 to 63 characters."""
    for key, value in labels.items():
        _label_part(field, key)
        _label_part(field, value)
    return _few_labels(field, labels)


def label_changes(field: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Labels to set, at most 16, and labels to remove, whose values are empty."""
    for key, value in labels.items():
        _label_part(field, key)
        if value:
            _label_part(field, value)
    _few_labels(field, {key: value for key, value in labels.items() if value})
    return dict(labels)


def uri(field: str, value: str) -> str:
    """An address of at most 8 KiB; whether a tab may go there is decided elsewhere."""
    if len(value.encode()) > MAX_URI_BYTES:
        raise invalid_field(field, f"must have at most {MAX_URI_BYTES} bytes", limit=MAX_URI_BYTES)
    return value


def natural(field: str, value: int) -> int:
    """A number that is not negative."""
    if value < 0:
        raise invalid_field(field, "must not be negative")
    return value


def few(field: str, values: Iterable[str], limit: int) -> tuple[str, ...]:
    """At most `limit` values."""
    taken = tuple(values)
    if len(taken) > limit:
        raise invalid_field(field, f"must have at most {limit} values", limit=limit)
    return taken


def clamped(field: str, value: Duration, *, least: timedelta = timedelta(0), most: timedelta) -> timedelta:
    """A duration brought between `least` and `most`; a negative one is refused."""
    try:
        span = span_of(value)
    except ValueError:
        raise invalid_field(field, "must be a valid google.protobuf.Duration") from None
    if value.seconds < 0 or value.nanos < 0:
        raise invalid_field(field, "must not be negative")
    return min(max(span, least), most)


def choice(field: str, value: int, choices: type[Choice], default: Choice) -> Choice:
    """A value of an enum; an unspecified one is `default`."""
    return default if value == 0 else member(field, value, choices)


def member(field: str, value: int, choices: type[Choice]) -> Choice:
    """A value of an enum that must be specified."""
    try:
        return choices(value)
    except ValueError:
        raise invalid_field(field, f"must be one of {', '.join(each.name for each in choices if each)}") from None


def members(field: str, values: Iterable[int], choices: type[Choice]) -> frozenset[Choice]:
    """Values of an enum, each of which must be specified."""
    return frozenset(member(f"{field}[{index}]", value, choices) for index, value in enumerate(values))


def _formed(field: str, value: str, has_form: Callable[[str], bool], problem: str) -> str:
    if not has_form(value):
        raise invalid_field(field, problem)
    return value


def _label_part(field: str, text: str) -> None:
    if not 1 <= len(text) <= MAX_LABEL_CHARACTERS:
        raise invalid_field(
            field, f"keys and values must have 1 to {MAX_LABEL_CHARACTERS} characters", limit=MAX_LABEL_CHARACTERS
        )


def _few_labels(field: str, labels: Mapping[str, str]) -> dict[str, str]:
    if len(labels) > MAX_LABELS:
        raise invalid_field(field, f"must have at most {MAX_LABELS} entries", limit=MAX_LABELS)
    return dict(labels)
