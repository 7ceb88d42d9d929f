from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from tabmuxd.resources.session import Session
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs import recovery_rules
from tabmuxd.tabs.recovery_rules import WINDOW, Attempts

from tests.domain.values import NOW, SESSION, TAB, chat_session, ready_tab, told

_LATER = NOW + timedelta(minutes=1)
_CONVERSATION = "http://textarea.localhost:8000/c/1"


@pytest.mark.parametrize(
    ("tab", "comes_back"),
    [
        (replace(ready_tab(), state=TabState.LOST), False),
        (replace(ready_tab(), state=TabState.CRASHED), False),
        (replace(ready_tab(), state=TabState.LOST, pinned=True), True),
        (replace(ready_tab(), state=TabState.CRASHED, session=SESSION), True),
        (replace(ready_tab(), pinned=True, session=SESSION), False),
        (replace(ready_tab(), state=TabState.RECOVERING, pinned=True), False),
        (replace(ready_tab(), state=TabState.CLOSED, pinned=True), False),
    ],
)
def test_comes_back_by_itself(tab: Tab, *, comes_back: bool) -> None:
    """Only a tab that serves a session or is pinned is brought back unasked, and only while it has no page (O-111)."""
    assert recovery_rules.comes_back_by_itself(tab) is comes_back


@pytest.mark.parametrize(
    ("uri", "session", "address"),
    [
        ("https://x.example/a?token=1", None, "https://x.example/a?token=1"),
        ("", None, ""),
        ("about:blank", None, "about:blank"),
        ("blob:https://x.example/1", None, ""),
        ("https://x.example/" + "a" * 8180, None, ""),
        ("https://x.example/a", chat_session(_CONVERSATION), _CONVERSATION),
        ("https://x.example/a", chat_session(), ""),
    ],
)
def test_way_back(uri: str, session: Session | None, address: str) -> None:
    """A tab goes back to its last address, a session's to its conversation, whole or not at all (O-140, SES-03)."""
    assert recovery_rules.way_back(replace(ready_tab(), uri=uri), session) == address


@pytest.mark.parametrize(
    ("attempts", "now", "count"),
    [
        (Attempts(), NOW, 0),
        (Attempts((NOW,), (NOW, NOW)), _LATER, 3),
        (Attempts((NOW,), (_LATER,)), NOW + WINDOW, 1),
        (Attempts((NOW,), (NOW,)), NOW + WINDOW, 0),
    ],
)
def test_count(attempts: Attempts, now: datetime, count: int) -> None:
    """Attempts count for exactly ten minutes, whatever became of them (O-111)."""
    assert attempts.count(now) == count


def test_success_ends_the_row() -> None:
    """A success ends the row of failures, and counts itself; what is older than ten minutes goes (SES-04)."""
    failing = Attempts().after(NOW, success=False).after(NOW, success=False)

    assert failing == Attempts(failed=(NOW, NOW))
    assert failing.after(_LATER, success=True) == Attempts((_LATER,))
    assert failing.after(_LATER, success=True).after(_LATER, success=False) == Attempts((_LATER,), (_LATER,))
    assert failing.after(NOW + WINDOW, success=False) == Attempts(failed=(NOW + WINDOW,))


def test_pauses() -> None:
    """The pause grows with the failures in a row, and is none after a success."""
    rows = [Attempts(), *(Attempts(failed=(NOW,) * count) for count in (1, 2, 3))]

    assert [recovery_rules.pause_after(row) for row in rows] == [0.0, 1.0, 4.0, 4.0]


def test_refusals() -> None:
    """RECOVERY_FAILED tells of tab and session, how often it was tried, and why no more (O-140)."""
    tab = replace(ready_tab(), state=TabState.LOST, session=SESSION)
    tried, unknown = recovery_rules.failed(tab, Attempts(failed=(NOW,) * 3), _LATER), recovery_rules.no_address(tab)

    assert (told(tried), told(unknown)) == ("RECOVERY_FAILED:attempts", "RECOVERY_FAILED:no_address")
    assert tried.metadata == {"tab": TAB, "session": SESSION, "attempt_count": "3", "cause": "attempts"}
    assert unknown.metadata == {"tab": TAB, "session": SESSION, "attempt_count": "0", "cause": "no_address"}
