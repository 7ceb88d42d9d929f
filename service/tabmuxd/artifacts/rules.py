"""May this be uploaded, read, sent? Decisions over plain values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tabmuxd.resources.artifacts import ArtifactUsage, KeptArtifact
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.principal import Principal, not_owner


@dataclass(frozen=True, slots=True)
class Limits:
    """Of the uploads of one principal: how many there may be, how large together, and how many may come at once."""

    count: int = 200
    size_bytes: int = 1024 * 1024 * 1024
    at_once: int = 8


DEFAULT_LIMITS: Final = Limits()


def may_begin(limits: Limits, usage: ArtifactUsage, coming: list[int], size_bytes: int) -> Refused | None:
    """Whether a principal with so many uploads may begin another; `coming`: the sizes of those on their way."""
    if len(coming) >= limits.at_once:
        return _limited("uploads", limits.at_once)
    if usage.count + len(coming) >= limits.count:
        return _limited("artifacts", limits.count)
    if usage.size_bytes + sum(coming) + size_bytes > limits.size_bytes:
        return _limited("artifact-bytes", limits.size_bytes)
    return None


def may_read(caller: Principal, kept: KeptArtifact | None, name: str, now: datetime) -> Refused | None:
    """Whether this principal may read a file: what an answer carries, as the answer itself; of uploads its own."""
    if refused := _is_known(kept, name, now):
        return refused
    return None if kept is None or kept.turn else _is_own(caller, kept)


def may_send(caller: Principal, kept: KeptArtifact | None, name: str, now: datetime) -> Refused | None:
    """Whether this principal may send a file with a prompt, or put it into a page: its own."""
    return _is_known(kept, name, now) or (None if kept is None else _is_own(caller, kept))


def unknown(name: str) -> Refused:
    """ARTIFACT_NOT_FOUND."""
    return refuse(
        Reason.ARTIFACT_NOT_FOUND,
        f"No file {name} is known, or it has expired; nothing was done. Upload it again.",
        artifact=name,
    )


def _is_known(kept: KeptArtifact | None, name: str, now: datetime) -> Refused | None:
    return unknown(name) if kept is None or kept.artifact.expire_time <= now else None


def _is_own(caller: Principal, kept: KeptArtifact) -> Refused | None:
    return None if caller.admin or caller.name == kept.owner else not_owner(kept.name, kept.owner)


def _limited(quantity: str, limit: int) -> Refused:
    return refuse(
        Reason.TOKEN_LIMITED,
        f"The limit of {limit} {quantity} of one principal is reached; nothing was kept. Uploads end when they expire.",
        quantity=quantity,
        limit=limit,
    )
