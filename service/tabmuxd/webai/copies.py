"""Whether a text in Markdown is a copy of what a page shows: all of it, in order, and no more. Pure, in linear time.

Words are compared, not letters: a copy has marks, addresses, formulas and names of languages that the page does not
show, and a mark within a word divides it. What stands in such places may be in the copy, and nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_LEAST_SHARE: Final = 0.98
# These words at the beginning and the end all have to be there: what is cut off is missing there.
_ENDS: Final = 20
_MOST_EXTRA_SHARE: Final = 0.05
# How many characters of a copy may be addresses and formulas, for each one that is shown, and at least.
_MOST_CHARACTERS: Final = 10
_LEAST_CHARACTERS: Final = 10_000
# How far ahead the next word is sought that both have, and how many words may be one with a mark in it.
_SHOWN_AHEAD: Final = 8
_COPY_AHEAD: Final = 64
_MOST_PIECES: Final = 64
_WORD: Final = re.compile(r"[^\W_]+")
# Each alternative ends its search where the next of its kind may begin: the time is linear.
_UNSHOWN: Final = re.compile(
    r"""
      ^[^\S\n]{0,99}(?:[>*+-][^\S\n]{1,9}){0,9}(?:(?:`{3,}|~{3,})[^\n]*|\d{1,9}[.)](?=\s))   # fence, number of a list
    | ^[^\S\n]{0,3}\[[^\[\]\n]+\]:[^\n]*                          # address that links refer to
    | \[\^?\d{1,4}\] | \]\[[^\[\]\n]*\]                          # source, reference to an address
    | \]\((?:[^()\s]|\([^()\s]*\))*(?:\s+"[^"\n]*")?\)            # address of a link
    | !\[[^\[\]\n]*(?=\]\()                                       # name of a picture
    | <[A-Za-z/][^<>]*>                                           # tag, or address alone
    | &\#?\w{1,32};                                               # character by its name
    | \$\$[^$]+\$\$ | \$[^$\n]+\$                                 # formula
    | \\\([^\\\n]*(?:\\(?![()])[^\\\n]*)*\\\)
    | \\\[[^\\]*(?:\\(?![\[\]])[^\\]*)*\\\]
    """,
    re.MULTILINE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class _Words:
    """Words in order; `behind[i]` is the index behind the place that need not be shown, 0 for a word in none."""

    words: list[str]
    behind: list[int]


def is_copy(text: str, shown: str) -> bool:
    """Whether a text can be a copy of an answer that a page shows so; False where no word is shown to tell it by."""
    if len(text) > _MOST_CHARACTERS * len(shown) + _LEAST_CHARACTERS:
        return False
    asked = _WORD.findall(shown.casefold())
    return bool(asked) and _is_aligned(_words_of(text.casefold()), asked)


def is_whole(text: str, shown: str) -> bool:
    """Whether Markdown made from an answer is all of it, as `is_copy`; where no word is shown, any text is."""
    return is_copy(text, shown) or (bool(text.strip()) and _WORD.search(shown) is None)


def _words_of(text: str) -> _Words:
    words: list[str] = []
    behind: list[int] = []
    at = 0
    for unshown in _UNSHOWN.finditer(text):
        words += _WORD.findall(text, at, unshown.start())
        behind += [0] * (len(words) - len(behind))
        words += _WORD.findall(text, unshown.start(), unshown.end())
        behind += [len(words)] * (len(words) - len(behind))
        at = unshown.end()
    words += _WORD.findall(text, at)
    return _Words(words, behind + [0] * (len(words) - len(behind)))


def _is_aligned(copy: _Words, asked: list[str]) -> bool:
    """Whether the words come in order, with few missing, few besides, and none of either at the ends."""
    words, count, size = copy.words, len(asked), len(copy.words)
    may_lack, may_add = count - _LEAST_SHARE * count, _MOST_EXTRA_SHARE * count
    lacking = added = at = place = 0
    while at < count:
        if place < size and copy.behind[place]:
            # Shown as it stands, as in code, or not at all.
            unshown = words[place : copy.behind[place]]
            at += len(unshown) if asked[at : at + len(unshown)] == unshown else 0
            place += len(unshown)
        elif place < size and words[place] == asked[at]:
            at, place = at + 1, place + 1
        elif joined := _joined(copy, place, asked, at):
            place, at = joined
        else:
            skipped, ahead = _next_common(words, place, asked, at)
            besides = copy.behind[place : place + ahead].count(0)
            lacking, added = lacking + skipped, added + besides
            is_end = skipped > 0 and (at < _ENDS or at + skipped > count - _ENDS)
            if is_end or lacking > may_lack or added > may_add or (besides and at == 0):
                return False
            at, place = at + skipped, place + ahead
    return 0 not in copy.behind[place:]


def _next_common(words: list[str], place: int, asked: list[str], at: int) -> tuple[int, int]:
    """How many words to skip, of those asked and of the copy, to where both go on with the same one; the fewest."""
    fewest = (1, 0)
    least = _COPY_AHEAD + _SHOWN_AHEAD
    for skipped, word in enumerate(asked[at : at + _SHOWN_AHEAD]):
        try:
            ahead = words.index(word, place, place + _COPY_AHEAD) - place
        except ValueError:
            continue
        if skipped + ahead < least:
            least, fewest = skipped + ahead, (skipped, ahead)
    return fewest


def _joined(copy: _Words, place: int, asked: list[str], at: int) -> tuple[int, int] | None:
    """Where both go on behind words that are the same but for where they are divided; None if they are not."""
    words, ends = copy.words, (min(len(copy.words), place + _MOST_PIECES), min(len(asked), at + _MOST_PIECES))
    if place >= ends[0]:
        return None
    left, right = words[place], asked[at]
    while left != right:
        if right.startswith(left):
            place += 1
            while place < ends[0] and copy.behind[place]:
                place = copy.behind[place]
            if place >= ends[0]:
                return None
            left += words[place]
        elif left.startswith(right) and at + 1 < ends[1]:
            at += 1
            right += asked[at]
        else:
            return None
    return place + 1, at + 1
