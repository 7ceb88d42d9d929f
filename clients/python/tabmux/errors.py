"""What the client raises: one root class, and a class for each reason that programs treat differently."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType

from tabmux.v1.session_pb2 import Turn


class TabmuxError(Exception):
    """A refusal or failure, alike whether it came as the status of a call or as the `Failure` of a turn.

    Fields: `message`, a sentence for people. `reason`, as in `ErrorReason` (`TAB_GONE`); empty if the service did not
    make the error, such as when it was not reached. `code`, the canonical gRPC code by name (`NOT_FOUND`); empty if
    there was no call. `metadata`, the keys that `ErrorReason` lists. `retry_delay`, how long to wait before repeating.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str = "",
        code: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_delay: timedelta | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.code = code
        self.metadata: Mapping[str, str] = MappingProxyType(dict(metadata or {}))
        self.retry_delay = retry_delay

    def __str__(self) -> str:
        label = self.reason or self.code
        return f"{label}: {self.message}" if label else self.message


class TabGoneError(TabmuxError):
    """TAB_GONE: the tab has no usable target at the moment; it may be recovered."""


class TabClosedError(TabmuxError):
    """TAB_CLOSED: the tab is closed for good."""


class SessionRetiredError(TabmuxError):
    """SESSION_RETIRED: the session is ended for good."""


class StaleRefError(TabmuxError):
    """STALE_REF: the element is of an older document or snapshot; nothing was done."""


class OutcomeUnknownError(TabmuxError):
    """OUTCOME_UNKNOWN: the step was handed to the page and its result was lost; look at the page first."""


class LeaseLostError(TabmuxError):
    """LEASE_LOST: the lease the call named has ended."""


class TurnFailed(TabmuxError):
    """A turn ended without a whole answer.

    `turn` is the turn as it ended, with the answer there was; `text` is that answer. `reason` is that of `turn.error`,
    and empty for a turn that was cancelled.
    """

    def __init__(
        self,
        message: str,
        *,
        turn: Turn,
        reason: str = "",
        code: str = "",
        metadata: Mapping[str, str] | None = None,
        retry_delay: timedelta | None = None,
    ) -> None:
        super().__init__(message, reason=reason, code=code, metadata=metadata, retry_delay=retry_delay)
        self.turn = turn

    @property
    def text(self) -> str:
        """The answer there was, in Markdown."""
        return self.turn.answer_markdown


class PlaceError(TabmuxError):
    """An address, token, name or state directory cannot be used as it is; nothing was sent."""


class AmbiguousNameError(TabmuxError):
    """Several resources begin with what was given; `candidates` are their names."""

    def __init__(self, given: str, candidates: Sequence[str]) -> None:
        super().__init__(f"{given!r} is the beginning of {len(candidates)} names: {', '.join(candidates)}")
        self.candidates = tuple(candidates)


_CLASSES: Mapping[str, type[TabmuxError]] = MappingProxyType(
    {
        "TAB_GONE": TabGoneError,
        "TAB_CLOSED": TabClosedError,
        "SESSION_RETIRED": SessionRetiredError,
        "STALE_REF": StaleRefError,
        "OUTCOME_UNKNOWN": OutcomeUnknownError,
        "LEASE_LOST": LeaseLostError,
    },
)


def error_class(reason: str) -> type[TabmuxError]:
    """Class for a reason; the root for one that has none of its own, or that is not known."""
    return _CLASSES.get(reason, TabmuxError)
