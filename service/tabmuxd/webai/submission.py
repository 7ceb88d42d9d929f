"""Before and after the press: may this prompt be typed, does the composer hold it, was it committed?

Pure functions of samples. `None` means yes; a `Refused` says why not; "wait" means look again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.session import Session, Warning  # noqa: A004 - the contract's word
from tabmuxd.webai import whereabouts
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.samples import Sample, key_of, keys, lookup_hash, normalised, own_index

Wait = Literal["wait"]
Held = Literal["whole", "less", "other"]

_NO_LETTERS: Final = re.compile(r"[\W_]+")
_TELLING_LETTERS: Final = 32
_PIECE_CHARACTERS: Final = 8_192
_PIECE_SEARCH: Final = 1_024
_SETTLED_READS: Final = 3
_READ_INTERVAL: Final = 0.45
_STILL_ENOUGH: Final = 1.0
_KEPT: Final = 0.3
_RESTARTED: Final = Warning(
    "conversation-restarted",
    "With the prompt the page dropped all that was said before; the answer is to this prompt alone.",
)


def where(descriptor: Descriptor, sample: Sample, session: Session, tab: str, *, submitted: bool) -> Refused | None:
    """Whether the page shows the session's conversation, as `whereabouts.is_home` says; else what it shows."""
    if not descriptor.is_at(sample.uri):
        return whereabouts.not_shown(descriptor, tab)
    if whereabouts.is_home(descriptor, session, sample.uri, submitted=submitted):
        return None
    return whereabouts.another(descriptor, session.name, tab)


def may_type(descriptor: Descriptor, sample: Sample, tab: str) -> Refused | Wait | None:
    """Whether the composer takes a prompt now; the answer after the wait is over is the refusal."""
    if sample.ready and sample.composer == "usable" and not sample.stop:
        return None
    return "wait" if sample.composer != "usable" or not sample.ready else _composer(descriptor, tab, "busy")


def unusable(descriptor: Descriptor, sample: Sample | None, tab: str) -> Refused:
    """Why the composer could not be used when the wait for it was over."""
    state: str = "absent" if sample is None else sample.composer
    if state == "usable":
        state = "busy" if sample and sample.stop else "absent"
    return _composer(descriptor, tab, state)


def occupied(descriptor: Descriptor, tab: str) -> Refused:
    """The composer holds text that the service did not put there."""
    return _composer(descriptor, tab, "occupied")


def is_own_leftover(sample: Sample, prompt: str) -> bool:
    """Whether what the composer holds is this prompt, or the beginning of it: left by a run that was cut off."""
    return is_beginning(sample.composer_text, prompt)


def is_beginning(text: str, prompt: str) -> bool:
    """Whether a text that a page shows is this prompt, or begins as it does.

    Only letters and digits count, since a rich editor may show the rest anew; a prompt that a page took twice over,
    because it was not ready, is as much our own.
    """
    held, own = letters_of(text), letters_of(prompt)
    if not held or not own:
        held, own = normalised(text), normalised(prompt)
    return bool(held) and (own * (len(held) // max(1, len(own)) + 1)).startswith(held)


def is_telling(text: str, prompt: str) -> bool:
    """Whether a text that begins as this prompt is long enough to be that, and not somebody's own that begins alike."""
    return len(letters_of(text)) >= min(_TELLING_LETTERS, len(letters_of(prompt)))


def letters_of(text: str) -> str:
    """Letters and digits alone."""
    return _NO_LETTERS.sub("", text)


def held(sample: Sample, prompt: str) -> Held:
    """Whether the composer holds the whole prompt and nothing else, less of it, or something else.

    A text area is compared exactly, but for line ends; a rich editor line by line but for empty ones and the width of
    white space, which it may show anew.
    """
    if sample.composer_exact:
        whole = sample.composer_text == with_line_feeds(prompt)
    else:
        whole = _lines(sample.composer_text) == _lines(with_line_feeds(prompt))
    if whole:
        return "whole"
    return "less" if not sample.composer_text.strip() or is_own_leftover(sample, prompt) else "other"


def with_line_feeds(text: str) -> str:
    """`text` with line ends as a page has them."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def pieces(text: str) -> Sequence[str]:
    """`text` in pieces to insert one by one; each but the first begins with the end of a line, if one is near.

    None is of white space alone unless the text is: ProseMirror takes a line end that comes by itself for Enter, which
    may send.
    """
    found: list[str] = []
    start = 0
    while len(text) - start > _PIECE_CHARACTERS and text[start + _PIECE_CHARACTERS :].strip():
        end = start + _PIECE_CHARACTERS
        line_end = text.rfind("\n", end - _PIECE_SEARCH, end)
        first = len(text) - len(text[start:].lstrip())
        end = line_end if line_end > first else max(end, first + 1)
        found.append(text[start:end])
        start = end
    rest = text[start:]
    return (*found, rest) if rest.strip() or not found else (*found[:-1], found[-1] + rest)


def is_kept(sample: Sample, typed_for: float) -> bool:
    """Whether a page that holds a prompt for so many seconds can be taken to keep it.

    One that is not quite there yet may throw away what was typed; one that took a prompt before is.
    """
    return sample.whole or typed_for >= _KEPT


@dataclass(frozen=True, slots=True)
class Settling:
    """How far the list of turns is known to be whole, in a page that mounts them bit by bit; times in seconds."""

    shown: tuple[str, ...] | None = None
    reads: int = 0
    last_read: float = 0.0

    @property
    def settled(self) -> bool:
        """Whether a baseline can be taken."""
        return self.reads >= _SETTLED_READS

    def after(self, sample: Sample, now: float, *, empty: bool) -> Settling:
        """What is known after one more look; `empty`: there is no conversation yet, so that no turn can be missing.

        Settled by an equal list in three reads half a second apart, or where the page tells that it is.
        """
        shown = keys(sample)
        if empty and not shown:
            return replace(self, shown=shown, reads=_SETTLED_READS)
        if not shown:
            return Settling()
        if sample.whole or sample.still >= _STILL_ENOUGH:
            return replace(self, shown=shown, reads=_SETTLED_READS)
        if shown != self.shown:
            return Settling(shown, 1, now)
        if now - self.last_read < _READ_INTERVAL:
            return self
        return Settling(shown, self.reads + 1, now)


def sent_by_page(sample: Sample, baseline: Sequence[str], prompt: str) -> bool:
    """Whether the page sent by itself what was typed, or a part of it: it shows in a new user turn, or is answered."""
    known = set(baseline)
    return (sample.stop and not sample.composer_text.strip()) or any(
        turn.role == "user" and turn.text and key_of(turn) not in known and is_beginning(turn.text, prompt)
        for turn in sample.turns
    )


def committed(sample: Sample, lookup_sha256: str, baseline: Sequence[str], *, fresh: bool) -> bool:
    """Whether the page shows that it took the prompt: it left the composer, and a new user turn holds it.

    The turn has to stand behind all that was there before the press: an older one with the same text may be mounted
    late. `fresh`: the session had no conversation yet; then nothing but that may stand before it, since an address that
    changed can as well be that of another conversation, to which a person went.
    """
    at = own_index(sample, lookup_sha256)
    if at is None or lookup_hash(sample.composer_text) == lookup_sha256:
        return False
    known = set(baseline)
    before = [key_of(turn) for turn in sample.turns[:at]]
    if any(key_of(turn) in known for turn in sample.turns[at + 1 :]):
        return False
    if fresh or not known:
        return not fresh or all(key in known for key in before)
    if not sample.turns[at].key:
        return before[-1:] == [baseline[-1]]
    return any(key in known for key in before)


def restarted(sample: Sample, baseline: Sequence[str], *, fresh: bool) -> tuple[Warning, ...]:
    """A warning where a conversation without an address shows none of its earlier turns with the new prompt."""
    gone = fresh and bool(baseline) and set(baseline).isdisjoint(keys(sample))
    return (_RESTARTED,) if gone else ()


def in_flight(sample: Sample, lookup_sha256: str, descriptor: Descriptor, *, fresh: bool) -> bool:
    """Whether there are signs, yet no proof, that the page is about to show the prompt: it is worth waiting longer.

    The composer let it go, and the page writes or has come to the address of a conversation.
    """
    if lookup_hash(sample.composer_text) == lookup_sha256:
        return False
    return sample.stop or (fresh and bool(descriptor.conversation_of(sample.uri)))


def unsettled(descriptor: Descriptor, tab: str) -> Refused:
    """The turns of the conversation do not stay the same for a moment, or none shows: what is new cannot be told."""
    return _changed(descriptor, tab, "turns", "no list of turns that stays as it is")


def not_pressed(descriptor: Descriptor, tab: str, why: str, session: Session) -> Refused:
    """The last look before the press found something else: nothing was pressed."""
    match why:
        case "moved":
            return whereabouts.another(descriptor, session.name, tab)
        case "changed" | "files":
            return _composer(descriptor, tab, "occupied")
        case "absent" | "blocked" | "busy":
            return _composer(descriptor, tab, why)
        case _:
            return _changed(descriptor, tab, "send", f"no send control that can be pressed ({why})")


def _changed(descriptor: Descriptor, tab: str, expected: str, what: str) -> Refused:
    return refuse(
        Reason.PROVIDER_PAGE_CHANGED,
        f"{tab} shows {what}; nothing was submitted.",
        provider=descriptor.id,
        tab=tab,
        expected=expected,
        descriptor_version=descriptor.version,
    )


def _composer(descriptor: Descriptor, tab: str, cause: str) -> Refused:
    return refuse(
        Reason.PROVIDER_COMPOSER_UNUSABLE,
        f"The box for prompts in {tab} cannot be used ({cause}); nothing was submitted.",
        provider=descriptor.id,
        tab=tab,
        cause=cause,
    )


def _lines(text: str) -> list[str]:
    return [line for line in map(normalised, text.split("\n")) if line]
