"""The files that go with a turn: found among what the caller may send, kept as long as it is open, and known again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from tabmuxd.artifacts import rules
from tabmuxd.events.changes import Changes
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.session import Artifact, Turn
from tabmuxd.webai import attachments
from tabmuxd.webai.providers.descriptor import Descriptor

_MARGIN: Final = timedelta(minutes=1)


def enclose(
    changes: Changes, caller: Principal, names: Sequence[str], descriptor: Descriptor | None, *, open_for: timedelta
) -> tuple[Artifact, ...]:
    """The files of these names, which stay as long as a turn that begins now and is `open_for` so long.

    Raises ARTIFACT_NOT_FOUND, NOT_OWNER, and, by the descriptor, PROVIDER_UNSUPPORTED, PROVIDER_ATTACHMENT_REFUSED.
    """
    found: list[Artifact] = []
    for name in names:
        kept = changes.artifact(name)
        if (refused := rules.may_send(caller, kept, name, changes.now)) or kept is None:
            raise refused or rules.unknown(name)
        found.append(kept.artifact)
    if descriptor is not None and (refused := attachments.may_send(descriptor, found)):
        raise refused
    for name in names:
        changes.prolong_artifact(name, changes.now + open_for + _MARGIN)
    return tuple(found)


def has_files(changes: Changes, turn: Turn, names: Sequence[str]) -> bool:
    """Whether the files of these names are, in order, those of a turn, by what they are called and hold.

    So it is for a caller that uploads them anew for a repeat.
    """
    known = {file.name: file for file in turn.attachments}
    found: list[Artifact | None] = []
    for name in names:
        kept = None if name in known else changes.artifact(name)
        found.append(kept.artifact if kept else known.get(name))
    return [_content(file) for file in turn.attachments] == [file and _content(file) for file in found]


def _content(file: Artifact) -> tuple[str, str]:
    return file.display_name, file.sha256
