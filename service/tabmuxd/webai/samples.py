"""What one look at a chat page saw, as a value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeVar, cast

Role = Literal["user", "assistant"]
Composer = Literal["usable", "blocked", "absent"]
Barrier = Literal["", "sign_in", "challenge", "consent", "limit"]

_ROLES: Final[tuple[Role, ...]] = ("user", "assistant")
_COMPOSERS: Final[tuple[Composer, ...]] = ("usable", "blocked", "absent")
_BARRIERS: Final[tuple[Barrier, ...]] = ("", "sign_in", "challenge", "consent", "limit")
_NO_LETTERS: Final = re.compile(r"[\W_]+")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """One turn as the page shows it; `text` is None where it stood in the baseline already."""

    key: str
    role: Role
    text: str | None = None
    done: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One look.

    `composer_text` is what the box holds; `send_count` the number of usable send controls shown; `reading` names the
    look to the press that follows it. `barrier` is what stands in the way, `barrier_text` what a limit says. `still`
    is for how many seconds no element came or went; `whole` that the list of turns was seen to be whole;
    `focused` that the composer got the focus in this look.
    """

    uri: str
    title: str
    ready: bool
    composer: Composer
    composer_text: str
    composer_exact: bool
    send_count: int
    stop: bool
    failure: str
    turns: tuple[SeenTurn, ...]
    frames: int
    reading: int = 0
    barrier: Barrier = ""
    barrier_text: str = ""
    still: float = 0.0
    whole: bool = False
    focused: bool = False


def sample_of(value: Mapping[str, object]) -> Sample:
    """The sample in what the page script gave; raises ValueError for another shape."""
    try:
        turns = cast("list[Mapping[str, object]]", value["turns"])
        return Sample(
            uri=_text(value["uri"]),
            title=_text(value["title"]),
            ready=bool(value["ready"]),
            composer=_one_of(value["composer"], _COMPOSERS),
            composer_text=_text(value["composer_text"]),
            composer_exact=bool(value["composer_exact"]),
            send_count=int(cast("int", value["send"])),
            stop=bool(value["stop"]),
            failure=_text(value["failure"]),
            turns=tuple(_turn(turn) for turn in turns),
            frames=int(cast("int", value["frames"])),
            reading=int(cast("int", value["reading"])),
            barrier=_one_of(value["barrier"], _BARRIERS),
            barrier_text=_text(value["barrier_text"]),
            still=float(cast("float", value["still"])),
            whole=bool(value["whole"]),
            focused=bool(value["focused"]),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"no sample: {error}") from error


def _turn(value: Mapping[str, object]) -> SeenTurn:
    role: Role = _one_of(value["role"], _ROLES)
    text = value.get("text")
    return SeenTurn(
        key=_text(value["key"]),
        role=role,
        text=None if text is None else _text(text),
        done=bool(value.get("done", False)),
    )


def _one_of(value: object, known: tuple[T, ...]) -> T:
    for one in known:
        if value == one:
            return one
    raise TypeError(f"none of {known}: {type(value).__name__}")


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {type(value).__name__}")
    # A page can hold halves of characters (lone surrogates), which UTF-8 cannot.
    return value.encode("utf-8", "replace").decode("utf-8")


def normalised(text: str) -> str:
    """`text` with each run of white space as one blank, as a page may show it."""
    return " ".join(text.split())


def lookup_hash(text: str) -> str:
    """What a prompt is found again by: SHA-256 of its letters and digits, lower-case hex.

    A page may show all else anew: line ends, marks of Markdown. Of a text without any it is of the normalised text.
    """
    return hashlib.sha256((_NO_LETTERS.sub("", text) or normalised(text)).encode()).hexdigest()


def keys(sample: Sample) -> tuple[str, ...]:
    """Keys of all turns shown, in order: the baseline of a prompt that is sent now."""
    return tuple(map(key_of, sample.turns))


def key_of(turn: SeenTurn) -> str:
    """What a turn is known by; where the page gives it no key, a word made from its text."""
    return turn.key or f"~{lookup_hash(turn.text or '')[:16]}"


@dataclass(frozen=True, slots=True)
class OwnTurn:
    """The own prompt in the conversation and what stands behind it."""

    answer: str
    done: bool
    answered: bool


def own_index(sample: Sample, lookup_sha256: str) -> int | None:
    """Where the newest user turn outside the baseline stands that holds the prompt."""
    for index in reversed(range(len(sample.turns))):
        turn = sample.turns[index]
        if turn.role == "user" and turn.text is not None and lookup_hash(turn.text) == lookup_sha256:
            return index
    return None


def own_turn(sample: Sample, lookup_sha256: str) -> OwnTurn | None:
    """The newest user turn outside the baseline that holds the prompt, with the assistant's turns behind it.

    Only what stands behind the own prompt, up to the next user turn, is the answer.
    """
    at = own_index(sample, lookup_sha256)
    if at is None:
        return None
    behind: list[SeenTurn] = []
    for turn in sample.turns[at + 1 :]:
        if turn.role == "user":
            break
        behind.append(turn)
    answer = "\n\n".join(turn.text for turn in behind if turn.text)
    return OwnTurn(answer, bool(behind) and behind[-1].done, bool(behind))
