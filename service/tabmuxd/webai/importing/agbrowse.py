"""The records of agbrowse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tabmuxd.resources.errors import cut
from tabmuxd.resources.imports import ImportSource
from tabmuxd.webai.importing.old_records import (
    OldFields,
    OldRecord,
    OldTurn,
    old_address,
    old_answer,
    read_record,
    word,
)

_ID: Final = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
VERSION: Final = 1
_MAX_LABEL_BYTES: Final = 256


def is_ours(whole: Mapping[str, object]) -> bool:
    """Whether a file may be one of agbrowse: it has a version, or not the arrays of cli-jaw."""
    strange = isinstance(whole.get("baselines"), list) and isinstance(whole.get("notifications"), list)
    return "version" in whole or not strange


def has_known_version(whole: Mapping[str, object]) -> bool:
    """Whether the file is of the one version there is; a missing one is that."""
    version = whole.get("version", VERSION)
    return not isinstance(version, bool) and version == VERSION


def record_of(value: object) -> OldRecord:
    """One record; raises Malformed."""
    return read_record(value, _ID, _record)


def _record(fields: OldFields, old_id: str) -> OldRecord:
    for name in ("warnings", "trace", "artifacts"):
        fields.array(name)
    fields.text("promptHash")
    conversation = fields.text_or_none("conversationUrl")
    original = fields.text_or_none("originalUrl")
    deadline = fields.time_or_none("deadlineAt")
    created, updated, status = fields.time("createdAt"), fields.time("updatedAt"), word(fields.text("status"))
    selection = fields.part("modelSelection")
    shown_model = selection.content("resolvedLabel") if selection.holds("verified") else None
    first = OldTurn(
        status=status,
        begun=created,
        ended=fields.time_or_none("completedAt") or updated,
        answer=old_answer(fields.content("answer")),
        code=word(fields.part("lastError").content("errorCode") or ""),
        deadline=deadline,
        model=word(fields.part("envelopeSummary").content("model") or ""),
        shown_model=cut(shown_model or "", _MAX_LABEL_BYTES),
    )
    later = sorted(fields.objects("turns"), key=lambda entry: entry.number("index"))
    turns = [_later(entry, first) for entry in later] or [first]
    remarks = (
        *(("import-archived",) if fields.holds("archived") else ()),
        *(("import-artifacts-left",) if fields.has_entries("artifacts") else ()),
    )
    turns[-1] = replace(turns[-1], remarks=remarks)
    return OldRecord(
        source=ImportSource.AGBROWSE,
        id=old_id,
        vendor=word(fields.text_or_none("vendor") or "") or None,
        address=old_address(original if conversation is None else conversation),
        status=status,
        created=created,
        updated=updated,
        deadline=deadline,
        turns=tuple(turns),
    )


def _later(entry: OldFields, first: OldTurn) -> OldTurn:
    """A follow-up; models and deadline are those of the record."""
    return replace(
        first,
        status=word(entry.text("status")),
        begun=entry.time("sentAt"),
        ended=entry.time_or_none("completedAt") or first.ended,
        answer=old_answer(entry.content("answer")),
        code="",
    )
