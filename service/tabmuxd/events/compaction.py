"""How the log stays bounded."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import structlog

from tabmuxd.store import Store, Transaction

RETIRED_AGE: Final = timedelta(days=30)  # as long as `session.proto` says that a retired session can be read
_STEP_COUNT: Final = 5_000  # events deleted at a time, so that other writes do not wait long
_SESSION_COUNT: Final = 50  # and sessions, whose answers may be large

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


async def compact(store: Store, *, now: datetime, age: timedelta, count: int) -> int:
    """Delete the events that are older than `age` and not among the newest `count`; returns how many.

    With them go closed tabs and ended leases that no event tells of any more; the newest lease of a tab stays while
    the tab is known, for its fencing token. Requests go when they have expired, retired sessions with their turns
    after 30 days. What has not ended stays.
    """
    deleted = 0
    while step := await store.write(
        lambda transaction: _delete_events(transaction, recorded_before=now - age, count=count)
    ):
        deleted += step
    await store.write(lambda transaction: transaction.delete_ended(now=now))
    removed = 0
    while step := await store.write(
        lambda transaction: transaction.delete_retired(retired_before=now - RETIRED_AGE, count=_SESSION_COUNT)
    ):
        removed += step
    if removed:
        _log.info("retired sessions removed", count=removed)
    return deleted


def _delete_events(transaction: Transaction, *, recorded_before: datetime, count: int) -> int:
    history = transaction.history()
    last = min(history.head - count, history.compact_revision + _STEP_COUNT)
    return transaction.delete_events(last, recorded_before=recorded_before)
