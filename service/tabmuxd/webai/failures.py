"""Why a turn failed: the refusals that one ends with which got as far as a page, or ran out of time."""

from __future__ import annotations

from tabmuxd.resources.errors import Failure, Reason, Refused, refuse
from tabmuxd.resources.session import TurnState


def unconfirmed(turn: str) -> Refused:
    """SUBMIT_UNCONFIRMED: the page did not show the prompt in its window."""
    return _failure(
        turn,
        Reason.SUBMIT_UNCONFIRMED,
        f"It is not known whether the prompt of {turn} was submitted. It was not submitted again.",
    )


def empty(turn: str) -> Refused:
    """ANSWER_EMPTY."""
    return _failure(turn, Reason.ANSWER_EMPTY, "The answer ended with neither text nor files.")


def halted(turn: str) -> Refused:
    """ANSWER_STOPPED: somebody pressed Stop in the page."""
    return _failure(turn, Reason.ANSWER_STOPPED, "The answer was stopped in the page.")


def stalled(turn: str) -> Refused:
    """ANSWER_STALLED."""
    return _failure(
        turn, Reason.ANSWER_STALLED, "The answer has been quiet for too long without a sign that it is whole."
    )


def broken(turn: str, provider: str) -> Refused:
    """PROVIDER_FAILED: an error stands where the answer should."""
    return refuse(
        Reason.PROVIDER_FAILED,
        "The provider showed an error in place of the answer.",
        provider=provider,
        turn=turn,
    )


def out_of_time(turn: str, state: TurnState | None, error: Failure | None, last_refusal: Refused | None) -> Refused:
    """What a turn fails with whose time is over in this state.

    One that is blocked fails with what blocks it, its `error`; one that never got a page, with why it got none.
    """
    if state is TurnState.BLOCKED and error is not None:
        return Refused(Reason(error.reason), error.message, error.metadata, error.retry_delay)
    if state is TurnState.PENDING and last_refusal is not None:
        return last_refusal
    if state is TurnState.SUBMITTING:
        return _failure(
            turn, Reason.SUBMIT_UNCONFIRMED, "Time ran out before the prompt was seen. It was not submitted again."
        )
    return _failure(turn, Reason.ANSWER_TIMEOUT, "The answer did not end in time.")


def _failure(turn: str, reason: Reason, message: str) -> Refused:
    return refuse(reason, message, turn=turn)
