"""What one look at a chat page saw, as a value."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeVar, cast

Role = Literal["user", "assistant"]
Composer = Literal["usable", "blocked", "absent"]
Barrier = Literal["", "sign_in", "challenge", "consent", "limit"]

_ROLES: Final[tuple[Role, ...]] = ("user", "assistant")
_COMPOSERS: Final[tuple[Composer, ...]] = ("usable", "blocked", "absent")
_BARRIERS: Final[tuple[Barrier, ...]] = ("", "sign_in", "challenge", "consent", "limit")
_NO_LETTERS: Final = re.compile(r"[\W_]+")
_TOUCH_CHARACTERS: Final = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SeenTurn:
    """One turn as the page shows it; `text` is None where it stood in the baseline already.

    `hint`: something hints that it is finished. `files`: it has what an answer without text consists of.
    """

    key: str
    role: Role
    text: str | None = None
    done: bool = False
    hint: bool = False
    files: bool = False


@dataclass(frozen=True, slots=True)
class SeenFile:
    """A file that the composer shows, by all that names it; `busy`: it is on its way; `failed`: it was not taken."""

    names: tuple[str, ...]
    busy: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Sample:
    """One look.

    `composer_text` is what the box holds; `send_count` the number of usable send controls shown; `reading` names the
    look to the press that follows it. `barrier` is what stands in the way, `barrier_text` what a limit says. `still`
    is for how many seconds no element came or went; `whole` that the list of turns was seen to be whole;
    `focused` that the composer got the focus in this look; `failure_key` tells one error from another with its words.
    `brought`: the address is the first one to which the page came by itself since a prompt was pressed in it.
    `touch` is a word that is another one after anything was typed or pasted, and in another document.
    `files` are those that the composer shows; `files_busy` and `files_failed` tell of some that they are on their way,
    or were not taken, where it is not told of which.
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
    failure_key: int = 0
    touch: str = ""
    brought: bool = False
    files: tuple[SeenFile, ...] = ()
    files_busy: bool = False
    files_failed: bool = False


@dataclass(frozen=True, slots=True)
class Notices:
    """What a page says besides: an error, by its words and its element, and a limit that keeps nobody from typing."""

    failure: tuple[str, int] = ("", 0)
    limit: str = ""


def notices(sample: Sample) -> Notices:
    """What a look shows of that."""
    return Notices((sample.failure, sample.failure_key), sample.barrier_text if sample.barrier == "limit" else "")


def without_old(sample: Sample, old: Notices) -> tuple[Sample, Notices]:
    """A look without notices that were shown before the prompt was sent, and ever since; and what of these still is."""
    shown, none = notices(sample), Notices()
    if shown.failure == old.failure:
        sample = replace(sample, failure="", failure_key=0)
    else:
        old = replace(old, failure=none.failure)
    if shown.limit and shown.limit == old.limit:
        return replace(sample, barrier="", barrier_text=""), old
    return sample, replace(old, limit=none.limit)


def sample_of(value: Mapping[str, object]) -> Sample:
    """The sample in what the page script gave; raises ValueError for another shape."""
    try:
        turns = cast("list[Mapping[str, object]]", value["turns"])
        return Sample(
            uri=text_of(value["uri"]),
            title=text_of(value["title"]),
            ready=bool(value["ready"]),
            composer=one_of(value["composer"], _COMPOSERS),
            composer_text=text_of(value["composer_text"]),
            composer_exact=bool(value["composer_exact"]),
            send_count=int(cast("int", value["send"])),
            stop=bool(value["stop"]),
            failure=text_of(value["failure"]),
            failure_key=int(cast("int", value["failure_key"])),
            turns=tuple(_turn(turn) for turn in turns),
            frames=int(cast("int", value["frames"])),
            reading=int(cast("int", value["reading"])),
            barrier=one_of(value["barrier"], _BARRIERS),
            barrier_text=text_of(value["barrier_text"]),
            still=float(cast("float", value["still"])),
            whole=bool(value["whole"]),
            focused=bool(value["focused"]),
            touch=text_of(value["touch"])[:_TOUCH_CHARACTERS],
            brought=bool(value["brought"]),
            files=tuple(_file(file) for file in cast("list[Mapping[str, object]]", value["files"])),
            files_busy=bool(value["files_busy"]),
            files_failed=bool(value["files_failed"]),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"no sample: {error}") from error


def _turn(value: Mapping[str, object]) -> SeenTurn:
    role: Role = one_of(value["role"], _ROLES)
    text = value.get("text")
    return SeenTurn(
        key=text_of(value["key"]),
        role=role,
        text=None if text is None else text_of(text),
        done=bool(value.get("done", False)),
        hint=bool(value.get("hint", False)),
        files=bool(value.get("files", False)),
    )


def _file(value: Mapping[str, object]) -> SeenFile:
    names = tuple(text_of(name) for name in cast("list[object]", value["names"]))
    return SeenFile(names, busy=bool(value["busy"]), failed=bool(value["failed"]))


def one_of(value: object, known: tuple[T, ...]) -> T:
    """The one of `known` that a page's script gave; raises TypeError for anything else."""
    for one in known:
        if value == one:
            return one
    raise TypeError(f"none of {known}: {type(value).__name__}")


def text_of(value: object) -> str:
    """A text that a page's script gave, as UTF-8 can hold it; raises TypeError for anything else."""
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
    """The own prompt in the conversation and what stands behind it.

    `user_key` is that of the prompt's turn, `parts` are key and text of the answer's turns. `remembered`: not all of
    the text stands in the page now, and what is missing may have grown since it was seen.
    """

    answer: str
    done: bool
    answered: bool
    hint: bool = False
    files: bool = False
    user_key: str = ""
    parts: tuple[tuple[str, str], ...] = ()
    remembered: bool = False


def own_index(sample: Sample, lookup_sha256: str, before: OwnTurn | None = None) -> int | None:
    """Where the newest user turn outside the baseline stands that holds the prompt.

    The one that was own in a look `before` is taken, by its key, also where the page emptied it.
    """
    newest: int | None = None
    for index, turn in enumerate(sample.turns):
        if turn.role != "user" or turn.text is None:
            continue
        holds = lookup_hash(turn.text) == lookup_sha256
        if before and turn.key == before.user_key and (holds or not turn.text.strip()):
            return index
        if holds:
            newest = index
    return newest


def own_turn(sample: Sample, lookup_sha256: str, before: OwnTurn | None = None) -> OwnTurn | None:
    """The newest user turn outside the baseline that holds the prompt, with the assistant's turns behind it.

    Only what stands behind the own prompt, up to the next user turn, is the answer. What was own in a look `before`
    still is, by its keys: pages drop or empty turns that are out of sight.
    """
    at = _place(sample, lookup_sha256, before)
    if at is None:
        return None
    behind: list[SeenTurn] = []
    for turn in sample.turns[at + 1 :]:
        if turn.role == "user":
            break
        behind.append(turn)
    prompt_shown = at >= 0 and sample.turns[at].role == "user"
    known = before.parts if before else ()
    parts = _parts(behind, known, dropped=not prompt_shown)
    return OwnTurn(
        answer="\n\n".join(text for _key, text in parts if text),
        done=bool(behind) and behind[-1].done,
        answered=bool(behind),
        hint=bool(behind) and behind[-1].hint,
        files=any(turn.files for turn in behind),
        user_key=sample.turns[at].key if prompt_shown else before.user_key if before else "",
        parts=parts,
        remembered=_is_remembered(behind, known, parts),
    )


def _place(sample: Sample, lookup_sha256: str, before: OwnTurn | None) -> int | None:
    """Index of the own prompt; where the page dropped it, that before the first part of the answer."""
    at = own_index(sample, lookup_sha256, before)
    if at is not None or before is None:
        return at
    known = {key for key, _text in before.parts}
    return next(
        (index - 1 for index, turn in enumerate(sample.turns) if turn.role == "assistant" and turn.key in known), None
    )


def _parts(
    behind: list[SeenTurn], before: tuple[tuple[str, str], ...], *, dropped: bool
) -> tuple[tuple[str, str], ...]:
    """Key and text of each part: what a page emptied keeps its text; so does what it `dropped` above the first."""
    known = dict(before)
    shown = {turn.key for turn in behind}
    above = tuple((key, text) for key, text in before if dropped and key not in shown)
    return (*above, *((turn.key, turn.text or known.get(turn.key, "")) for turn in behind))


def _is_remembered(
    behind: list[SeenTurn], before: tuple[tuple[str, str], ...], parts: tuple[tuple[str, str], ...]
) -> bool:
    """Whether a part has a text that does not stand in the page, and was the last one when that was seen there.

    One that had another behind it was finished.
    """
    shown = {turn.key for turn in behind if turn.text}
    finished = {key for key, _text in before[:-1]}
    return any(text and key not in shown and key not in finished for key, text in parts)
