"""Prompts in requests of `WebAiService`, checked for form."""

from __future__ import annotations

from typing import Final

from tabmux.v1 import prompt_pb2
from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.errors import invalid_field
from tabmuxd.resources.prompt import Preamble, Prompt, PromptParts

MAX_PROMPT_BYTES: Final = 1024 * 1024


def rendered_prompt(request: pb.RenderPromptRequest) -> tuple[str, Prompt]:
    """`RenderPrompt`: id of the provider, and what to say."""
    if not request.provider:
        raise invalid_field("provider", "must be the id of a provider, such as chatgpt")
    return request.provider, prompt_of(request.prompt)


def prompt_of(message: prompt_pb2.Prompt) -> Prompt:
    """What to say; how long it may be rendered is known only to the domain."""
    if message.preamble not in prompt_pb2.Prompt.Preamble.values():
        raise invalid_field("prompt.preamble", "must be NONE, SAFETY or left out")
    preamble = Preamble(message.preamble or Preamble.NONE)
    match message.WhichOneof("content"):
        case "text":
            _check_text("prompt.text", message.text)
            _check_size("prompt.text", message.text)
            return Prompt(message.text, preamble)
        case "parts":
            return Prompt(_parts(message.parts), preamble)
        case None:
            raise invalid_field("prompt", "must have text or parts")


def _parts(message: prompt_pb2.PromptParts) -> PromptParts:
    _check_text("prompt.parts.question", message.question)
    parts = PromptParts(
        question=message.question,
        system=message.system,
        project=message.project,
        goal=message.goal,
        context=message.context,
        output=message.output,
        constraints=message.constraints,
    )
    _check_size("prompt.parts", *(part.strip() for _, part in message.ListFields()))
    return parts


def _check_text(field: str, text: str) -> None:
    if not text.strip():
        raise invalid_field(field, "must not be empty or blank")


def _check_size(field: str, *texts: str) -> None:
    if sum(len(text.encode()) for text in texts) > MAX_PROMPT_BYTES:
        raise invalid_field(field, f"must have at most {MAX_PROMPT_BYTES} bytes", limit=MAX_PROMPT_BYTES)
