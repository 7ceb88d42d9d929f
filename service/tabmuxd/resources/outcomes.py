"""What a program may do after a step was refused: `page_touched` and `retry` (`ownership.md` section 2)."""

from __future__ import annotations

from tabmuxd.resources.errors import PageTouched, Reason, Refused

_SAFE = frozenset(
    {
        Reason.BROWSER_UNREACHABLE,
        Reason.DRAINING,
        Reason.CALL_CAPACITY,
        Reason.TOKEN_LIMITED,
    }
)
_SAFE_IN_TURN = frozenset({Reason.TURN_CAPACITY, Reason.TAB_CAPACITY, Reason.PROVIDER_LIMITED})
_RAN = frozenset({Reason.SCRIPT_FAILED, Reason.RESULT_NOT_SERIALIZABLE, Reason.RESULT_TOO_LARGE})
_DOUBTFUL = frozenset({Reason.OUTCOME_UNKNOWN, Reason.SUBMIT_UNCONFIRMED})
# By what the contract says of it: it was refused before send was pressed, whatever was recorded for that.
_UNTOUCHED = frozenset({Reason.PROVIDER_MODEL_UNAVAILABLE})
_NEVER = frozenset(
    {
        Reason.INVALID_FIELD,
        Reason.URI_NOT_ALLOWED,
        Reason.TOKEN_INVALID,
        Reason.SCOPE_MISSING,
        Reason.METHOD_DISABLED,
        Reason.NOT_OWNER,
        Reason.REQUEST_ID_REUSED,
        Reason.NO_DIALOG,
        Reason.TAB_CLOSED,
        Reason.SESSION_RETIRED,
        Reason.PROVIDER_UNSUPPORTED,
        Reason.PROVIDER_MODEL_UNAVAILABLE,
        Reason.PROVIDER_ATTACHMENT_REFUSED,
    }
)


def with_outcome(refused: Refused, touched: PageTouched, *, turn: bool = False) -> Refused:
    """`refused` with the keys `page_touched` and `retry`.

    `touched` is how far the step had come; a reason that settles the matter itself overrules it. `turn`: it ends a
    turn, where waiting for room in vain is safe to repeat and a prompt that was submitted never is.
    """
    reason = refused.reason
    if reason in _RAN:
        touched = "yes"
    elif reason in _DOUBTFUL:
        touched = "unknown"
    elif reason in _UNTOUCHED:
        touched = "no"
    return refused.with_metadata(page_touched=touched, retry=_retry(reason, touched, turn=turn))


def _retry(reason: Reason, touched: PageTouched, *, turn: bool) -> str:
    if reason in _RAN:
        return "never"
    if touched == "no" and (reason in _SAFE or (turn and reason in _SAFE_IN_TURN)):
        return "safe"
    if touched == "no" and (reason in _NEVER or reason.value.endswith("_NOT_FOUND")):
        return "never"
    return "after-verify"
