"""Decisions about tabs, as plain functions: who may act, on what, and what a target event means.

Each check returns the refusal, or None. Precedence (`ownership.md` section 2): owner, tab not there, lease, generation,
dialog.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import assert_never

from tabmuxd.resources.browser import Browser, BrowserLimits, TabCounts
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.orders import TabFilter, TabUpdate
from tabmuxd.resources.principal import Principal, not_owner
from tabmuxd.resources.tab import CloseCause, DialogKind, HealthStatus, Tab, TabHealth, TabOrigin, TabState
from tabmuxd.tabs import keeping, lease_rules
from tabmuxd.tabs.lease_rules import Claim

MAX_LABELS = 16
MAX_SHARED = 16


def unknown_tab(name: str) -> Refused:
    """TAB_NOT_FOUND."""
    return refuse(Reason.TAB_NOT_FOUND, f"No tab {name} is known; nothing was done. List the tabs.", tab=name)


def may_drive(caller: Principal, tab: Tab) -> Refused | None:
    """Whether this principal may act on the tab: its owner, those it is shared with, and `admin`."""
    if tab.pooled:
        return not_owner(tab.name, "")
    if caller.admin or caller.name == tab.owner or caller.name in tab.shared_with:
        return None
    return not_owner(tab.name, tab.owner)


def is_there(tab: Tab) -> Refused | None:
    """Whether the tab has, or is about to get, a page that can be acted on."""
    match tab.state:
        case TabState.OPENING | TabState.READY:
            return None
        case TabState.CLOSED:
            return is_open(tab)
        case TabState.CRASHED | TabState.LOST | TabState.RECOVERING:
            return gone(tab)
    assert_never(tab.state)


def is_open(tab: Tab) -> Refused | None:
    """Whether the tab is not closed; it may be without a page."""
    if not tab.ended:
        return None
    return refuse(
        Reason.TAB_CLOSED,
        f"{tab.name} was closed for good (cause: {tab.close_cause.name.lower()}). Open another tab.",
        tab=tab.name,
        close_time=tab.close_time.isoformat() if tab.close_time else "",
        close_cause=tab.close_cause.name,
    )


def gone(tab: Tab) -> Refused:
    """TAB_GONE: the tab has no usable target."""
    return refuse(
        Reason.TAB_GONE,
        f"{tab.name} has no usable page (state: {tab.state.name.lower()}); nothing was done. "
        "Recover it, or open another tab.",
        tab=tab.name,
        state=tab.state.name,
        generation=tab.generation,
    )


def given_back(tab: Tab) -> Refused:
    """TAB_CLOSED for whoever used a tab that was put in the pool: for them it is closed."""
    return refuse(
        Reason.TAB_CLOSED,
        f"{tab.name} was given back to the pool of its group. Open another tab.",
        tab=tab.name,
        close_time="",
        close_cause=CloseCause.CLIENT.name,
    )


def serves(tab: Tab, turn: str) -> Refused:
    """TAB_BUSY: the tab serves a session, whose open turn is named if it has one."""
    return refuse(
        Reason.TAB_BUSY,
        f"{tab.name} serves {tab.session}; nothing was done. Take another tab, or go on with that session.",
        tab=tab.name,
        session=tab.session,
        turn=turn,
    )


def may_take(caller: Principal, tab: Tab, held: Lease | None, turn: str, now: datetime) -> Refused | None:
    """Whether a session of this principal may begin in a tab that exists, which `held` holds (None: it is free).

    `turn`: the open turn of the session that it serves, if any.
    """
    if refused := may_drive(caller, tab) or is_there(tab):
        return refused
    if tab.session:
        return serves(tab, turn)
    return lease_rules.is_held(tab.name, held, now) if held is not None else has_no_dialog(tab)


def has_generation(tab: Tab, expected: int) -> Refused | None:
    """Whether the tab still has the generation the caller looked at; 0 means any."""
    if expected in (0, tab.generation):
        return None
    return refuse(
        Reason.TAB_REPLACED,
        f"{tab.name} has generation {tab.generation}, not {expected}: its page was replaced; nothing was done.",
        tab=tab.name,
        expected_generation=expected,
        generation=tab.generation,
    )


def has_no_dialog(tab: Tab) -> Refused | None:
    """Whether no JavaScript dialog blocks the page."""
    return None if tab.dialog is None else dialog_open(tab.name, tab.dialog.kind)


def dialog_open(tab: str, kind: DialogKind) -> Refused:
    """DIALOG_OPEN: nothing was done."""
    return refuse(
        Reason.DIALOG_OPEN,
        f"A JavaScript dialog ({kind.name.lower()}) blocks the page of {tab}; nothing was done. Answer it first.",
        tab=tab,
        kind=kind.name,
    )


def may_close(tab: Tab, held: Lease | None, claim: Claim, now: datetime, *, force: bool) -> Refused | None:
    """Whether a client may close the tab; `force` overrides a pin and an open turn, never a client's lease."""
    for_turn = held is not None and bool(held.session)
    if refused := lease_rules.may_act_under(tab, None if for_turn else held, claim, now):
        return refused
    if held is not None and for_turn and not force:
        return refuse(
            Reason.TAB_BUSY,
            f"{tab.name} serves an open turn of {held.session}; nothing was done. Wait for it, cancel it, or close"
            " by force.",
            tab=tab.name,
            session=held.session,
        )
    if tab.pinned and not force:
        return refuse(
            Reason.TAB_PINNED,
            f"{tab.name} is pinned; nothing was done. Unpin it, or close by force.",
            tab=tab.name,
        )
    return None


def has_room(tabs: Iterable[Tab], browser: str, limits: BrowserLimits) -> Refused | None:
    """Whether one more tab may be opened in the browser; the tabs of others do not count."""
    tabs = [tab for tab in tabs if tab.browser_name == browser]
    return None if keeping.free_count(tabs, limits) > 0 else no_room(tabs, browser, limits)


def no_room(tabs: Iterable[Tab], browser: str, limits: BrowserLimits) -> Refused:
    """TAB_CAPACITY."""
    open_count = limits.max_tab_count - keeping.free_count(tabs, limits)
    return refuse(
        Reason.TAB_CAPACITY,
        f"{browser} has {open_count} tabs open, and {limits.max_tab_count} are allowed; nothing was opened. "
        "Close a tab, or repeat later.",
        retry_after=5,
        browser=browser,
        limit=limits.max_tab_count,
    )


def updated(tab: Tab, update: TabUpdate, caller: Principal) -> Tab:
    """The tab as `UpdateTab` asks.

    Raises REVISION_MISMATCH, TAB_CLOSED, NOT_OWNER for a change of the sharing by one it is only shared with, and
    INVALID_FIELD when the sums exceed their limits.
    """
    if update.expected_revision not in (0, tab.revision):
        raise refuse(
            Reason.REVISION_MISMATCH,
            f"{tab.name} has revision {tab.revision}, not {update.expected_revision}; nothing was changed.",
            resource=tab.name,
            expected_revision=update.expected_revision,
            revision=tab.revision,
        )
    if tab.state is TabState.CLOSED and (refused := is_there(tab)):
        raise refused
    sharing = set(update.share_with) | set(update.unshare_with)
    if sharing and not (caller.admin or caller.name == tab.owner):
        raise not_owner(tab.name, tab.owner)
    labels = {key: value for key, value in {**tab.labels, **update.labels}.items() if value}
    if len(labels) > MAX_LABELS:
        raise _too_many("labels", MAX_LABELS)
    shared = [name for name in tab.shared_with if name not in update.unshare_with]
    shared += [
        name for name in dict.fromkeys(update.share_with) if name not in shared and name not in update.unshare_with
    ]
    if len(shared) > MAX_SHARED:
        raise _too_many("share_with", MAX_SHARED)
    return replace(
        tab,
        group=tab.group if update.group is None else update.group,
        pinned=tab.pinned if update.pinned is None else update.pinned,
        dialog_policy=update.dialog_policy or tab.dialog_policy,
        labels=labels,
        shared_with=tuple(shared),
    )


def _too_many(field: str, limit: int) -> Refused:
    return refuse(
        Reason.INVALID_FIELD,
        f"{field}: there would be more than {limit}; nothing was changed.",
        field=field,
        limit=limit,
    )


def closed(tab: Tab, cause: CloseCause, now: datetime) -> Tab:
    """The tab, closed for good: no page, no session, no lease, not in front."""
    return replace(
        tab,
        state=TabState.CLOSED,
        close_cause=cause,
        close_time=now,
        session="",
        lease="",
        front=False,
        dialog=None,
        close_owed=CloseCause.NONE,
    )


def targets_of(tab: Tab) -> frozenset[str]:
    """Ids of the targets behind the tab, or on their way there; a LOST one has none."""
    return frozenset() if tab.state is TabState.LOST else frozenset({tab.target_id, tab.next_target_id} - {""})


def is_unfinished(tab: Tab) -> bool:
    """Whether the service puts a target of its own making behind the tab, so that its marker is proof."""
    return tab.state is TabState.RECOVERING or (tab.state is TabState.OPENING and tab.origin is TabOrigin.MANAGED)


def has_page(tab: Tab) -> bool:
    """Whether there is, or was, a page behind the tab that a call may be at work on; not while it first opens."""
    return tab.state is not TabState.OPENING or tab.origin is not TabOrigin.MANAGED


def without_page(tab: Tab, state: TabState, now: datetime) -> Tab:
    """The tab as LOST, CRASHED or RECOVERING: session and lease stay, for it may come back."""
    found = HealthStatus.CRASHED if state is TabState.CRASHED else HealthStatus.GONE
    health = tab.health if tab.health and tab.health.status is found else TabHealth(found, now)
    return replace(tab, state=state, front=False, dialog=None, health=health, next_target_id="")


def discarded(tab: Tab, target_id: str, now: datetime) -> Tab:
    """The tab with the target that took the place of a discarded page: the same tab, one generation on, not loaded."""
    health = TabHealth(HealthStatus.UNRESPONSIVE, now)
    return replace(tab, target_id=target_id, generation=tab.generation + 1, health=health, front=False, dialog=None)


def matches(tab: Tab, wanted: TabFilter) -> bool:
    """Whether a list with this filter holds the tab."""
    return (
        (not wanted.browser or tab.browser_name == wanted.browser)
        and (tab.state in wanted.states if wanted.states else tab.state is not TabState.CLOSED)
        and (not wanted.origins or tab.origin in wanted.origins)
        and (not wanted.groups or tab.group in wanted.groups)
        and all(tab.labels.get(key) == value for key, value in wanted.labels.items())
    )


def counts(tabs: Iterable[Tab], browser: str, foreign_count: int) -> TabCounts:
    """How many tabs the browser has that have not closed, each in one of the first five counts."""
    managed = popup = adopted = lost = pooled = 0
    for tab in tabs:
        if tab.browser_name != browser or tab.state is TabState.CLOSED:
            continue
        if tab.state is TabState.LOST:
            lost += 1
        elif tab.origin is TabOrigin.POPUP:
            popup += 1
        elif tab.origin is TabOrigin.ADOPTED:
            adopted += 1
        else:
            managed += 1
            pooled += tab.pooled
    return TabCounts(managed, popup, adopted, lost, foreign_count, pooled)


def browser_after_connect(
    browser: Browser, *, process_key: str, product: str, endpoint: str, headless: bool
) -> tuple[Browser, bool]:
    """The browser as it answered, and whether it is another process than before: its generation has grown then."""
    another = browser.process_key != process_key
    return (
        replace(
            browser,
            process_key=process_key,
            product=product,
            endpoint=endpoint,
            headless=headless,
            generation=browser.generation + another,
        ),
        another,
    )
