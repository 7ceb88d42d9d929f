"""A record of another tool as a value: what is kept of it, however the tool writes it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from tabmuxd.resources.errors import cut
from tabmuxd.resources.imports import ImportSource
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES

MAX_TURNS: Final = 1000
MAX_ANSWER_BYTES: Final = 1024 * 1024
_MAX_WORD_BYTES: Final = 64
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_MOST: Final = timedelta(days=365)


class Malformed(Exception):
    """The record is not what the tool writes; `import_id` is its id, if that has the tool's form."""

    import_id = ""


@dataclass(frozen=True, slots=True)
class OldAnswer:
    """What is kept of an answer: at most 1 MiB of whole UTF-8, since a text takes up to four times as much memory.

    Empty where none was there; `is_cut` is whether there was more.
    """

    text: bytes = b""
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class OldTurn:
    """One answer that was waited for. `code` is that of an error.

    `remarks` are codes of warnings beside `imported`; `deadline` is None where none was set.
    """

    status: str
    begun: datetime
    ended: datetime
    answer: OldAnswer = OldAnswer()
    code: str = ""
    deadline: datetime | None = None
    stable: timedelta = timedelta(0)
    model: str = ""
    shown_model: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OldRecord:
    """One conversation as the tool kept it; `status` is that of the whole record, `turns` has one turn at least.

    `vendor` and `address` are None where the record has none; neither was checked.
    """

    source: ImportSource
    id: str
    vendor: str | None
    address: str | None
    status: str
    created: datetime
    updated: datetime
    deadline: datetime | None
    turns: tuple[OldTurn, ...]


class OldFields:
    """The fields of one object of a record. What decides has its type, or the record is Malformed."""

    def __init__(self, values: object) -> None:
        """Raises Malformed for what is no object."""
        if not isinstance(values, dict):
            raise Malformed
        self._values = cast("Mapping[str, object]", values)

    def text(self, name: str) -> str:
        """A text that has to be there."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise Malformed
        return value

    def text_or_none(self, name: str) -> str | None:
        """A text, None where it is null or missing."""
        return None if self._values.get(name) is None else self.text(name)

    def time(self, name: str) -> datetime:
        """A time that has to be there, in ISO 8601 with milliseconds and `Z`."""
        text = self.text(name)
        try:
            if _TIME.fullmatch(text):
                return datetime.fromisoformat(text).astimezone(UTC)
        except ValueError:
            pass
        raise Malformed

    def time_or_none(self, name: str) -> datetime | None:
        """A time, None where it is null or missing."""
        return None if self._values.get(name) is None else self.time(name)

    def number(self, name: str) -> float:
        """A finite number that has to be there."""
        value = self._values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Malformed
        try:
            number = float(value)
        except OverflowError:
            raise Malformed from None
        if not math.isfinite(number):
            raise Malformed
        return number

    def array(self, name: str) -> list[object]:
        """An array that has to be there."""
        value = self._values.get(name)
        if not isinstance(value, list):
            raise Malformed
        return cast("list[object]", value)

    def objects(self, name: str) -> list[OldFields]:
        """An array of at most 1000 objects; empty where it is null or missing."""
        values = [] if self._values.get(name) is None else self.array(name)
        if len(values) > MAX_TURNS:
            raise Malformed
        return [OldFields(value) for value in values]

    # What decides nothing is taken where it is as it should be, and else passed over.

    def content(self, name: str) -> str | None:
        """A text, None for anything else."""
        value = self._values.get(name)
        return value if isinstance(value, str) else None

    def part(self, name: str) -> OldFields:
        """An object; an empty one for anything else."""
        value = self._values.get(name)
        return OldFields(cast("object", value) if isinstance(value, dict) else {})

    def holds(self, name: str) -> bool:
        """Whether it is true, and not only taken for it."""
        return self._values.get(name) is True

    def has_entries(self, name: str) -> bool:
        """Whether it is an array that is not empty."""
        value = self._values.get(name)
        return isinstance(value, list) and bool(cast("list[object]", value))

    def milliseconds(self, name: str) -> timedelta:
        """A length of time; none for anything that is no such number."""
        try:
            return milliseconds(self.number(name))
        except Malformed:
            return timedelta(0)


def milliseconds(count: float) -> timedelta:
    """So many milliseconds, from none to a year."""
    return timedelta(milliseconds=min(max(count, 0.0), _MOST / timedelta(milliseconds=1)))


def old_answer(text: str | None) -> OldAnswer:
    """What is kept of an answer; JSON may hold halves of characters, each becomes `?`."""
    whole = (text or "").encode("utf-8", "replace")
    kept = whole if len(whole) <= MAX_ANSWER_BYTES else cut(text or "", MAX_ANSWER_BYTES).encode()
    return OldAnswer(kept, is_cut=len(kept) < len(whole))


def old_address(text: str | None) -> str | None:
    """What is kept of an address: as much as it takes to judge it as the whole."""
    if text is None:
        return None
    # What is no ASCII becomes a backslash and more: either is refused.
    beginning = text[: MAX_ADDRESS_BYTES + 1].encode("ascii", "backslashreplace").decode()
    return beginning[: MAX_ADDRESS_BYTES + 1]


def word(text: str) -> str:
    """What is kept of a text that is one of some known words: one that is longer is none of these."""
    return cut(text, _MAX_WORD_BYTES)


def read_record(value: object, id_form: re.Pattern[str], read: Callable[[OldFields, str], OldRecord]) -> OldRecord:
    """A record by what `read` makes of its fields and its id, which is of this form; raises Malformed, with the id."""
    fields = OldFields(value)
    old_id = fields.text("sessionId")
    if id_form.fullmatch(old_id) is None:
        raise Malformed
    try:
        return read(fields, old_id)
    except Malformed as error:
        error.import_id = old_id
        raise
