"""The tables, as peewee models; those of resources have the fields of their dataclasses as columns.

They describe the newest schema; `migrations/` has the way there, which a test compares with this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import peewee

from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.names import browser_of, id_of, is_principal, is_tab_name, session_of
from tabmuxd.resources.session import Session, Turn
from tabmuxd.resources.tab import Tab, TabOrigin
from tabmuxd.store.codec import Cell, Codec, Column
from tabmuxd.store.errors import Unreadable

R = TypeVar("R", bound=Resource)


class HistoryModel(peewee.Model):
    """The one row that counts revisions; everything up to `compact_revision` is gone from `events`."""

    id = peewee.IntegerField(primary_key=True)
    history_id = peewee.TextField()
    head = peewee.BigIntegerField()
    compact_revision = peewee.BigIntegerField()

    class Meta:  # noqa: D106 - peewee's options
        table_name = "history"


class EventModel(peewee.Model):
    """One event: what filters look at, and its finished bytes."""

    revision = peewee.BigIntegerField(primary_key=True)
    kind = peewee.IntegerField()
    resource_kind = peewee.IntegerField()
    browser = peewee.TextField()
    tab = peewee.TextField()
    session = peewee.TextField()
    session_before = peewee.TextField()
    record_time = peewee.BigIntegerField()
    body = peewee.BlobField()

    class Meta:  # noqa: D106 - peewee's options
        table_name = "events"


class RequestModel(peewee.Model):
    """One request that was carried out, by its `request_id`."""

    principal = peewee.TextField()
    method = peewee.TextField()
    request_id = peewee.TextField()
    payload_sha256 = peewee.TextField()
    resource = peewee.TextField()
    expire_time = peewee.BigIntegerField(index=True)

    class Meta:  # noqa: D106 - peewee's options
        table_name = "requests"
        primary_key = peewee.CompositeKey("principal", "method", "request_id")


class ImportModel(peewee.Model):
    """One record of another tool that became a session, which may be gone by now."""

    source = peewee.TextField()
    import_id = peewee.TextField()
    session = peewee.TextField()

    class Meta:  # noqa: D106 - peewee's options
        table_name = "imports"
        primary_key = peewee.CompositeKey("source", "import_id")


class ArtifactModel(peewee.Model):
    """One file that is kept, whole on disk; `turn` is the one whose answer it belongs to, empty for an upload."""

    name = peewee.TextField(primary_key=True)
    owner = peewee.TextField(index=True)
    turn = peewee.TextField()
    display_name = peewee.TextField()
    media_type = peewee.TextField()
    size_bytes = peewee.BigIntegerField()
    sha256 = peewee.TextField()
    expire_time = peewee.BigIntegerField(index=True)

    class Meta:  # noqa: D106 - peewee's options
        table_name = "artifacts"


@dataclass(frozen=True, slots=True)
class Table(Generic[R]):
    """The table of one kind of resource.

    Beside the fields: `id`, the last part of the name; `parent`, the browser of a tab and the session of a turn;
    `created`, the revision of its creation, in whose order lists are; `ended`.
    """

    kind: type[R]
    codec: Codec[R]
    model: type[peewee.Model]

    def __getitem__(self, column: str) -> peewee.Field[object]:
        """The column of this name, to write queries with."""
        field: peewee.Field[object] = self.model._meta.fields[column]  # noqa: SLF001 - peewee's documented place for it
        return field

    def decode(self, cells: Sequence[Cell]) -> R:
        """The resource whose fields these cells hold; raises Unreadable."""
        try:
            resource = self.codec.decode(cells)
            if isinstance(resource, Tab):
                _check_tab(resource)
        except Exception as error:
            # Of many kinds, since a cell may hold anything. Not its content: it may be a secret.
            name = dict(zip([column.name for column in self.codec.columns], cells, strict=True))["name"]
            raise Unreadable(self.kind.__name__, name, type(error).__name__) from error
        return resource

    def cells(self, resource: R) -> dict[str, Cell]:
        """The columns of `resource`, all but `created`."""
        cells = dict(zip([column.name for column in self.codec.columns], self.codec.encode(resource), strict=True))
        cells["id"] = id_of(resource.name)
        cells["parent"] = parent_of(resource)
        cells["ended"] = int(has_ended(resource))
        return cells


def _check_tab(tab: Tab) -> None:
    """Raise ValueError for what no tab can be: ownership that cannot be trusted is worse than none."""
    if not is_tab_name(tab.name) or tab.generation < 1 or tab.browser_generation < 0:
        raise ValueError("a name or generation that no tab has")
    if tab.owner and not is_principal(tab.owner):
        raise ValueError("an owner that is no principal")
    if not tab.owner and not tab.pooled and tab.origin is not TabOrigin.POPUP:
        raise ValueError("no owner")


def parent_of(resource: Resource) -> str:
    """Name of the browser of a tab, of the session of a turn; else empty."""
    if isinstance(resource, Tab):
        return browser_of(resource.name)
    return session_of(resource.name) if isinstance(resource, Turn) else ""


def has_ended(resource: Resource) -> bool:
    """Whether no later event may name it; a browser never ends."""
    return not isinstance(resource, Browser) and resource.ended


def _field(column: Column) -> peewee.Field[Any]:
    """The column as peewee writes it; the name is the key."""
    field_type: Callable[..., peewee.Field[Any]] = peewee.TextField if column.text else peewee.BigIntegerField
    return field_type(null=column.null, primary_key=column.name == "name")


def _table(kind: type[R], name: str, *indexes: tuple[tuple[str, ...], bool]) -> Table[R]:
    codec = Codec(kind)
    fields: dict[str, object] = {column.name: _field(column) for column in codec.columns}
    fields["id"] = peewee.TextField()
    fields["parent"] = peewee.TextField()
    fields["created"] = peewee.BigIntegerField(unique=True)
    fields["ended"] = peewee.IntegerField()
    fields["Meta"] = type("Meta", (), {"table_name": name, "indexes": ((("ended", "created"), False), *indexes)})
    return Table(kind, codec, type(f"{kind.__name__}Model", (peewee.Model,), fields))


BROWSERS = _table(Browser, "browsers")
TABS = _table(Tab, "tabs", (("id",), True), (("target_id",), False))
LEASES = _table(Lease, "leases", (("tab", "fencing_token"), False))
SESSIONS = _table(Session, "sessions")
TURNS = _table(Turn, "turns", (("parent", "created"), False), (("parent", "request_id"), False))

TABLES = (
    BROWSERS,
    TABS,
    LEASES,
    SESSIONS,
    TURNS,
)
MODELS: tuple[type[peewee.Model], ...] = (
    HistoryModel,
    EventModel,
    RequestModel,
    ImportModel,
    ArtifactModel,
    *(table.model for table in TABLES),
)
