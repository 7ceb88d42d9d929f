"""Refusals: why something was not done, as values that the edge turns into statuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Literal

MAX_VALUE_BYTES = 1024

PageTouched = Literal["no", "yes", "unknown"]


class Code(StrEnum):
    """The canonical gRPC codes that refusals use."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_FOUND = "NOT_FOUND"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"
    UNIMPLEMENTED = "UNIMPLEMENTED"


class Reason(StrEnum):
    """The values of `tabmux.v1.ErrorReason`, without their prefix."""

    INVALID_FIELD = "INVALID_FIELD"
    TOKEN_INVALID = "TOKEN_INVALID"  # noqa: S105 - a reason, no secret
    SCOPE_MISSING = "SCOPE_MISSING"
    METHOD_DISABLED = "METHOD_DISABLED"
    TOKEN_LIMITED = "TOKEN_LIMITED"  # noqa: S105 - a reason, no secret
    NOT_OWNER = "NOT_OWNER"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    REVISION_MISMATCH = "REVISION_MISMATCH"
    URI_NOT_ALLOWED = "URI_NOT_ALLOWED"
    BROWSER_NOT_FOUND = "BROWSER_NOT_FOUND"
    BROWSER_UNREACHABLE = "BROWSER_UNREACHABLE"
    BROWSER_GONE = "BROWSER_GONE"
    TAB_NOT_FOUND = "TAB_NOT_FOUND"
    TAB_GONE = "TAB_GONE"
    TAB_CLOSED = "TAB_CLOSED"
    TAB_REPLACED = "TAB_REPLACED"
    TAB_UNRESPONSIVE = "TAB_UNRESPONSIVE"
    TAB_BUSY = "TAB_BUSY"
    TAB_PINNED = "TAB_PINNED"
    TAB_CAPACITY = "TAB_CAPACITY"
    CALL_CAPACITY = "CALL_CAPACITY"
    FOREIGN_TAB = "FOREIGN_TAB"
    TARGET_NOT_FOUND = "TARGET_NOT_FOUND"
    NO_FRONT_TAB = "NO_FRONT_TAB"
    RECOVERY_FAILED = "RECOVERY_FAILED"
    STALE_REF = "STALE_REF"
    ELEMENT_NOT_ACTIONABLE = "ELEMENT_NOT_ACTIONABLE"
    DIALOG_OPEN = "DIALOG_OPEN"
    NO_DIALOG = "NO_DIALOG"
    NAVIGATION_FAILED = "NAVIGATION_FAILED"
    SCRIPT_FAILED = "SCRIPT_FAILED"
    RESULT_NOT_SERIALIZABLE = "RESULT_NOT_SERIALIZABLE"
    OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    LEASE_NOT_FOUND = "LEASE_NOT_FOUND"
    LEASE_REQUIRED = "LEASE_REQUIRED"
    LEASE_HELD = "LEASE_HELD"
    LEASE_LOST = "LEASE_LOST"
    SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
    SESSION_RETIRED = "SESSION_RETIRED"
    TURN_NOT_FOUND = "TURN_NOT_FOUND"
    TURN_IN_PROGRESS = "TURN_IN_PROGRESS"
    SUBMIT_UNCONFIRMED = "SUBMIT_UNCONFIRMED"
    ANSWER_TIMEOUT = "ANSWER_TIMEOUT"
    ANSWER_STALLED = "ANSWER_STALLED"
    ANSWER_STOPPED = "ANSWER_STOPPED"
    ANSWER_EMPTY = "ANSWER_EMPTY"
    PROVIDER_NOT_FOUND = "PROVIDER_NOT_FOUND"
    PROVIDER_NOT_SHOWN = "PROVIDER_NOT_SHOWN"
    PROVIDER_UNSUPPORTED = "PROVIDER_UNSUPPORTED"
    PROVIDER_SIGN_IN_REQUIRED = "PROVIDER_SIGN_IN_REQUIRED"
    PROVIDER_CHALLENGE_SHOWN = "PROVIDER_CHALLENGE_SHOWN"
    PROVIDER_CONSENT_REQUIRED = "PROVIDER_CONSENT_REQUIRED"
    PROVIDER_LIMITED = "PROVIDER_LIMITED"
    TURN_CAPACITY = "TURN_CAPACITY"
    PROVIDER_MODEL_UNAVAILABLE = "PROVIDER_MODEL_UNAVAILABLE"
    PROVIDER_COMPOSER_UNUSABLE = "PROVIDER_COMPOSER_UNUSABLE"
    PROVIDER_ATTACHMENT_REFUSED = "PROVIDER_ATTACHMENT_REFUSED"
    PROVIDER_CONVERSATION_CHANGED = "PROVIDER_CONVERSATION_CHANGED"
    PROVIDER_FAILED = "PROVIDER_FAILED"
    PROVIDER_PAGE_CHANGED = "PROVIDER_PAGE_CHANGED"
    ARTIFACT_NOT_FOUND = "ARTIFACT_NOT_FOUND"
    REVISION_COMPACTED = "REVISION_COMPACTED"
    HISTORY_CHANGED = "HISTORY_CHANGED"
    REVISION_IN_FUTURE = "REVISION_IN_FUTURE"
    WATCH_CAPACITY = "WATCH_CAPACITY"
    WATCH_STALLED = "WATCH_STALLED"
    DRAINING = "DRAINING"


_CODES: Mapping[Code, tuple[Reason, ...]] = {
    Code.INVALID_ARGUMENT: (Reason.INVALID_FIELD, Reason.URI_NOT_ALLOWED),
    Code.UNAUTHENTICATED: (Reason.TOKEN_INVALID,),
    Code.PERMISSION_DENIED: (Reason.SCOPE_MISSING, Reason.METHOD_DISABLED, Reason.NOT_OWNER),
    Code.NOT_FOUND: (
        Reason.BROWSER_NOT_FOUND, Reason.TAB_NOT_FOUND, Reason.TARGET_NOT_FOUND, Reason.LEASE_NOT_FOUND,
        Reason.SESSION_NOT_FOUND, Reason.TURN_NOT_FOUND, Reason.PROVIDER_NOT_FOUND, Reason.ARTIFACT_NOT_FOUND,
    ),
    Code.ALREADY_EXISTS: (Reason.REQUEST_ID_REUSED,),
    Code.ABORTED: (
        Reason.REVISION_MISMATCH, Reason.BROWSER_GONE, Reason.TAB_REPLACED, Reason.STALE_REF, Reason.OUTCOME_UNKNOWN,
        Reason.LEASE_HELD, Reason.LEASE_LOST, Reason.TURN_IN_PROGRESS, Reason.SUBMIT_UNCONFIRMED,
        Reason.ANSWER_TIMEOUT, Reason.ANSWER_STALLED, Reason.ANSWER_STOPPED, Reason.ANSWER_EMPTY,
        Reason.PROVIDER_FAILED,
    ),
    Code.OUT_OF_RANGE: (Reason.REVISION_COMPACTED, Reason.HISTORY_CHANGED, Reason.REVISION_IN_FUTURE),
    Code.RESOURCE_EXHAUSTED: (
        Reason.TOKEN_LIMITED, Reason.TAB_CAPACITY, Reason.CALL_CAPACITY, Reason.PROVIDER_LIMITED,
        Reason.TURN_CAPACITY, Reason.RESULT_TOO_LARGE, Reason.WATCH_CAPACITY, Reason.WATCH_STALLED,
    ),
    Code.UNAVAILABLE: (Reason.BROWSER_UNREACHABLE, Reason.DRAINING),
}  # fmt: skip
_CODE_OF: Mapping[Reason, Code] = {reason: code for code, reasons in _CODES.items() for reason in reasons}


def code_of(reason: Reason) -> Code:
    """The gRPC code that always goes with a reason (`api-guide.md` section 5)."""
    return _CODE_OF.get(reason, Code.FAILED_PRECONDITION)


@dataclass(frozen=True, slots=True)
class Failure:
    """A refusal as data: what the status of a call would have said."""

    reason: str
    message: str
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    retry_delay: timedelta | None = None


def cut(text: str, limit_bytes: int = MAX_VALUE_BYTES) -> str:
    """`text` cut to `limit_bytes` of UTF-8 on a character border; halves of characters become `?`."""
    return text.encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")


class Refused(Exception):
    """Something was asked that is not done; says why, and what was done nevertheless.

    Fields: `reason`, `message` (for people), `metadata` (all that is variable in the message), `retry_delay`.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        metadata: Mapping[str, str],
        retry_delay: timedelta | None = None,
    ) -> None:
        """Cut every value to 1 KiB."""
        super().__init__(cut(message))
        self.reason = reason
        self.message = cut(message)
        self.metadata = {key: cut(value) for key, value in metadata.items()}
        self.retry_delay = retry_delay

    @property
    def code(self) -> Code:
        """The gRPC code."""
        return code_of(self.reason)

    def failure(self) -> Failure:
        """The same as data."""
        return Failure(self.reason.value, self.message, dict(self.metadata), self.retry_delay)

    def with_metadata(self, **more: str) -> Refused:
        """The same refusal with further keys."""
        return Refused(self.reason, self.message, {**self.metadata, **more}, self.retry_delay)


class NotBuilt(Exception):
    """A method or option that is not built yet; answered UNIMPLEMENTED with its name."""

    def __init__(self, what: str) -> None:
        """`what` names the method or option, such as `CreateTabRequest.from_pool`."""
        super().__init__(f"{what} is not built yet; nothing was done. See docs/status.md for what is.")
        self.what = what


def refuse(
    reason: Reason,
    message: str,
    *,
    retry_after: float | None = None,
    **metadata: str | int,
) -> Refused:
    """A refusal with its metadata; `retry_after` in seconds."""
    delay = None if retry_after is None else timedelta(seconds=retry_after)
    return Refused(reason, message, {key: str(value) for key, value in metadata.items()}, delay)


def invalid_field(field_name: str, problem: str, *, limit: int | None = None) -> Refused:
    """INVALID_FIELD for one field of a request; `problem` says what a right value is."""
    metadata = {"field": field_name}
    if limit is not None:
        metadata["limit"] = str(limit)
    return Refused(Reason.INVALID_FIELD, f"{field_name}: {problem}", metadata)
