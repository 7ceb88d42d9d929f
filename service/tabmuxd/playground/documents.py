"""The JSON shapes of the interface."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict

from tabmuxd.playground.conversations import Turn
from tabmuxd.playground.progress import Progress


class AnswerDocument(TypedDict):
    """How far an answer is."""

    state: str
    characters: int  # shown so far, in code points
    committed: bool
    ended: bool
    stop_shown: bool
    placeholder: str
    finished_mark: bool
    banner: str


class TurnDocument(TypedDict):
    """One prompt and the state of its answer."""

    id: str
    conversation: str
    prompt: str
    submitted_time: str
    stopped_time: str | None
    answer: AnswerDocument


class TurnWithTextDocument(TurnDocument):
    """A turn with the answer as far as it is shown."""

    text: str


class ConversationDocument(TypedDict):
    """A conversation and its turns, oldest first."""

    id: str
    kind: str
    turns: list[TurnDocument]


def answer_document(progress: Progress) -> AnswerDocument:
    """Shape of a progress."""
    return AnswerDocument(
        state=progress.state.value,
        characters=progress.characters,
        committed=progress.committed,
        ended=progress.ended,
        stop_shown=progress.stop_shown,
        placeholder=progress.placeholder,
        finished_mark=progress.finished_mark,
        banner=progress.banner,
    )


def turn_document(turn: Turn, now: datetime) -> TurnDocument:
    """Shape of a turn, without its answer's text."""
    return TurnDocument(
        id=turn.id,
        conversation=turn.conversation,
        prompt=turn.prompt,
        submitted_time=turn.submitted_time.isoformat(),
        stopped_time=turn.stopped_time.isoformat() if turn.stopped_time else None,
        answer=answer_document(turn.progress(now)),
    )


def turn_with_text_document(turn: Turn, now: datetime) -> TurnWithTextDocument:
    """Shape of a turn, with its answer's text."""
    return TurnWithTextDocument(**turn_document(turn, now), text=turn.text(turn.progress(now)))


def conversation_document(turns: Iterable[Turn], now: datetime, *, with_text: bool) -> ConversationDocument:
    """Shape of a conversation; it has one turn at least."""
    shape = turn_with_text_document if with_text else turn_document
    listed = list(turns)
    return ConversationDocument(
        id=listed[0].conversation,
        kind=listed[0].kind.value,
        turns=[shape(turn, now) for turn in listed],
    )
