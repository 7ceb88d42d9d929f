"""Reading a table of TOML field by field: each has its kind, and none is left over."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast


class FieldError(ValueError):
    """A field that is missing, unknown, or not what it has to be; the message names it."""


class Fields:
    """The fields of one table; `finish` refuses those that nobody asked for."""

    def __init__(self, values: Mapping[str, object]) -> None:
        """Of `tomllib`."""
        self._values = values
        self._asked: set[str] = set()

    def text(self, name: str, default: str | None = None) -> str:
        """A text, not empty unless it may be left out."""
        value = self._take(name, default)
        if not isinstance(value, str) or (not value and default is None):
            raise FieldError(f"the field {name!r} must be a text")
        return value

    def texts(self, name: str, default: Sequence[str] | None = None, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """A list of texts, none of them empty; one at least unless it may be left out or be empty."""
        value = self._take(name, default)
        entries = cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
        texts = tuple(entry for entry in entries if isinstance(entry, str) and entry)
        needed = default is None and not may_be_empty
        if len(texts) < len(entries) or not isinstance(value, list | tuple) or (not texts and needed):
            raise FieldError(f"the field {name!r} must be a list of texts")
        return texts

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of these texts; the first where it is left out."""
        value = self._take(name, choices[0])
        if value not in choices:
            raise FieldError(f"the field {name!r} must be one of {', '.join(choices)}")
        return str(value)

    def marks(self, name: str) -> tuple[tuple[str, str], ...]:
        """A list, empty where it is left out, of selectors or `{selector, text}`: pairs, the text perhaps empty."""
        value = self._take(name, ())
        if not isinstance(value, list | tuple):
            raise FieldError(f"the field {name!r} must be a list of marks")
        pairs: list[tuple[str, str]] = []
        for entry in cast("Sequence[object]", value):
            fields = Fields({"selector": entry} if isinstance(entry, str) else _mapping(name, entry))
            pairs.append((fields.text("selector"), fields.text("text", "")))
            fields.finish()
        return tuple(pairs)

    def text_or_texts(self, name: str) -> tuple[str, ...]:
        """A text, or a list of them; none is empty."""
        return (self.text(name),) if isinstance(self._values.get(name), str) else self.texts(name)

    def has(self, name: str) -> bool:
        """Whether the field is there."""
        return name in self._values

    def pairs(self, name: str, default: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
        """A list of pairs of numbers not below 0, the first of which rise."""
        value = self._take(name, default)
        entries = cast("Sequence[object]", value) if isinstance(value, list | tuple) else (None,)
        pairs = tuple(pair for entry in entries if (pair := _pair(entry)))
        rising = all(one < other for (one, _), (other, _) in pairwise(pairs))
        if len(pairs) < len(entries) or not rising:
            raise FieldError(f"the field {name!r} must be a list of pairs of numbers, in order")
        return pairs

    def number(self, name: str, default: float | None = None) -> float:
        """A finite number, not below 0."""
        value = self._take(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise FieldError(f"the field {name!r} must be a number, not below 0")
        return float(value)

    def count(self, name: str) -> int:
        """A whole number above 0."""
        value = self._take(name, None)
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            raise FieldError(f"the field {name!r} must be a whole number above 0")
        return value

    def limit(self, name: str) -> int | None:
        """A whole number, not below 0; None where it is left out."""
        value = self._take(name, -1)
        if value == -1 and name not in self._values:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise FieldError(f"the field {name!r} must be a whole number, not below 0")
        return value

    def table(self, name: str, default: Mapping[str, object] | None = None) -> Fields:
        """The fields of a table within this one."""
        value = self._take(name, default)
        if not isinstance(value, Mapping):
            raise FieldError(f"the field {name!r} must be a table")
        return Fields(cast("Mapping[str, object]", value))

    def finish(self) -> None:
        """Raise FieldError if there is a field that was not asked for."""
        if unknown := set(self._values) - self._asked:
            raise FieldError(f"unknown field {min(unknown)!r}")

    def _take(self, name: str, default: object) -> object:
        self._asked.add(name)
        value = self._values.get(name, default)
        if value is None:
            raise FieldError(f"the field {name!r} is missing")
        return value


def _mapping(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise FieldError(f"the field {name!r} must be a list of marks")
    return cast("Mapping[str, object]", value)


def _pair(entry: object) -> tuple[float, float] | None:
    if not isinstance(entry, list | tuple):
        return None
    numbers = [
        float(number)
        for number in cast("Sequence[object]", entry)
        if isinstance(number, int | float) and not isinstance(number, bool) and 0 <= number < math.inf
    ]
    return (numbers[0], numbers[1]) if len(numbers) == len(cast("Sequence[object]", entry)) == 2 else None  # noqa: PLR2004
