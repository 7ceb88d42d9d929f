"""The records of cli-jaw."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from tabmuxd.resources.imports import ImportSource
from tabmuxd.webai.importing.old_records import (
    Malformed,
    OldFields,
    OldRecord,
    OldTurn,
    milliseconds,
    old_address,
    old_answer,
    read_record,
    word,
)

_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
# The field that says when the record came to this status; an old `staleAt` may stand beside another one.
_END: Final = {"complete": "completedAt", "error": "failedAt", "timeout": "staleAt"}


def is_ours(whole: Mapping[str, object]) -> bool:
    """Whether a file is one of cli-jaw: it has both arrays, and no version."""
    arrays = isinstance(whole.get("baselines"), list) and isinstance(whole.get("notifications"), list)
    return arrays and "version" not in whole


def record_of(value: object) -> OldRecord:
    """One record; raises Malformed."""
    return read_record(value, _ID, _record)


def _record(fields: OldFields, old_id: str) -> OldRecord:
    for name in ("targetId", "promptHash"):
        fields.text(name)
    fields.number("assistantCount")
    url, conversation = fields.text("url"), fields.text_or_none("conversationUrl")
    created, updated, status = fields.time("createdAt"), fields.time("updatedAt"), word(fields.text("status"))
    deadline = _deadline(fields, created)
    artifact = fields.part("answerArtifact")
    markdown = artifact.content("markdown")
    ended = fields.time_or_none(_END[status]) if status in _END else None
    turn = OldTurn(
        status=status,
        begun=created,
        ended=ended or updated,
        answer=old_answer(markdown if markdown and markdown.strip() else fields.content("answerText")),
        deadline=deadline,
        stable=artifact.milliseconds("responseStableMs"),
    )
    return OldRecord(
        source=ImportSource.CLI_JAW,
        id=old_id,
        vendor=word(fields.text("vendor")),
        address=old_address(url if conversation is None else conversation),
        status=status,
        created=created,
        updated=updated,
        deadline=deadline,
        turns=(turn,),
    )


def _deadline(fields: OldFields, created: datetime) -> datetime:
    try:
        return created + milliseconds(fields.number("timeoutMs"))
    except OverflowError:
        raise Malformed from None
