"""What a prompt may ask of the page: `{{name=value name=value}}`, anywhere in its text."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

LONGEST_SECONDS = 7 * 24 * 3600.0
MOST_CHARACTERS = 1_000_000

_BLOCK = re.compile(r"\{\{([^{}]*)\}\}")


class Press(StrEnum):
    """What the page does with a press on Send."""

    HEARD = "heard"
    IGNORED = "ignore"
    DEAF = "deaf"  # the first press of a draft does nothing


class Failure(StrEnum):
    """How an answer goes wrong."""

    NONE = "none"
    BANNER = "banner"  # an error banner in place of the answer
    LATE = "late"  # half of the answer, then the banner
    CUT = "cut"  # half of the answer, and no finished mark


@dataclass(frozen=True, slots=True)
class Directives:
    """How one prompt is taken and answered; the defaults are those of a prompt that asks for nothing."""

    seconds: float = 2.0  # how long the text grows, silences not counted
    characters: int | None = None  # length of the answer in code points; None: as it comes
    commit: float = 0.0  # from the press to the user's turn
    think: float = 0.25  # from the user's turn to the answer's first sign
    placeholder: bool = False  # one second of "Thinking" in the answer's place
    pause: float = 0.0  # silence in the middle, with Stop
    stop_gap: float = 0.0  # silence in the middle, without Stop
    press: Press = Press.HEARD
    fail: Failure = Failure.NONE
    silent: bool = False  # no answer ever
    finished_mark: bool = True
    plain: bool = False  # no Markdown but paragraphs
    code: bool = False  # a fenced block at the end


@lru_cache(maxsize=32)
def directives_in(prompt: str) -> Directives:
    """Directives that stand in a prompt.

    The last of two equal names counts. Names and values that are not known are ignored; numbers are cut to their
    range. The page script reads `press` by the same grammar.
    """
    words = dict(_words(prompt))
    default = Directives()
    return Directives(
        seconds=_seconds(words.get("seconds"), default.seconds),
        characters=_characters(words.get("characters")),
        commit=_seconds(words.get("commit"), default.commit),
        think=_seconds(words.get("think"), default.think),
        placeholder=words.get("placeholder") == "1",
        pause=_seconds(words.get("pause"), default.pause),
        stop_gap=_seconds(words.get("stop_gap"), default.stop_gap),
        press=_press(words.get("press")),
        fail=_failure(words.get("fail")),
        silent=words.get("silent") == "1",
        finished_mark=words.get("done") != "never",
        plain=words.get("plain") == "1",
        code=words.get("code") == "1",
    )


def without_directives(prompt: str) -> str:
    """The prompt's text with each `{{…}}` taken out."""
    return _BLOCK.sub(" ", prompt)


def _words(prompt: str) -> Iterator[tuple[str, str]]:
    for block in _BLOCK.finditer(prompt):
        for word in block.group(1).split():
            name, equals, value = word.partition("=")
            if equals:
                yield name, value


def _seconds(value: str | None, default: float) -> float:
    try:
        seconds = float(value) if value is not None else default
    except ValueError:
        return default
    return default if math.isnan(seconds) else min(max(seconds, 0.0), LONGEST_SECONDS)


def _characters(value: str | None) -> int | None:
    # Long digits are refused before int(), whose own limit would raise another error.
    if value is None or not re.fullmatch(r"[0-9]{1,12}", value):
        return None
    return min(int(value), MOST_CHARACTERS)


def _press(value: str | None) -> Press:
    return Press(value) if value in set(Press) else Press.HEARD


def _failure(value: str | None) -> Failure:
    return Failure(value) if value in set(Failure) else Failure.NONE
