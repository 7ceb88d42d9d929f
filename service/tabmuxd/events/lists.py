"""Pages of resources, read from the store in order of creation."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.orders import TabFilter
from tabmuxd.resources.session import Session, SessionState, Turn
from tabmuxd.resources.tab import Tab, TabOrigin, TabState
from tabmuxd.store import Reader

R = TypeVar("R", bound=Resource)

Page = list[tuple[int, R]]


def tab_page(reader: Reader, tab_filter: TabFilter, *, after: int, count: int) -> Page[Tab]:
    """At most `count` tabs that match, created after the revision `after`."""
    browser = "" if tab_filter.browser == "browsers/-" else tab_filter.browser
    states = tab_filter.states
    ended = False if not states or TabState.CLOSED not in states else True if len(states) == 1 else None
    return _page(reader, Tab, lambda tab: tab_matches(tab, tab_filter), after, count, parent=browser, ended=ended)


def tab_matches(tab: Tab, tab_filter: TabFilter) -> bool:
    """Whether a tab of the right browser is one that the list holds."""
    return (
        (tab.state in tab_filter.states if tab_filter.states else tab.state is not TabState.CLOSED)
        and (tab.origin in tab_filter.origins if tab_filter.origins else tab.origin is not TabOrigin.FOREIGN)
        and (not tab_filter.groups or tab.group in tab_filter.groups)
        and _has_labels(tab.labels, tab_filter.labels)
    )


def browser_page(reader: Reader, *, after: int, count: int) -> Page[Browser]:
    """At most `count` browsers, first seen after the revision `after`."""
    return _page(reader, Browser, lambda _: True, after, count)


def lease_page(reader: Reader, tab: str, *, after: int, count: int) -> Page[Lease]:
    """At most `count` leases that are held, on this tab if it is named, granted after the revision `after`."""
    return _page(reader, Lease, lambda lease: not tab or lease.tab == tab, after, count, ended=False)


def session_page(
    reader: Reader,
    *,
    states: Collection[SessionState],
    providers: Collection[str],
    labels: Mapping[str, str],
    after: int,
    count: int,
) -> Page[Session]:
    """At most `count` sessions that match, created after the revision `after`; no states mean all but RETIRED."""

    def matches(session: Session) -> bool:
        return (
            (not states or session.state in states)
            and (not providers or session.provider in providers)
            and _has_labels(session.labels, labels)
        )

    ended = False if not states or SessionState.RETIRED not in states else True if len(states) == 1 else None
    return _page(reader, Session, matches, after, count, ended=ended)


def turn_page(reader: Reader, session: str, *, after: int, count: int) -> Page[Turn]:
    """At most `count` turns of `session`, without their prompts and answers, created after the revision `after`."""
    return _page(reader, Turn, lambda _: True, after, count, parent=session, brief=True)


def _page(
    reader: Reader,
    kind: type[R],
    matches: Callable[[R], bool],
    after: int,
    count: int,
    *,
    parent: str = "",
    ended: bool | None = None,
    brief: bool = False,
) -> Page[R]:
    page: Page[R] = []
    if count <= 0:
        return page
    for created, resource in reader.page(kind, after=after, parent=parent, ended=ended, brief=brief):
        if matches(resource):
            page.append((created, resource))
            if len(page) == count:
                break
    return page


def _has_labels(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())
