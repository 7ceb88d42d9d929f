"""One large JSON object, split while it arrives: into the parts of its members, and what holds these together."""

from __future__ import annotations

import json
import re
from typing import Final, Never, cast

MAX_PIECE_BYTES: Final = 8 * 1024 * 1024
MAX_PIECE_PARTS: Final = 100_000  # objects and arrays: each costs a parser more than the text it comes in
MAX_DEPTH: Final = 500  # a parser gives up at about twice this, by how deep it is called itself
MAX_FRAME_BYTES: Final = 4 * 1024 * 1024

_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
_QUOTE: Final = ord('"')
_OPENING: Final = frozenset(b"{[")
_MEMBER_DEPTH: Final = 2  # inside a member of the whole


class NotJson(ValueError):
    """What was given is no JSON text, or none that can be held."""


class FrameTooLarge(ValueError):
    """There is more between the pieces than is ever there."""


class Splitter:
    """Takes a text bit by bit. A piece is an object or array that stands in an array or object of the whole.

    The frame is the whole with `[NUMBER]` in place of each piece, counted from 0. What is held at a time is the frame
    and one piece, whatever the size of the whole. That the frame is JSON tells `frame`, that a piece is, `parsed`.
    """

    def __init__(self) -> None:
        """Nothing has come yet."""
        self._frame = bytearray()
        self._piece: bytearray | None = None
        self._too_large = False
        self._part_count = 0
        self._depth = 0
        self._inside = False
        self._escaped = False
        self._count = 0

    def feed(self, text: bytes) -> list[bytes | None]:
        """The pieces that end in this bit of text, in order; None for one that is too large.

        Raises FrameTooLarge, and NotJson for what is nested too deep.
        """
        found: list[bytes | None] = []
        kept = 0
        position = int(self._escaped and bool(text))
        self._escaped = self._escaped and not text
        while match := (_INSIDE if self._inside else _OUTSIDE).search(text, position):
            position = match.end()
            sign = text[match.start()]
            if self._inside:
                self._inside = sign != _QUOTE
                self._escaped = self._inside and position == len(text)
                position += self._inside
            elif sign == _QUOTE:
                self._inside = True
            elif sign in _OPENING:
                if self._depth == _MEMBER_DEPTH:
                    self._keep(text[kept : match.start()])
                    kept = match.start()
                    self._piece = bytearray()
                    self._part_count = 0
                self._part_count += 1
                self._depth += 1
                if self._depth > MAX_DEPTH:
                    raise NotJson("it is nested too deep")
            else:
                self._depth -= 1
                if self._depth == _MEMBER_DEPTH and self._piece is not None:
                    self._keep(text[kept:position])
                    kept = position
                    found.append(self._taken())
        self._keep(text[kept:])
        return found

    def frame(self) -> dict[str, object]:
        """The whole, once all of it has come; raises NotJson where it is no object, or not whole."""
        if self._piece is not None:
            raise NotJson("it ends within a record")
        whole = parsed(bytes(self._frame))
        if not isinstance(whole, dict):
            raise NotJson("it is no object")
        return cast("dict[str, object]", whole)

    def _keep(self, text: bytes) -> None:
        if self._piece is None:
            self._frame += text
            if len(self._frame) > MAX_FRAME_BYTES:
                raise FrameTooLarge
        elif not self._too_large:
            self._piece += text
            if len(self._piece) > MAX_PIECE_BYTES or self._part_count > MAX_PIECE_PARTS:
                self._too_large = True
                self._piece.clear()

    def _taken(self) -> bytes | None:
        piece, too_large = self._piece, self._too_large
        self._piece, self._too_large = None, False
        self._keep(b"[%d]" % self._count)
        self._count += 1
        return None if too_large or piece is None else bytes(piece)


def parsed(text: bytes) -> object:
    """What a JSON text in UTF-8 stands for; raises NotJson, also for NaN and what is nested too deep."""
    try:
        return json.loads(text.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:  # decoding raises ValueError too
        raise NotJson(type(error).__name__) from None


def piece_number(placeholder: object) -> int | None:
    """Number of the piece that this stands for in a frame; None for what is no piece."""
    match placeholder:
        case [int(number)]:
            return number
        case _:
            return None


def _no_number(word: str) -> Never:
    raise NotJson(word)
