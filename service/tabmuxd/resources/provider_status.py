"""What one tab shows of a provider, as values."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word


class SignIn(IntEnum):
    """Whether somebody is signed in; numbers as in the contract."""

    UNSPECIFIED = 0
    SIGNED_IN = 1
    REQUIRED = 2
    ANONYMOUS = 3


class ComposerState(IntEnum):
    """State of the box that prompts are typed into; numbers as in the contract."""

    UNSPECIFIED = 0
    USABLE = 1
    BUSY = 2
    OCCUPIED = 3
    BLOCKED = 4
    ABSENT = 5


class Interstitial(IntEnum):
    """A page that stands in for the one wanted; numbers as in the contract."""

    UNSPECIFIED = 0
    NONE = 1
    LOADING = 2
    SIGN_IN = 3
    CHALLENGE = 4
    CONSENT = 5
    EMPTY_SHELL = 6
    OVERLAY = 7


@dataclass(frozen=True, slots=True)
class ProviderLimit:
    """A limit as a provider shows it; `evidence` is the page's text, `reset_time` None where that tells none."""

    evidence: str
    reset_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class ProviderStatus:
    """What a tab shows of a provider; fields as in the contract."""

    provider: str
    tab: str
    generation: int
    descriptor_version: str
    check_time: datetime
    ready: bool = False
    sign_in: SignIn = SignIn.UNSPECIFIED
    composer: ComposerState = ComposerState.UNSPECIFIED
    interstitial: Interstitial = Interstitial.UNSPECIFIED
    limit: ProviderLimit | None = None
    shown_model: str = ""
    conversation_uri: str = ""
    warnings: tuple[Warning, ...] = ()


@dataclass(frozen=True, slots=True)
class SelectorFinding:
    """What one selector of a descriptor finds on a page; fields as in the contract."""

    field: str
    selector: str
    text: str = ""
    match_count: int = 0
    visible_count: int = 0
    taken_count: int = 0
    element: str = ""
    problem: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class ProviderProbe:
    """What all selectors of a descriptor find in a tab of this generation."""

    findings: tuple[SelectorFinding, ...]
    generation: int
    descriptor_version: str
    check_time: datetime
