"""A browser, its limits and its counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum


class BrowserState(IntEnum):
    """Whether the endpoint answers; numbers as in `tabmux.v1.Browser.State`."""

    ACTIVE = 1
    UNREACHABLE = 2


class Ownership(IntEnum):
    """Whose process a browser is; numbers as in `tabmux.v1.Browser.Ownership`."""

    LAUNCHED = 1
    ATTACHED = 2


@dataclass(frozen=True, slots=True)
class BrowserLimits:
    """What the configuration allows in one browser; a time that is None means never."""

    max_tab_count: int = 20
    max_pooled_tab_count: int = 8
    max_group_pooled_tab_count: int = 3
    idle_timeout: timedelta | None = timedelta(minutes=30)
    pool_timeout: timedelta | None = timedelta(minutes=30)
    reclaim_after: timedelta | None = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class BrowserOptions:
    """What the configuration says of one browser."""

    name: str
    ownership: Ownership
    limits: BrowserLimits = field(default_factory=BrowserLimits)


@dataclass(frozen=True, slots=True)
class TabCounts:
    """How many tabs a browser has that have not closed; never stored."""

    managed_count: int = 0
    popup_count: int = 0
    adopted_count: int = 0
    lost_count: int = 0
    foreign_count: int = 0
    pooled_count: int = 0


@dataclass(frozen=True, slots=True)
class Browser:
    """One Chrome.

    `process_key` tells one process from the next and is never shown; `generation` grows by one when it changes, and
    is 0 until the endpoint first answered.
    """

    name: str
    state: BrowserState
    ownership: Ownership
    product: str = ""
    endpoint: str = ""
    headless: bool = False
    generation: int = 0
    limits: BrowserLimits = BrowserLimits()
    process_key: str = ""
    revision: int = 0
    update_time: datetime | None = None
