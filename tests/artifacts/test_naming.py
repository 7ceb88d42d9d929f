"""What a file may be called."""

from __future__ import annotations

import pytest
from tabmuxd.artifacts.naming import ending_of, is_media_type, name_fault, stem_of


@pytest.mark.parametrize(
    "name",
    [
        "a", "notes.txt", ".profile", "Übersicht 2026.pdf", "파일.docx", "a" * 255, "é" * 127,
        "con-text.txt", "auxiliary", "family 👩‍👩‍👧.png", "a  b.txt", "-rf", "$(x).txt", "a.tar.gz",
    ],
)  # fmt: skip
def test_right(name: str) -> None:
    """A name alone can be kept as it is, in whatever script."""
    assert name_fault(name) is None


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "/etc/passwd", "../a", "a/b", "a\\b", "C:x", "a\0b", "a\nb", "a\x7fb", "a\u202etxt.exe",
        "a\u2028b", "a" * 256, "é" * 128, " a", "a ", "a.", "CON", "nul.txt", "Com1.tar.gz", "LPT9", 'a"b', "a|b",
        "a?b", "a*b", "a\ufeffb",
    ],
)  # fmt: skip
def test_wrong(name: str) -> None:
    """SEC-07: a path, what is not seen, what a device is called, and more than 255 bytes are refused."""
    assert name_fault(name) is not None


def test_parts() -> None:
    """A name has a stem and an ending, which may be empty."""
    assert [(stem_of(name), ending_of(name)) for name in ("a.B.TXT", "none", ".profile")] == [
        ("a.B", ".txt"),
        ("none", ""),
        (".profile", ""),
    ]


def test_media_types() -> None:
    """A media type stands alone, in lower case."""
    right = ("text/plain", "application/vnd.oasis.opendocument.text", "image/svg+xml")
    wrong = ("", "text", "text/", "/plain", "text/plain; charset=utf-8", "Text/Plain", "text/plain\n", "a/" + "b" * 128)
    assert ([is_media_type(text) for text in right], [is_media_type(text) for text in wrong]) == (
        [True] * 3,
        [False] * 8,
    )
