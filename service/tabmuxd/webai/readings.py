"""What the words in an answer's place are: the answer, or what the page puts there until it comes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tabmuxd.webai.providers.descriptor import Descriptor


@dataclass(frozen=True, slots=True)
class Reading:
    """The text of an answer, empty for a placeholder.

    `halted`: the page says instead that somebody stopped it; `pending`: that it will come.
    """

    text: str
    halted: bool = False
    pending: bool = False


def reading(shown: str, descriptor: Descriptor) -> Reading:
    """What the text in the answer's place is, without what the page puts before it."""
    text = shown
    if descriptor.answer_prefix is not None and (found := descriptor.answer_prefix.match(shown.lstrip())):
        text = shown.lstrip()[found.end() :].lstrip()
    whole = text.strip().casefold()
    if whole in descriptor.halted_texts:
        return Reading("", halted=True)
    if descriptor.pending is not None and descriptor.pending.fullmatch(text.strip()):
        return Reading("", pending=True)
    if not whole or whole in descriptor.placeholders or whole.startswith(descriptor.placeholder_prefixes):
        return Reading("")
    return Reading(text)
