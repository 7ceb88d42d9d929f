"""Decisions about bringing tabs back, as plain functions: who comes back by itself, whereto, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.session import Session
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES, check_address

MAX_ATTEMPTS: Final = 3
WINDOW: Final = timedelta(minutes=10)
LEAST_PAUSE: Final = 1.0
_PAUSES: Final = (LEAST_PAUSE, 4.0)


@dataclass(frozen=True, slots=True)
class Attempts:
    """When a tab was brought back, and when that failed since it last came back."""

    succeeded: tuple[datetime, ...] = ()
    failed: tuple[datetime, ...] = ()

    def count(self, now: datetime) -> int:
        """How many there were within 10 minutes."""
        return sum(now - time < WINDOW for time in (*self.succeeded, *self.failed))

    def after(self, now: datetime, *, success: bool) -> Attempts:
        """With one more; a success ends the row of failures, older ones are forgotten."""
        succeeded = tuple(time for time in self.succeeded if now - time < WINDOW)
        failed = tuple(time for time in self.failed if now - time < WINDOW)
        return Attempts((*succeeded, now)) if success else Attempts(succeeded, (*failed, now))


def pause_after(attempts: Attempts) -> float:
    """Seconds until the next attempt after one that failed."""
    return _PAUSES[min(len(attempts.failed), len(_PAUSES)) - 1] if attempts.failed else 0.0


def comes_back_by_itself(tab: Tab) -> bool:
    """Whether the service brings the tab back without being asked: it serves a session, or is pinned.

    A session whose conversation has no known address does not keep its tab when that loses its page.
    """
    return tab.state in (TabState.CRASHED, TabState.LOST) and (tab.pinned or bool(tab.session))


def way_back(tab: Tab, session: Session | None) -> str:
    """Address that the tab is brought back at: that of its session's conversation, else its last one; empty if unknown.

    An address that may have been cut leads somewhere else, and one that no tab may be sent to leads nowhere.
    """
    uri = session.conversation_uri if session is not None else tab.uri
    if not uri or len(uri.encode()) > MAX_ADDRESS_BYTES - 4:
        return ""
    try:
        return check_address(uri)
    except Refused:
        return ""


def failed(tab: Tab, attempts: Attempts, now: datetime) -> Refused:
    """RECOVERY_FAILED: tried as often as allowed."""
    return _failed(
        tab,
        attempts.count(now),
        "attempts",
        f"{tab.name} was brought back, or could not be, as often as is allowed in {int(WINDOW.total_seconds() // 60)}"
        " minutes. Open another tab.",
    )


def no_address(tab: Tab) -> Refused:
    """RECOVERY_FAILED: it is not known where it was."""
    what = f"the conversation of {tab.session}" if tab.session else f"the page of {tab.name}"
    return _failed(tab, 0, "no_address", f"The address of {what} is not known, so that it was not brought back.")


def _failed(tab: Tab, count: int, cause: str, message: str) -> Refused:
    return refuse(Reason.RECOVERY_FAILED, message, tab=tab.name, session=tab.session, attempt_count=count, cause=cause)
