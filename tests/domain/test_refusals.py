from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Code, Failure, PageTouched, Reason, Refused, code_of, cut, invalid_field, refuse
from tabmuxd.resources.outcomes import with_outcome

_CODES = {
    "INVALID_ARGUMENT": "INVALID_FIELD URI_NOT_ALLOWED",
    "UNAUTHENTICATED": "TOKEN_INVALID",
    "PERMISSION_DENIED": "SCOPE_MISSING METHOD_DISABLED NOT_OWNER",
    "NOT_FOUND": "BROWSER_NOT_FOUND TAB_NOT_FOUND TARGET_NOT_FOUND LEASE_NOT_FOUND SESSION_NOT_FOUND TURN_NOT_FOUND"
    " PROVIDER_NOT_FOUND ARTIFACT_NOT_FOUND",
    "ALREADY_EXISTS": "REQUEST_ID_REUSED",
    "FAILED_PRECONDITION": "TAB_GONE TAB_CLOSED TAB_UNRESPONSIVE TAB_BUSY TAB_PINNED FOREIGN_TAB NO_FRONT_TAB"
    " RECOVERY_FAILED LEASE_REQUIRED ELEMENT_NOT_ACTIONABLE DIALOG_OPEN NO_DIALOG NAVIGATION_FAILED SCRIPT_FAILED"
    " RESULT_NOT_SERIALIZABLE SESSION_RETIRED PROVIDER_NOT_SHOWN PROVIDER_UNSUPPORTED PROVIDER_SIGN_IN_REQUIRED"
    " PROVIDER_CHALLENGE_SHOWN PROVIDER_CONSENT_REQUIRED PROVIDER_MODEL_UNAVAILABLE PROVIDER_COMPOSER_UNUSABLE"
    " PROVIDER_ATTACHMENT_REFUSED PROVIDER_CONVERSATION_CHANGED PROVIDER_PAGE_CHANGED",
    "ABORTED": "REVISION_MISMATCH BROWSER_GONE TAB_REPLACED STALE_REF OUTCOME_UNKNOWN LEASE_HELD LEASE_LOST"
    " TURN_IN_PROGRESS SUBMIT_UNCONFIRMED ANSWER_TIMEOUT ANSWER_STALLED ANSWER_STOPPED ANSWER_EMPTY PROVIDER_FAILED",
    "OUT_OF_RANGE": "REVISION_COMPACTED HISTORY_CHANGED REVISION_IN_FUTURE",
    "RESOURCE_EXHAUSTED": "TOKEN_LIMITED TAB_CAPACITY CALL_CAPACITY PROVIDER_LIMITED TURN_CAPACITY RESULT_TOO_LARGE"
    " WATCH_CAPACITY WATCH_STALLED",
    "UNAVAILABLE": "BROWSER_UNREACHABLE DRAINING",
}


def test_codes() -> None:
    """Each reason has its one code, as the table of the guide says (api-guide 5)."""
    assert {reason.value: code_of(reason).value for reason in Reason} == {
        reason: code for code, reasons in _CODES.items() for reason in reasons.split()
    }


_SAFE = ["BROWSER_UNREACHABLE", "DRAINING", "CALL_CAPACITY", "TOKEN_LIMITED"]
_SAFE_IN_TURN = ["TURN_CAPACITY", "TAB_CAPACITY", "PROVIDER_LIMITED"]
_AFTER_VERIFY = [
    "BROWSER_GONE",
    "TAB_GONE",
    "TAB_REPLACED",
    "TAB_UNRESPONSIVE",
    "STALE_REF",
    "ELEMENT_NOT_ACTIONABLE",
    "DIALOG_OPEN",
    "LEASE_REQUIRED",
    "LEASE_HELD",
    "RECOVERY_FAILED",
    "PROVIDER_SIGN_IN_REQUIRED",
    "PROVIDER_CHALLENGE_SHOWN",
    "PROVIDER_CONSENT_REQUIRED",
    "PROVIDER_COMPOSER_UNUSABLE",
    "PROVIDER_NOT_SHOWN",
    "PROVIDER_CONVERSATION_CHANGED",
    "PROVIDER_PAGE_CHANGED",
    "LEASE_LOST",
    "NAVIGATION_FAILED",
    "ANSWER_TIMEOUT",
]
_RAN = ["SCRIPT_FAILED", "RESULT_NOT_SERIALIZABLE", "RESULT_TOO_LARGE"]
_UNTOUCHED = ["PROVIDER_MODEL_UNAVAILABLE"]
_DOUBTFUL = ["OUTCOME_UNKNOWN", "SUBMIT_UNCONFIRMED"]
_NEVER = [
    "INVALID_FIELD",
    "URI_NOT_ALLOWED",
    "TOKEN_INVALID",
    "SCOPE_MISSING",
    "METHOD_DISABLED",
    "NOT_OWNER",
    "REQUEST_ID_REUSED",
    "NO_DIALOG",
    "TAB_CLOSED",
    "SESSION_RETIRED",
    "BROWSER_NOT_FOUND",
    "TAB_NOT_FOUND",
    "TARGET_NOT_FOUND",
    "LEASE_NOT_FOUND",
    "SESSION_NOT_FOUND",
    "TURN_NOT_FOUND",
    "PROVIDER_NOT_FOUND",
    "ARTIFACT_NOT_FOUND",
    "PROVIDER_MODEL_UNAVAILABLE",
    "PROVIDER_UNSUPPORTED",
    "PROVIDER_ATTACHMENT_REFUSED",
]


def _outcome(reason: str, touched: PageTouched, *, turn: bool) -> tuple[str, str]:
    metadata = with_outcome(refuse(Reason(reason), "m", key="v"), touched, turn=turn).metadata
    assert metadata["key"] == "v"
    return metadata["page_touched"], metadata["retry"]


@pytest.mark.parametrize("turn", [False, True])
@pytest.mark.parametrize(
    ("reasons", "outcome"),
    [
        (_SAFE, ("no", "safe")),
        (_AFTER_VERIFY, ("no", "after-verify")),
        (_NEVER, ("no", "never")),
        (_RAN, ("yes", "never")),
        (_DOUBTFUL, ("unknown", "after-verify")),
    ],
)
def test_untouched(reasons: list[str], outcome: tuple[str, str], *, turn: bool) -> None:
    """Before anything was handed over each reason has its row of the table (O-72, ownership 2)."""
    assert {reason: _outcome(reason, "no", turn=turn) for reason in reasons} == dict.fromkeys(reasons, outcome)


def test_waiting_in_vain() -> None:
    """A turn that waited for room in vain is safe to repeat; a call that found none is not told so (ownership 2)."""
    assert {reason: _outcome(reason, "no", turn=True) for reason in _SAFE_IN_TURN} == dict.fromkeys(
        _SAFE_IN_TURN, ("no", "safe")
    )
    assert {reason: _outcome(reason, "no", turn=False) for reason in _SAFE_IN_TURN} == dict.fromkeys(
        _SAFE_IN_TURN, ("no", "after-verify")
    )


@pytest.mark.parametrize("turn", [False, True])
def test_touched(*, turn: bool) -> None:
    """Once the page was touched nothing is safe, and only what surely ran is never to be repeated (ownership 2)."""
    others = [reason.value for reason in Reason if reason.value not in [*_RAN, *_DOUBTFUL, *_UNTOUCHED]]

    for touched in ("yes", "unknown"):
        assert {reason: _outcome(reason, touched, turn=turn) for reason in others} == dict.fromkeys(
            others, (touched, "after-verify")
        )
        assert {reason: _outcome(reason, touched, turn=turn) for reason in _RAN} == dict.fromkeys(
            _RAN, ("yes", "never")
        )


@pytest.mark.parametrize("turn", [False, True])
def test_never_touched(*, turn: bool) -> None:
    """A model that cannot be had is told before send is pressed, whatever was recorded for that (ownership 2)."""
    outcomes = {_outcome(_UNTOUCHED[0], touched, turn=turn) for touched in ("no", "yes", "unknown")}
    assert outcomes == {("no", "never")}


def test_safe_is_untouched() -> None:
    """`safe` goes with `no` only, whatever the reason (api-guide 5)."""
    outcomes = {
        _outcome(reason.value, touched, turn=turn)
        for reason in Reason
        for touched in ("no", "yes", "unknown")
        for turn in (False, True)
    }

    assert outcomes == {
        ("no", "safe"),
        ("no", "after-verify"),
        ("no", "never"),
        ("yes", "after-verify"),
        ("yes", "never"),
        ("unknown", "after-verify"),
    }


@given(st.text(max_size=40) | st.text(st.characters(), max_size=40), st.integers(0, 60))
def test_cut(text: str, limit: int) -> None:
    """A text is cut to its bytes on a character border, as long as fits; halves of characters become `?`."""
    whole = "".join("?" if "\ud800" <= character <= "\udfff" else character for character in text)

    found = cut(text, limit)

    assert whole.startswith(found)
    assert len(found.encode()) <= limit
    if found != whole:
        assert len(whole[: len(found) + 1].encode()) > limit


def test_refused() -> None:
    """A refusal is an exception and data alike: code, reason, values cut to 1 KiB, delay."""
    refused = refuse(Reason.TAB_CAPACITY, "m" * 2000, retry_after=5, browser="ü" * 600, limit=3)

    assert refused.code is Code.RESOURCE_EXHAUSTED
    assert str(refused) == "m" * 1024
    assert refused.failure() == Failure(
        "TAB_CAPACITY", "m" * 1024, {"browser": "ü" * 512, "limit": "3"}, timedelta(seconds=5)
    )


def test_more_metadata() -> None:
    """Keys are added to a copy; the refusal itself stays as it was."""
    refused = refuse(Reason.TAB_GONE, "m", retry_after=0, tab="t")
    more = refused.with_metadata(tab="u", retry="safe")

    assert isinstance(more, Refused)
    assert more.failure() == Failure("TAB_GONE", "m", {"tab": "u", "retry": "safe"}, timedelta(0))
    assert refused.metadata == {"tab": "t"}


def test_invalid_field() -> None:
    """INVALID_FIELD names the field, and the limit where there is one."""
    assert invalid_field("a.b", "must be set").failure() == Failure(
        "INVALID_FIELD", "a.b: must be set", {"field": "a.b"}
    )
    assert invalid_field("a", "too long", limit=0).metadata == {"field": "a", "limit": "0"}
