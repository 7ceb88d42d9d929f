"""A lease: the exclusive right to act on one tab until a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum


class LeaseEnd(IntEnum):
    """Why a lease ended: what LEASE_LOST says as its cause."""

    NONE = 0
    EXPIRED = 1
    RELEASED = 2
    CLOSED = 3


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """What a lease is granted on; `ttl` is between 5 s and 10 min."""

    ttl: timedelta = timedelta(seconds=30)
    holder: str = ""
    close_on_expiry: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one principal, or of the service itself for an open turn, to act on one tab.

    `session` names the session the service took it for; `owner` is empty then. `end_time` is None while it is held;
    `end_cause` is not shown, nor is the `request_id` it was granted under.
    """

    name: str
    tab: str
    terms: LeaseTerms
    expire_time: datetime
    fencing_token: int
    create_time: datetime
    session: str = ""
    owner: str = ""
    end_time: datetime | None = None
    end_cause: LeaseEnd = LeaseEnd.NONE
    request_id: str = ""
    revision: int = 0
    update_time: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether it is held no more."""
        return self.end_time is not None
