"""What a decision sees and does: it runs on the writer's thread, inside one transaction."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from tabmuxd.resources.artifacts import KeptArtifact
from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import ChangeCause, Event, EventKind, Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.names import browser_of, id_of, session_of
from tabmuxd.resources.session import Session, Turn
from tabmuxd.resources.tab import Tab
from tabmuxd.store import ANY_BROWSER, Entry, Place, Request, Transaction, kind_of
from tabmuxd.wire import event_message

R = TypeVar("R", bound=Resource)


class Changes:
    """One step: reads what is, decides, and records what changes, all in one transaction.

    Valid only inside the function it is given to. `now` is the time of the step.
    """

    def __init__(self, transaction: Transaction, now: datetime) -> None:
        self.now = now
        self._transaction = transaction
        self._sessions_before: dict[str, str] = {}

    def browser(self, name: str) -> Browser | None:
        """The browser of this name."""
        return self._transaction.live().browsers.get(name)

    def tab(self, name: str) -> Tab | None:
        """The tab of this name, which may be `browsers/-/tabs/ID`, closed or not."""
        if name.startswith(ANY_BROWSER):
            return self._transaction.live().tab(name) or self._transaction.find_tab_by_id(id_of(name))
        return self._find(Tab, name)

    def session(self, name: str) -> Session | None:
        """The session of this name, retired or not."""
        return self._find(Session, name)

    def turn(self, name: str) -> Turn | None:
        """The turn of this name, ended or not."""
        return self._find(Turn, name)

    def lease(self, name: str) -> Lease | None:
        """The lease of this name, ended or not."""
        return self._find(Lease, name)

    def browsers(self) -> list[Browser]:
        """All browsers, the first one known first."""
        return list(self._transaction.live().browsers.values())

    def tabs(self, browser: str = "") -> list[Tab]:
        """All tabs that are not closed, oldest first; of this browser only, if it is named."""
        return [tab for tab in self._transaction.live().tabs.values() if not browser or browser_of(tab.name) == browser]

    def sessions(self) -> list[Session]:
        """All sessions that are not retired, oldest first."""
        return list(self._transaction.live().sessions.values())

    def open_turns(self) -> list[Turn]:
        """All turns that have not ended, oldest first."""
        return list(self._transaction.live().turns.values())

    def leases(self) -> list[Lease]:
        """All leases that are held, oldest first."""
        return list(self._transaction.live().leases.values())

    def holder(self, tab: Tab) -> Lease | None:
        """The lease that holds this tab: one granted on it, or on its opener."""
        return self._transaction.live().holder(tab)

    def lease_on(self, tab: str) -> Lease | None:
        """The lease granted on the tab of this name; that which holds it may have been granted on its opener."""
        return self._transaction.live().lease_on(tab)

    def last_fencing_token(self, tab: str) -> int:
        """The highest fencing token of any lease on this tab, 0 if there was none."""
        return self._transaction.last_fencing_token(tab)

    def turn_by_request(self, session: str, request_id: str) -> Turn | None:
        """The turn of this session that was sent under `request_id`."""
        return self._transaction.turn_by_request(session, request_id)

    def request(self, principal: str, method: str, request_id: str) -> Request | None:
        """What was done under this `request_id`, unless that has expired."""
        return self._transaction.request(principal, method, request_id, now=self.now)

    def remember_request(  # noqa: PLR0917 - the key, then what is kept under it
        self, principal: str, method: str, request_id: str, payload_sha256: str, resource: str, expire_time: datetime
    ) -> None:
        """Keep what was done under a `request_id`; replaces what was kept under it."""
        self._transaction.remember_request(
            principal,
            method,
            request_id,
            payload_sha256=payload_sha256,
            resource=resource,
            expire_time=expire_time,
        )

    def import_of(self, source: str, import_id: str) -> str:
        """Name of the session that a record of another tool became; empty if it was not imported."""
        return self._transaction.import_of(source, import_id)

    def remember_import(self, source: str, import_id: str, session: str) -> None:
        """Keep, longer than the session, that this record became it."""
        self._transaction.remember_import(source, import_id, session)

    def artifact(self, name: str) -> KeptArtifact | None:
        """The file of this name, expired or not."""
        return self._transaction.artifact(name)

    def add_artifact(self, kept: KeptArtifact) -> None:
        """Keep that this file, which is whole on disk, is there."""
        self._transaction.add_artifact(kept)

    def prolong_artifact(self, name: str, until: datetime) -> None:
        """Let a file expire at this time, if it does so earlier."""
        self._transaction.prolong_artifact(name, until)

    def delete_artifact(self, name: str) -> None:
        """Forget a file; whoever calls this deletes it from the disk afterwards."""
        self._transaction.delete_artifact(name)

    def delete_expired_artifacts(self, count: int) -> list[str]:
        """As `delete_artifact`, those that have expired, at most `count`; gives their names."""
        return self._transaction.delete_expired_artifacts(now=self.now, count=count)

    def record(self, resource: R, cause: ChangeCause = ChangeCause.NONE) -> R:
        """Write `resource` and its event under the next revision; returns it as written.

        The event is ENDED if it has ended now, else CREATED if there was none of this name, else UPDATED. Raises
        ValueError if it had ended before: no later event may name it.
        """
        before = self._find(type(resource), resource.name)
        if before is not None and _ended(before):
            raise ValueError(f"{resource.name} has ended and cannot change any more")
        written = replace(resource, revision=self._transaction.head + 1, update_time=self.now)
        begun = EventKind.CREATED if before is None else EventKind.UPDATED
        kind = EventKind.ENDED if _ended(written) else begun
        place = self._place(written, before)
        self._transaction.append(entry_of(Event(written.revision, kind, cause, self.now, written), place))
        if before is None:
            self._transaction.create(written)
        else:
            self._transaction.update(written, before)
        return written

    def keep(self, resource: R) -> R:
        """Write what is not recorded by itself, such as a time of activity; the revision stays.

        Raises ValueError if there is no such resource, or if this would end it.
        """
        before = self._find(type(resource), resource.name)
        if before is None or _ended(before) != _ended(resource):
            raise ValueError(f"{resource.name} can only be recorded")
        written = resource
        if (resource.revision, resource.update_time) != (before.revision, before.update_time):
            written = replace(resource, revision=before.revision, update_time=before.update_time)
        self._transaction.update(written, before)
        return written

    def _find(self, kind: type[R], name: str) -> R | None:
        found = self._transaction.live().of(kind).get(name)
        return self._transaction.find(kind, name) if found is None else found

    def _place(self, resource: Resource, before: Resource | None) -> Place:
        if isinstance(resource, Tab) and isinstance(before, Tab):
            if before.session:
                self._sessions_before[resource.name] = before.session
            return Place(browser_of(resource.name), resource.name, resource.session, before.session)
        if isinstance(resource, Lease):
            tab = self._find(Tab, resource.tab)
            now = "" if tab is None else tab.session
            # A lease often ends in the step that takes its tab from the session: it served it before.
            earlier = self._sessions_before.get(resource.tab, now)
            return place_of(resource, session=now or earlier, session_before=resource.session or earlier)
        return place_of(resource)


def place_of(resource: Resource, *, session: str = "", session_before: str = "") -> Place:
    """Where filters look for `resource`; the sessions of a lease are those of its tab and its own."""
    match resource:
        case Browser():
            return Place(browser=resource.name)
        case Tab():
            return Place(browser_of(resource.name), resource.name, resource.session, resource.session)
        case Lease():
            return Place(browser_of(resource.tab), resource.tab, session, session_before)
        case Session():
            return Place(resource.browser, resource.tab, resource.name, resource.name)
        case Turn():
            session_name = session_of(resource.name)
            return Place(session=session_name, session_before=session_name)


def entry_of(event: Event, place: Place) -> Entry:
    """The entry of `event`, with its finished bytes."""
    body = event_message(event).SerializeToString(deterministic=True)
    return Entry(event.revision, event.kind, kind_of(event.resource), place, event.record_time, body)


def _ended(resource: Resource) -> bool:
    return not isinstance(resource, Browser) and resource.ended
