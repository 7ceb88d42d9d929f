"""What becomes of a record: a session with its turns, all ended, or why it is left out. Decides, and does nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tabmuxd.resources.errors import Failure, PageTouched, Reason
from tabmuxd.resources.imports import ImportSource, SkipCause
from tabmuxd.resources.session import (
    CompletionEvidence,
    Session,
    SessionState,
    Turn,
    TurnState,
    Warning,  # noqa: A004 - the contract's word
)
from tabmuxd.webai.importing.addresses import trusted_part
from tabmuxd.webai.importing.old_records import OldRecord, OldTurn
from tabmuxd.webai.providers.descriptor import Descriptor

_LIVE: Final = frozenset({"sent", "polling", "streaming", "timeout", "crashed"})
_LIVE_WITHOUT_DEADLINE: Final = timedelta(hours=24)
_COMPLETE: Final = frozenset({"complete", "completed"})

_Outcome = tuple[Reason, PageTouched]
_OUTCOMES: Final[Mapping[str, _Outcome]] = {
    "polling": (Reason.ANSWER_TIMEOUT, "yes"),
    "streaming": (Reason.ANSWER_TIMEOUT, "yes"),
    "timeout": (Reason.ANSWER_TIMEOUT, "yes"),
    "crashed": (Reason.TAB_GONE, "unknown"),
    "blocked": (Reason.PROVIDER_LIMITED, "unknown"),
    "failed": (Reason.PROVIDER_FAILED, "yes"),
}
_OUTCOMES_OF_ERRORS: Final[Mapping[str, _Outcome]] = {
    "provider.poll-timeout": (Reason.ANSWER_TIMEOUT, "yes"),
    "tab.target-lost": (Reason.TAB_GONE, "unknown"),
    "provider.work-state-unknown": (Reason.PROVIDER_PAGE_CHANGED, "yes"),
}
_NOT_PROVEN: Final[_Outcome] = (Reason.SUBMIT_UNCONFIRMED, "unknown")

_MESSAGES: Final[Mapping[Reason, str]] = {
    Reason.ANSWER_TIMEOUT: "The other tool stopped waiting for the answer before it was whole.",
    Reason.SUBMIT_UNCONFIRMED: "The other tool did not keep whether the prompt was submitted.",
    Reason.TAB_GONE: "The other tool lost the page of this prompt.",
    Reason.PROVIDER_PAGE_CHANGED: "The other tool could not tell what the page showed.",
    Reason.PROVIDER_LIMITED: "The other tool met a limit of the provider.",
    Reason.PROVIDER_FAILED: "The provider showed an error in place of the answer.",
}
_WARNINGS: Final[Mapping[str, str]] = {
    "imported": "This turn was imported from another tool.",
    "import-archived": "The conversation was archived at the provider.",
    "import-artifacts-left": "Files of the answer were left where the other tool keeps them.",
    "import-answer-missing": "The other tool called the answer complete, and kept none.",
    "answer-cut": "The answer is longer than 1 MiB, and was cut.",
}


@dataclass(frozen=True, slots=True)
class Become:
    """A session and its turns, oldest first; `lost` is whether it is retired at once, for no prompt may go there."""

    session: Session
    turns: tuple[Turn, ...]
    lost: bool


def become(
    record: OldRecord,
    descriptor: Descriptor | None,
    *,
    names: Sequence[str],
    owner: str,
    browser: str,
    ttl: timedelta,
    now: datetime,
    models: Collection[str] = (),
) -> Become | SkipCause:
    """The session under the first of `names`, its turns under the others; or why the record is left out.

    `models` are those that a prompt may ask for.
    """
    if descriptor is None:
        return SkipCause.UNKNOWN_PROVIDER
    if is_live(record, now):
        return SkipCause.STILL_LIVE
    conversation = ""
    if record.address is not None:
        trusted = trusted_part(record.address, descriptor.hosts)
        if trusted is None:
            return SkipCause.ADDRESS_REFUSED
        conversation = descriptor.conversation_of(trusted)
    name, *turn_names = names
    session = Session(
        name=name,
        state=SessionState.ACTIVE,
        provider=descriptor.id,
        descriptor_version=descriptor.version,
        owner=owner,
        create_time=min(record.created, now),
        last_active_time=min(record.updated, now),
        browser=browser,
        conversation_uri=conversation,
        labels={"import-source": record.source.label, "import-id": record.id},
        ttl=ttl,
        expire_time=now + ttl,
        last_turn=turn_names[-1],
        prompted=True,
    )
    turns = tuple(
        _turn(turn, record.source, turn_name, descriptor, models, now)
        for turn, turn_name in zip(record.turns, turn_names, strict=True)
    )
    return Become(session, turns, lost=not conversation)


def is_live(record: OldRecord, now: datetime) -> bool:
    """Whether the other tool may still be reading the answer."""
    if record.status not in _LIVE:
        return False
    return record.deadline > now if record.deadline is not None else record.updated > now - _LIVE_WITHOUT_DEADLINE


def outcome(turn: OldTurn, source: ImportSource, *, has_text: bool) -> tuple[TurnState, _Outcome | None]:
    """How a turn ended, and for a failure its reason and whether the prompt reached the page."""
    if turn.status in _COMPLETE:
        if has_text:
            return TurnState.SUCCEEDED, None
        # cli-jaw leaves this where the answer was stopped before there was any.
        return (
            (TurnState.CANCELLED, None) if source is ImportSource.CLI_JAW else (TurnState.FAILED, _OUTCOMES["timeout"])
        )
    if turn.status == "error":
        return TurnState.FAILED, _OUTCOMES_OF_ERRORS.get(turn.code, _NOT_PROVEN)
    return TurnState.FAILED, _OUTCOMES.get(turn.status, _NOT_PROVEN)


def _turn(  # noqa: PLR0917 - what a turn is made of
    old: OldTurn, source: ImportSource, name: str, descriptor: Descriptor, models: Collection[str], now: datetime
) -> Turn:
    answer = old.answer.text.decode()
    has_text = bool(answer.strip())
    state, failed = outcome(old, source, has_text=has_text)
    codes = ["imported", *old.remarks]
    if old.status in _COMPLETE and not has_text:
        codes.append("import-answer-missing")
    if old.answer.is_cut:
        codes.append("answer-cut")
    begun = min(old.begun, now)
    ended = max(begun, min(old.ended, now))
    stable = old.stable if state is TurnState.SUCCEEDED else timedelta(0)
    return Turn(
        name=name,
        state=state,
        request_id="",
        prompt_sha256="",
        payload_sha256="",
        create_time=begun,
        expire_time=ended if old.deadline is None else old.deadline,
        answer_markdown=answer,
        answer_size_bytes=len(old.answer.text),
        completion=CompletionEvidence(False, stable) if state is TurnState.SUCCEEDED else None,
        error=None if failed is None else _failure(*failed, name, descriptor),
        warnings=tuple(Warning(code, _WARNINGS[code]) for code in codes),
        model=old.model if old.model in models else "",
        shown_model=old.shown_model,
        end_time=ended,
    )


def _failure(reason: Reason, touched: PageTouched, turn: str, descriptor: Descriptor) -> Failure:
    told: dict[str, str] = {"page_touched": touched, "retry": "after-verify"}
    match reason:
        case Reason.TAB_GONE:
            told |= {"tab": "", "state": "LOST", "generation": "0"}
        case Reason.PROVIDER_LIMITED:
            told |= {"provider": descriptor.id, "tab": ""}
        case Reason.PROVIDER_FAILED:
            told |= {"provider": descriptor.id, "turn": turn}
        case Reason.PROVIDER_PAGE_CHANGED:
            told |= {
                "provider": descriptor.id,
                "tab": "",
                "expected": "",
                "descriptor_version": descriptor.version,
            }
        case _:
            told |= {"turn": turn}
    return Failure(reason.value, _MESSAGES[reason], told)
