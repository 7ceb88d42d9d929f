"""The descriptor of a provider: what its pages look like, read from TOML."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import resources
from typing import Final, Literal, TypedDict
from urllib.parse import SplitResult, urlsplit

from tabmuxd.webai.providers.fields import FieldError, Fields

_PACKAGE: Final = "tabmuxd.webai.providers"
_PORTS: Final = {"http": 80, "https": 443}

PersonBarrier = Literal["sign_in", "challenge", "consent"]
"""What a person has to see to before a turn goes on."""

DraftPolicy = Literal["refuse", "clear"]
LongText = Literal["insert", "paste"]


class DescriptorError(Exception):
    """A descriptor that cannot be used; the message names the file and the field."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An element that is shown, and the text that it has to hold, in whatever case; empty means any."""

    selector: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class PageMarks:
    """CSS selectors, in order: the first that has a fitting element wins. All are sought below `root`.

    `root` selects the element whose shadow root holds the page; empty means the document. `ready` has to match before
    anything is typed; empty means at once. `turn_key` is the attribute that tells one turn from another.
    `composer_root` selects what the composer has to be in; empty means anywhere but in side bars, dialogs and search
    boxes. `not_send` is never pressed to send, whatever else selects it. `sign_in`, `challenge`, `consent` and `limit`
    stand in the way of a prompt.
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
    composer_root: str = ""
    not_send: tuple[str, ...] = ()
    sign_in: tuple[Mark, ...] = ()
    challenge: tuple[Mark, ...] = ()
    consent: tuple[Mark, ...] = ()
    limit: tuple[Mark, ...] = ()

    def barriers(self) -> Mapping[str, tuple[Mark, ...]]:
        """What may stand in the way, by kind."""
        return {"sign_in": self.sign_in, "challenge": self.challenge, "consent": self.consent, "limit": self.limit}


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


class _Limits(TypedDict):
    max_turn_count: int | None
    cool_down: float


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A provider as data.

    `conversation_path` is matched against the whole path of an address. `barrier_hosts`: other hosts to which the
    provider sends whoever has to sign in, and the like. `limit_reset`: how the text of a limit tells when it ends.
    `draft`: what becomes of a text that is in the composer and not the service's own. `long_text`: how a long text gets
    there. `max_turn_count`: how many turns may be at work there at once; None leaves it to the server. `cool_down`:
    seconds in which none begins after the provider has shown a limit of its own.
    """

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
    max_turn_count: int | None = None
    cool_down: float = 60.0
    barrier_hosts: Mapping[str, PersonBarrier] = field(default_factory=dict[str, PersonBarrier])
    limit_reset: tuple[re.Pattern[str], ...] = ()
    draft: DraftPolicy = "refuse"
    long_text: LongText = "insert"

    def is_at(self, uri: str) -> bool:
        """Whether an address belongs to the provider: its host is exactly one of the provider's.

        Scheme and port are those of the start address, and there is no user info.
        """
        try:
            parts, start = urlsplit(uri), urlsplit(self.start_uri)
            return (
                parts.hostname in self.hosts
                and parts.username is None
                and parts.password is None
                and parts.scheme in _PORTS
                and (parts.scheme, _port(parts)) == (start.scheme, _port(start))
            )
        except ValueError:
            return False

    def barrier_at(self, uri: str) -> PersonBarrier | None:
        """What a person has to see to at this address, if it is at one of the hosts for that."""
        try:
            return self.barrier_hosts.get(urlsplit(uri).hostname or "")
        except ValueError:
            return None

    def conversation_of(self, uri: str) -> str:
        """Address of the conversation that `uri` shows, without query and fragment; empty for a new one."""
        if not self.is_at(uri):
            return ""
        parts = urlsplit(uri)
        if self.conversation_path.fullmatch(parts.path) is None:
            return ""
        netloc = parts.netloc.lower().removesuffix(f":{_PORTS[parts.scheme]}").removesuffix(":")
        return f"{parts.scheme}://{netloc}{parts.path}"

    @staticmethod
    def same_conversation(first: str, second: str) -> bool:
        """Whether two addresses that `conversation_of` gave are of one conversation: each host shows the same ones."""
        return urlsplit(first).path == urlsplit(second).path


def _port(parts: SplitResult) -> int:
    return _PORTS.get(parts.scheme, 0) if parts.port is None else parts.port


def load(name: str, variables: Mapping[str, str] | None = None) -> Descriptor:
    """The shipped descriptor of this name; `{port}` and the like in its addresses are replaced by `variables`."""
    text = resources.files(_PACKAGE).joinpath(f"{name}.toml").read_text("utf-8")
    for key, value in (variables or {}).items():
        text = text.replace(f"{{{key}}}", value)
    return parse(text, f"{name}.toml")


def parse(text: str, source: str) -> Descriptor:
    """A descriptor from TOML text; DescriptorError names `source` and what is wrong."""
    try:
        fields = Fields(tomllib.loads(text))
        descriptor = Descriptor(
            id=fields.text("id"),
            display_name=fields.text("display_name"),
            version=fields.text("version"),
            hosts=tuple(host.lower() for host in fields.texts("hosts")),
            start_uri=fields.text("start_uri"),
            conversation_path=_pattern("conversation_path", fields),
            default_answer_timeout=timedelta(seconds=fields.count("answer_timeout_seconds")),
            max_prompt_character_count=fields.count("max_prompt_characters"),
            placeholders=frozenset(text.casefold() for text in fields.texts("placeholders", ())),
            marks=_marks(fields.table("page")),
            windows=_windows(fields.table("windows", {})),
            **_limits(fields.table("limits", {})),
            barrier_hosts=_barrier_hosts(fields),
            limit_reset=tuple(_compiled("limit_reset", text) for text in fields.texts("limit_reset", ())),
            **_policy(fields.table("policy", {})),
        )
        fields.finish()
    except (tomllib.TOMLDecodeError, FieldError) as error:
        raise DescriptorError(f"{source}: {error}") from error
    if ours := set(descriptor.hosts) & set(descriptor.barrier_hosts):
        raise DescriptorError(f"{source}: the host {min(ours)!r} of 'hosts' cannot stand in the way as well")
    if not descriptor.is_at(descriptor.start_uri):
        raise DescriptorError(f"{source}: the field 'start_uri' must be an http or https address at one of 'hosts'")
    return descriptor


def _pattern(name: str, fields: Fields) -> re.Pattern[str]:
    return _compiled(name, fields.text(name))


def _compiled(name: str, text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise FieldError(f"the field {name!r} is no pattern: {error}") from error


def _barrier_hosts(fields: Fields) -> Mapping[str, PersonBarrier]:
    kinds: tuple[PersonBarrier, ...] = ("sign_in", "challenge", "consent")
    found: list[tuple[str, PersonBarrier]] = [
        (host.lower(), kind) for kind in kinds for host in fields.texts(f"{kind}_hosts", ())
    ]
    if len(dict(found)) < len(found):
        raise FieldError("no host can be in two of 'sign_in_hosts', 'challenge_hosts' and 'consent_hosts'")
    return dict(found)


class _Policy(TypedDict):
    draft: DraftPolicy
    long_text: LongText


def _policy(table: Fields) -> _Policy:
    draft: DraftPolicy = "clear" if table.choice("draft", ("refuse", "clear")) == "clear" else "refuse"
    long_text: LongText = "paste" if table.choice("long_text", ("insert", "paste")) == "paste" else "insert"
    table.finish()
    return _Policy(draft=draft, long_text=long_text)


def _barrier(table: Fields, kind: str) -> tuple[Mark, ...]:
    return tuple(Mark(selector, text) for selector, text in table.marks(kind))


def _marks(table: Fields) -> PageMarks:
    marks = PageMarks(
        composer=table.texts("composer"),
        send=table.texts("send"),
        stop=table.texts("stop"),
        user_turn=table.text("user_turn"),
        assistant_turn=table.text("assistant_turn"),
        turn_key=table.text("turn_key"),
        prompt_text=table.text("prompt_text"),
        answer_text=table.text("answer_text"),
        done_mark=table.texts("done_mark"),
        failure=table.texts("failure"),
        root=table.text("root", ""),
        ready=table.text("ready", ""),
        composer_root=table.text("composer_root", ""),
        not_send=table.texts("not_send", ()),
        sign_in=_barrier(table, "sign_in"),
        challenge=_barrier(table, "challenge"),
        consent=_barrier(table, "consent"),
        limit=_barrier(table, "limit"),
    )
    table.finish()
    return marks


def _limits(table: Fields) -> _Limits:
    limits = _Limits(max_turn_count=table.limit("turns"), cool_down=table.number("cool_down", 60.0))
    table.finish()
    return limits


def _windows(table: Fields) -> Windows:
    usual = Windows()
    windows = Windows(
        done_quiet=table.number("done_quiet", usual.done_quiet),
        stalled_after=table.number("stalled_after", usual.stalled_after),
        give_up_after=table.number("give_up_after", usual.give_up_after),
        composer_wait=table.number("composer_wait", usual.composer_wait),
        commit_wait=table.number("commit_wait", usual.commit_wait),
    )
    table.finish()
    return windows
