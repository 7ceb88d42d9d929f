from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.resources.session import TurnState
from tabmuxd.webai import barriers, failures
from tabmuxd.webai.providers.descriptor import Descriptor, PersonBarrier
from tabmuxd.webai.samples import Barrier, Composer, Sample

from tests.domain.values import NOW, TAB, playground, sample, told

_PATTERNS = (
    re.compile(r"resets in (?:(?P<hours>\d+) hours?)?(?: and )?(?:(?P<minutes>\d+) min)?"),
    re.compile(r"(?P<days>\d+) days? left"),
)


def _descriptor() -> Descriptor:
    hosts: dict[str, PersonBarrier] = {
        "login.example": "sign_in",
        "check.example": "challenge",
        "terms.example": "consent",
    }
    return replace(playground(), barrier_hosts=hosts, limit_reset=_PATTERNS)


def _shown(barrier: Barrier, composer: Composer, text: str = "") -> Sample:
    return replace(sample(), barrier=barrier, composer=composer, barrier_text=text)


@pytest.mark.parametrize(
    ("barrier", "composer", "reason"),
    [
        ("sign_in", "absent", "PROVIDER_SIGN_IN_REQUIRED"),
        ("sign_in", "blocked", "PROVIDER_SIGN_IN_REQUIRED"),
        ("challenge", "blocked", "PROVIDER_CHALLENGE_SHOWN"),
        ("consent", "blocked", "PROVIDER_CONSENT_REQUIRED"),
        ("sign_in", "usable", None),
        ("challenge", "usable", None),
        ("consent", "usable", None),
        ("limit", "blocked", None),
        ("", "blocked", None),
    ],
)
def test_shown(barrier: Barrier, composer: Composer, reason: str | None) -> None:
    """Kinds are told apart, and a composer that can be used overrules each of them (SUB-12, FIN-08, FIN-16)."""
    assert told(barriers.shown(_descriptor(), _shown(barrier, composer), TAB)) == reason


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("https://login.example/auth?next=1", "PROVIDER_SIGN_IN_REQUIRED"),
        ("https://LOGIN.example:444/", "PROVIDER_SIGN_IN_REQUIRED"),
        ("https://check.example/", "PROVIDER_CHALLENGE_SHOWN"),
        ("https://terms.example/", "PROVIDER_CONSENT_REQUIRED"),
        ("https://login.example.evil.example/", None),
        ("https://evil.example/?login.example", None),
        ("http://textarea.localhost:8000/login.example", None),
        ("about:blank", None),
        ("", None),
        ("https://[::1/", None),
    ],
)
def test_address(uri: str, reason: str | None) -> None:
    """A host to which the provider sends its users blocks the turn, exactly that host and no other (SUB-12, FIN-08)."""
    assert told(barriers.at_address(_descriptor(), uri, TAB)) == reason


def test_tells() -> None:
    """What is told names provider and tab, and nothing of the page."""
    refused = barriers.shown(_descriptor(), _shown("sign_in", "absent", "secret"), TAB)

    assert refused is not None
    assert refused.metadata == {"provider": "playground-textarea", "tab": TAB}
    assert "secret" not in refused.message


_HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("Limit resets in 2 hours", NOW + 2 * _HOUR),
        ("Limit resets in 1 hour and 30 min", NOW + 1.5 * _HOUR),
        ("Limit resets in 45 min.", NOW + 0.75 * _HOUR),
        ("3 days left", NOW + 72 * _HOUR),
        ("Back at 2026-03-04T07:06:07Z", NOW + 2 * _HOUR),
        ("Back at 2026-03-04T08:06:07+01:00, resets in 9 hours", NOW + 2 * _HOUR),
        ("Limit reached.", None),
        ("Limit resets in a while", None),
        ("Limit resets in 0 hours", None),
        ("9999999999 days left", None),
        ("2 hours", None),
        ("Since 2026-03-04T03:06:07Z", None),
        ("At 2026-13-45T99:99:99Z", None),
        ("At 2029-03-04T07:06:07Z", None),
    ],
)
def test_reset_time(text: str, reset: datetime | None) -> None:
    """The end of a limit is told where the page tells it, and not made up (SUB-12, SUB-21)."""
    assert barriers.reset_time_in(text, _PATTERNS, NOW) == reset


@given(st.text())
def test_any_text(text: str) -> None:
    """Whatever a limit says, its end is in the future, or not told."""
    reset = barriers.reset_time_in(text, _PATTERNS, NOW)

    assert reset is None or reset > NOW


def test_limited() -> None:
    """PROVIDER_LIMITED says when it ends, where that is known, and when to come again (SUB-12, SUB-21)."""
    known = barriers.limited(_descriptor(), _shown("limit", "blocked", "resets in 2 hours"), TAB, NOW)
    unknown = barriers.limited(_descriptor(), _shown("limit", "blocked", "No more."), TAB, NOW)

    assert known is not None
    assert unknown is not None
    here = {"provider": "playground-textarea", "tab": TAB}
    assert (known.metadata, known.retry_delay) == ({**here, "reset_time": "2026-03-04T07:06:07Z"}, 2 * _HOUR)
    assert (unknown.metadata, unknown.retry_delay) == (here, None)
    assert barriers.limited(_descriptor(), _shown("sign_in", "blocked"), TAB, NOW) is None


def test_time_over_while_blocked() -> None:
    """A turn whose time is over while it is blocked fails with what blocks it (O-132, SUB-12, FIN-08)."""
    blocked = refuse(Reason.PROVIDER_SIGN_IN_REQUIRED, "Sign in.", provider="p", tab=TAB)
    failed = failures.out_of_time("sessions/s/turns/t", TurnState.BLOCKED, blocked.failure(), None)
    running = failures.out_of_time("sessions/s/turns/t", TurnState.RUNNING, None, None)

    assert failed.failure() == blocked.failure()
    assert running.reason is Reason.ANSWER_TIMEOUT
