"""What a file may be called: its name is shown to people and pages, and is its name on disk."""

from __future__ import annotations

import re
import unicodedata
from pathlib import PurePath
from typing import Final

from tabmuxd.resources.artifacts import MAX_NAME_BYTES

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,126}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
# Names that stand for devices on some systems, with whatever ending.
_RESERVED: Final = re.compile(r"(?i)(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?")
_SEPARATORS: Final = frozenset('/\\:*?"<>|')
# What is not seen and changes how the rest is read: controls, halves of characters, line ends.
_UNSEEN: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_TURNING: Final = frozenset("\u061c\u200b\u200e\u200f\u2060\ufeff") | {
    chr(point) for first, last in ((0x202A, 0x202E), (0x2066, 0x2069)) for point in range(first, last + 1)
}


def name_fault(name: str) -> str | None:
    """Why a file cannot be called this, as what a right name is; None where it can."""
    faults = (
        (not name, "must be the name of the file"),
        (len(name.encode("utf-8", "replace")) > MAX_NAME_BYTES, f"must have at most {MAX_NAME_BYTES} bytes"),
        (
            bool(_SEPARATORS.intersection(name)) or name in {".", ".."},
            'must be a name alone, never a path, without any of / \\ : * ? " < > |',
        ),
        (
            any(unicodedata.category(each) in _UNSEEN or each in _TURNING for each in name),
            "must have no characters that are not seen",
        ),
        (
            name.strip() != name or name.endswith("."),
            "must neither begin nor end with a space, nor end with a dot",
        ),
        (_RESERVED.fullmatch(name) is not None, "must not be a name that stands for a device on some systems"),
    )
    return next((problem for wrong, problem in faults if wrong), None)


def is_media_type(text: str) -> bool:
    """Whether this is a media type without parameters, in lower case."""
    return _MEDIA_TYPE.fullmatch(text) is not None


def stem_of(name: str) -> str:
    """A file's name without its ending."""
    return PurePath(name).stem


def ending_of(name: str) -> str:
    """A file's ending with its dot, in lower case; empty where it has none."""
    return PurePath(name).suffix.lower()
