"""A session, its turns, and what a turn carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum

from tabmuxd.resources.errors import Failure


class SessionState(IntEnum):
    """Where a session is in its life; numbers as in `tabmux.v1.Session.State`."""

    ACTIVE = 1
    RECOVERING = 2
    RETIRED = 3


class RetireCause(IntEnum):
    """Why a session was retired; numbers as in `tabmux.v1.Session.RetireCause`."""

    NONE = 0
    CLIENT = 1
    EXPIRY = 2
    CONVERSATION_LOST = 3


class TabSource(IntEnum):
    """How a session came to the tab it has: a tab that it opened or drew from the pool goes back there at the end."""

    NONE = 0
    OPENED = 1
    POOLED = 2
    TAKEN = 3


class Return(IntEnum):
    """How a session came back to its conversation; numbers as in `tabmux.v1.RecoverSessionResponse.Strategy`."""

    NONE = 1
    NAVIGATED = 2
    TAB_RECOVERED = 3
    NEW_TAB = 4


class TabDisposition(IntEnum):
    """What becomes of a session's tab; numbers as in `tabmux.v1.RetireSessionRequest.TabDisposition`."""

    UNSPECIFIED = 0
    POOL = 1
    CLOSE = 2
    KEEP = 3


class TurnState(IntEnum):
    """Where a turn is in its life; numbers as in `tabmux.v1.Turn.State`."""

    PENDING = 1
    SUBMITTING = 2
    RUNNING = 3
    BLOCKED = 4
    SUCCEEDED = 5
    FAILED = 6
    CANCELLED = 7


FINAL_TURN_STATES = frozenset({TurnState.SUCCEEDED, TurnState.FAILED, TurnState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Warning:  # noqa: A001 - the contract's word
    """Something that went differently from what was asked; `code` is kebab-case."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class CompletionEvidence:
    """Why an answer was taken to be whole."""

    done_mark: bool
    stable_duration: timedelta


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file the service keeps for a while; `sha256` is lower-case hex."""

    name: str
    display_name: str
    media_type: str
    size_bytes: int
    sha256: str
    expire_time: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation with a provider, `sessions/S`.

    `new_tab_group`, `new_tab_activate` and `new_tab_pooled` are what `CreateSession` asked of the tab to come,
    `tab_source` is how it came to the one it has, `prompted` whether a prompt may have been submitted in it: a fresh
    chat is its conversation only before that. None of these is shown.
    """

    name: str
    state: SessionState
    provider: str
    descriptor_version: str
    owner: str
    create_time: datetime
    last_active_time: datetime
    browser: str
    tab: str = ""
    conversation_uri: str = ""
    open_turn: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ttl: timedelta = timedelta(days=30)
    expire_time: datetime | None = None
    recovery_count: int = 0
    close_count: int = 0
    retire_time: datetime | None = None
    retire_cause: RetireCause = RetireCause.NONE
    last_turn: str = ""
    title: str = ""
    new_tab_group: str = ""
    new_tab_activate: bool = False
    tab_source: TabSource = TabSource.NONE
    new_tab_pooled: bool = False
    prompted: bool = False
    revision: int = 0
    update_time: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether it is retired."""
        return self.state is SessionState.RETIRED


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt and its answer, `sessions/S/turns/T`.

    `prompt` is kept only until it need not be typed any more; `lookup_sha256` is of its normalised text, by which it is
    found again in the page; `payload_sha256` tells a repeat of one request from another request under the same id;
    `baseline` holds the keys of the conversation's turns seen right before the press, or before the prompt was typed;
    `typed` is not empty once that may stand in a page, and tells that page as it was right before; `pressed` says that
    SUBMITTING was recorded, so that the prompt may have been submitted; `release_tab` is whether a success gives the
    tab back; `attachments` are the files to send with it, `attaching` whether some of them may be in the page. None of
    the nine is shown.
    """

    name: str
    state: TurnState
    request_id: str
    prompt_sha256: str
    payload_sha256: str
    create_time: datetime
    expire_time: datetime
    prompt: str = ""
    lookup_sha256: str = ""
    baseline: tuple[str, ...] = ()
    release_tab: bool = False
    typed: str = ""
    pressed: bool = False
    attachments: tuple[Artifact, ...] = ()
    attaching: bool = False
    answer_markdown: str = ""
    answer_size_bytes: int = 0
    stalled: bool = False
    completion: CompletionEvidence | None = None
    error: Failure | None = None
    warnings: tuple[Warning, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    model: str = ""
    shown_model: str = ""
    submit_time: datetime | None = None
    end_time: datetime | None = None
    revision: int = 0
    update_time: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether it is in a state that is never left."""
        return self.state in FINAL_TURN_STATES

    @property
    def step(self) -> TurnState:
        """Its state; while something blocks it, the one that it goes on in."""
        if self.state is not TurnState.BLOCKED:
            return self.state
        if self.submit_time is not None:
            return TurnState.RUNNING
        return TurnState.SUBMITTING if self.pressed else TurnState.PENDING
