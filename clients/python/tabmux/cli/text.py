"""Text for terminals: made harmless, measured, cut and set in columns. No I/O."""

import json
import unicodedata
from collections.abc import Sequence

_DELETE = 0x7F
_C0_END = 0x20
_C0_PICTURES = 0x2400
_DELETE_PICTURE = "\u2421"
_REPLACEMENT = "\ufffd"
# They reorder what follows, so that a line can show what it does not say.
_BIDI_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_COLUMN_GAP = "  "
_CUT_MARK = "…"


def harmless(text: str) -> str:
    """`text` with each character that could steer a terminal replaced by one that shows it; lines and tabs stay.

    One character becomes one character, whatever stands beside it.
    """
    return "".join(_shown(character) for character in text)


def harmless_line(text: str) -> str:
    """`text` made harmless on one line."""
    return harmless(text.replace("\r\n", " ").replace("\n", " ").replace("\t", " "))


def harmless_json(text: str) -> str:
    """The same JSON, with each character that could steer a terminal written as an escape."""
    return "".join(
        character if character == " " or character.isprintable() else json.dumps(character)[1:-1] for character in text
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Lines of a table; its last column is cut so that a line has at most `width` cells, `None` cuts nothing."""
    cells = [list(head), *([harmless_line(cell) for cell in row] for row in rows)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(head))]
    lines = (
        _COLUMN_GAP.join(cell + " " * (widths[column] - _width(cell)) for column, cell in enumerate(row)).rstrip()
        for row in cells
    )
    return [line if width is None else _cut(line, width) for line in lines]


def _shown(character: str) -> str:
    code = ord(character)
    if character in "\n\t" or (_C0_END <= code < _DELETE):
        return character
    if code < _C0_END:
        return chr(_C0_PICTURES + code)
    if code == _DELETE:
        return _DELETE_PICTURE
    if character in _BIDI_CONTROLS or unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}:
        return _REPLACEMENT
    return character


def _width(text: str) -> int:
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _cut(line: str, width: int) -> str:
    if _width(line) <= width:
        return line
    kept = ""
    for character in line:
        if _width(kept) + _cells(character) + 1 > width:
            break
        kept += character
    return kept + _CUT_MARK
