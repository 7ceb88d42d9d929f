"""The first schema. A frozen copy: it does not follow the models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import peewee
from playhouse.migrate import SchemaMigrator

# Columns of resources beside `name` and `created`; a question mark means that it may be NULL.
_TEXTS = {
    "browsers": "product endpoint limits process_key id parent",
    "tabs": (
        "owner opener target_id uri title group labels session lease health? dialog? shared_with left_at marker "
        "next_target_id id parent"
    ),
    "leases": "tab terms session owner request_id id parent",
    "sessions": (
        "provider descriptor_version owner browser tab conversation_uri open_turn labels last_turn title "
        "new_tab_group id parent"
    ),
    "turns": (
        "request_id prompt_sha256 payload_sha256 prompt lookup_sha256 baseline typed answer_markdown completion? "
        "error? warnings attachments artifacts model shown_model id parent"
    ),
}
_INTEGERS = {
    "browsers": "state ownership headless generation revision update_time? ended",
    "tabs": (
        "state origin create_time last_active_time generation pinned dialog_policy pooled front "
        "has_opened recovery_count close_cause close_time? browser_generation close_owed revision update_time? ended"
    ),
    "leases": "expire_time fencing_token create_time end_time? end_cause revision update_time? ended",
    "sessions": (
        "state create_time last_active_time ttl expire_time? recovery_count close_count retire_time? "
        "retire_cause new_tab_activate tab_source new_tab_pooled prompted revision update_time? ended"
    ),
    "turns": (
        "state create_time expire_time pressed release_tab attaching answer_size_bytes stalled submit_time? end_time? "
        "revision update_time? ended"
    ),
}
_INDEXES: dict[str, tuple[tuple[tuple[str, ...], bool], ...]] = {
    "tabs": ((("id",), True), (("target_id",), False)),
    "leases": ((("tab", "fencing_token"), False),),
    "turns": ((("parent", "created"), False), (("parent", "request_id"), False)),
}


def up(migrator: SchemaMigrator, database: peewee.SqliteDatabase) -> None:
    """Make all tables."""
    del migrator

    class History(peewee.Model):
        history_id = peewee.TextField()
        head = peewee.BigIntegerField()
        compact_revision = peewee.BigIntegerField()

        class Meta:
            table_name = "history"

    class Event(peewee.Model):
        revision = peewee.BigIntegerField(primary_key=True)
        kind = peewee.IntegerField()
        resource_kind = peewee.IntegerField()
        browser = peewee.TextField()
        tab = peewee.TextField()
        session = peewee.TextField()
        session_before = peewee.TextField()
        record_time = peewee.BigIntegerField()
        body = peewee.BlobField()

        class Meta:
            table_name = "events"

    class Request(peewee.Model):
        principal = peewee.TextField()
        method = peewee.TextField()
        request_id = peewee.TextField()
        payload_sha256 = peewee.TextField()
        resource = peewee.TextField()
        expire_time = peewee.BigIntegerField(index=True)

        class Meta:
            table_name = "requests"
            primary_key = peewee.CompositeKey("principal", "method", "request_id")

    class Import(peewee.Model):
        source = peewee.TextField()
        import_id = peewee.TextField()
        session = peewee.TextField()

        class Meta:
            table_name = "imports"
            primary_key = peewee.CompositeKey("source", "import_id")

    class Artifact(peewee.Model):
        name = peewee.TextField(primary_key=True)
        owner = peewee.TextField(index=True)
        turn = peewee.TextField()
        display_name = peewee.TextField()
        media_type = peewee.TextField()
        size_bytes = peewee.BigIntegerField()
        sha256 = peewee.TextField()
        expire_time = peewee.BigIntegerField(index=True)

        class Meta:
            table_name = "artifacts"

    models: list[type[peewee.Model]] = [
        History,
        Event,
        Request,
        Import,
        Artifact,
        *(_resource_model(name) for name in _TEXTS),
    ]
    with database.bind_ctx(models):
        database.create_tables(models)


def _resource_model(table_name: str) -> type[peewee.Model]:
    fields: dict[str, object] = {
        "name": peewee.TextField(primary_key=True),
        "created": peewee.BigIntegerField(unique=True),
        "Meta": type(
            "Meta",
            (),
            {"table_name": table_name, "indexes": ((("ended", "created"), False), *_INDEXES.get(table_name, ()))},
        ),
    }
    makers: tuple[tuple[Callable[..., peewee.Field[Any]], dict[str, str]], ...] = (
        (peewee.TextField, _TEXTS),
        (peewee.BigIntegerField, _INTEGERS),
    )
    for field_type, columns in makers:
        for column in columns[table_name].split():
            fields[column.removesuffix("?")] = field_type(null=column.endswith("?"))
    return type(table_name, (peewee.Model,), fields)
