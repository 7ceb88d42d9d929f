"""When an answer is whole: a pure function of samples and a clock.

Quiet alone never completes an answer whose provider has a finished mark: a long pause stays RUNNING (`stalled`). The
rule is reversible: text that changes, or Stop that comes back, begins the quiet anew. Stop alone proves nothing
either way: a pause is one with it and without it, but nothing is complete, or given up, while it is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tabmuxd.webai.providers.descriptor import Windows
from tabmuxd.webai.samples import OwnTurn, Sample


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a growing answer; times are on the caller's monotonic clock, in seconds.

    `quiet_since`: text and finished mark are unchanged since then. `stop_since`: when Stop was last seen, or seen to be
    gone.
    """

    quiet_since: float
    text: str = ""
    done: bool = False
    writing: bool = True
    stop_since: float = -math.inf


@dataclass(frozen=True, slots=True)
class Running:
    """It goes on; look again within `look_within` seconds."""

    stalled: bool
    look_within: float | None


@dataclass(frozen=True, slots=True)
class Complete:
    """It is whole; `quiet` is how long it had been unchanged, in seconds."""

    quiet: float


@dataclass(frozen=True, slots=True)
class Empty:
    """It ended with nothing."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The page shows an error in place of the answer."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Quiet for too long without the finished mark."""


Verdict = Running | Complete | Empty | Broken | GivenUp


def observe(
    before: Observation, sample: Sample, own: OwnTurn | None, placeholders: frozenset[str], now: float
) -> Observation:
    """What is known after one more sample.

    Shorter text replaces longer only while the page writes, or with the finished mark.
    """
    text = own.answer if own else ""
    if text.strip().casefold() in placeholders:
        text = ""
    done = own is not None and own.done
    if not text or (len(text) < len(before.text) and not sample.stop and not done):
        text = before.text  # a node that the page dropped or empties for a moment: what was captured stays
    changed = text != before.text or done != before.done
    return replace(
        before,
        text=text,
        done=done,
        writing=sample.stop,
        quiet_since=now if changed else before.quiet_since,
        stop_since=now if sample.stop or before.writing else before.stop_since,
    )


def judge(seen: Observation, sample: Sample, windows: Windows, now: float) -> Verdict:
    """What the answer is, after `observe`."""
    quiet = now - max(seen.quiet_since, seen.stop_since)
    if sample.failure and not seen.writing:
        return Broken()
    if seen.done and not seen.writing:
        if quiet < windows.done_quiet:
            return Running(stalled=False, look_within=windows.done_quiet - quiet)
        return Complete(quiet) if seen.text.strip() else Empty()
    if not seen.writing and quiet >= windows.give_up_after:
        return GivenUp()
    return Running(stalled=now - seen.quiet_since >= windows.stalled_after, look_within=None)
