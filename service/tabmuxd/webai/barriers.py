"""What stands between a prompt and its provider: sign-in, challenge, consent, or a limit; told, never passed.

Pure functions of samples. A composer that can be used overrules every mark: a link to sign in stands on pages that work
without, and words of a conversation decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.webai.providers.descriptor import Descriptor, PersonBarrier
from tabmuxd.webai.samples import Sample

_LONGEST_LIMIT: Final = timedelta(days=366)
_ISO_TIME: Final = re.compile(r"\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})")
_UNITS: Final = ("days", "hours", "minutes", "seconds")


class Barred(Exception):
    """A person has to act in the browser before anything is typed or taken; `refused` says what for."""

    def __init__(self, refused: Refused) -> None:
        """With the reason that the turn shows meanwhile."""
        super().__init__(refused.message)
        self.refused = refused


def at_address(descriptor: Descriptor, uri: str, tab: str) -> Refused | None:
    """What a person has to see to at this address; pages of such hosts are not looked at."""
    barrier = descriptor.barrier_at(uri)
    return barrier and _refused(descriptor, barrier, tab)


def shown(descriptor: Descriptor, sample: Sample, tab: str) -> Refused | None:
    """What a person has to see to in the page."""
    match sample.barrier:
        case "sign_in" | "challenge" | "consent" if sample.composer != "usable":
            return _refused(descriptor, sample.barrier, tab)
        case _:
            return None


def limited(descriptor: Descriptor, sample: Sample, tab: str, now: datetime) -> Refused | None:
    """PROVIDER_LIMITED where the page shows a limit, whether the composer can be used or not."""
    if sample.barrier != "limit":
        return None
    reset_time = reset_time_in(sample.barrier_text, descriptor.limit_reset, now)
    message = f"{descriptor.id} takes no more prompts for now."
    if reset_time is None:
        return refuse(Reason.PROVIDER_LIMITED, message, provider=descriptor.id, tab=tab)
    return refuse(
        Reason.PROVIDER_LIMITED,
        message,
        retry_after=max(0.0, (reset_time - now).total_seconds()),
        provider=descriptor.id,
        tab=tab,
        reset_time=reset_time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def reset_time_in(text: str, patterns: Sequence[re.Pattern[str]], now: datetime) -> datetime | None:
    """When a limit ends, by what the page says of it: a time of ISO 8601, or as long from now as a pattern tells.

    A pattern has groups named `days`, `hours`, `minutes` or `seconds`, which match whole numbers. A time that is past,
    or over a year away, is none.
    """
    for moment in (*_told_times(text), *_told_spans(text, patterns, now)):
        if now < moment <= now + _LONGEST_LIMIT:
            return moment
    return None


def _told_times(text: str) -> list[datetime]:
    found: list[datetime] = []
    for match in _ISO_TIME.finditer(text):
        try:
            found.append(datetime.fromisoformat(match[0]))
        except ValueError:
            continue
    return found


def _told_spans(text: str, patterns: Sequence[re.Pattern[str]], now: datetime) -> list[datetime]:
    found: list[datetime] = []
    for pattern in patterns:
        if match := pattern.search(text):
            told = {unit: value for unit, value in match.groupdict().items() if unit in _UNITS and value}
            try:
                found.append(now + timedelta(**{unit: int(value) for unit, value in told.items()}))
            except (ValueError, OverflowError):
                continue
    return found


def _refused(descriptor: Descriptor, barrier: PersonBarrier, tab: str) -> Refused:
    match barrier:
        case "sign_in":
            reason, wanted = Reason.PROVIDER_SIGN_IN_REQUIRED, "to sign in"
        case "challenge":
            reason, wanted = Reason.PROVIDER_CHALLENGE_SHOWN, "for proof of a person"
        case "consent":
            reason, wanted = Reason.PROVIDER_CONSENT_REQUIRED, "for consent to something"
    return refuse(
        reason,
        f"{descriptor.id} asks {wanted} in {tab}; the turn goes on by itself once a person has seen to that.",
        provider=descriptor.id,
        tab=tab,
    )
