"""Rebuilds a growing answer from its stream: rules A1, A2 and A7 of `StreamAnswer`. No I/O."""

from hashlib import sha256


class AnswerMismatch(Exception):
    """A reply does not fit the text there is, so that the text cannot be trusted."""


class AnswerText:
    """The bytes of an answer so far. Sizes and offsets are bytes of UTF-8, never characters."""

    __slots__ = ("_bytes",)

    def __init__(self, known: bytes = b"") -> None:
        self._bytes = bytearray(known)

    @property
    def size_bytes(self) -> int:
        """Length of the text."""
        return len(self._bytes)

    @property
    def content(self) -> bytes:
        """The text as bytes."""
        return bytes(self._bytes)

    @property
    def text(self) -> str:
        """The text."""
        return self._bytes.decode()

    @property
    def sha256(self) -> str:
        """SHA-256 of the text, lower-case hex."""
        return sha256(self._bytes).hexdigest()

    def apply(self, offset_bytes: int, text: str, size_bytes: int) -> bool:
        """Cut the text at `offset_bytes` and append `text`; tells whether anything changed.

        Raises `AnswerMismatch`, and changes nothing, if the result would not be `size_bytes` long and whole UTF-8.
        """
        added = text.encode()
        if not 0 <= offset_bytes <= len(self._bytes) or offset_bytes + len(added) != size_bytes:
            raise AnswerMismatch(f"{len(added)} bytes at {offset_bytes} of {len(self._bytes)} are not {size_bytes}")
        if offset_bytes < len(self._bytes) and _inside_character(self._bytes[offset_bytes]):
            raise AnswerMismatch(f"offset {offset_bytes} is inside a character")
        changed = bytes(self._bytes[offset_bytes:]) != added
        self._bytes[offset_bytes:] = added
        return changed


def _inside_character(byte: int) -> bool:
    """Whether `byte` is not the first of a character: in UTF-8 such bytes begin with the bits 10."""
    return byte >> 6 == 0b10  # noqa: PLR2004 - a name would say less
