"""Whether a watch can go on where it was."""

from __future__ import annotations

from tabmuxd.resources.errors import Reason, Refused, invalid_field, refuse
from tabmuxd.resources.event import Progress


def check_resume(resume: Progress, here: Progress, compact_revision: int) -> None:
    """Raise unless a watch can go on behind `resume` in a history that has come to `here`."""
    if resume.revision < 0:
        raise invalid_field("start.resume.revision", "must not be negative")
    if resume.history_id != here.history_id:
        raise refuse(
            Reason.HISTORY_CHANGED,
            "The history is another one than the one you watched. Forget all revisions and start with a snapshot.",
            history_id=here.history_id,
        )
    if resume.revision > here.revision:
        raise refuse(
            Reason.REVISION_IN_FUTURE,
            f"Revision {resume.revision} is not reached yet; the newest is {here.revision}.",
            after_revision=resume.revision,
            current_revision=here.revision,
        )
    if resume.revision < compact_revision:
        raise compacted(resume.revision, compact_revision)


def compacted(after_revision: int, compact_revision: int) -> Refused:
    """REVISION_COMPACTED for a watch that wants what follows `after_revision`."""
    return refuse(
        Reason.REVISION_COMPACTED,
        f"What followed revision {after_revision} is gone up to {compact_revision}. Start with a snapshot; there is a "
        "gap.",
        after_revision=after_revision,
        compact_revision=compact_revision,
    )
