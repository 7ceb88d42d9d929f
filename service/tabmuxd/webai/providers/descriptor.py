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

from tabmuxd.resources.artifacts import MAX_UPLOAD_BYTES
from tabmuxd.webai.providers import extending
from tabmuxd.webai.providers.choices import Choices, choices_in
from tabmuxd.webai.providers.fields import Fields, Problem, Reading
from tabmuxd.webai.providers.marks import PageMarks, marks_in
from tabmuxd.webai.providers.toml_lines import TooDeep, lines_of

_PACKAGE: Final = "tabmuxd.webai.providers"
_PORTS: Final = {"http": 80, "https": 443}
_SCHEMA: Final = 1
_MOST_CHARACTERS: Final = 1024 * 1024
_MOST_FILES: Final = 10
_GUIDE: Final = "docs/providers.md"
_ID: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_HOST: Final = re.compile(r"[a-z0-9._:-]+")
_TOML_LINE: Final = re.compile(r" \(at line (\d+), column \d+\)$")

PersonBarrier = Literal["sign_in", "challenge", "consent"]
"""What a person has to see to before a turn goes on."""

DraftPolicy = Literal["refuse", "clear"]
LongText = Literal["insert", "paste"]

Preambles = frozenset[Literal["safety"]]
"""What may be put before the first prompt of a conversation."""


class DescriptorError(Exception):
    """A descriptor that cannot be used: all that is wrong with it, a line each, with file, line and field.

    `provider`: the id that the file gives, empty where it gives none.
    """

    def __init__(self, source: str, problems: tuple[Problem, ...], provider: str = "") -> None:
        self.source = source
        self.problems = problems
        self.provider = provider
        super().__init__("\n".join(f"{source}:{problem}" for problem in problems))


@dataclass(frozen=True, slots=True)
class Windows:
    """Times in seconds.

    `done_quiet`: how long the text of an answer with its finished mark has to be unchanged. Without such marks: `quiet`
    has pairs, in order, of a number of characters and the time for texts shorter than that, `quiet_longer` is for all
    others, and `hint_quiet` for those with a hint. When time is over: `last_done_quiet` with the mark, else
    `last_quiet`. `stalled_after`: quiet for longer than is usual. `give_up_after`: quiet for too long.
    `composer_wait`: how long the composer may take to come. `commit_wait`: how long the prompt may take to show in the
    conversation after the press. `file_wait`: how long a file may take to be shown in the composer, and then to be
    ready. `choice_wait`: how long each step of choosing a model may take to show.
    """

    done_quiet: float = 0.5
    hint_quiet: float = 1.5
    quiet: tuple[tuple[float, float], ...] = ((16, 8.0), (40, 3.0), (500, 2.0))
    quiet_longer: float = 3.0
    last_done_quiet: float = 3.0
    last_quiet: float = 5.0
    stalled_after: float = 30.0
    give_up_after: float = 600.0
    composer_wait: float = 15.0
    commit_wait: float = 20.0
    file_wait: float = 60.0
    choice_wait: float = 8.0

    def quiet_for(self, character_count: int) -> float:
        """How long a text of this length has to be unchanged where quiet is all there is to go by."""
        return next((seconds for below, seconds in self.quiet if character_count < below), self.quiet_longer)


class _Limits(TypedDict):
    max_turn_count: int | None
    cool_down: float
    max_file_count: int
    max_file_bytes: int
    file_types: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A provider as data.

    `conversation_path` is matched against the whole path of an address, and nothing fits it where conversations have
    none; where it has a group named `id`, that alone tells one conversation from another. `start_path` is that of pages
    where a conversation can begin; all others are none of the provider's; None: any page can. `sign_in_path` is found
    in the paths of pages to sign in.
    `barrier_hosts`: other hosts to which the provider sends whoever has to sign in, and the like. `limit_reset`: how
    the text of a limit tells when it ends. `draft`: what becomes of a text that is in the composer and not the
    service's own. `long_text`: how a long text gets there. `max_turn_count`: how many turns may be at work there at
    once; None leaves it to the server. `cool_down`: seconds in which none begins after the provider has shown a limit
    of its own. `preambles`: what may be asked to be put before a first prompt. `choices`: the models and modes.

    Texts in the place of an answer, in lower case: `placeholders` are no answers, nor is what begins with one of
    `placeholder_prefixes`; `halted_texts` say that somebody stopped it. `answer_prefix` is cut off its beginning.
    `pending` matches a whole text after which the answer is still to come, whatever marks it has.

    Of one prompt: `max_file_count` files, each of `max_file_bytes`. `file_types`: media types, such as `image/*`, and
    endings, such as `.pdf`; empty means any.
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
    placeholder_prefixes: tuple[str, ...] = ()
    halted_texts: frozenset[str] = frozenset()
    answer_prefix: re.Pattern[str] | None = None
    preambles: Preambles = frozenset()
    pending: re.Pattern[str] | None = None
    start_path: re.Pattern[str] | None = None
    sign_in_path: re.Pattern[str] | None = None
    max_file_count: int = 10
    max_file_bytes: int = MAX_UPLOAD_BYTES
    file_types: tuple[str, ...] = ()
    choices: Choices = field(default_factory=Choices)

    @property
    def quiet_completes(self) -> bool:
        """Whether quiet alone completes an answer: only where the provider has no finished mark."""
        return not self.marks.done_mark

    def is_at(self, uri: str) -> bool:
        """Whether an address is of a page to talk to the provider: its host is exactly one of the provider's.

        Scheme and port are those of the start address, there is no user info, and the path is that of a conversation or
        of a page where one can begin.
        """
        try:
            parts, start = urlsplit(uri), urlsplit(self.start_uri)
            return (
                parts.hostname in self.hosts
                and parts.username is None
                and parts.password is None
                and parts.scheme in _PORTS
                and (parts.scheme, _port(parts)) == (start.scheme, _port(start))
                and self._is_path(parts.path)
            )
        except ValueError:
            return False

    def barrier_at(self, uri: str) -> PersonBarrier | None:
        """What a person has to see to at this address, if it is at one of the hosts for that."""
        try:
            parts = urlsplit(uri)
            host = parts.hostname or ""
        except ValueError:
            return None
        if self.sign_in_path is not None and host in self.hosts and self.sign_in_path.search(parts.path):
            return "sign_in"
        return self.barrier_hosts.get(host)

    def conversation_of(self, uri: str) -> str:
        """Address of the conversation that `uri` shows, without query and fragment; empty for a new one."""
        if not self.is_at(uri):
            return ""
        parts = urlsplit(uri)
        if self.conversation_path.fullmatch(parts.path) is None:
            return ""
        netloc = parts.netloc.lower().removesuffix(f":{_PORTS[parts.scheme]}").removesuffix(":")
        return f"{parts.scheme}://{netloc}{parts.path}"

    def same_conversation(self, first: str, second: str) -> bool:
        """Whether two addresses that `conversation_of` gave are of one conversation: each host shows the same ones."""
        return self._identity(first) == self._identity(second)

    def _identity(self, conversation: str) -> str:
        path = urlsplit(conversation).path
        found = self.conversation_path.fullmatch(path) if "id" in self.conversation_path.groupindex else None
        return found["id"] if found else path

    def _is_path(self, path: str) -> bool:
        if self.start_path is None:
            return True
        return any(pattern.fullmatch(path or "/") for pattern in (self.start_path, self.conversation_path))


def _port(parts: SplitResult) -> int:
    return _PORTS.get(parts.scheme, 0) if parts.port is None else parts.port


def load(name: str, variables: Mapping[str, str] | None = None) -> Descriptor:
    """The shipped descriptor of this name; `{port}` and the like in its addresses are replaced by `variables`."""
    text = resources.files(_PACKAGE).joinpath(f"{name}.toml").read_text("utf-8")
    for key, value in (variables or {}).items():
        text = text.replace(f"{{{key}}}", value)
    return parse(text, f"{name}.toml")


def parse(text: str, source: str) -> Descriptor:
    """A descriptor from TOML text; DescriptorError tells by lines of `source` all that is wrong."""
    reading = _read(text, source)
    top = reading.top
    if top.has("extends") and not extending.is_extensible(top.value("extends")):
        top.wrong("extends", f"must be one of {', '.join(extending.extensible())}")
        raise DescriptorError(source, _only(reading, "extends"))
    if (problem := _schema_problem(top)) is not None:
        # What else is wrong is wrong by another schema.
        top.wrong("schema", problem)
        raise DescriptorError(source, _only(reading, "schema"))
    marks = marks_in(top.table("page"))
    descriptor = Descriptor(
        id=top.fitting("id", _ID, "an id of a-z, 0-9 and - within, at most 63 characters"),
        display_name=top.text("display_name"),
        version=top.text("version"),
        hosts=_hosts(top, "hosts", None),
        start_uri=top.text("start_uri"),
        conversation_path=top.pattern_or_nothing("conversation_path"),
        default_answer_timeout=timedelta(seconds=top.count("answer_timeout_seconds")),
        max_prompt_character_count=top.count("max_prompt_characters"),
        placeholders=frozenset(_folded("placeholders", top)),
        placeholder_prefixes=_folded("placeholder_prefixes", top),
        halted_texts=frozenset(_folded("halted_texts", top)),
        answer_prefix=top.pattern_or_none("answer_prefix"),
        pending=top.pattern_or_none("pending"),
        start_path=top.pattern_or_none("start_path"),
        sign_in_path=top.pattern_or_none("sign_in_path"),
        marks=marks,
        windows=_windows(top.table("windows", {})),
        **_limits(top.table("limits", {})),
        barrier_hosts=_barrier_hosts(top),
        limit_reset=top.patterns("limit_reset"),
        **_policy(top.table("policy", {})),
        preambles=_preambles(top),
        choices=choices_in(top, marks.shown_model),
    )
    _check_addresses(top, descriptor)
    if problems := reading.problems():
        raise DescriptorError(source, problems, descriptor.id)
    return descriptor


def _read(text: str, source: str) -> Reading:
    """The document; DescriptorError where it is no TOML."""
    if len(text) > _MOST_CHARACTERS:
        raise DescriptorError(source, (Problem(1, "", f"is longer than {_MOST_CHARACTERS} characters"),))
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        return Reading(extending.extended(tomllib.loads(text)), lines_of(text))
    except (RecursionError, TooDeep) as error:
        raise DescriptorError(source, (Problem(1, "", "has too many lists and tables in one another"),)) from error
    except ValueError as error:
        # TOMLDecodeError, and that of Python for a whole number of thousands of digits.
        told = str(error)
        found = _TOML_LINE.search(told)
        line = int(found[1]) if found else text.rstrip("\n").count("\n") + 1
        message = _TOML_LINE.sub("", told).removesuffix(" (at end of document)")
        raise DescriptorError(source, (Problem(line, "", f"is no TOML: {message}"),)) from error


def _schema_problem(top: Fields) -> str | None:
    """What is wrong with the version of the schema that the file is written for."""
    if not top.has("schema"):
        return f"is missing; write schema = {_SCHEMA} at the top ({_GUIDE} tells what it is)"
    version = top.value("schema")
    if version is not True and version == _SCHEMA and isinstance(version, int):
        return None
    return (
        f"is not {_SCHEMA}, the only one that this server reads; write the file by {_GUIDE} with schema = {_SCHEMA},"
        " or use a server that reads this one"
    )


def _only(reading: Reading, field: str) -> tuple[Problem, ...]:
    return tuple(problem for problem in reading.problems() if problem.field == field)


def _check_addresses(top: Fields, descriptor: Descriptor) -> None:
    """Keep what is wrong with fields that are right each for itself."""
    if top.is_sound("hosts") and (ours := set(descriptor.hosts) & set(descriptor.barrier_hosts)):
        top.wrong("hosts", f"has {min(ours)!r}, which cannot stand in the way as well")
    if not top.is_sound("hosts", "start_uri"):
        return
    if not descriptor.is_at(descriptor.start_uri):
        top.wrong("start_uri", "must be an http or https address at one of 'hosts', without user and password")
    elif top.is_sound("conversation_path") and descriptor.conversation_of(descriptor.start_uri):
        top.wrong("conversation_path", "fits 'start_uri' too, so that a new conversation could not be told from an old")


def _folded(name: str, fields: Fields) -> tuple[str, ...]:
    return tuple(text.casefold() for text in fields.texts(name, ()))


def _preambles(top: Fields) -> Preambles:
    names = top.texts("preambles", ())
    if unknown := set(names) - {"safety"}:
        top.wrong("preambles", f"must have nothing but 'safety', and has {min(unknown)!r}")
    return frozenset({"safety"}) if names else frozenset()


def _hosts(top: Fields, name: str, default: tuple[str, ...] | None) -> tuple[str, ...]:
    hosts = tuple(host.lower() for host in top.texts(name, default))
    if wrong := [host for host in hosts if _HOST.fullmatch(host) is None]:
        top.wrong(name, f"has {wrong[0]!r}, which is no host; write it alone, such as chat.example")
    return hosts


def _barrier_hosts(top: Fields) -> Mapping[str, PersonBarrier]:
    kinds: tuple[PersonBarrier, ...] = ("sign_in", "challenge", "consent")
    found: dict[str, PersonBarrier] = {}
    for kind in kinds:
        for host in _hosts(top, f"{kind}_hosts", ()):
            if host in found:
                top.wrong(f"{kind}_hosts", f"has {host!r}, which is in '{found[host]}_hosts' too, or twice")
            found[host] = kind
    return found


class _Policy(TypedDict):
    draft: DraftPolicy
    long_text: LongText


def _policy(table: Fields) -> _Policy:
    draft: DraftPolicy = "clear" if table.choice("draft", ("refuse", "clear")) == "clear" else "refuse"
    long_text: LongText = "paste" if table.choice("long_text", ("insert", "paste")) == "paste" else "insert"
    return _Policy(draft=draft, long_text=long_text)


def _limits(table: Fields) -> _Limits:
    max_file_count, max_file_bytes = table.limit("files"), table.limit("file_bytes")
    return _Limits(
        max_turn_count=table.limit("turns"),
        cool_down=table.number("cool_down", 60.0),
        max_file_count=_MOST_FILES if max_file_count is None else max_file_count,
        max_file_bytes=MAX_UPLOAD_BYTES if max_file_bytes is None else max_file_bytes,
        file_types=tuple(text.lower() for text in table.texts("file_types", ())),
    )


def _windows(table: Fields) -> Windows:
    usual = Windows()
    return Windows(
        done_quiet=table.number("done_quiet", usual.done_quiet),
        hint_quiet=table.number("hint_quiet", usual.hint_quiet),
        quiet=table.pairs("quiet", usual.quiet),
        quiet_longer=table.number("quiet_longer", usual.quiet_longer),
        last_done_quiet=table.number("last_done_quiet", usual.last_done_quiet),
        last_quiet=table.number("last_quiet", usual.last_quiet),
        stalled_after=table.number("stalled_after", usual.stalled_after),
        give_up_after=table.number("give_up_after", usual.give_up_after),
        composer_wait=table.number("composer_wait", usual.composer_wait),
        commit_wait=table.number("commit_wait", usual.commit_wait),
        file_wait=table.number("file_wait", usual.file_wait),
        choice_wait=table.number("choice_wait", usual.choice_wait),
    )
