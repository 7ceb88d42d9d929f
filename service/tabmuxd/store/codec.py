"""Frozen dataclasses as rows, and back: one generic codec, made from the types of the fields.

Texts and numbers are themselves, enums their numbers, times microseconds since 1970 in UTC, lengths of time
microseconds, and everything that has parts is JSON text.
"""

from __future__ import annotations

import dataclasses
import json
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Generic, TypeVar

Cell = str | int | bytes | None

R = TypeVar("R")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True)

_Convert = Callable[[typing.Any], typing.Any]


def microseconds(time: datetime) -> int:
    """Microseconds from 1970 in UTC to an aware `time`."""
    return (time - _EPOCH) // _MICROSECOND


def moment(since_epoch: int) -> datetime:
    """The time that is so many microseconds after 1970 in UTC."""
    return _EPOCH + timedelta(microseconds=since_epoch)


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """One field of a dataclass as a column; `text` tells its type, else it is an integer."""

    name: str
    text: bool
    null: bool


@dataclasses.dataclass(frozen=True, slots=True)
class _Shape:
    """How values of one type are written; `parts`: as something JSON has parts for. None: as they are."""

    encode: _Convert | None = None
    decode: _Convert | None = None
    text: bool = False
    null: bool = False
    parts: bool = False


def _text(plain: object) -> str:
    """A text; raises TypeError for what somebody else has put in its place."""
    if type(plain) is not str:
        raise TypeError(f"{type(plain).__name__} in place of a text")
    return plain


def _number(plain: object) -> int:
    """As `_text`, a whole number."""
    if type(plain) is not int:
        raise TypeError(f"{type(plain).__name__} in place of a number")
    return plain


def _truth(plain: object) -> bool:
    """As `_text`, a truth value, which is a number in a cell and itself in JSON."""
    if plain not in (0, 1):
        raise ValueError(f"{plain!r} in place of a truth value")
    return bool(plain)


_PLAIN: Mapping[type, _Shape] = {
    str: _Shape(decode=_text, text=True),
    int: _Shape(decode=_number),
    bool: _Shape(int, _truth),
    datetime: _Shape(microseconds, lambda plain: moment(_number(plain))),
    timedelta: _Shape(lambda length: length // _MICROSECOND, lambda plain: timedelta(microseconds=_number(plain))),
}


class Codec(Generic[R]):
    """Turns values of one dataclass into cells, in the order of its fields, and back."""

    def __init__(self, kind: type[R]) -> None:
        hints = typing.get_type_hints(kind)
        self._kind = kind
        shapes = {field.name: _cell_shape(hints[field.name]) for field in _fields(kind)}
        self.columns = tuple(Column(name, shape.text, shape.null) for name, shape in shapes.items())
        self._encoders = tuple((name, shape.encode) for name, shape in shapes.items())
        self._values: Callable[[R], tuple[Any, ...]] = operator.attrgetter(*shapes)
        self._decoders = tuple(shape.decode for shape in shapes.values())

    def encode(self, value: R) -> list[Cell]:
        """The cells of `value`."""
        return [
            cell if encode is None else encode(cell)
            for (_, encode), cell in zip(self._encoders, self._values(value), strict=True)
        ]

    def changed(self, before: R, after: R) -> dict[str, Cell]:
        """The cells of `after`, by name, whose values are not those of `before`."""
        cells: dict[str, Cell] = {}
        pairs = zip(self._encoders, self._values(before), self._values(after), strict=True)
        for (name, encode), known, value in pairs:
            if value is not known and value != known:
                cells[name] = value if encode is None else encode(value)
        return cells

    def decode(self, cells: Sequence[Cell]) -> R:
        """The value whose cells these are; raises ValueError, TypeError or another error where they hold none."""
        return self._kind(
            *[cell if decode is None else decode(cell) for decode, cell in zip(self._decoders, cells, strict=True)]
        )


def _cell_shape(hint: object) -> _Shape:
    shape = _shape(hint)
    if not shape.parts:
        return shape

    def encode(value: object) -> Cell:
        if value is None:
            return None
        plain = value if shape.encode is None else shape.encode(value)
        return _JSON.encode(plain)

    def decode(cell: str | None) -> object:
        if cell is None and shape.null:
            return None
        plain = json.loads(_text(cell))
        return plain if shape.decode is None else shape.decode(plain)

    return _Shape(encode, decode, text=True, null=shape.null)


def _shape(hint: object) -> _Shape:
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return _optional(_shape(inner))
    if origin is tuple:
        return _sequence(_shape(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_shape(arguments[1]))
    if isinstance(hint, type):
        return _plain_shape(hint)
    raise TypeError(f"a store has no column for {hint!r}")


def _plain_shape(hint: type) -> _Shape:
    if hint in _PLAIN:
        return _PLAIN[hint]
    if issubclass(hint, IntEnum):
        return _Shape(int, lambda plain: hint(_number(plain)))
    if dataclasses.is_dataclass(hint):
        return _nested(hint)
    raise TypeError(f"a store has no column for {hint!r}")


def _optional(inner: _Shape) -> _Shape:
    def encode(value: object) -> object:
        return None if value is None else inner.encode(value) if inner.encode else value

    def decode(plain: object) -> object:
        return None if plain is None else inner.decode(plain) if inner.decode else plain

    return _Shape(encode, decode, text=inner.text, null=True, parts=inner.parts)


def _sequence(inner: _Shape) -> _Shape:
    return _Shape(
        lambda values: [inner.encode(value) if inner.encode else value for value in values],
        lambda plain: tuple(inner.decode(value) if inner.decode else value for value in plain),
        parts=True,
    )


def _mapping(inner: _Shape) -> _Shape:
    return _Shape(
        lambda values: {key: inner.encode(value) if inner.encode else value for key, value in values.items()},
        lambda plain: {key: inner.decode(value) if inner.decode else value for key, value in plain.items()},
        parts=True,
    )


def _nested(kind: type) -> _Shape:
    hints = typing.get_type_hints(kind)
    shapes = {field.name: _shape(hints[field.name]) for field in _fields(kind)}

    def encode(value: object) -> dict[str, object]:
        return {
            name: shape.encode(getattr(value, name)) if shape.encode else getattr(value, name)
            for name, shape in shapes.items()
        }

    # A part that an older version did not write has its default, one of a newer version is passed over.
    def decode(plain: Mapping[str, object]) -> object:
        return kind(
            **{
                name: shape.decode(plain[name]) if shape.decode else plain[name]
                for name, shape in shapes.items()
                if name in plain
            }
        )

    return _Shape(encode, decode, parts=True)


def _fields(kind: type) -> Sequence[dataclasses.Field[object]]:
    if not dataclasses.is_dataclass(kind):
        raise TypeError(f"{kind!r} is not a dataclass")
    return dataclasses.fields(kind)
