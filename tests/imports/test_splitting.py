"""The splitter sees what a JSON parser sees, however the text is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tabmuxd.webai.importing import splitting
from tabmuxd.webai.importing.splitting import FrameTooLarge, NotJson, Splitter, parsed, piece_number

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text('ab"\\{}[],:é\U0001f600\ud800 ', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\]', max_size=2), inner, max_size=3),
    max_leaves=12,
)
_WHOLES = st.dictionaries(st.text("ab", max_size=2), _VALUES, max_size=4)
_CUTS = st.lists(st.integers(0, 400), max_size=6)


def _bits(text: bytes, cuts: list[int]) -> Iterator[bytes]:
    begin = 0
    for cut in sorted(cuts):
        yield text[begin:cut]
        begin = max(begin, cut)
    yield text[begin:]


def _together(text: bytes, cuts: list[int]) -> object:
    """What the pieces and the frame stand for together; None where that is refused."""
    splitter = Splitter()
    try:
        pieces = [parsed(piece) for bit in _bits(text, cuts) for piece in splitter.feed(bit) if piece is not None]
        frame = splitter.frame()
    except NotJson:
        return None

    def filled(value: Any) -> Any:  # noqa: ANN401 - JSON
        number = piece_number(value)
        return value if number is None else pieces[number]

    whole: dict[str, object] = {}
    for name, value in frame.items():
        match value:
            case list():
                whole[name] = [filled(element) for element in value]
            case dict():
                whole[name] = {key: filled(element) for key, element in value.items()}
            case _:
                whole[name] = value
    return whole


def _plainly(text: bytes) -> object:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        whole = json.loads(text.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return None
    return whole if isinstance(whole, dict) else None


@settings(deadline=None)
@given(whole=_WHOLES, cuts=_CUTS, indent=st.sampled_from([None, 1]), ascii_only=st.booleans())
def test_as_a_parser(whole: dict[str, object], cuts: list[int], indent: int | None, *, ascii_only: bool) -> None:
    """Frame and pieces are the whole, wherever the text is cut, in the middle of a character or an escape too."""
    text = json.dumps(whole, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")

    assert _together(text, cuts) == _plainly(text)


@settings(deadline=None)
@given(
    whole=_WHOLES,
    cuts=_CUTS,
    at=st.integers(0, 400),
    put=st.sampled_from([b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" 5", b"NaN", b"\xff", b"\x00"]),
    dropped=st.integers(0, 3),
)
def test_broken(whole: dict[str, object], cuts: list[int], at: int, put: bytes, dropped: int) -> None:
    """Of a text that was broken anywhere the splitter makes what a parser makes of it, or refuses it as that does."""
    text = json.dumps(whole, ensure_ascii=True).encode()
    text = text[:at] + put + text[at + dropped :]

    assert _together(text, cuts) == _plainly(text)


@pytest.mark.parametrize(
    "text",
    [
        b"", b" ", b"[]", b"5", b"null", b'{"a":', b'{"a": [{"b": ', b'{"a": [{"b": 1}]', b'{"a": [{"b": 1}]}}',
        b'{"a": [{"b": 1} {"c": 2}]}', b'{"a": [{"b": 1],}', b'{"a": [{"b": NaN}]}', b'{"a": [{"b": Infinity}]}',
        b'{"a": [{"b": "\xff"}]}', b'{"a": "\xc3"}', '{"a": 1}'.encode("utf-16"), b'\xef\xbb\xbf{"a": 1}',
        b'{"a": [' + b"[" * 200_000 + b"]" * 200_000 + b"]}", b'{"a": [{"b": ' + b"9" * 5000 + b"}]}",
    ],
    ids=range(19),
)  # fmt: skip
def test_refused(text: bytes) -> None:
    """What is no whole JSON object in UTF-8, has NaN in it or is nested too deep, is refused."""
    assert _together(text, []) is None


def test_large_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece that is too large is dropped, and what is behind it is found."""
    monkeypatch.setattr(splitting, "MAX_PIECE_BYTES", 100)
    splitter = Splitter()
    text = json.dumps({"a": [{"b": "x" * 200}, {"c": 1}]}).encode()

    pieces = [piece for start in range(0, len(text), 7) for piece in splitter.feed(text[start : start + 7])]

    assert (pieces, splitter.frame()) == ([None, b'{"c": 1}'], {"a": [[0], [1]]})


def test_piece_of_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece of too many parts is dropped without being parsed; each piece is counted anew."""
    monkeypatch.setattr(splitting, "MAX_PIECE_PARTS", 3)
    splitter = Splitter()

    pieces = splitter.feed(b'{"a": [{"b": [[]]}, {"b": [[], []]}, {"b": [[]]}]}')

    assert (pieces, splitter.frame()) == ([b'{"b": [[]]}', None, b'{"b": [[]]}'], {"a": [[0], [1], [2]]})


def test_large_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """More between the pieces than is ever there is not held."""
    monkeypatch.setattr(splitting, "MAX_FRAME_BYTES", 100)

    with pytest.raises(FrameTooLarge):
        Splitter().feed(b'{"a": [' + b"1," * 100)
