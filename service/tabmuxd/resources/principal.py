"""Who calls, and what the caller may do."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from tabmuxd.resources.errors import Reason, Refused, refuse

LOCAL = "local"


class Scope(StrEnum):
    """What a principal may do (`api-guide.md` section 12)."""

    READ = "read"
    DRIVE = "drive"
    AI = "ai"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller by its name: `local` is the person on the Unix socket, `local/NAME` a program that named itself."""

    name: str
    scopes: frozenset[Scope]

    @property
    def admin(self) -> bool:
        """Whether it may act on what belongs to others."""
        return Scope.ADMIN in self.scopes


def local_person() -> Principal:
    """The principal of a call over the Unix socket without a name: every scope."""
    return Principal(LOCAL, frozenset(Scope))


def local_program(name: str) -> Principal:
    """The principal of a program on the Unix socket that names itself: all scopes but `admin`."""
    return Principal(f"{LOCAL}/{name}", frozenset(Scope) - {Scope.ADMIN})


def scope_missing(caller: Principal, what: str, needed: Collection[Scope]) -> Refused:
    """SCOPE_MISSING: the caller would need one of these scopes for `what`, the subject of the sentence that tells."""
    names = " or ".join(sorted(needed))
    return refuse(
        Reason.SCOPE_MISSING,
        f"{what} needs the scope {names}, which {caller.name} does not have; nothing was done.",
        scope=names,
    )


def not_owner(resource: str, owner: str) -> Refused:
    """NOT_OWNER; tells the owner and nothing of the resource itself."""
    whose = f"belongs to {owner}" if owner else "has no owner"
    return refuse(
        Reason.NOT_OWNER,
        f"{resource} {whose} and is not shared with you; nothing was done. Use one of your own, or have it shared.",
        resource=resource,
        owner=owner,
    )
