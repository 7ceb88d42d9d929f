"""The file of conversations and what is kept in memory."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tabmuxd.playground.conversations import Conversations, Limits, Turn
from tabmuxd.playground.journal import Journal, JournalError
from tabmuxd.playground.kinds import Kind
from tabmuxd.playground.refusals import RefusalReason, RefusedError


class Clock:
    def __init__(self) -> None:
        self.time = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


def everything(conversations: Conversations) -> list[tuple[Turn, ...]]:
    """All turns, by conversation."""
    return [conversations.turns(name) for name in conversations.ids()]


def refusal(call: Callable[..., object], *arguments: object) -> RefusalReason:
    """Why a call is refused."""
    with pytest.raises(RefusedError) as refused:
        call(*arguments)
    return refused.value.reason


def test_reopened(tmp_path: Path, clock: Clock) -> None:
    """SUB-02: conversations, exact prompts, times and stops are the same after the file is opened again."""
    path = tmp_path / "new" / "conversations"
    with Journal(path) as journal:
        first = Conversations(clock, journal)
        turn = first.submit(Kind.EDITOR, None, "k1", "a\n\r\n\u2028 🙂 \x00 “x” ")
        clock.advance(1)
        first.stop(turn.id)
        first.submit(Kind.EDITOR, turn.conversation, "k2", "again")
        first.submit(Kind.SHADOW, None, "k3", "again")
        before = everything(first)
    with Journal(path) as journal:
        second = Conversations(clock, journal)
        assert (everything(second), repr(second)) == (before, repr(first))
        assert second.submit(Kind.SHADOW, None, "k3", "again") == before[1][0]
    assert path.stat().st_mode & 0o777 == 0o600


def test_cut_line(tmp_path: Path, clock: Clock) -> None:
    """STO-05: a last line that was cut off is dropped, and what comes after is whole."""
    path = tmp_path / "conversations"
    with Journal(path) as journal:
        kept = Conversations(clock, journal).submit(Kind.TEXTAREA, None, "k1", "one")
    with path.open("ab") as file:
        file.write(b'{"what": "submitted", "turn"')
    with Journal(path) as journal:
        added = Conversations(clock, journal).submit(Kind.TEXTAREA, None, "k2", "two")
    with Journal(path) as journal:
        assert everything(Conversations(clock, journal)) == [(kept,), (added,)]


@pytest.mark.parametrize(
    "line",
    [
        b"noise",
        b"[]",
        b'{"what": "stopped"}',
        b'{"what":"stopped","turn":"unknown","time":"2026-01-01T00:00:00+00:00","key":"","conversation":"","kind":"","prompt":""}',
        b'{"what":"submitted","turn":"t","time":"2026-01-01T00:00:00","key":"","conversation":"","kind":"editor","prompt":""}',
        b'{"what":"submitted","turn":"t","time":"2026-01-01T00:00:00+00:00","key":"","conversation":"c","kind":"x","prompt":""}',
        b"\xff",
    ],
)
def test_damage(tmp_path: Path, clock: Clock, line: bytes) -> None:
    """STO-06: a damaged line is refused with the file's name and the line's number, and the file stays as it is."""
    path = tmp_path / "conversations"
    content = b'{"format": "tabmux-playground-1"}\n' + line + b"\n"
    path.write_bytes(content)
    with Journal(path) as journal, pytest.raises(JournalError) as refused:
        Conversations(clock, journal)
    assert (str(refused.value), path.read_bytes()) == (f"{path}: line 2 is damaged", content)


def test_foreign_file(tmp_path: Path, clock: Clock) -> None:
    """STO-06: a file of something else is refused."""
    path = tmp_path / "conversations"
    path.write_text('{"a": 1}\n')
    with Journal(path) as journal, pytest.raises(JournalError, match="not a file of conversations"):
        Conversations(clock, journal)


def test_one_process(tmp_path: Path) -> None:
    """PRO-05: a file that is in use is refused to a second one, and free after the first."""
    path = tmp_path / "conversations"
    with Journal(path), pytest.raises(JournalError, match="another process uses it"), Journal(path):
        pass
    with Journal(path):
        pass


def test_failed_write(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prompt that cannot be written is refused, and leaves no trace in file or memory."""
    path = tmp_path / "conversations"
    with Journal(path) as journal:
        conversations = Conversations(clock, journal)
        content = path.read_bytes()

        def write_half(_file: int, data: bytes) -> int:
            with path.open("ab") as same:
                same.write(data[:5])
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("os.write", write_half)
            with pytest.raises(JournalError, match="No space left on device"):
                conversations.submit(Kind.TEXTAREA, None, "k1", "one")
        assert (everything(conversations), path.read_bytes()) == ([], content)


def test_equal_texts_count_twice(clock: Clock) -> None:
    """SUB-16: the same text under two keys is two turns; under one key it is one, also when sent again."""
    conversations = Conversations(clock)
    first = conversations.submit(Kind.TEXTAREA, None, "k1", "same")
    repeated = conversations.submit(Kind.TEXTAREA, None, "k1", "same")
    clock.advance(60)
    second = conversations.submit(Kind.TEXTAREA, first.conversation, "k2", "same")
    assert (repeated, everything(conversations)) == (first, [(first, second)])


def test_refusals(clock: Clock) -> None:
    """Each reason is told, and what is refused changes nothing."""
    limits = Limits(conversations=2, turns=3, sum_bytes=30)
    conversations = Conversations(clock, limits=limits)
    submit = conversations.submit
    turn = submit(Kind.TEXTAREA, None, "k1", "one")
    reasons = [
        refusal(submit, Kind.TEXTAREA, None, "k2", " \n"),
        refusal(submit, Kind.TEXTAREA, None, "k2", "x" * (2 * 1024 * 1024 + 1)),
        refusal(submit, Kind.TEXTAREA, None, "k2", "\ud800"),
        refusal(submit, Kind.TEXTAREA, None, "", "two"),
        refusal(submit, Kind.TEXTAREA, None, "k" * 65, "two"),
        refusal(submit, Kind.TEXTAREA, None, "k1", "other"),
        refusal(submit, Kind.EDITOR, None, "k1", "one"),
        refusal(submit, Kind.EDITOR, turn.conversation, "k2", "two"),
        refusal(submit, Kind.TEXTAREA, "unknown", "k2", "two"),
        refusal(submit, Kind.TEXTAREA, turn.conversation, "k2", "two"),
        refusal(submit, Kind.TEXTAREA, None, "k2", "x" * 28),
        refusal(conversations.stop, "unknown"),
    ]
    submit(Kind.TEXTAREA, None, "k2", "two")
    reasons.append(refusal(submit, Kind.TEXTAREA, None, "k3", "three"))
    clock.advance(9)
    submit(Kind.TEXTAREA, turn.conversation, "k3", "three")
    clock.advance(9)
    reasons.append(refusal(submit, Kind.TEXTAREA, turn.conversation, "k4", "four"))
    assert (reasons, repr(conversations)) == (
        [
            RefusalReason.PROMPT_EMPTY,
            RefusalReason.PROMPT_TOO_LARGE,
            RefusalReason.MALFORMED,
            RefusalReason.MALFORMED,
            RefusalReason.MALFORMED,
            RefusalReason.KEY_REUSED,
            RefusalReason.KEY_REUSED,
            RefusalReason.NOT_FOUND,
            RefusalReason.NOT_FOUND,
            RefusalReason.TURN_IN_PROGRESS,
            RefusalReason.FULL,
            RefusalReason.NOT_FOUND,
            RefusalReason.FULL,
            RefusalReason.FULL,
        ],
        "<Conversations 2, turns 3, 11 bytes>",
    )
