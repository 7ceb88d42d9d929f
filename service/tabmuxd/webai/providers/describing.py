"""A descriptor as clients see it: what can be done at the provider, and never more than is built."""

from __future__ import annotations

from tabmuxd.resources.errors import cut
from tabmuxd.resources.provider import Provider, ProviderCapability
from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word
from tabmuxd.webai.providers.descriptor import Descriptor


def described(descriptor: Descriptor, fault: str = "") -> Provider:
    """The provider of a descriptor; `fault`: why a newer one, in its file, is not in use."""
    return Provider(
        id=descriptor.id,
        display_name=descriptor.display_name,
        hosts=descriptor.hosts,
        start_uri=descriptor.start_uri,
        capabilities=capabilities(descriptor),
        default_answer_timeout=descriptor.default_answer_timeout,
        max_prompt_character_count=descriptor.max_prompt_character_count,
        descriptor_version=descriptor.version,
        models=tuple(descriptor.choices.offered),
        warnings=(Warning("descriptor-broken", cut(fault)),) if fault else (),
    )


def capabilities(descriptor: Descriptor) -> tuple[ProviderCapability, ...]:
    """What the service can do there. Files of answers are not built."""
    every = (
        (ProviderCapability.CONTINUATION, True),  # each descriptor tells the addresses of conversations
        (ProviderCapability.ATTACHMENTS, descriptor.marks.takes_files),
        (ProviderCapability.MODEL_CHOICE, bool(descriptor.choices.offered)),
        (ProviderCapability.CANCELLATION, bool(descriptor.marks.stop)),
        (ProviderCapability.PARTIAL_ANSWERS, True),
        (ProviderCapability.SAFETY_PREAMBLE, "safety" in descriptor.preambles),
    )
    return tuple(capability for capability, is_there in every if is_there)
