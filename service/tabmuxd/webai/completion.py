"""When an answer is whole: a pure function of samples and a clock.

Quiet alone never completes an answer whose provider has a finished mark: a long pause stays RUNNING (`stalled`). Where
the provider has none, quiet for the window of a text of that length does, if the page paints. The rule is reversible:
text that changes, or Stop that comes back, begins the quiet anew. Stop alone proves nothing either way: a pause is one
with it and without it, but nothing is complete, or given up, while it is shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.readings import reading
from tabmuxd.webai.samples import OwnTurn, Sample


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known of a growing answer; times are on the caller's monotonic clock, in seconds.

    `quiet_since`: text and marks are unchanged since then. `stop_since`: when Stop was last seen, or seen to be gone.
    `frames`: how often the page had painted when the quiet began. `halted`: the page says that somebody stopped it.
    `files`: the answer carries some. `placed`: something stands in the answer's place. `pending`: the page says in it
    that the answer will come.
    """

    quiet_since: float
    text: str = ""
    done: bool = False
    hint: bool = False
    writing: bool = True
    stop_since: float = -math.inf
    frames: int = 0
    halted: bool = False
    files: bool = False
    placed: bool = False
    pending: bool = False

    def quiet(self, now: float) -> float:
        """For how long nothing has changed and nothing was written, in seconds."""
        return now - max(self.quiet_since, self.stop_since)


@dataclass(frozen=True, slots=True)
class Running:
    """It goes on; look again within `look_within` seconds."""

    stalled: bool
    look_within: float | None


@dataclass(frozen=True, slots=True)
class Complete:
    """It is whole; `quiet` is how long it had been unchanged, in seconds, `done` whether it has its finished mark."""

    quiet: float
    done: bool = True


@dataclass(frozen=True, slots=True)
class Empty:
    """It ended with nothing."""


@dataclass(frozen=True, slots=True)
class Halted:
    """Somebody stopped it in the page before it had a text."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The page shows an error in place of the answer."""


@dataclass(frozen=True, slots=True)
class Limited:
    """The page shows a limit, and the answer is not finished."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Quiet for too long without a sign that it is whole."""


Failed = Empty | Halted | Broken | Limited | GivenUp
Verdict = Running | Complete | Failed


def observe(
    before: Observation, sample: Sample, own: OwnTurn | None, descriptor: Descriptor, now: float
) -> Observation:
    """What is known after one more sample.

    Shorter text replaces longer only with the finished mark, or while the page writes it anew. The mark counts if it
    was once seen with the text: a page that empties what is out of sight may have written on before that.
    """
    read = reading(own.answer if own else "", descriptor)
    seen = own is not None and not own.remembered and (bool(read.text) or own.files or not before.text)
    done = own is not None and own.done and (seen or before.done)
    text = read.text
    if not text or (len(text) < len(before.text) and not (seen and (done or _rewritten(before.text, text, sample)))):
        text = before.text  # a node that the page dropped or empties for a moment: what was captured stays
    after = replace(
        before,
        text=text,
        done=done,
        hint=own is not None and own.hint,
        writing=sample.stop,
        halted=read.halted and not text,
        files=before.files or (own is not None and own.files),
        placed=before.placed or (own is not None and own.answered),
        pending=read.pending and not text,
    )
    changed = (text, done, after.hint, after.halted, after.files) != (
        before.text,
        before.done,
        before.hint,
        before.halted,
        before.files,
    )
    return replace(
        after,
        quiet_since=now if changed else before.quiet_since,
        stop_since=now if sample.stop or before.writing else before.stop_since,
        frames=sample.frames if changed or sample.stop or sample.frames < before.frames else before.frames,
    )


def _rewritten(before: str, text: str, sample: Sample) -> bool:
    """Whether a shorter text is another one, and not what a page shows of the same that is being loaded again."""
    return sample.stop and not before.startswith(text)


def judge(seen: Observation, sample: Sample, descriptor: Descriptor, now: float) -> Verdict:
    """What the answer is, after `observe`."""
    windows, quiet = descriptor.windows, seen.quiet(now)
    if sample.failure and not seen.writing:
        return Broken()
    if sample.barrier == "limit" and not seen.writing and not seen.done and quiet >= windows.done_quiet:
        return Limited()
    needed = needed_quiet(seen, descriptor)
    if needed is not None and not seen.writing:
        if quiet < needed:
            return Running(stalled=False, look_within=needed - quiet)
        if seen.done or _paints(seen, sample):
            return _ended(seen, quiet)
    if not seen.writing and quiet >= windows.give_up_after:
        nothing = descriptor.quiet_completes and seen.placed and not seen.text
        return Empty() if nothing else GivenUp()
    return Running(stalled=now - seen.quiet_since >= windows.stalled_after, look_within=None)


def judge_last(seen: Observation, sample: Sample, descriptor: Descriptor, now: float) -> Verdict:
    """What the answer is when its time is over: the windows are longer, and there is no second look."""
    windows = descriptor.windows
    last = replace(windows, done_quiet=windows.last_done_quiet, hint_quiet=windows.last_quiet, quiet=(), quiet_longer=0)
    longer = replace(descriptor, windows=replace(last, quiet_longer=max(windows.last_quiet, windows.quiet_longer)))
    return judge(seen, sample, longer, now)


def needed_quiet(seen: Observation, descriptor: Descriptor) -> float | None:
    """How long this has to be unchanged to be an end, in seconds; None where no time is enough."""
    windows = descriptor.windows
    if seen.pending:
        return None
    if seen.done or seen.halted:
        return windows.done_quiet
    if not descriptor.quiet_completes or not (seen.text.strip() or seen.files):
        return None
    return windows.hint_quiet if seen.hint else windows.quiet_for(len(seen.text))


def _ended(seen: Observation, quiet: float) -> Verdict:
    if seen.text.strip() or (seen.files and not seen.halted):
        return Complete(quiet, seen.done)
    return Halted() if seen.halted else Empty()


def _paints(seen: Observation, sample: Sample) -> bool:
    """Whether the page has painted since the quiet began: one that does not shows nothing new, whatever it has."""
    return sample.frames > seen.frames
