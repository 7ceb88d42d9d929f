"""Prompts: what a client wants said, and the text that it becomes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256

from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word


class Preamble(IntEnum):
    """What the service puts before the first prompt of a conversation."""

    UNSPECIFIED = 0
    NONE = 1
    SAFETY = 2


@dataclass(frozen=True, slots=True)
class PromptParts:
    """Parts that the service makes one text of; empty ones are left out. `context` is material from others."""

    question: str
    system: str = ""
    project: str = ""
    goal: str = ""
    context: str = ""
    output: str = ""
    constraints: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What to say: a text as it is, or parts; and what goes before it."""

    content: str | PromptParts
    preamble: Preamble = Preamble.NONE


@dataclass(frozen=True, slots=True)
class RenderedPrompt:
    """The text that a prompt becomes, and what of it may not be as wanted."""

    text: str
    warnings: tuple[Warning, ...] = ()

    @property
    def character_count(self) -> int:
        """Its length in Unicode characters."""
        return len(self.text)

    @property
    def sha256(self) -> str:
        """Hash of its UTF-8, lower-case hex."""
        return sha256(self.text.encode()).hexdigest()
