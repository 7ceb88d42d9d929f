"""What a look at a tab says of its provider: whose page it is, who is signed in, and whether it takes a prompt.

Pure functions of what was seen. A composer that can be used overrules what asks for a person; a mark that nobody has
confirmed is told as a suspicion, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal, cast
from urllib.parse import urlsplit

from tabmuxd.resources.errors import cut
from tabmuxd.resources.provider_status import (
    ComposerState,
    Interstitial,
    ProviderLimit,
    ProviderStatus,
    SelectorFinding,
    SignIn,
)
from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word
from tabmuxd.resources.tab import Tab
from tabmuxd.webai.barriers import reset_time_in
from tabmuxd.webai.providers.descriptor import Descriptor, PersonBarrier
from tabmuxd.webai.samples import Barrier, Composer, normalised, one_of, text_of
from tabmuxd.webai.submission import is_beginning

_SHELL_CHARACTERS: Final = 500
_MODEL_BYTES: Final = 256
_OUTLINE_BYTES: Final = 256
_BARRIERS: Final[tuple[Barrier, ...]] = ("", "sign_in", "challenge", "consent", "limit")
_COMPOSERS: Final[tuple[Composer, ...]] = ("usable", "blocked", "absent")
_BARRED: Final[Mapping[Barrier, Interstitial]] = {
    "sign_in": Interstitial.SIGN_IN,
    "challenge": Interstitial.CHALLENGE,
    "consent": Interstitial.CONSENT,
}


Fault = Literal["elsewhere", "replaced", "unreadable"]
"""Why a look saw nothing: another host's page, another document before it was done, or rules that fail there."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the page shows; fields as in `status.js`. `text_count` counts where there is neither composer nor turn."""

    uri: str
    ready: bool = True
    composer: Composer = "usable"
    composer_text: str = ""
    switched_off: bool = False
    stop: bool = False
    turn_count: int = 0
    text_count: int = 0
    barrier: Barrier = ""
    barrier_text: str = ""
    failure: bool = False
    signed_in: bool = False
    signed_in_hint: bool = False
    signed_out: bool = False
    signed_out_hint: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class Serving:
    """Whom the tab serves: its session's provider, empty without one, and the prompt of that session's open turn."""

    provider: str = ""
    prompt: str | None = None


def seen_of(value: Mapping[str, object]) -> Seen | Fault:
    """What was seen, as the page's script gives it."""
    try:
        return Seen(
            uri=text_of(value["uri"]),
            ready=bool(value["ready"]),
            composer=one_of(value["composer"], _COMPOSERS),
            composer_text=text_of(value["composer_text"]),
            switched_off=bool(value["switched_off"]),
            stop=bool(value["stop"]),
            turn_count=int(cast("int", value["turn_count"])),
            text_count=int(cast("int", value["text_count"])),
            barrier=one_of(value["barrier"], _BARRIERS),
            barrier_text=text_of(value["barrier_text"]),
            failure=bool(value["failure"]),
            signed_in=bool(value["signed_in"]),
            signed_in_hint=bool(value["signed_in_hint"]),
            signed_out=bool(value["signed_out"]),
            signed_out_hint=bool(value["signed_out_hint"]),
            model=text_of(value["model"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return "unreadable"


def findings_of(value: Mapping[str, object]) -> tuple[SelectorFinding, ...] | Fault:
    """What selectors find, as the page's script gives it."""
    try:
        return tuple(_finding(found) for found in cast("Iterable[Mapping[str, object]]", value["findings"]))
    except (KeyError, TypeError, ValueError, OverflowError):
        return "unreadable"


def _finding(value: Mapping[str, object]) -> SelectorFinding:
    return SelectorFinding(
        field=f"page.{text_of(value['field'])}",
        selector=text_of(value["selector"]),
        text=text_of(value["text"]),
        name=text_of(value["name"]),
        match_count=int(cast("int", value["matches"])),
        visible_count=int(cast("int", value["visible"])),
        taken_count=int(cast("int", value["taken"])),
        element=cut(text_of(value["element"]), _OUTLINE_BYTES),
        problem=cut(text_of(value["problem"]), _OUTLINE_BYTES),
    )


def whose(
    providers: Iterable[Descriptor], uri: str, serving: Serving
) -> tuple[Descriptor, PersonBarrier | None] | None:
    """The provider whose page is at an address; where it is a host for that, with what a person has to see to there.

    A host may be one provider's own, and where another sends its users: then the tab's session tells. Of several at
    a host it is that of the session, else the one whose start address has the longest path that this one begins with,
    else the first by id. Where several send their users to a host it is nobody's, unless the session tells.
    """
    known = tuple(providers)
    barring: list[tuple[Descriptor, PersonBarrier]] = [
        (one, barrier) for one in known if (barrier := one.barrier_at(uri))
    ]
    for one, barrier in barring:
        if one.id == serving.provider:
            return one, barrier
    if found := [one for one in known if one.is_at(uri)]:
        path = urlsplit(uri).path
        return min(found, key=lambda one: (one.id != serving.provider, -_started(one, path), one.id)), None
    return barring[0] if len(barring) == 1 else None


def _started(descriptor: Descriptor, path: str) -> int:
    """How long the path of the start address is, if this one begins with it."""
    start = urlsplit(descriptor.start_uri).path
    return len(start) if path.startswith(start) else 0


def barred_status(descriptor: Descriptor, barrier: PersonBarrier, tab: Tab, now: datetime) -> ProviderStatus:
    """The status at a host that is not read: what it is for is all that is known."""
    sign_in = SignIn.REQUIRED if barrier == "sign_in" else SignIn.UNSPECIFIED
    return replace(_status(descriptor, tab, now), sign_in=sign_in, interstitial=_BARRED[barrier])


def unseen_status(descriptor: Descriptor, fault: Fault, tab: Tab, now: datetime) -> ProviderStatus:
    """The status of a page in which nothing was seen at all."""
    if fault == "replaced":
        return replace(_status(descriptor, tab, now), interstitial=Interstitial.LOADING)
    message = f"What the page shows could not be read by the descriptor of {descriptor.id}."
    return replace(_status(descriptor, tab, now), warnings=(Warning("page-unreadable", message),))


def _status(descriptor: Descriptor, tab: Tab, now: datetime) -> ProviderStatus:
    return ProviderStatus(
        provider=descriptor.id,
        tab=tab.name,
        generation=tab.generation,
        descriptor_version=descriptor.version,
        check_time=now,
    )


def status_of(descriptor: Descriptor, seen: Seen, tab: Tab, serving: Serving, now: datetime) -> ProviderStatus:
    """What the tab shows of the provider at one of whose hosts it is."""
    composer = _composer(seen, serving)
    interstitial = _interstitial(seen, composer)
    sign_in = _sign_in(seen)
    return replace(
        _status(descriptor, tab, now),
        ready=seen.ready and composer is ComposerState.USABLE and serving.prompt is None,
        sign_in=sign_in,
        composer=composer,
        interstitial=interstitial,
        limit=_limit(descriptor, seen, now),
        shown_model=cut(normalised(seen.model), _MODEL_BYTES),
        conversation_uri=descriptor.conversation_of(seen.uri),
        warnings=tuple(_warnings(descriptor, seen, serving, sign_in, interstitial)),
    )


def _composer(seen: Seen, serving: Serving) -> ComposerState:
    if seen.stop:
        return ComposerState.BUSY
    match seen.composer:
        case "absent":
            return ComposerState.BLOCKED if seen.switched_off else ComposerState.ABSENT
        case "blocked":
            return ComposerState.BLOCKED
        case "usable":
            pass
    if not seen.composer_text.strip():
        return ComposerState.USABLE
    own = serving.prompt is not None and is_beginning(seen.composer_text, serving.prompt)
    return ComposerState.BUSY if own else ComposerState.OCCUPIED


def _interstitial(seen: Seen, composer: ComposerState) -> Interstitial:
    """What stands in for the page; what asks for a person goes first, and counts only without a usable composer."""
    if (barred := _BARRED.get(seen.barrier)) and seen.composer != "usable":
        return barred
    if not seen.ready:
        return Interstitial.LOADING
    if seen.composer == "blocked":
        return Interstitial.OVERLAY
    if composer is not ComposerState.ABSENT:
        return Interstitial.NONE
    is_bare = seen.turn_count == 0 and seen.text_count < _SHELL_CHARACTERS and not seen.barrier
    return Interstitial.EMPTY_SHELL if is_bare else Interstitial.UNSPECIFIED


def _sign_in(seen: Seen) -> SignIn:
    if seen.signed_in and seen.signed_out:
        return SignIn.UNSPECIFIED
    if seen.barrier == "sign_in" and seen.composer != "usable":
        return SignIn.REQUIRED
    if seen.signed_in:
        return SignIn.SIGNED_IN
    if seen.signed_out and seen.composer == "usable":
        return SignIn.ANONYMOUS
    nothing_else = seen.ready and not seen.stop and not seen.switched_off and seen.turn_count == 0
    if seen.signed_out and seen.composer == "absent" and nothing_else:
        return SignIn.REQUIRED
    return SignIn.UNSPECIFIED


def _limit(descriptor: Descriptor, seen: Seen, now: datetime) -> ProviderLimit | None:
    if seen.barrier != "limit":
        return None
    return ProviderLimit(cut(seen.barrier_text), reset_time_in(seen.barrier_text, descriptor.limit_reset, now))


def _warnings(
    descriptor: Descriptor, seen: Seen, serving: Serving, sign_in: SignIn, interstitial: Interstitial
) -> Iterable[Warning]:
    if sign_in is SignIn.UNSPECIFIED and (warning := _sign_in_warning(descriptor, seen)):
        yield warning
    if interstitial is Interstitial.UNSPECIFIED and sign_in is not SignIn.REQUIRED:
        message = f"The descriptor of {descriptor.id} finds no composer here, and nothing that explains it."
        yield Warning("page-changed", message)
    if seen.failure:
        yield Warning("error-shown", "The page shows an error.")
    if serving.prompt is not None:
        yield Warning("turn-open", "A turn is open in the session of this tab.")


def _sign_in_warning(descriptor: Descriptor, seen: Seen) -> Warning | None:
    """Why it is not certain who is signed in, where there is something to say about that."""
    seems_in, seems_out = seen.signed_in or seen.signed_in_hint, seen.signed_out or seen.signed_out_hint
    if seems_in and seems_out:
        return Warning("sign-in-unclear", "The page shows marks of being signed in and of being signed out.")
    if seems_in:
        return Warning("signed-in-suspected", "The page seems to be signed in, by a mark that nobody has confirmed.")
    if seems_out:
        return Warning("signed-out-suspected", "The page seems to be signed out; that is not certain.")
    if descriptor.marks.signed_in or descriptor.marks.signed_in_hint:
        return None
    return Warning("sign-in-unmarked", f"The descriptor of {descriptor.id} does not tell what shows a sign-in.")
