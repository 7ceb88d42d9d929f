"""Which events a watch wants: pure functions over what the log says of each event."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tabmuxd.resources.event import EventKind
from tabmuxd.resources.names import id_of
from tabmuxd.store import ANY_BROWSER, Place, ResourceKind, Wanted

_OF_TABS = frozenset({ResourceKind.TAB, ResourceKind.LEASE})
_OF_BROWSERS = frozenset({ResourceKind.BROWSER, *_OF_TABS})
_OF_SESSIONS = frozenset({ResourceKind.SESSION, ResourceKind.TURN})


@dataclass(frozen=True, slots=True)
class WatchFilter:
    """What a watch wants; an empty field means all. An event is wanted if it matches every field that is set."""

    resources: frozenset[ResourceKind] = frozenset()
    kinds: frozenset[EventKind] = frozenset()
    browser: str = ""
    tabs: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()

    @property
    def wanted(self) -> Wanted:
        """What the store is to read for it."""
        anywhere = not (self.browser or self.tabs or self.sessions)
        return Wanted(self.kinds, self.resources, None if anywhere else self._takes)

    def wants(self, kind: EventKind, resource_kind: ResourceKind, place: Place) -> bool:
        """Whether such an event is to be sent."""
        if self.resources and resource_kind not in self.resources:
            return False
        if self.kinds and kind not in self.kinds:
            return False
        return self._takes(place.browser, place.tab, place.session, place.session_before)

    def _takes(self, browser: str, tab: str, session: str, session_before: str) -> bool:
        if self.browser and browser != self.browser:
            return False
        if self.tabs and tab not in self.tabs and f"{ANY_BROWSER}{id_of(tab)}" not in self.tabs:
            return False
        return not self.sessions or session in self.sessions or session_before in self.sessions


def tab_filter(*, parent: str = "", tabs: Iterable[str] = (), kinds: Iterable[EventKind] = ()) -> WatchFilter:
    """What `WatchTabs` wants: browsers, tabs and leases, or only `tabs` with their leases.

    `parent`: a browser, or empty or `browsers/-` for all.
    """
    wanted = frozenset(tabs)
    return WatchFilter(
        resources=_OF_TABS if wanted else _OF_BROWSERS,
        kinds=frozenset(kinds),
        browser="" if parent == "browsers/-" else parent,
        tabs=wanted,
    )


def session_filter(
    *, sessions: Iterable[str] = (), kinds: Iterable[EventKind] = (), with_tabs: bool = False
) -> WatchFilter:
    """What `WatchSessions` wants: sessions and their turns; `with_tabs` everything else too.

    With `sessions` that is only the tabs that serve one of them, before or after the change, and their leases.
    """
    wanted = frozenset(sessions)
    resources = _OF_SESSIONS
    if with_tabs:
        resources |= _OF_TABS if wanted else _OF_BROWSERS
    return WatchFilter(resources=resources, kinds=frozenset(kinds), sessions=wanted)
