"""Conversations and their turns, in memory and, if asked, in a file."""

import secrets
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from datetime import datetime

from tabmuxd.playground.answers import answer_to
from tabmuxd.playground.directives import directives_in
from tabmuxd.playground.journal import Journal, JournalError, Record
from tabmuxd.playground.kinds import Kind
from tabmuxd.playground.progress import Progress, progress_at
from tabmuxd.playground.refusals import RefusalReason, RefusedError

LARGEST_PROMPT_BYTES = 2 * 1024 * 1024
LARGEST_SUM_BYTES = 256 * 1024 * 1024  # of all prompts
MOST_CONVERSATIONS = 10_000
MOST_TURNS = 100_000
LONGEST_KEY = 64


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt that was submitted; its answer follows from it."""

    id: str
    key: str  # made by the page; the same press has the same key, however often it is sent
    conversation: str
    kind: Kind
    prompt: str
    submitted_time: datetime
    stopped_time: datetime | None = None

    def progress(self, now: datetime) -> Progress:
        """What a page shows of it now."""
        return progress_at(
            directives_in(self.prompt),
            len(answer_to(self.prompt)),
            (now - self.submitted_time).total_seconds(),
            (self.stopped_time - self.submitted_time).total_seconds() if self.stopped_time else None,
        )

    def text(self, progress: Progress) -> str:
        """The answer as far as it is shown."""
        return answer_to(self.prompt)[: progress.characters]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept at most."""

    conversations: int = MOST_CONVERSATIONS
    turns: int = MOST_TURNS
    sum_bytes: int = LARGEST_SUM_BYTES


class Conversations:
    """All conversations of one playground; used on one thread."""

    def __init__(
        self, now: Callable[[], datetime], journal: Journal | None = None, limits: Limits | None = None
    ) -> None:
        """Begin with what the journal, open already, holds; without one nothing outlives this object."""
        self._now = now
        self._journal = journal
        self._limits = limits or Limits()
        self._turns: dict[str, Turn] = {}
        self._keys: dict[str, str] = {}
        self._conversations: dict[str, list[str]] = {}
        self._sum_bytes = 0
        if journal:
            self._restore(journal)

    def __repr__(self) -> str:
        """Show the counts."""
        return f"<Conversations {len(self._conversations)}, turns {len(self._turns)}, {self._sum_bytes} bytes>"

    def ids(self, kind: Kind | None = None) -> tuple[str, ...]:
        """Ids of the conversations of one kind, or of all, oldest first."""
        return tuple(
            name for name, turns in self._conversations.items() if kind is None or self._turns[turns[0]].kind is kind
        )

    def holds(self, conversation: str, kind: Kind) -> bool:
        """Whether there is a conversation of that kind."""
        turns = self._conversations.get(conversation)
        return turns is not None and self._turns[turns[0]].kind is kind

    def turns(self, conversation: str) -> tuple[Turn, ...]:
        """Turns of a conversation, oldest first; raises `RefusedError` if there is none."""
        if conversation not in self._conversations:
            raise RefusedError(RefusalReason.NOT_FOUND, "conversation")
        return tuple(self._turns[turn] for turn in self._conversations[conversation])

    def turn(self, turn: str) -> Turn:
        """One turn; raises `RefusedError` if there is none."""
        if turn not in self._turns:
            raise RefusedError(RefusalReason.NOT_FOUND, "turn")
        return self._turns[turn]

    def submit(self, kind: Kind, conversation: str | None, key: str, prompt: str) -> Turn:
        """Take a prompt, into a new conversation if none is named.

        A key that was seen before gives its turn again, if all else is equal too. Raises `RefusedError` when the
        prompt or key is refused, the conversation is not there or is answering, or there is no room.
        """
        size_bytes = _prompt_bytes(prompt)
        if not 0 < len(key) <= LONGEST_KEY or not key.isascii() or not key.isprintable():
            raise RefusedError(RefusalReason.MALFORMED, f"key: 1 to {LONGEST_KEY} printable ASCII characters")
        if key in self._keys:
            return self._repeated(self._turns[self._keys[key]], kind, conversation, prompt)
        now = self._now()
        if conversation is not None:
            if not self.holds(conversation, kind):
                raise RefusedError(RefusalReason.NOT_FOUND, "conversation")
            last = self.turns(conversation)[-1]
            if not last.progress(now).ended:
                raise RefusedError(RefusalReason.TURN_IN_PROGRESS, f"turn {last.id}")
        self._admit(size_bytes, new_conversation=conversation is None)
        record = Record(
            what="submitted",
            turn=_unused_id(self._turns),
            time=now.isoformat(),
            key=key,
            conversation=conversation or _unused_id(self._conversations),
            kind=kind.value,
            prompt=prompt,
        )
        self._record(record)
        return self._turns[record["turn"]]

    def stop(self, turn: str) -> Turn:
        """End the answer of a turn where it stands; one that has ended stays as it is."""
        running = self.turn(turn)
        now = self._now()
        if running.progress(now).ended:
            return running
        self._record(
            Record(what="stopped", turn=turn, time=now.isoformat(), key="", conversation="", kind="", prompt=""),
        )
        return self._turns[turn]

    def _repeated(self, turn: Turn, kind: Kind, conversation: str | None, prompt: str) -> Turn:
        first = self._conversations[turn.conversation][0] == turn.id
        same_place = conversation == turn.conversation or (conversation is None and first)
        if turn.prompt != prompt or turn.kind is not kind or not same_place:
            raise RefusedError(RefusalReason.KEY_REUSED, f"turn {turn.id}")
        return turn

    def _admit(self, size_bytes: int, *, new_conversation: bool) -> None:
        if new_conversation and len(self._conversations) >= self._limits.conversations:
            raise RefusedError(RefusalReason.FULL, f"{self._limits.conversations} conversations")
        if len(self._turns) >= self._limits.turns:
            raise RefusedError(RefusalReason.FULL, f"{self._limits.turns} turns")
        if self._sum_bytes + size_bytes > self._limits.sum_bytes:
            raise RefusedError(RefusalReason.FULL, f"{self._limits.sum_bytes} bytes of prompts")

    def _restore(self, journal: Journal) -> None:
        for number, record in enumerate(journal.read(), start=2):
            try:
                self._replay(record)
            except (KeyError, ValueError) as error:
                raise JournalError(journal.path, f"line {number} is damaged") from error

    def _record(self, record: Record) -> None:
        if self._journal:
            self._journal.append(record)
        self._replay(record)

    def _replay(self, record: Record) -> None:
        time = datetime.fromisoformat(record["time"])
        if record["what"] == "stopped":
            self._turns[record["turn"]] = replace(self._turns[record["turn"]], stopped_time=time)
            return
        turn = Turn(
            id=record["turn"],
            key=record["key"],
            conversation=record["conversation"],
            kind=Kind(record["kind"]),
            prompt=record["prompt"],
            submitted_time=time,
        )
        self._turns[turn.id] = turn
        self._keys[turn.key] = turn.id
        self._conversations.setdefault(turn.conversation, []).append(turn.id)
        self._sum_bytes += len(turn.prompt.encode())


def _prompt_bytes(prompt: str) -> int:
    try:
        size_bytes = len(prompt.encode())
    except UnicodeEncodeError as error:
        raise RefusedError(RefusalReason.MALFORMED, "prompt: half of a surrogate pair") from error
    if size_bytes > LARGEST_PROMPT_BYTES:
        raise RefusedError(RefusalReason.PROMPT_TOO_LARGE, f"{size_bytes} of {LARGEST_PROMPT_BYTES} bytes")
    if not prompt.strip():
        raise RefusedError(RefusalReason.PROMPT_EMPTY, "prompt")
    return size_bytes


def _unused_id(taken: Container[str]) -> str:
    while (name := secrets.token_hex(6)) in taken:
        pass
    return name
