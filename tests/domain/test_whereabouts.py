"""Where a session belongs, and what is made of a tab that is somewhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tabmuxd.resources.errors import Refused
from tabmuxd.webai import whereabouts

from tests.domain.values import SESSION, TAB, chat_session, playground, told

_HERE = "http://textarea.localhost:8000"
_START, _ONE, _OTHER = f"{_HERE}/", f"{_HERE}/c/0123456789ab", f"{_HERE}/c/ba9876543210"
_ELSEWHERE = "https://example.com/c/0123456789ab"


@pytest.mark.parametrize(
    ("conversation", "prompted", "home"),
    [("", False, _START), ("", True, ""), (_ONE, False, _ONE), (_ONE, True, _ONE)],
)
def test_home(conversation: str, home: str, *, prompted: bool) -> None:
    """A session goes on at its conversation; a fresh chat is never taken for one whose address is lost (SES-03, O-140).

    The start page is its home only before its first prompt (O-141).
    """
    session = replace(chat_session(conversation), prompted=prompted)
    assert whereabouts.home(playground(), session) == home


@pytest.mark.parametrize(
    ("conversation", "shown", "at_home", "once_submitted"),
    [
        (_ONE, _ONE, True, True),
        (_ONE, f"{_ONE}?model=x#bottom", True, True),
        (_ONE, _OTHER, False, False),
        (_ONE, _START, False, False),
        (_ONE, _ELSEWHERE, False, False),
        ("", _START, True, True),
        ("", _ONE, False, True),
        ("", _ELSEWHERE, False, False),
    ],
)
def test_at_home(conversation: str, shown: str, *, at_home: bool, once_submitted: bool) -> None:
    """Query and fragment do not matter, another conversation does; the first address is its own (O-135, FIN-17)."""
    session = chat_session(conversation)
    found = [whereabouts.is_home(playground(), session, shown, submitted=submitted) for submitted in (False, True)]
    assert found == [at_home, once_submitted]


@pytest.mark.parametrize(
    ("conversation", "shown", "way", "begins"),
    [
        ("", _START, "", ""),
        ("", _ONE, "", _ONE),
        ("", _ELSEWHERE, _START, "PROVIDER_NOT_SHOWN"),
        ("", "about:blank", _START, "PROVIDER_NOT_SHOWN"),
        (_ONE, _ONE, "", _ONE),
        (_ONE, f"{_ONE}#x", "", _ONE),
        (_ONE, _OTHER, _ONE, "PROVIDER_CONVERSATION_CHANGED"),
        (_ONE, _START, _ONE, "PROVIDER_CONVERSATION_CHANGED"),
        (_ONE, _ELSEWHERE, _ONE, "PROVIDER_NOT_SHOWN"),
    ],
)
def test_tab_that_exists(conversation: str, shown: str, way: str, begins: str) -> None:
    """A tab is taken to the conversation wanted, or to the start page from elsewhere, and else left (O-134, O-135).

    What it shows then is the session's conversation, or the reason why none begins there.
    """
    found: str | None
    try:
        found = whereabouts.begins_at(playground(), conversation, shown, session=SESSION, tab=TAB)
    except Refused as refused:
        found = told(refused)
    assert (whereabouts.way(playground(), conversation, shown), found) == (way, begins)


def test_refusals() -> None:
    """RECOVERY_FAILED tells of session and tab, why, and how often it was tried (O-140)."""
    session = replace(chat_session(), tab=TAB)
    common = {"tab": TAB, "session": SESSION}
    assert [refused.metadata for refused in (whereabouts.no_address(session), whereabouts.given_up(session, 4))] == [
        {**common, "attempt_count": "0", "cause": "no_address"},
        {**common, "attempt_count": "4", "cause": "attempts"},
    ]
