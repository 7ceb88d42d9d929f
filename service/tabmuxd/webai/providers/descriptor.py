"""The descriptor of a provider: what its pages look like, read from TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import timedelta
from importlib import resources
from typing import Final, cast
from urllib.parse import urlsplit

_PACKAGE: Final = "tabmuxd.webai.providers"


class DescriptorError(Exception):
    """A descriptor that cannot be used; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class PageMarks:
    """CSS selectors, in order: the first that has a fitting element wins. All are sought below `root`.

    `root` selects the element whose shadow root holds the page; empty means the document. `ready` has to match before
    anything is typed; empty means at once. `turn_key` is the attribute that tells one turn from another.
    """

    composer: tuple[str, ...]
    send: tuple[str, ...]
    stop: tuple[str, ...]
    user_turn: str
    assistant_turn: str
    turn_key: str
    prompt_text: str
    answer_text: str
    done_mark: tuple[str, ...]
    failure: tuple[str, ...]
    root: str = ""
    ready: str = ""


@dataclass(frozen=True, slots=True)
class Windows:
    """Times in seconds.

    `done_quiet`: how long the text of an answer with its finished mark has to be unchanged. `stalled_after`: quiet for
    longer than is usual. `give_up_after`: quiet for too long. `composer_wait`: how long the composer may take to come.
    `commit_wait`: how long the prompt may take to show in the conversation after the press.
    """

    done_quiet: float = 0.5
    stalled_after: float = 30.0
    give_up_after: float = 600.0
    composer_wait: float = 15.0
    commit_wait: float = 20.0


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A provider as data. `conversation_path` is matched against the whole path of an address."""

    id: str
    display_name: str
    version: str
    hosts: tuple[str, ...]
    start_uri: str
    conversation_path: re.Pattern[str]
    default_answer_timeout: timedelta
    max_prompt_character_count: int
    placeholders: frozenset[str]
    marks: PageMarks
    windows: Windows = Windows()

    def is_at(self, uri: str) -> bool:
        """Whether an address belongs to the provider: its host is exactly one of the provider's."""
        try:
            parts = urlsplit(uri)
        except ValueError:
            return False
        return (
            parts.scheme in ("http", "https")
            and parts.hostname in self.hosts
            and parts.username is None
            and parts.password is None
            and _port(uri) == _port(self.start_uri)
        )

    def conversation_of(self, uri: str) -> str:
        """Address of the conversation that `uri` shows, without query and fragment; empty for a new one."""
        if not self.is_at(uri):
            return ""
        parts = urlsplit(uri)
        if self.conversation_path.fullmatch(parts.path) is None:
            return ""
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _port(uri: str) -> int | None:
    try:
        return urlsplit(uri).port
    except ValueError:
        return -1


def load(name: str, variables: Mapping[str, str] | None = None) -> Descriptor:
    """The shipped descriptor of this name; `{port}` and the like in its addresses are replaced by `variables`."""
    text = resources.files(_PACKAGE).joinpath(f"{name}.toml").read_text("utf-8")
    for key, value in (variables or {}).items():
        text = text.replace(f"{{{key}}}", value)
    return parse(text, f"{name}.toml")


def parse(text: str, source: str) -> Descriptor:
    """A descriptor from TOML text; DescriptorError names `source` and what is wrong."""
    try:
        values = tomllib.loads(text)
        return Descriptor(
            id=str(values["id"]),
            display_name=str(values["display_name"]),
            version=str(values["version"]),
            hosts=tuple(str(host) for host in values["hosts"]),
            start_uri=str(values["start_uri"]),
            conversation_path=re.compile(values["conversation_path"]),
            default_answer_timeout=timedelta(seconds=float(values["answer_timeout_seconds"])),
            max_prompt_character_count=int(values["max_prompt_characters"]),
            placeholders=frozenset(str(text).casefold() for text in values.get("placeholders", [])),
            marks=_marks(values["page"]),
            windows=_windows(values.get("windows", {})),
        )
    except KeyError as error:
        raise DescriptorError(f"{source}: the field {error.args[0]!r} is missing") from error
    except (tomllib.TOMLDecodeError, TypeError, ValueError, re.error) as error:
        raise DescriptorError(f"{source}: {error}") from error


def _marks(table: Mapping[str, object]) -> PageMarks:
    _refuse_unknown(PageMarks, table)
    return PageMarks(
        composer=_texts(table["composer"]),
        send=_texts(table["send"]),
        stop=_texts(table["stop"]),
        user_turn=str(table["user_turn"]),
        assistant_turn=str(table["assistant_turn"]),
        turn_key=str(table["turn_key"]),
        prompt_text=str(table["prompt_text"]),
        answer_text=str(table["answer_text"]),
        done_mark=_texts(table["done_mark"]),
        failure=_texts(table["failure"]),
        root=str(table.get("root", "")),
        ready=str(table.get("ready", "")),
    )


def _windows(table: Mapping[str, object]) -> Windows:
    _refuse_unknown(Windows, table)
    return Windows(**{key: float(str(value)) for key, value in table.items()})


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value:
        raise ValueError(f"{value!r} is not a list of selectors")
    return tuple(str(entry) for entry in cast("list[object]", value))


def _refuse_unknown(of: type[PageMarks | Windows], table: Mapping[str, object]) -> None:
    if unknown := set(table) - {field.name for field in fields(of)}:
        raise ValueError(f"unknown field {min(unknown)!r}")
