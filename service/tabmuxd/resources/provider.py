"""Providers as clients see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum

from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word


class ProviderCapability(IntEnum):
    """Something the service can do with a provider."""

    UNSPECIFIED = 0
    CONTINUATION = 1
    ATTACHMENTS = 2
    ARTIFACTS = 3
    MODEL_CHOICE = 4
    CANCELLATION = 5
    PARTIAL_ANSWERS = 6
    SAFETY_PREAMBLE = 7


@dataclass(frozen=True, slots=True)
class Provider:
    """A web AI that the service knows how to drive; `models` are ids of what a prompt may ask for."""

    id: str
    display_name: str
    hosts: tuple[str, ...]
    start_uri: str
    capabilities: tuple[ProviderCapability, ...]
    default_answer_timeout: timedelta
    max_prompt_character_count: int
    descriptor_version: str
    warnings: tuple[Warning, ...] = ()
    models: tuple[str, ...] = ()
