"""Pages that the pages of our tabs open: recorded as tabs, with what they have from their opener."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from tabmuxd.events.changes import Changes
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.tab import Tab, TabOrigin, TabState


def may_open(opener: Tab) -> bool:
    """Whether what the page of this tab opens is ours: not so for an adopted one, whose pages are its person's."""
    return opener.origin in (TabOrigin.MANAGED, TabOrigin.POPUP)


def popup_of(
    opener: Tab, lease: Lease | None, *, name: str, target_id: str, browser_generation: int, now: datetime
) -> Tab:
    """The tab of a page that the page of `opener` has opened; `lease` is the one that names holds the opener.

    It is nobody's where the opener is pooled, and until a pooled one that was handed over has left what it showed.

    It is held by a client's live lease only: what the service itself holds for a turn is the one tab in which the
    turn goes on, so that somebody can see to a sign-in that opened beside it.
    """
    held = lease is not None and not lease.ended and not lease.session and lease.expire_time > now
    return Tab(
        name=name,
        state=TabState.OPENING,
        origin=TabOrigin.POPUP,
        owner="" if opener.left_at else opener.owner,
        create_time=now,
        last_active_time=now,
        opener=opener.name,
        target_id=target_id,
        group=opener.group,
        dialog_policy=opener.dialog_policy,
        lease=lease.name if lease is not None and held else "",
        shared_with=opener.shared_with,
        browser_generation=browser_generation,
    )


def record_popup(changes: Changes, opener: str, *, name: str, target_id: str) -> bool:
    """Record the page that the tab `opener`, closed or not, has opened, unless it is none of ours."""
    tab = changes.tab(opener)
    browser = changes.browser(tab.browser_name) if tab else None
    if tab is None or browser is None or not may_open(tab):
        return False
    popup = popup_of(
        tab,
        changes.lease(tab.lease) if tab.lease else None,
        name=name,
        target_id=target_id,
        browser_generation=browser.generation,
        now=changes.now,
    )
    changes.record(popup, ChangeCause.PAGE)
    if not tab.ended and not tab.has_opened:
        changes.keep(replace(tab, has_opened=True))
    return True


def make_ready(changes: Changes, name: str, target_id: str, uri: str) -> bool:
    """Record that a popup which was still OPENING can be driven; gives whether the tab has this page."""
    tab = changes.tab(name)
    if tab is None or tab.state not in (TabState.OPENING, TabState.READY) or tab.target_id != target_id:
        return False
    if tab.state is TabState.OPENING:
        ready = replace(tab, state=TabState.READY, last_active_time=changes.now, uri=uri or tab.uri)
        changes.record(ready, ChangeCause.PAGE)
    return True
