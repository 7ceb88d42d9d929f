"""What a function given to the store can do: read, and in a write also change."""

from __future__ import annotations

import functools
import itertools
import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias, TypeVar

from tabmuxd.resources.artifacts import ArtifactUsage, KeptArtifact
from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import EventKind, Resource
from tabmuxd.resources.names import id_of
from tabmuxd.resources.session import Turn, TurnState
from tabmuxd.resources.tab import Tab
from tabmuxd.store import statements
from tabmuxd.store.codec import Cell, microseconds, moment
from tabmuxd.store.errors import Unreadable
from tabmuxd.store.live import KINDS, Live, Working
from tabmuxd.store.models import has_ended
from tabmuxd.store.rows import Entry, History, Place, Request, ResourceKind, kept_artifact
from tabmuxd.store.statements import Statement, statements_of

R = TypeVar("R", bound=Resource)

OfPlace: TypeAlias = Callable[[str, str, str, str], bool]
"""Whether an event is wanted, by its browser, tab, session and session before."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events are read: of these kinds, all if none is named, and of a place that `of_place` takes, if given."""

    kinds: frozenset[int] = frozenset()
    resource_kinds: frozenset[int] = frozenset()
    of_place: OfPlace | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What one commit has brought: the history after it, its events, and what has not ended now."""

    history: History
    entries: tuple[Entry, ...]
    live: Live


class Reader:
    """Reads of one moment. Valid only inside the function it is given to, and on its thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def history(self) -> History:
        """The history and how far it goes."""
        return read_history(self._connection)

    def find(self, kind: type[R], name: str) -> R | None:
        """The resource of this name, ended or not; None where its row cannot be read."""
        return self._one(kind, statements_of(kind).find, {"name": name})

    def find_tab_by_id(self, tab_id: str) -> Tab | None:
        """The tab with this id, in whatever browser."""
        return self._one(Tab, statements_of(Tab).find_by_id, {"id": tab_id})

    def find_tab_by_target(self, browser: str, target_id: str) -> Tab | None:
        """The newest tab of `browser`, closed or not, whose last target has this id."""
        row = self._run(statements.TAB_BY_TARGET, browser=browser, target_id=target_id).fetchone()
        if row is None:
            return None
        tab = self.find(Tab, row[0])
        # A state that contradicts the rest of the row was not written by us.
        return tab if tab is not None and has_ended(tab) == row[1] else None

    def turn_by_request(self, session: str, request_id: str) -> Turn | None:
        """The turn of `session` that was sent under `request_id`."""
        row = self._run(statements.TURN_BY_REQUEST, session=session, request_id=request_id).fetchone()
        return None if row is None else self.find(Turn, row[0])

    def has_turn(self, session: str, lookup_sha256: str, states: Collection[TurnState]) -> bool:
        """Whether a turn of `session` with this prompt is in one of these states."""
        found = self._run(statements.TURN_STATES_BY_LOOKUP, session=session, lookup_sha256=lookup_sha256)
        return any(state in states for (state,) in found)

    def has_shown_turn(self, session: str) -> bool:
        """Whether the prompt of any turn of `session` was seen in its conversation."""
        return self._run(statements.TURN_SHOWN, session=session).fetchone() is not None

    def page(
        self,
        kind: type[R],
        *,
        after: int = 0,
        parent: str = "",
        ended: bool | None = None,
        brief: bool = False,
        unreadable: list[Unreadable] | None = None,
    ) -> Iterator[tuple[int, R]]:
        """Revision of creation and resource, in that order, of all created after `after`.

        `parent`: only tabs of this browser, turns of this session. `ended`: only those, or only the others.
        `brief`: prompts and answers are left out. Rows that cannot be read are passed over, and put in `unreadable`.
        """
        of_kind = statements_of(kind)
        statement = of_kind.pages[bool(parent), ended is not None, brief]
        for row in self._run(statement, after=after, parent=parent, ended=int(bool(ended))):
            try:
                yield row[0], of_kind.table.decode(row[1:])
            except Unreadable as error:
                if unreadable is not None:
                    unreadable.append(error)

    def last_fencing_token(self, tab: str) -> int:
        """The highest fencing token of any lease on `tab`, 0 if there was none."""
        (token,) = self._run(statements.LAST_FENCING_TOKEN, tab=tab).fetchone()
        return token or 0

    def request(self, principal: str, method: str, request_id: str, *, now: datetime) -> Request | None:
        """What was done under this `request_id`, unless that has expired."""
        row = self._run(
            statements.FIND_REQUEST,
            principal=principal,
            method=method,
            request_id=request_id,
            now=microseconds(now),
        ).fetchone()
        return None if row is None else Request(*row)

    def imported_ids(self, source: str) -> frozenset[str]:
        """Ids of all records of another tool that were imported."""
        return frozenset(import_id for (import_id,) in self._run(statements.IMPORTED_IDS, source=source))

    def import_of(self, source: str, import_id: str) -> str:
        """Name of the session that this record of another tool became; empty if it was not imported."""
        row = self._run(statements.FIND_IMPORT, source=source, import_id=import_id).fetchone()
        return "" if row is None else row[0]

    def artifact(self, name: str) -> KeptArtifact | None:
        """The file of this name, expired or not."""
        row = self._run(statements.FIND_ARTIFACT, name=name).fetchone()
        return None if row is None else kept_artifact(row)

    def artifact_files(self) -> dict[str, tuple[str, int]]:
        """Of all files by their ids: what they are called, and their sizes."""
        return {id_of(name): (display_name, size) for name, display_name, size in self._run(statements.ARTIFACT_FILES)}

    def artifact_usage(self, owner: str, *, now: datetime) -> ArtifactUsage:
        """What this principal has uploaded that has not expired."""
        count, size_bytes = self._run(statements.ARTIFACT_USAGE, owner=owner, turn="", now=microseconds(now)).fetchone()
        return ArtifactUsage(count, size_bytes or 0)

    def entries(self, *, after: int, last: int, count: int, size_bytes: int) -> list[Entry]:
        """Events after `after` up to `last`, oldest first, at most `count` and `size_bytes`, but at least one."""
        entries: list[Entry] = []
        size = 0
        for row in self._run(statements.READ_EVENTS, after=after, last=last):
            revision, kind, resource_kind, browser, tab, session, session_before, record_time, body = row
            size += len(body)
            if entries and (size > size_bytes or len(entries) == count):
                break
            place = Place(browser, tab, session, session_before)
            entries.append(
                Entry(revision, EventKind(kind), ResourceKind(resource_kind), place, moment(record_time), body)
            )
        return entries

    def bodies(self, wanted: Wanted, *, after: int, last: int, count: int, size_bytes: int) -> tuple[int, list[bytes]]:
        """Of the next `count` events behind `after`, up to `last`: the last revision read, and the bytes of the wanted.

        It ends before these exceed `size_bytes`, but not before the first of them.
        """
        last = min(last, after + count)  # revisions have no gaps
        of_place = wanted.of_place
        statement = statements.read_bodies(wanted.kinds, wanted.resource_kinds, with_place=of_place is not None)
        rows = self._run(statement, after=after, last=last).fetchall()
        if of_place is not None:
            takes = functools.cache(of_place)
            rows = [row for row in rows if takes(*row[1:5])]
        bodies: list[bytes] = [row[-1] for row in rows]
        if sum(map(len, bodies)) > size_bytes:
            ends = itertools.accumulate(map(len, bodies))
            fitting = max(1, sum(end <= size_bytes for end in ends))
            if fitting < len(rows):
                last = rows[fitting][0] - 1
            bodies = bodies[:fitting]
        return max(last, after), bodies

    def _one(self, kind: type[R], statement: Statement, values: dict[str, Cell]) -> R | None:
        row = statement.run(self._connection, values).fetchone()
        try:
            return None if row is None else statements_of(kind).table.decode(row[1:])
        except Unreadable:
            return None  # told when the store was opened

    def _run(self, statement: Statement, **values: Cell) -> sqlite3.Cursor:
        return statement.run(self._connection, values)


class Transaction(Reader):
    """One group of writes, committed together or not at all."""

    def __init__(self, connection: sqlite3.Connection, history: History, live: Live) -> None:
        super().__init__(connection)
        self._history = history
        self._before = history
        self._working = Working(live)
        self._entries: list[Entry] = []
        self.write_count = 0

    @property
    def head(self) -> int:
        """The newest revision, of this transaction too."""
        return self._history.head

    def history(self) -> History:
        """The history and how far it goes with this transaction."""
        return self._history

    def live(self) -> Live:
        """What has not ended, this transaction included; take it anew after each change."""
        return self._working.live()

    def append(self, entry: Entry) -> None:
        """Record an event under the revision behind the head, which it becomes.

        Raises ValueError for any other revision.
        """
        if entry.revision != self._history.head + 1:
            raise ValueError(f"revision {entry.revision} does not follow {self._history.head}")
        self._change(
            statements.APPEND_EVENT,
            revision=entry.revision,
            kind=int(entry.kind),
            resource_kind=int(entry.resource_kind),
            browser=entry.place.browser,
            tab=entry.place.tab,
            session=entry.place.session,
            session_before=entry.place.session_before,
            record_time=microseconds(entry.record_time),
            body=entry.body,
        )
        self._history = History(self._history.history_id, entry.revision, self._history.compact_revision)
        self._entries.append(entry)

    def create(self, resource: Resource) -> None:
        """Write a resource that is new, created with the revision it has."""
        of_kind = statements_of(type(resource))
        # A browser has its name from the settings, so that a row which cannot be read may stand in its place.
        insert = statements.REPLACE_BROWSER if isinstance(resource, Browser) else of_kind.insert
        self._change(insert, **of_kind.table.cells(resource), created=resource.revision)
        self._working.put(resource)

    def update(self, resource: R, before: R) -> None:
        """Write what differs from `before`, which is the resource as it is written."""
        of_kind = statements_of(type(resource))
        cells = of_kind.table.codec.changed(before, resource)
        if has_ended(resource) != has_ended(before):
            cells["ended"] = int(has_ended(resource))
        if cells:
            self._change(of_kind.update_of(tuple(cells)), **cells, name=resource.name)
            self._working.put(resource)

    def remember_request(
        self,
        principal: str,
        method: str,
        request_id: str,
        *,
        payload_sha256: str,
        resource: str,
        expire_time: datetime,
    ) -> None:
        """Keep what was done under a `request_id` until `expire_time`."""
        self._change(
            statements.REMEMBER_REQUEST,
            principal=principal,
            method=method,
            request_id=request_id,
            payload_sha256=payload_sha256,
            resource=resource,
            expire_time=microseconds(expire_time),
        )

    def remember_import(self, source: str, import_id: str, session: str) -> None:
        """Keep for good that this record became that session; it must not be known yet."""
        self._change(statements.REMEMBER_IMPORT, source=source, import_id=import_id, session=session)

    def add_artifact(self, kept: KeptArtifact) -> None:
        """Keep that this file is there; it must not be known yet."""
        artifact = kept.artifact
        self._change(
            statements.ADD_ARTIFACT,
            name=artifact.name,
            owner=kept.owner,
            turn=kept.turn,
            display_name=artifact.display_name,
            media_type=artifact.media_type,
            size_bytes=artifact.size_bytes,
            sha256=artifact.sha256,
            expire_time=microseconds(artifact.expire_time),
        )

    def prolong_artifact(self, name: str, until: datetime) -> None:
        """Let a file expire at this time, if it does so earlier."""
        self._change(statements.PROLONG_ARTIFACT, name=name, until=microseconds(until))

    def delete_artifact(self, name: str) -> None:
        """Forget a file, if it is known."""
        self._change(statements.DELETE_ARTIFACT, name=name)

    def delete_expired_artifacts(self, *, now: datetime, count: int) -> list[str]:
        """Forget files that have expired, at most `count`; gives their names."""
        rows = self._run(statements.EXPIRED_ARTIFACTS, now=microseconds(now), count=count).fetchall()
        for (name,) in rows:
            self.delete_artifact(name)
        return [name for (name,) in rows]

    def delete_events(self, last: int, *, recorded_before: datetime) -> int:
        """Delete events up to revision `last`, but none that follows one recorded later; returns how many."""
        after = self._history.compact_revision
        (young,) = self._run(
            statements.FIRST_YOUNG_EVENT, after=after, last=last, young=microseconds(recorded_before)
        ).fetchone()
        if young is not None:
            last = young - 1
        if last <= after:
            return 0
        self._history = replace(self._history, compact_revision=last)
        return self._change(statements.DELETE_EVENTS, last=last).rowcount

    def delete_ended(self, *, now: datetime) -> None:
        """Delete what ended, was told in events that are gone, and is needed no more.

        Closed tabs and ended leases of the compacted part of the history, and requests that have expired.
        """
        last = self._history.compact_revision
        self._change(statements.DELETE_CLOSED_TABS, ended=1, last=last)
        self._change(statements.DELETE_ENDED_LEASES, ended=1, last=last)
        self._change(statements.DELETE_EXPIRED_REQUESTS, now=microseconds(now))

    def delete_retired(self, *, retired_before: datetime, count: int) -> int:
        """Delete sessions that were retired before this time, at most `count`, with their turns; returns how many.

        One that still has an open turn, which may not be, stays.
        """
        chosen: dict[str, Cell] = {
            "ended": 1,
            "open": 0,
            "retired_before": microseconds(retired_before),
            "count": count,
        }
        self._change(statements.DELETE_TURNS_OF_RETIRED, **chosen)
        return self._change(statements.DELETE_RETIRED_SESSIONS, **chosen).rowcount

    def finish(self) -> Batch:
        """Write the history, last of all, and tell what the commit will bring."""
        if self._history != self._before:
            self._change(
                statements.WRITE_HISTORY, head=self._history.head, compact_revision=self._history.compact_revision
            )
        return Batch(self._history, tuple(self._entries), self._working.live())

    def _change(self, statement: Statement, **values: Cell) -> sqlite3.Cursor:
        self.write_count += 1
        return statement.run(self._connection, values)


def read_history(connection: sqlite3.Connection) -> History:
    """The history and how far it goes; raises ValueError if the row is not there."""
    row = statements.READ_HISTORY.run(connection, {}).fetchone()
    if row is None:
        raise ValueError("the row of the history is missing")
    return History(*row)


def read_live(connection: sqlite3.Connection) -> tuple[Live, list[Unreadable]]:
    """Everything that has not ended, oldest first, and why rows beside it cannot be read."""
    reader = Reader(connection)
    working = Working(Live())
    unreadable: list[Unreadable] = []
    for kind in KINDS:
        for _, resource in reader.page(kind, ended=False, unreadable=unreadable):
            if has_ended(resource):
                unreadable.append(Unreadable(kind.__name__, resource.name, "it has ended, and has not"))
            else:
                working.put(resource)
    return working.live(), unreadable
