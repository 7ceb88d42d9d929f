"""What has not ended, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.names import id_of
from tabmuxd.resources.session import Session, Turn
from tabmuxd.resources.tab import Tab
from tabmuxd.store.models import has_ended

R = TypeVar("R", bound=Resource)

ANY_BROWSER = "browsers/-/tabs/"
KINDS: tuple[type[Resource], ...] = (Browser, Tab, Lease, Session, Turn)


@dataclass(frozen=True, slots=True)
class Live:
    """All resources that have not ended, of one moment, by name, oldest first; turns are the open ones."""

    browsers: Mapping[str, Browser] = field(default_factory=dict)
    tabs: Mapping[str, Tab] = field(default_factory=dict)
    leases: Mapping[str, Lease] = field(default_factory=dict)
    sessions: Mapping[str, Session] = field(default_factory=dict)
    turns: Mapping[str, Turn] = field(default_factory=dict)

    def tab(self, name: str) -> Tab | None:
        """The tab of this name, which may be `browsers/-/tabs/ID`."""
        if not name.startswith(ANY_BROWSER):
            return self.tabs.get(name)
        tab_id = id_of(name)
        return next((tab for browser in self.browsers if (tab := self.tabs.get(f"{browser}/tabs/{tab_id}"))), None)

    def holder(self, tab: Tab) -> Lease | None:
        """The lease that holds this tab: one granted on it, or on its opener."""
        return self.leases.get(tab.lease)

    def lease_on(self, tab: str) -> Lease | None:
        """The lease granted on the tab of this name; that which holds it may have been granted on its opener."""
        return next((lease for lease in self.leases.values() if lease.tab == tab), None)

    def of(self, kind: type[R]) -> Mapping[str, R]:
        """All of one kind."""
        mappings = (self.browsers, self.tabs, self.leases, self.sessions, self.turns)
        return mappings[KINDS.index(kind)]  # type: ignore[return-value]  # in the order of KINDS

    def resources(self) -> Iterable[Resource]:
        """All of every kind."""
        yield from self.browsers.values()
        yield from self.tabs.values()
        yield from self.leases.values()
        yield from self.sessions.values()
        yield from self.turns.values()


class Working:
    """A `Live` that changes; the one it was made from does not, so that dropping this takes everything back."""

    def __init__(self, live: Live) -> None:
        self._kinds: dict[type, Mapping[str, Resource]] = {kind: live.of(kind) for kind in KINDS}
        self._copied: dict[type, dict[str, Resource]] = {}

    def put(self, resource: Resource) -> None:
        """Keep `resource` as it is now; one that has ended is dropped."""
        kind = type(resource)
        values = self._copied.get(kind)
        if values is None:
            values = self._copied[kind] = dict(self._kinds[kind])
            self._kinds[kind] = values
        if has_ended(resource):
            values.pop(resource.name, None)
        else:
            values[resource.name] = resource

    def live(self) -> Live:
        """What there is now; follows later changes of kinds that were changed before."""
        return Live(*self._kinds.values())  # type: ignore[arg-type]  # in the order of the fields, each of its kind
