"""What a caller asks for, checked for form: the edge makes these from requests, the domain carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from tabmuxd.resources.errors import Failure
from tabmuxd.resources.lease import Lease, LeaseTerms
from tabmuxd.resources.prompt import Prompt
from tabmuxd.resources.session import Return, Session, SessionState
from tabmuxd.resources.tab import (
    DialogPolicy,
    LoadMilestone,
    Navigation,
    SkipReason,
    Strategy,
    Tab,
    TabOrigin,
    TabState,
)


@dataclass(frozen=True, slots=True)
class TabOrder:
    """`CreateTab`. `browser` is empty for the first one configured, `request_id` where none was given.

    `payload_sha256` is of the request without its `request_id`, and tells a repeat from another request.
    `room_timeout` is how long to wait in line for room; None is for ever. `lease_terms` is None where no lease is
    wanted.
    """

    browser: str = ""
    uri: str = ""
    group: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    pinned: bool = False
    activate: bool = False
    until: LoadMilestone = LoadMilestone.LOADED
    dialog_policy: DialogPolicy = DialogPolicy.REPORT
    milestone_timeout: timedelta = timedelta(seconds=30)
    from_pool: bool = False
    room_timeout: timedelta | None = timedelta(0)
    lease_terms: LeaseTerms | None = None
    request_id: str = ""
    payload_sha256: str = ""


@dataclass(frozen=True, slots=True)
class OpenedTab:
    """Answer to a `TabOrder`; `navigation` is None where there was no address to go to.

    `repeated`: the tab was there before, opened by the same request.
    """

    tab: Tab
    navigation: Navigation | None
    lease: Lease | None = None
    from_pool: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class RecoveredTab:
    """A tab whose page answers, and how it came to that."""

    tab: Tab
    strategy: Strategy


@dataclass(frozen=True, slots=True)
class TabUpdate:
    """`UpdateTab`; None and empty leave a field as it is, a label with an empty value is removed."""

    name: str
    expected_revision: int = 0
    group: str | None = None
    pinned: bool | None = None
    dialog_policy: DialogPolicy | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    share_with: tuple[str, ...] = ()
    unshare_with: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TabsOrder:
    """`CloseTabs`: the tabs that meet every criterion that is set; `idle_duration` None and empty ones are not set.

    An empty `browser` means all, `any_owner` those of every principal, and the pooled.
    """

    browser: str = ""
    group: str = ""
    idle_duration: timedelta | None = None
    keep_front: bool = False
    any_owner: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class ClosedTab:
    """What `CloseTabs` did with one tab: closed it, left it alone for a reason, or failed to close it.

    `idle_duration` is how long it had been without activity.
    """

    tab: str
    idle_duration: timedelta
    skip_reason: SkipReason = SkipReason.NONE
    error: Failure | None = None


@dataclass(frozen=True, slots=True)
class AdoptOrder:
    """`AdoptTab`: the page of a target, or the one in `front`; `browser` is empty for the first one configured."""

    browser: str = ""
    target_id: str = ""
    front: bool = False
    group: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class NavigationOrder:
    """`NavigateTab`; an `expected_generation` of 0 means any."""

    name: str
    uri: str
    lease: str = ""
    expected_generation: int = 0
    until: LoadMilestone = LoadMilestone.LOADED
    milestone_timeout: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class ScriptOrder:
    """`EvaluateScript`; an `expected_generation` of 0 means any."""

    name: str
    script: str
    lease: str = ""
    expected_generation: int = 0
    await_promise: bool = False
    result_timeout: timedelta = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The tab after a script, and the value of that as JSON; empty for `undefined`."""

    tab: Tab
    result_json: str


@dataclass(frozen=True, slots=True)
class LeaseOrder:
    """`AcquireLease`; `request_id` is empty where none was given."""

    tab: str
    terms: LeaseTerms = field(default_factory=LeaseTerms)
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class TabFilter:
    """Which tabs a list holds; an empty field means all but the closed, or all but the foreign, or simply all."""

    browser: str = ""
    states: frozenset[TabState] = frozenset()
    origins: frozenset[TabOrigin] = frozenset()
    groups: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


class TabPolicy(Enum):
    """Which tab a session gets: one to come, new or from the pool, or one that exists, in front or named."""

    NEW = auto()
    POOLED = auto()
    FRONT = auto()
    NAMED = auto()


@dataclass(frozen=True, slots=True)
class SessionOrder:
    """`CreateSession`. `browser` is empty for that of the tab named, or else the first one configured.

    `session_id` is empty for one of ours; `tab` names the tab where the policy is NAMED. `group` and `activate` are of
    a tab to come.
    """

    provider: str
    browser: str = ""
    session_id: str = ""
    conversation_uri: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ttl: timedelta = timedelta(days=30)
    group: str = ""
    activate: bool = False
    policy: TabPolicy = TabPolicy.NEW
    tab: str = ""


@dataclass(frozen=True, slots=True)
class RecoveredSession:
    """A session that is where it belongs, and how it came to that; `previous_tab` is empty if it had none before."""

    session: Session
    strategy: Return
    previous_tab: str


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """Which sessions a list holds; an empty field means all, of states all but RETIRED."""

    states: frozenset[SessionState] = frozenset()
    providers: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class SessionUpdate:
    """`UpdateSession`; None and empty leave a field as it is, a label with an empty value is removed."""

    name: str
    expected_revision: int = 0
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    ttl: timedelta | None = None


@dataclass(frozen=True, slots=True)
class PromptOrder:
    """`SendPrompt`; `answer_timeout` is None for the provider's default.

    `release_tab` is whether the session gives its tab back once the turn has succeeded. `attachments` are names of
    artifacts; `payload_sha256` is of the rest of the request. `model` is empty for whichever the page has.
    """

    session: str
    prompt: Prompt
    request_id: str
    payload_sha256: str
    answer_timeout: timedelta | None = None
    release_tab: bool = False
    attachments: tuple[str, ...] = ()
    model: str = ""
