"""What the store knows of a browser and its tabs, brought in step with what the browser tells: functions of a step."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

from tabmuxd.cdp.link import BrowserIdentity
from tabmuxd.events.changes import Changes
from tabmuxd.resources.browser import Browser, BrowserOptions, BrowserState
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import Tab, TabState
from tabmuxd.tabs import endings, rules
from tabmuxd.tabs.endings import ServedHook


def introduce(changes: Changes, options: BrowserOptions) -> None:
    """Record the browser as it is configured, UNREACHABLE until it answers."""
    known = changes.browser(options.name)
    # Tabs without a browser: its record cannot be read, so that none of their targets is taken for one of today.
    generation = max((tab.browser_generation for tab in changes.tabs(options.name)), default=0)
    wanted = replace(
        known or Browser(options.name, BrowserState.UNREACHABLE, options.ownership, generation=generation),
        state=BrowserState.UNREACHABLE,
        ownership=options.ownership,
        limits=options.limits,
    )
    if wanted != known:
        changes.record(wanted, ChangeCause.BROWSER)


def reconcile(
    changes: Changes,
    options: BrowserOptions,
    identity: BrowserIdentity,
    *,
    live: Container[str],
    opening: Container[str],
    served: ServedHook,
) -> list[Tab]:
    """Record what the browser is now; give the tabs that are still ours by target id and generation.

    `live` are the ids of its pages, `opening` the names of the tabs that this process puts a target behind.
    """
    known = changes.browser(options.name) or Browser(options.name, BrowserState.UNREACHABLE, options.ownership)
    browser, another = rules.browser_after_connect(
        known,
        process_key=identity.process_key,
        product=identity.product,
        endpoint=identity.host_port,
        headless=identity.headless,
    )
    browser = changes.record(replace(browser, state=BrowserState.ACTIVE), ChangeCause.BROWSER)
    kept: list[Tab] = []
    for tab in changes.tabs(options.name):
        if ((tab.name in opening or rules.is_unfinished(tab)) and not another) or (
            tab.target_id in live and tab.browser_generation == browser.generation
        ):
            kept.append(tab)
        else:
            why = ChangeCause.BROWSER if another else ChangeCause.PERSON
            endings.lose_page(changes, tab, TabState.LOST, why, served)
    return kept


def record_away(changes: Changes, name: str) -> None:
    """Record that the browser does not answer any more; its tabs stay as they are until more is known."""
    browser = changes.browser(name)
    if browser is not None and browser.state is not BrowserState.UNREACHABLE:
        changes.record(replace(browser, state=BrowserState.UNREACHABLE), ChangeCause.BROWSER)


def record_gone(
    changes: Changes, name: str, target_id: str, state: TabState, *, why: ChangeCause, served: ServedHook
) -> Tab | None:
    """Record that the tab has lost this target (LOST), or that it crashed (CRASHED).

    Gives a tab that crashed while it was OPENING, unchanged: what has crashed is still a target, so that it has to go
    before its row ends.
    """
    tab = changes.tab(name)
    # Another target may be behind the tab meanwhile, or on its way there: who puts it there sees to that.
    if tab is None or tab.state is TabState.RECOVERING:
        return None
    if tab.state is TabState.OPENING and state is TabState.CRASHED:
        return tab
    if tab.state is TabState.OPENING or tab.target_id == target_id:
        endings.lose_page(changes, tab, state, why, served)
    return None


def record_discarded(changes: Changes, name: str, target_id: str, next_target_id: str) -> bool:
    """Record that a READY tab has another target, since the browser has discarded its page; gives whether it has."""
    tab = changes.tab(name)
    if tab is None or tab.state is not TabState.READY or tab.target_id != target_id:
        return False
    changes.record(rules.discarded(tab, next_target_id, changes.now), ChangeCause.BROWSER)
    return True
