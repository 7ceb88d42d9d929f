"""What has to be true of each turn once it has ended: pure judgements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.turns.plan import End

# What a turn may end with that met an outage or lost its tab, and whether its prompt may have been sent then.
_BEFALLEN: Final = {
    "SUBMIT_UNCONFIRMED": True,
    "ANSWER_TIMEOUT": True,
    "RECOVERY_FAILED": True,
    "TAB_CLOSED": True,
    "TAB_GONE": True,
    "PROVIDER_CONVERSATION_CHANGED": True,
    "PROVIDER_COMPOSER_UNUSABLE": False,
    "PROVIDER_PAGE_CHANGED": False,
    "PROVIDER_NOT_SHOWN": False,
}


@dataclass(frozen=True)
class Seen:
    """How a turn ended, what its page shows in the end, and how often the page got the prompt.

    `befallen`: a tab was closed, or something killed, while it was open.
    """

    succeeded: bool
    reason: str
    text: str
    page_text: str
    received_count: int
    end: End
    befallen: bool


def fault(seen: Seen) -> str:
    """What is wrong with a turn; empty where all is right."""
    if seen.received_count > 1:
        return f"sent {seen.received_count} times"
    return _fault_of_success(seen) if seen.succeeded else _fault_of_failure(seen)


def _fault_of_success(seen: Seen) -> str:
    if seen.received_count != 1:
        return "succeeded without having been sent"
    if seen.end is not End.DONE:
        return f"succeeded in place of {seen.end.value}"
    if seen.text == seen.page_text:
        return ""
    if seen.page_text.startswith(seen.text):
        return "truncated"
    return "doubled" if seen.page_text in seen.text else "foreign text"


def _fault_of_failure(seen: Seen) -> str:
    if not seen.page_text.startswith(seen.text):
        return "foreign text"
    if seen.reason == seen.end.value and seen.received_count == 1:
        whole = seen.end is End.HALTED or seen.text == seen.page_text
        return "" if whole or seen.befallen else "text lost"
    if not seen.befallen:
        return f"{seen.reason or 'no reason'} without a cause"
    if seen.reason not in _BEFALLEN:
        return f"{seen.reason} is no reason here"
    return "" if _BEFALLEN[seen.reason] or seen.received_count == 0 else f"{seen.reason}, but it was sent"
