from __future__ import annotations

import asyncio
import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tabmuxd.webai.answers import MAX_PART_BYTES, AnswerPart, Feeds, border, common_prefix, parts, resumed

_ALPHABET = "ab\n\u00e4\u00e5\u20ac\u20ad\U0001f600\U0001f601"
_TEXTS = st.text(st.sampled_from(_ALPHABET), max_size=30)
_BIG = "\N{GRINNING FACE}" * (MAX_PART_BYTES // 4)


def _read(held: bytes, sent: list[AnswerPart]) -> bytes:
    """What a reader that held this has after these replies, by rule A2; each reply is checked on its way."""
    for part in sent:
        assert 0 <= part.offset_bytes <= len(held)
        assert len(part.text.encode()) <= MAX_PART_BYTES
        held = held[: part.offset_bytes] + part.text.encode()
        assert part.size_bytes == len(held)
        held.decode()
    return held


@given(_TEXTS, _TEXTS)
@example("", "")
@example("\u00e4", "\u00e5")
@example("a\U0001f600", "a\U0001f601b")
@example("abc", "")
@example("ab\u20ac", "ab")
def test_one_step(known: str, latest: str) -> None:
    """A reader that applies the replies to any text has the next one, whole UTF-8 after each reply (A2)."""
    sent = parts(known.encode(), latest.encode())

    assert _read(known.encode(), sent) == latest.encode()
    assert (sent == []) is (known == latest)


_STEPS = st.lists(st.tuples(_TEXTS, st.sampled_from(["go on", "cut off", "cut off within", "come with another"])))


@given(_STEPS, st.data())
def test_any_history(steps: list[tuple[str, str]], data: st.DataObject) -> None:
    """Whatever the text becomes, and wherever a reader is cut off and resumes, it has the right bytes (A1 to A7)."""
    held = sent = b""
    for text, then in steps:
        latest = text.encode()
        replies = parts(sent, latest)
        if then == "cut off within":
            held = _read(held, replies[: data.draw(st.integers(0, len(replies)))])
        else:
            held = _read(held, replies)
            assert held == latest
        sent = latest
        if then == "come with another":
            held = data.draw(_TEXTS).encode()
        if then != "go on":
            sent = resumed(latest, len(held), hashlib.sha256(held).hexdigest())
            assert sent == (held if latest.startswith(held) else b"")
            held = _read(held, [AnswerPart(len(sent), "", len(sent))])


@pytest.mark.parametrize(
    ("known", "latest"),
    [("", _BIG + "x"), ("x", "x" + _BIG), ("ab", "ab" + _BIG * 2), (_BIG * 2, "x" + _BIG * 2), (_BIG * 3, _BIG)],
    ids=["new", "odd border", "two parts", "rewritten", "shorter"],
)
def test_large(known: str, latest: str) -> None:
    """A long text comes in parts of at most 256 KiB, each cut on a character border (A2)."""
    sent = parts(known.encode(), latest.encode())

    assert _read(known.encode(), sent) == latest.encode()
    assert len(sent) <= len(latest.encode()) // (MAX_PART_BYTES - 3) + 1


def test_growth() -> None:
    """What was there is not sent again: a text that grows costs its growth alone."""
    assert parts(b"abc", b"abcd") == [AnswerPart(3, "d", 4)]
    assert parts("ä".encode(), "åb".encode()) == [AnswerPart(0, "åb", 3)]
    assert parts(b"abc", b"ab") == [AnswerPart(2, "", 2)]
    assert parts(b"abc", b"abc") == []


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("known_size", "known_hash", "kept"),
    [
        (0, "", ""),
        (0, _hash(""), ""),
        (1, _hash("a"), "a"),
        (3, _hash("aä"), "aä"),
        (4, _hash("aäb"), "aäb"),
        (4, _hash("aäc"), ""),
        (4, _hash("aäb").upper(), ""),
        (4, "", ""),
        (2, hashlib.sha256("aä".encode()[:2]).hexdigest(), ""),
        (5, _hash("aäbc"), ""),
        (-1, _hash("a"), ""),
    ],
)
def test_resumed(known_size: int, known_hash: str, kept: str) -> None:
    """A reader goes on behind what it has if the text begins with exactly that, else from the start (A7)."""
    assert resumed("aäb".encode(), known_size, known_hash) == kept.encode()


@given(st.binary(max_size=8), st.binary(max_size=8), st.binary(max_size=8))
def test_common_prefix(shared: bytes, first: bytes, second: bytes) -> None:
    """The common beginning is as long as it can be, and no longer."""
    length = common_prefix(shared + first, shared + second)

    assert length >= len(shared)
    assert (shared + first)[:length] == (shared + second)[:length]
    assert length == min(len(first), len(second)) + len(shared) or (shared + first)[length] != (shared + second)[length]


@given(_TEXTS, st.integers(0, 100))
def test_border(text: str, at: int) -> None:
    """A border is the last place at or before, between two characters."""
    encoded = text.encode()
    at = min(at, len(encoded))
    borders = {len(text[:count].encode()) for count in range(len(text) + 1)}

    assert border(encoded, at) == max(place for place in borders if place <= at)


async def test_feed() -> None:
    """Readers of a feed are told once the text is another; the same text again is no change."""
    feeds = Feeds()
    feed = feeds.of("t")
    first = feed.moved()
    feed.set("")
    assert not first.done()
    feed.set("ä")

    assert first.done()
    assert feed.moved() is not first
    assert (feeds.text("t"), feeds.of("t"), feeds.text("other")) == ("ä".encode(), feed, b"")
    same = feed.moved()
    feed.set("ä")
    assert not same.done()


async def test_feed_ends() -> None:
    """The end of a turn lets its readers look again, and nothing of it is kept."""
    feeds = Feeds()
    moved = feeds.of("t").moved()
    feeds.drop("t")
    feeds.drop("never there")

    async with asyncio.timeout(10):
        await moved
    assert repr(feeds) == "<Feeds 0>"
    assert feeds.text("t") == b""
