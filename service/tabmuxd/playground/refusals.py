"""Why the playground refuses a request."""

from enum import StrEnum


class RefusalReason(StrEnum):
    """The `code` of an error answer."""

    MALFORMED = "malformed"
    PROMPT_EMPTY = "prompt_empty"
    PROMPT_TOO_LARGE = "prompt_too_large"
    NOT_FOUND = "not_found"
    TURN_IN_PROGRESS = "turn_in_progress"
    KEY_REUSED = "key_reused"
    FULL = "full"


STATUSES = {
    RefusalReason.MALFORMED: 400,
    RefusalReason.PROMPT_EMPTY: 400,
    RefusalReason.PROMPT_TOO_LARGE: 413,
    RefusalReason.NOT_FOUND: 404,
    RefusalReason.TURN_IN_PROGRESS: 409,
    RefusalReason.KEY_REUSED: 409,
    RefusalReason.FULL: 507,
}


class PlaygroundError(Exception):
    """Root of the playground's errors."""


class RefusedError(PlaygroundError):
    """A request that the playground does not carry out; nothing has been changed by it."""

    def __init__(self, reason: RefusalReason, subject: str) -> None:
        """Refuse for a reason; `subject` names what it is about, and never quotes a prompt."""
        super().__init__(f"{reason.value}: {subject}")
        self.reason = reason
        self.subject = subject
