"""Answers while they grow: the latest text of each open turn, and what a reader lacks of it."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import Final

from tabmuxd.resources.session import Turn

MAX_PART_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """One reply of `StreamAnswer`: cut the string to `offset_bytes`, append `text`, and it is `size_bytes` long.

    `sha256`, of the whole string, is set only in the last one, whose `turn` has ended.
    """

    offset_bytes: int
    text: str
    size_bytes: int
    turn: Turn | None = None
    sha256: str = ""


class Feed:
    """The latest text of one open turn; readers wait for its next change. Nothing is kept for a reader."""

    def __init__(self) -> None:
        """Empty."""
        self.text: bytes = b""
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def set(self, text: str) -> None:
        """Show this text from now on."""
        encoded = text.encode()
        if encoded != self.text:
            self.text = encoded
            self.wake()

    def wake(self) -> None:
        """Let readers look again."""
        if not self._moved.done():
            self._moved.set_result(None)
        self._moved = asyncio.get_running_loop().create_future()

    def moved(self) -> asyncio.Future[None]:
        """Done at the next change; shared by all readers, so wait for it with `asyncio.wait`."""
        return self._moved


class Feeds:
    """The feeds of all open turns, by turn name."""

    def __init__(self) -> None:
        """None yet."""
        self._feeds: dict[str, Feed] = {}

    def __repr__(self) -> str:
        """How many there are."""
        return f"<Feeds {len(self._feeds)}>"

    def of(self, turn: str) -> Feed:
        """The feed of an open turn, made if there is none."""
        return self._feeds.setdefault(turn, Feed())

    def drop(self, turn: str) -> None:
        """The turn has ended: readers look again, and find its answer in the store."""
        if feed := self._feeds.pop(turn, None):
            feed.wake()

    def text(self, turn: str) -> bytes:
        """The text so far; empty where nothing is known. May be called on any thread."""
        feed = self._feeds.get(turn)
        return feed.text if feed else b""


def parts(known: bytes, latest: bytes) -> list[AnswerPart]:
    """What a reader that has `known` needs to have `latest`; empty if it has it.

    Cuts are on character borders, and no part is larger than 256 KiB.
    """
    start = border(latest, common_prefix(known, latest))
    found: list[AnswerPart] = []
    while start < len(latest):
        end = border(latest, min(start + MAX_PART_BYTES, len(latest)))
        found.append(AnswerPart(start, latest[start:end].decode(), end))
        start = end
    if not found and len(known) != len(latest):
        found.append(AnswerPart(start, "", start))
    return found


def resumed(latest: bytes, known_size_bytes: int, known_sha256: str) -> bytes:
    """What a reader that was cut off may keep: the prefix it has, if the text still begins with it; else nothing."""
    if not 0 < known_size_bytes <= len(latest) or border(latest, known_size_bytes) != known_size_bytes:
        return b""
    prefix = latest[:known_size_bytes]
    return prefix if hashlib.sha256(prefix).hexdigest() == known_sha256 else b""


def common_prefix(first: bytes, second: bytes) -> int:
    """Number of leading bytes that both have in common."""
    if second.startswith(first):
        return len(first)
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def border(text: bytes, at: int) -> int:
    """The last character border of UTF-8 at or before `at`."""
    while 0 < at < len(text) and text[at] & 0xC0 == 0x80:  # noqa: PLR2004 - continuation bytes are 10xxxxxx
        at -= 1
    return at
