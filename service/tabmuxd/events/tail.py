"""The newest events, in memory, shared by all who watch."""

from __future__ import annotations

from collections.abc import Sequence

from tabmuxd.store import Entry


class Tail:
    """The newest events without a gap, up to `count` of them; older ones are dropped, the log has them.

    Begins behind the revision `head`. To be used on the loop only.
    """

    def __init__(self, head: int, *, count: int) -> None:
        self._count = count
        self._first = head + 1
        self._entries: list[Entry] = []

    def __repr__(self) -> str:
        return f"<Tail {self._first}..{self._first + len(self._entries) - 1}>"

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def head(self) -> int:
        """The revision of the newest event."""
        return self._first + len(self._entries) - 1

    def holds(self, revision: int) -> bool:
        """Whether every event after `revision` is here."""
        return revision + 1 >= self._first

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add events that follow the newest one."""
        self._entries.extend(entries)
        # Cut rarely: each cut moves all that stay.
        excess = len(self._entries) - self._count
        if excess > self._count // 4:
            del self._entries[:excess]
            self._first += excess

    def after(self, revision: int, *, count: int, size_bytes: int) -> Sequence[Entry] | None:
        """Events after `revision`, at most `count` and `size_bytes`, but one at least if there is any.

        None if some of them are not in memory any more.
        """
        if not self.holds(revision):
            return None
        start = revision + 1 - self._first
        taken = self._entries[start : start + count]
        size = 0
        for number, entry in enumerate(taken):
            size += len(entry.body)
            if number and size > size_bytes:
                return taken[:number]
        return taken
