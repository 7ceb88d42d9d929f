"""A tab: our stable record of one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum


class TabState(IntEnum):
    """Where a tab is in its life; numbers as in `tabmux.v1.Tab.State`."""

    OPENING = 1
    READY = 2
    CRASHED = 3
    LOST = 4
    RECOVERING = 5
    CLOSED = 6


class TabOrigin(IntEnum):
    """How a tab came to the service; numbers as in `tabmux.v1.Tab.Origin`."""

    MANAGED = 1
    POPUP = 2
    ADOPTED = 3
    FOREIGN = 4


class CloseCause(IntEnum):
    """Why a tab closed; numbers as in `tabmux.v1.Tab.CloseCause`."""

    NONE = 0
    CLIENT = 1
    OUTSIDE = 2
    IDLE = 3
    CAPACITY = 4
    SESSION = 5
    BROWSER = 6
    RECOVERY = 7
    LEASE = 8


class DialogPolicy(IntEnum):
    """What happens to a JavaScript dialog; numbers as in `tabmux.v1.Tab.DialogPolicy`."""

    REPORT = 1
    ACCEPT = 2
    DISMISS = 3


class DialogKind(IntEnum):
    """What a dialog asks; numbers as in `tabmux.v1.Dialog.Kind`."""

    ALERT = 1
    CONFIRM = 2
    PROMPT = 3
    BEFORE_UNLOAD = 4


class HealthStatus(IntEnum):
    """How a tab was; numbers as in `tabmux.v1.TabHealth.Status`."""

    ALIVE = 1
    UNRESPONSIVE = 2
    CRASHED = 3
    GONE = 4


class SkipReason(IntEnum):
    """Why `CloseTabs` leaves a tab alone; numbers as in `tabmux.v1.CloseTabsOutcome.SkipReason`."""

    NONE = 0
    FRONT = 1
    PINNED = 2
    BUSY = 3
    LEASED = 4


class Strategy(IntEnum):
    """How a tab came back to use; numbers as in `tabmux.v1.RecoverTabResponse.Strategy`."""

    NONE = 1
    REATTACHED = 2
    RELOADED = 3
    REOPENED = 4


class LoadMilestone(IntEnum):
    """A point in the load of a page; numbers as in `tabmux.v1.LoadMilestone`."""

    NONE = 0
    COMMITTED = 1
    DOM_CONTENT_LOADED = 2
    LOADED = 3


class NavigationOutcome(IntEnum):
    """How far a navigation came; numbers as in `tabmux.v1.Navigation.Outcome`."""

    REACHED = 1
    LOADING = 2
    UNCONFIRMED = 3
    SAME_DOCUMENT = 4
    SUPERSEDED = 5
    NO_DOCUMENT = 6


@dataclass(frozen=True, slots=True)
class Navigation:
    """What is known of a navigation; `http_status` is 0 where there is none."""

    outcome: NavigationOutcome
    reached: LoadMilestone = LoadMilestone.NONE
    http_status: int = 0


@dataclass(frozen=True, slots=True)
class Dialog:
    """A JavaScript dialog that blocks a page; its texts are written by the page, cut to 1 KiB."""

    kind: DialogKind
    message: str
    default_prompt_text: str
    open_time: datetime


@dataclass(frozen=True, slots=True)
class TabHealth:
    """What a look at a tab found."""

    status: HealthStatus
    check_time: datetime
    latency: timedelta | None = None
    visible: bool = False


@dataclass(frozen=True, slots=True)
class Tab:
    """One page to work with, `browsers/B/tabs/T`.

    `marker` is the random value in the address that the target starts on, `browser_generation` the generation of the
    browser that `target_id` belongs to (0 before there is a target), `next_target_id` the target that is being put
    behind a tab that is RECOVERING: all three are proof of ownership. `left_at` is the address at which a pooled tab
    was given back, until that page is gone, `has_opened` whether its page has opened others, and `close_owed` what the
    service still has to close it for. None of them is shown.
    """

    name: str
    state: TabState
    origin: TabOrigin
    owner: str
    create_time: datetime
    last_active_time: datetime
    opener: str = ""
    target_id: str = ""
    generation: int = 1
    uri: str = ""
    title: str = ""
    group: str = ""
    pinned: bool = False
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    dialog_policy: DialogPolicy = DialogPolicy.REPORT
    session: str = ""
    lease: str = ""
    pooled: bool = False
    front: bool = False
    health: TabHealth | None = None
    dialog: Dialog | None = None
    recovery_count: int = 0
    close_cause: CloseCause = CloseCause.NONE
    close_time: datetime | None = None
    shared_with: tuple[str, ...] = ()
    left_at: str = ""
    has_opened: bool = False
    marker: str = ""
    browser_generation: int = 0
    next_target_id: str = ""
    close_owed: CloseCause = CloseCause.NONE
    revision: int = 0
    update_time: datetime | None = None

    @property
    def browser_name(self) -> str:
        """Name of the browser in which the tab is."""
        return self.name.partition("/tabs/")[0]

    @property
    def ended(self) -> bool:
        """Whether the tab is closed for good."""
        return self.state is TabState.CLOSED
