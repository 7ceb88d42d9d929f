"""Reading a table of TOML field by field: each has its kind, none is left over, and all that is wrong is kept."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import pairwise
from typing import Final, TypeVar, cast

from tabmuxd.webai.providers.roles import ROLES, selector_of
from tabmuxd.webai.providers.selectors import selector_fault
from tabmuxd.webai.providers.toml_lines import Place

_MOST: Final = 2**31 - 1
_NOTHING: Final = re.compile(r"(?!)")
_ATTRIBUTE: Final = re.compile(r"[^\s\"'<>/=\[\]]+")
_TEXTS: Final = "a list of texts, none of them empty"
_PAIRS: Final = "a list of pairs of numbers, the first of which rise, such as [[16, 8], [40, 3]]"
_MARK: Final = 'a CSS selector, {selector = "…", text = "…", name = "…"} or {role = "…", name = "…"}'
_MARKS: Final = f"a list of marks: each is {_MARK}"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One thing that is wrong with a file: on which line, in which field (empty: none), and what was expected."""

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        """As it stands behind the file's name, on one line."""
        return plain(f"{self.line}: {self.field + ': ' if self.field else ''}{self.message}")


def plain(text: str) -> str:
    """A text without line breaks, or anything else that a terminal would obey."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


class Reading:
    """All tables of one document as they are read, and what was found wrong with them."""

    def __init__(self, values: Mapping[str, object], lines: Mapping[Place, int]) -> None:
        """Of `tomllib` and `lines_of`."""
        self._lines = lines
        self._tables: list[Fields] = []
        self._wrong: dict[Place, list[str]] = {}
        self.top = self.fields(values, ())

    def __repr__(self) -> str:
        """How much was found wrong."""
        return f"<Reading tables={len(self._tables)} wrong={len(self._wrong)}>"

    def fields(self, values: Mapping[str, object], place: Place) -> Fields:
        """The fields of the table that stands there."""
        fields = Fields(self, values, place)
        self._tables.append(fields)
        return fields

    def wrong(self, place: Place, message: str) -> None:
        """Keep what is wrong with the value that stands there, or is missing there."""
        self._wrong.setdefault(place, []).append(message)

    def is_sound(self, *places: Place) -> bool:
        """Whether nothing was found wrong with any of these, or within."""
        return not any(wrong[: len(place)] == place for wrong in self._wrong for place in places)

    def problems(self) -> tuple[Problem, ...]:
        """What is wrong with the fields that were read, and each field that was not; by line."""
        found = [
            Problem(self._line(place), _named(place), message)
            for place, messages in self._wrong.items()
            for message in messages
        ]
        homes = {name: table.place for table in reversed(self._tables) for name in table.known}
        for table in self._tables:
            for name in table.unknown():
                place = (*table.place, name)
                found.append(Problem(self._line(place), _named(place), _unknown(name, table, homes)))
        return tuple(sorted(found))

    def _line(self, place: Place) -> int:
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]


class Fields:
    """The fields of one table. What is wrong is kept, and something of the kind is given in its place."""

    def __init__(self, reading: Reading, values: Mapping[str, object], place: Place) -> None:
        """Made by `Reading.fields`."""
        self._reading = reading
        self._values = values
        self.place = place
        self.known: set[str] = set()

    def __repr__(self) -> str:
        """Which table."""
        return f"<Fields [{_named(self.place)}]>"

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        self.known.add(name)
        return name in self._values

    def value(self, name: str) -> object:
        """Whatever the field is; None where it is left out."""
        self.known.add(name)
        return self._values.get(name)

    def is_sound(self, *names: str) -> bool:
        """Whether nothing was found wrong with these fields."""
        return self._reading.is_sound(*((*self.place, name) for name in names))

    def wrong(self, name: str, message: str) -> None:
        """Keep what is wrong with a field."""
        self._reading.wrong((*self.place, name), message)

    def names(self) -> tuple[str, ...]:
        """What stands in the table, in order, where its keys are names that the file gives."""
        return tuple(self._values)

    def unknown(self) -> list[str]:
        """The fields that nobody asked for."""
        return [name for name in self._values if name not in self.known]

    def text(self, name: str, default: str | None = None) -> str:
        """A text, not empty unless it may be left out."""
        value = self._take(name, default, "a text")
        if not isinstance(value, str):
            return self._kind(name, "a text", value, default or "")
        if not value and default is None:
            self.wrong(name, "must be a text, and is empty")
        return value

    def fitting(self, name: str, pattern: re.Pattern[str], what: str) -> str:
        """A text that the whole of a pattern fits; `what` tells of such a one."""
        text = self.text(name)
        if text and pattern.fullmatch(text) is None:
            self.wrong(name, f"must be {what}, and is {text!r}")
        return text

    def texts(self, name: str, default: Sequence[str] | None = None, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """A list of texts, none of them empty; one at least unless it may be left out or be empty."""
        value = self._take(name, default, _TEXTS)
        if not isinstance(value, list | tuple):
            return self._kind(name, _TEXTS, value, ())
        texts: list[str] = []
        for number, entry in enumerate(cast("Sequence[object]", value)):
            if isinstance(entry, str) and entry:
                texts.append(entry)
            else:
                self._reading.wrong((*self.place, name, number), f"must be a text that is not empty, {_found(entry)}")
        if not value and default is None and not may_be_empty:
            self.wrong(name, "must have one text at least")
        return tuple(texts)

    def text_or_texts(self, name: str) -> tuple[str, ...]:
        """A text, or a list of them; none is empty."""
        return (self.text(name),) if isinstance(self._values.get(name), str) else self.texts(name)

    def selector(self, name: str, default: str | None = None) -> str:
        """A CSS selector, or nothing where it may be left out."""
        selector = self.text(name, default)
        self._check_selector((name,), selector)
        return selector

    def selectors(
        self, name: str, default: Sequence[str] | None = None, *, may_be_empty: bool = False
    ) -> tuple[str, ...]:
        """A list of CSS selectors; one at least unless it may be left out or be empty."""
        return self._check_all(name, self.texts(name, default, may_be_empty=may_be_empty))

    def selector_or_selectors(self, name: str) -> tuple[str, ...]:
        """A CSS selector, or a list of them."""
        return self._check_all(name, self.text_or_texts(name))

    def attributes(self, name: str) -> tuple[str, ...]:
        """Name of an attribute of HTML, or a list of them, which may be empty."""
        is_one = isinstance(self._values.get(name), str)
        names = (self.text(name),) if is_one else self.texts(name, may_be_empty=True)
        if wrong := [each for each in names if each and _ATTRIBUTE.fullmatch(each) is None]:
            self.wrong(name, f"must be the name of an attribute, such as data-message-id, and is {wrong[0]!r}")
        return names

    def attribute_or_nothing(self, name: str) -> str:
        """Name of an attribute of HTML; empty where it is left out."""
        name_given = self.text(name, "")
        if name_given and _ATTRIBUTE.fullmatch(name_given) is None:
            self.wrong(name, f"must be the name of an attribute, such as aria-label, and is {name_given!r}")
        return name_given

    def pattern(self, name: str) -> re.Pattern[str]:
        """A regular expression."""
        return self._compiled((name,), self.text(name))

    def pattern_or_nothing(self, name: str) -> re.Pattern[str]:
        """A regular expression; an empty text is one that fits nothing."""
        return _NOTHING if self.has(name) and self._values[name] == "" else self.pattern(name)

    def pattern_or_none(self, name: str) -> re.Pattern[str] | None:
        """A regular expression, or None where it is left out."""
        return self.pattern(name) if self.has(name) else None

    def patterns(self, name: str) -> tuple[re.Pattern[str], ...]:
        """A list of regular expressions, empty where it is left out."""
        return tuple(self._compiled((name, number), text) for number, text in enumerate(self.texts(name, ())))

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of these texts; the first where it is left out."""
        value = self._take(name, choices[0], "")
        if value in choices:
            return str(value)
        told = " or ".join(f'"{choice}"' for choice in choices)
        return self._kind(name, told, value, choices[0])

    def marks(self, name: str, *, needed: bool = False) -> tuple[tuple[str, str, str, str], ...]:
        """A list of selectors, `{selector, text, name}` or `{role, name}`, as selector, text, name and role of each.

        Several names stand on lines of their own. Empty where it is left out, unless `needed`.
        """
        value = self._take(name, None if needed else (), _MARKS)
        if not isinstance(value, list | tuple):
            return self._kind(name, _MARKS, value, ())
        if needed and not value:
            self.wrong(name, "must have one mark at least")
        found: list[tuple[str, str, str, str]] = []
        for number, entry in enumerate(cast("Sequence[object]", value)):
            place = (*self.place, name, number)
            if isinstance(entry, Mapping):
                table = self._reading.fields(cast("Mapping[str, object]", entry), place)
                found.append(table.mark())
            elif isinstance(entry, str) and entry:
                self._check_selector((name, number), entry)
                found.append((entry, "", "", ""))
            else:
                self._reading.wrong(place, f"must be {_MARK}, {_found(entry)}")
        return tuple(found)

    def mark(self) -> tuple[str, str, str, str]:
        """This table as one mark: selector, text, name and role."""
        name = "\n".join(self.text_or_texts("name")) if self.has("name") else ""
        text = self.text("text", "")
        if not self.has("role"):
            return self.selector("selector"), text, name, ""
        role = self.choice("role", ROLES)
        if not name:
            self.wrong("name", "is missing: what a role is sought with")
        if self.has("selector"):
            self.wrong("selector", "must not stand beside 'role', which selects by itself")
        return selector_of(role), text, name, role

    def pairs(self, name: str, default: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        """A list of pairs of numbers not below 0, the first of which rise."""
        value = self._take(name, default, _PAIRS)
        entries = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (None,)
        pairs = tuple(pair for entry in entries if (pair := _pair(entry)))
        rising = all(one < other for (one, _), (other, _) in pairwise(pairs))
        if len(pairs) < len(entries) or not rising:
            self.wrong(name, f"must be {_PAIRS}")
            return default
        return pairs

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number, not below 0."""
        value = self._take(name, default, "a number")
        number = _number(value)
        return self._kind(name, "a number, not below 0", value, default or 0.0) if number is None else number

    def count(self, name: str) -> int:
        """A whole number above 0."""
        return self._whole(name, self._take(name, None, "a whole number"), least=1)

    def limit(self, name: str) -> int | None:
        """A whole number, not below 0; None where it is left out."""
        value = self._take(name, 0, "")
        return self._whole(name, value, least=0) if self.has(name) else None

    def table(self, name: str, default: Mapping[str, object] | None = None) -> Fields:
        """The fields of a table within this one."""
        expected = f"a table: write [{_named((*self.place, name))}] above its fields"
        value = self._take(name, default, expected)
        place = (*self.place, name)
        if isinstance(value, Mapping):
            return self._reading.fields(cast("Mapping[str, object]", value), place)
        if value is not None:
            self.wrong(name, f"must be {expected}, {_found(value)}")
        # What it would have to hold is not told as well: one problem is enough.
        return Reading({}, {(): 1}).fields({}, place)

    def _take(self, name: str, default: T | None, expected: str) -> object | T:
        self.known.add(name)
        value = self._values.get(name, default)
        if value is None:
            self.wrong(name, f"is missing, and must be {expected}")
        return value

    def _kind(self, name: str, expected: str, value: object, instead: T) -> T:
        """Keep that a value is of another kind; None is one that is missing, which was kept already."""
        if value is not None:
            self.wrong(name, f"must be {expected}, {_found(value)}")
        return instead

    def _whole(self, name: str, value: object, *, least: int) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST:
            return value
        told = "above 0" if least else "not below 0"
        return self._kind(name, f"a whole number {told} and at most {_MOST}", value, least)

    def _check_all(self, name: str, selectors: tuple[str, ...]) -> tuple[str, ...]:
        written = self._values.get(name)
        listed = cast("Sequence[object]", written) if isinstance(written, list) else ()
        for selector in selectors:
            self._check_selector((name, listed.index(selector)) if listed else (name,), selector)
        return selectors

    def _check_selector(self, place: Place, selector: str) -> None:
        if selector and (fault := selector_fault(selector)):
            self._reading.wrong((*self.place, *place), f"{selector!r} {fault}")

    def _compiled(self, place: Place, text: str) -> re.Pattern[str]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # what Python will read otherwise some day
                return re.compile(text)
        except (re.error, RecursionError, OverflowError, Warning) as error:
            self._reading.wrong((*self.place, *place), f"is no regular expression: {error}")
            return _NOTHING


def _named(place: Place) -> str:
    """The way to a value as people write it."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).removeprefix(".")


def _unknown(name: str, table: Fields, homes: Mapping[str, Place]) -> str:
    """What to say of a field that nobody asked for."""
    if near := get_close_matches(name, table.known, 1):
        return f"is unknown; did you mean {near[0]!r}?"
    if (home := homes.get(name)) is not None:
        return f"is unknown here; it belongs {f'below [{_named(home)}]' if home else 'above all tables'}"
    return f"is unknown; known here are {', '.join(sorted(table.known))}"


def _found(value: object) -> str:
    """What a value is instead, for people."""
    match value:
        case bool():
            return f"and is {str(value).lower()}"
        case str():
            return f"and is the text {value[:60]!r}" if value else "and is an empty text"
        case int() | float():
            return f"and is the number {value}" if abs(value) <= _MOST else "and is a number"
        case list():
            return "and is a list"
        case Mapping():
            return "and is a table"
        case _:
            return "and is a date or time"


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST or math.isnan(value):
        return None
    return float(value)


def _pair(entry: object) -> tuple[float, float] | None:
    if not isinstance(entry, list | tuple):
        return None
    numbers = [number for each in cast("Sequence[object]", entry) if (number := _number(each)) is not None]
    return (numbers[0], numbers[1]) if len(numbers) == len(cast("Sequence[object]", entry)) == 2 else None  # noqa: PLR2004
