"""Prompts: a text, or parts that the service makes one text of; and what goes before the first of a conversation."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from tabmux.calls import Calls
from tabmux.v1.prompt_pb2 import Prompt, PromptParts
from tabmux.v1.web_ai_service_pb2 import RenderPromptRequest, RenderPromptResponse

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only

Said = str | PromptParts | Prompt
"""What to say: a text, sent as it is; parts; or all that the contract has."""

Preamble = Literal["none", "safety"]

PREAMBLES: Mapping[Preamble, Prompt.Preamble.ValueType] = MappingProxyType(
    {"none": Prompt.PREAMBLE_NONE, "safety": Prompt.PREAMBLE_SAFETY},
)


def prompt_of(said: Said, preamble: Preamble | None = None) -> Prompt:
    """What to say as the contract has it; `preamble` replaces that of a `Prompt`, which stays as it was given."""
    prompt = Prompt()
    match said:
        case str():
            prompt.text = said
        case PromptParts():
            prompt.parts.CopyFrom(said)
        case Prompt():
            prompt.CopyFrom(said)
    if preamble is not None:
        prompt.preamble = PREAMBLES[preamble]
    return prompt


async def render(service: "WebAiServiceAsyncStub", calls: Calls, provider: str, prompt: Prompt) -> RenderPromptResponse:
    """The text that a prompt becomes as the first one of a conversation with this provider."""
    return await calls.unary(service.RenderPrompt, RenderPromptRequest(provider=provider, prompt=prompt))
