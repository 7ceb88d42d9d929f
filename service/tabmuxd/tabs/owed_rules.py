"""Which closes are owed still, when each is tried again, and which targets have outlived their tabs: pure decisions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.resources.tab import CloseCause, Tab, TabOrigin, TabState
from tabmuxd.tabs import rules
from tabmuxd.tabs.addresses import marker_address

GIVE_UP_AFTER: Final = timedelta(hours=24)
_PAUSES: Final = tuple(timedelta(seconds=seconds) for seconds in (1, 2, 5, 15, 60))
_LAST_PAUSE: Final = timedelta(minutes=5)

# Somebody asked for these; the others the service decided by itself, and would decide otherwise by now.
_ASKED: Final = frozenset({CloseCause.CLIENT, CloseCause.SESSION})


@dataclass(frozen=True, slots=True)
class OwedClose:
    """The close of one target, and of its tab if that has not ended; `since` is the time of the first failure.

    `generation` is that of the browser in which the target was; it is 0, and `target_id` empty, for a tab that was
    opening and whose target is found by its marker. `cause` is NONE for a target that has outlived its tab.
    """

    tab: str
    target_id: str
    generation: int
    cause: CloseCause
    since: datetime
    lease: str = ""


def owed_for(tab: Tab, cause: CloseCause, now: datetime) -> OwedClose:
    """The close of a tab that failed at this moment."""
    return OwedClose(tab.name, tab.target_id, tab.browser_generation, cause, now, tab.lease)


def pause_after(failures: int) -> timedelta:
    """How long to wait after so many failures in a row, at least one: 1, 2, 5, 15, 60 s, then 5 min each time."""
    return _PAUSES[failures - 1] if failures <= len(_PAUSES) else _LAST_PAUSE


def is_still_owed(close: OwedClose, tab: Tab | None, generation: int) -> bool:
    """Whether to close this tab now, `generation` being that of the browser.

    Not so once it is closed, has another target or is of an older browser process, nor if somebody came back to it:
    leased it, or did something with its page.
    """
    return (
        tab is not None
        and not tab.ended
        and tab.close_owed is close.cause
        and tab.target_id == close.target_id
        and close.generation in (0, generation)
        and tab.last_active_time <= close.since
        and tab.lease in ("", close.lease)
        and (close.cause in _ASKED or _may_be_closed_unasked(tab))
    )


def _may_be_closed_unasked(tab: Tab) -> bool:
    return not tab.pinned and not tab.lease and tab.origin is not TabOrigin.ADOPTED


def is_orphan(tab: Tab, info: TargetInfo, generation: int) -> bool:
    """Whether this live target is proven to be that of a tab that has it no more: closed, or lost.

    Proof is its id, in the browser process in which the tab had it, or the tab's marker address, on a target that no
    page has opened. What a person gave away stays.
    """
    if tab.origin is TabOrigin.ADOPTED:
        return False
    by_id = tab.target_id == info.target_id and tab.browser_generation == generation
    by_marker = bool(tab.marker) and not info.opener_id and info.uri == marker_address(tab.name, tab.marker)
    if by_id:
        return tab.state in (TabState.CLOSED, TabState.LOST)
    return by_marker and not rules.is_unfinished(tab) and info.target_id not in (tab.target_id, tab.next_target_id)
