"""On which line of a TOML text each value stands: `tomllib` gives the values alone."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Mapping
from typing import Final, TypeAlias

Place: TypeAlias = tuple[str | int, ...]
"""The way to a value: keys of tables, and numbers in lists, from the whole document (empty) on."""

_GAP: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
# A date may have a blank in it; what else is plain ends at blanks, but they do no harm.
_PLAIN: Final = re.compile(r"[^,\]}#\n]+")
_DEEPEST: Final = 100


class TooDeep(ValueError):
    """Lists and tables in one another, more than 100 of them."""


def lines_of(text: str) -> Mapping[Place, int]:
    """Line, from 1 on, of every table, key and entry of a list of `text`, which `tomllib` must have accepted.

    A value stands where its key does; an entry of a list where it begins. Raises TooDeep.
    """
    return _Scan(text).document()


class _Scan:
    """One way through the text, from the beginning to the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._breaks = [found.start() for found in re.finditer("\n", text)]
        self._lines: dict[Place, int] = {(): 1}
        self._table_counts: dict[Place, int] = {}

    def document(self) -> Mapping[Place, int]:
        table: Place = ()
        self._skip_gap()
        while self._at < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table, 0)
            self._skip_gap()
        return self._lines

    def _header(self) -> Place:
        """`[a.b]` or `[[a.b]]`; gives the table that what follows belongs to."""
        start = self._at
        is_list = self._text.startswith("[[", start)
        self._at += 2 if is_list else 1
        keys = self._keys()
        self._at += 2 if is_list else 1
        place: Place = ()
        for number, key in enumerate(keys, 1):
            place = (*place, key)
            self._note(place, start)
            if is_list and number == len(keys):
                place = (*place, self._table_counts.get(place, 0))
                self._table_counts[place[:-1]] = self._table_counts.get(place[:-1], 0) + 1
                self._note(place, start)
            elif count := self._table_counts.get(place):
                place = (*place, count - 1)
        # A table that was named before by a longer header stands where its own is.
        self._lines[place] = self._line(start)
        return place

    def _pair(self, table: Place, depth: int) -> None:
        start = self._at
        place = table
        for key in self._keys():
            place = (*place, key)
            self._note(place, start)
        self._at += 1  # the equals sign
        self._skip_gap()
        self._value(place, depth)

    def _keys(self) -> list[str]:
        """A key, perhaps with dots, and the blanks around it."""
        keys: list[str] = []
        while True:
            self._skip_gap()
            if found := _BARE_KEY.match(self._text, self._at):
                keys.append(found[0])
            elif found := _STRING.match(self._text, self._at):
                keys += tomllib.loads(f"{found[0]} = 0")
            else:
                raise AssertionError("tomllib has accepted this key")
            self._at = found.end()
            self._skip_gap()
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _value(self, place: Place, depth: int) -> None:
        if depth > _DEEPEST:
            raise TooDeep
        match self._text[self._at]:
            case "[":
                self._list(place, depth)
            case "{":
                self._inline_table(place, depth)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_PLAIN)

    def _list(self, place: Place, depth: int) -> None:
        self._at += 1
        number = 0
        while not self._is_over("]"):
            self._note((*place, number), self._at)
            self._value((*place, number), depth + 1)
            number += 1

    def _inline_table(self, place: Place, depth: int) -> None:
        self._at += 1
        while not self._is_over("}"):
            self._pair(place, depth + 1)

    def _is_over(self, end: str) -> bool:
        """Whether a list or table ends here, behind blanks and a comma; its end is passed over."""
        self._skip_gap()
        if self._text.startswith(",", self._at):
            self._at += 1
            self._skip_gap()
        if not self._text.startswith(end, self._at):
            return False
        self._at += 1
        return True

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self._text, self._at)
        if found is None:
            raise AssertionError("tomllib has accepted this value")
        self._at = found.end()

    def _skip_gap(self) -> None:
        self._skip(_GAP)

    def _note(self, place: Place, start: int) -> None:
        self._lines.setdefault(place, self._line(start))

    def _line(self, start: int) -> int:
        return bisect_right(self._breaks, start) + 1
