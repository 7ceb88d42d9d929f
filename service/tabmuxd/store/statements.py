"""Hot statements, compiled once from peewee queries, and run on the connection itself."""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import peewee

from tabmuxd.resources.event import Resource
from tabmuxd.store.codec import Cell
from tabmuxd.store.models import (
    BROWSERS,
    LEASES,
    SESSIONS,
    TABLES,
    TABS,
    TURNS,
    ArtifactModel,
    EventModel,
    HistoryModel,
    ImportModel,
    RequestModel,
    Table,
)

R = TypeVar("R", bound=Resource)


_LONG = frozenset({"prompt", "answer_markdown"})  # columns of turns that hold up to megabytes


class Parameter(peewee.Node):
    """A place in a query for a value that is given by name each time it runs."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __sql__(self, context: peewee.Context) -> peewee.Context:
        """Stand for the value, with the name in its place."""
        value: peewee.Context = context.value(self._name, converter=False)
        return value


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL text and the names of its parameters, in order."""

    sql: str
    names: tuple[str, ...]

    def run(self, connection: sqlite3.Connection, values: Mapping[str, Cell]) -> sqlite3.Cursor:
        """Run it with these values."""
        return connection.execute(self.sql, [values[name] for name in self.names])


def compiled(query: peewee.Query) -> Statement:
    """The statement of a query whose values are all of class `Parameter`."""
    sql, names = query.bind(peewee.SqliteDatabase(None)).sql()  # for its dialect; it is never opened
    return Statement(sql, tuple(names))


def _given(model: type[peewee.Model], *without: str) -> dict[peewee.Field, Parameter]:
    fields = model._meta.sorted_fields  # noqa: SLF001 - peewee's documented place for it
    return {field: Parameter(field.name) for field in fields if field.name not in without}


class ResourceStatements(Generic[R]):
    """The statements on the table of one kind of resource; what they select is `created` and then the fields."""

    def __init__(self, table: Table[R]) -> None:
        model = table.model
        self.table = table
        self.insert = compiled(model.insert(_given(model)))
        self._updates: dict[tuple[str, ...], Statement] = {}
        self.find = compiled(self._selection().where(table["name"] == Parameter("name")))
        self.find_by_id = compiled(self._selection().where(table["id"] == Parameter("id")))
        self.pages = {
            (of_parent, of_ended, brief): self._page(of_parent=of_parent, of_ended=of_ended, brief=brief)
            for of_parent in (False, True)
            for of_ended in (False, True)
            for brief in (False, True)
        }

    def update_of(self, columns: tuple[str, ...]) -> Statement:
        """Writes these columns of one resource; for the writer's thread."""
        statement = self._updates.get(columns)
        if statement is None:
            given = {self.table[column]: Parameter(column) for column in columns}
            query = self.table.model.update(given).where(self.table["name"] == Parameter("name"))
            statement = self._updates[columns] = compiled(query)
        return statement

    def _selection(self, *, brief: bool = False) -> peewee.ModelSelect:
        return self.table.model.select(
            self.table["created"],
            *(
                peewee.SQL("''") if brief and column.name in _LONG else self.table[column.name]
                for column in self.table.codec.columns
            ),
        )

    def _page(self, *, of_parent: bool, of_ended: bool, brief: bool) -> Statement:
        table = self.table
        condition = table["created"] > Parameter("after")
        if of_parent:
            condition &= table["parent"] == Parameter("parent")
        if of_ended:
            condition &= table["ended"] == Parameter("ended")
        return compiled(self._selection(brief=brief).where(condition).order_by(table["created"]))


_STATEMENTS: dict[type, ResourceStatements[Any]] = {table.kind: ResourceStatements(table) for table in TABLES}


def statements_of(kind: type[R]) -> ResourceStatements[R]:
    """The statements on the table of `kind`."""
    return _STATEMENTS[kind]


READ_HISTORY = compiled(HistoryModel.select(HistoryModel.history_id, HistoryModel.head, HistoryModel.compact_revision))
WRITE_HISTORY = compiled(
    HistoryModel.update(
        {HistoryModel.head: Parameter("head"), HistoryModel.compact_revision: Parameter("compact_revision")}
    )
)
APPEND_EVENT = compiled(EventModel.insert(_given(EventModel)))


def _events(*fields: peewee.Node, only: Iterable[peewee.Node] = ()) -> Statement:
    """Of all events behind a place, up to another one, those that are wanted."""
    some = (EventModel.revision > Parameter("after")) & (EventModel.revision <= Parameter("last"))
    query = EventModel.select(*fields).where(some, *only)
    return compiled(query.order_by(EventModel.revision))


READ_EVENTS = _events(*EventModel._meta.sorted_fields)  # noqa: SLF001 - peewee's documented place for it


@functools.cache
def read_bodies(kinds: frozenset[int], resource_kinds: frozenset[int], *, with_place: bool) -> Statement:
    """Revision, the four parts of the place if asked for, and body of events of these kinds; of all if none is named.

    To make a text of each column of each event took most of the time of a replay.
    """
    place = (EventModel.browser, EventModel.tab, EventModel.session, EventModel.session_before) if with_place else ()
    columns = (("kind", kinds), ("resource_kind", resource_kinds))
    only = [
        peewee.SQL(f"{name} IN ({', '.join(str(int(number)) for number in sorted(numbers))})")
        for name, numbers in columns
        if numbers
    ]
    return _events(EventModel.revision, *place, EventModel.body, only=only)


REPLACE_BROWSER = compiled(BROWSERS.model.insert(_given(BROWSERS.model)).on_conflict("REPLACE"))
LAST_FENCING_TOKEN = compiled(
    LEASES.model.select(peewee.fn.MAX(LEASES["fencing_token"])).where(LEASES["tab"] == Parameter("tab"))
)
TURN_BY_REQUEST = compiled(
    TURNS.model.select(TURNS["name"]).where(
        (TURNS["parent"] == Parameter("session")) & (TURNS["request_id"] == Parameter("request_id"))
    )
)
TURN_STATES_BY_LOOKUP = compiled(
    TURNS.model.select(TURNS["state"]).where(
        (TURNS["parent"] == Parameter("session")) & (TURNS["lookup_sha256"] == Parameter("lookup_sha256"))
    )
)
TURN_SHOWN = compiled(
    TURNS.model.select(TURNS["name"]).where(
        (TURNS["parent"] == Parameter("session")) & TURNS["submit_time"].is_null(is_null=False)
    )
)
TAB_BY_TARGET = compiled(
    TABS.model.select(TABS["name"], TABS["ended"])
    .where((TABS["target_id"] == Parameter("target_id")) & (TABS["parent"] == Parameter("browser")))
    .order_by(TABS["created"].desc())
)
FIND_REQUEST = compiled(
    RequestModel.select(RequestModel.payload_sha256, RequestModel.resource).where(
        (RequestModel.principal == Parameter("principal"))
        & (RequestModel.method == Parameter("method"))
        & (RequestModel.request_id == Parameter("request_id"))
        & (RequestModel.expire_time > Parameter("now"))
    )
)
REMEMBER_REQUEST = compiled(RequestModel.insert(_given(RequestModel)).on_conflict("REPLACE"))

IMPORTED_IDS = compiled(ImportModel.select(ImportModel.import_id).where(ImportModel.source == Parameter("source")))
FIND_IMPORT = compiled(
    ImportModel.select(ImportModel.session).where(
        (ImportModel.source == Parameter("source")) & (ImportModel.import_id == Parameter("import_id"))
    )
)
REMEMBER_IMPORT = compiled(ImportModel.insert(_given(ImportModel)))

FIND_ARTIFACT = compiled(
    ArtifactModel.select(*ArtifactModel._meta.sorted_fields).where(ArtifactModel.name == Parameter("name"))  # noqa: SLF001 - peewee's documented place for it
)
ARTIFACT_FILES = compiled(
    ArtifactModel.select(ArtifactModel.name, ArtifactModel.display_name, ArtifactModel.size_bytes)
)
ARTIFACT_USAGE = compiled(
    ArtifactModel.select(peewee.fn.COUNT(ArtifactModel.name), peewee.fn.SUM(ArtifactModel.size_bytes)).where(
        (ArtifactModel.owner == Parameter("owner"))
        & (ArtifactModel.turn == Parameter("turn"))
        & (ArtifactModel.expire_time > Parameter("now"))
    )
)
EXPIRED_ARTIFACTS = compiled(
    ArtifactModel.select(ArtifactModel.name)
    .where(ArtifactModel.expire_time <= Parameter("now"))
    .order_by(ArtifactModel.expire_time)
    .limit(Parameter("count"))
)
ADD_ARTIFACT = compiled(ArtifactModel.insert(_given(ArtifactModel)))
PROLONG_ARTIFACT = compiled(
    ArtifactModel.update({ArtifactModel.expire_time: Parameter("until")}).where(
        (ArtifactModel.name == Parameter("name")) & (ArtifactModel.expire_time < Parameter("until"))
    )
)
DELETE_ARTIFACT = compiled(ArtifactModel.delete().where(ArtifactModel.name == Parameter("name")))

DELETE_EVENTS = compiled(EventModel.delete().where(EventModel.revision <= Parameter("last")))
FIRST_YOUNG_EVENT = compiled(
    EventModel.select(peewee.fn.MIN(EventModel.revision)).where(
        (EventModel.revision > Parameter("after"))
        & (EventModel.revision <= Parameter("last"))
        & (EventModel.record_time >= Parameter("young"))
    )
)
DELETE_CLOSED_TABS = compiled(
    TABS.model.delete().where((TABS["ended"] == Parameter("ended")) & (TABS["revision"] <= Parameter("last")))
)
_LaterLease = LEASES.model.alias()
# The newest lease of a tab stays as long as the tab: its fencing token must never be given again.
DELETE_ENDED_LEASES = compiled(
    LEASES.model.delete().where(
        (LEASES["ended"] == Parameter("ended"))
        & (LEASES["revision"] <= Parameter("last"))
        & (
            LEASES["tab"].not_in(TABS.model.select(TABS["name"]))
            | (
                LEASES["fencing_token"]
                < _LaterLease.select(peewee.fn.MAX(_LaterLease.fencing_token)).where(_LaterLease.tab == LEASES["tab"])
            )
        )
    )
)
DELETE_EXPIRED_REQUESTS = compiled(RequestModel.delete().where(RequestModel.expire_time <= Parameter("now")))
_gone_sessions = SESSIONS.model.select(SESSIONS["name"]).where(
    (SESSIONS["ended"] == Parameter("ended"))
    & (SESSIONS["retire_time"] <= Parameter("retired_before"))
    & SESSIONS["name"].not_in(TURNS.model.select(TURNS["parent"]).where(TURNS["ended"] == Parameter("open")))
)
_gone_sessions = _gone_sessions.order_by(SESSIONS["name"]).limit(Parameter("count"))  # the same ones for both below
DELETE_TURNS_OF_RETIRED = compiled(TURNS.model.delete().where(TURNS["parent"].in_(_gone_sessions)))
DELETE_RETIRED_SESSIONS = compiled(SESSIONS.model.delete().where(SESSIONS["name"].in_(_gone_sessions)))
