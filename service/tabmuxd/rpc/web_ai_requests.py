"""Requests of `WebAiService` as orders, checked for form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.errors import invalid_field
from tabmuxd.resources.names import is_request_key, is_session_id
from tabmuxd.resources.orders import PromptOrder, SessionOrder, TabPolicy
from tabmuxd.rpc import fields
from tabmuxd.rpc.prompt_requests import prompt_of
from tabmuxd.rpc.session_requests import DEFAULT_TTL, ttl
from tabmuxd.rpc.tab_requests import payload_sha256

MAX_ATTACHMENTS: Final = 10
_LEAST_ANSWER_TIMEOUT: Final = timedelta(seconds=10)
_MOST_ANSWER_TIMEOUT: Final = timedelta(hours=4)
_DEFAULT_WAIT: Final = timedelta(seconds=30)
_MOST_WAIT: Final = timedelta(minutes=10)
_MODEL: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class TurnWait:
    """`WaitTurn`; an `after_revision` of 0 means until the end only."""

    name: str
    max_wait: timedelta
    after_revision: int


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """`StreamAnswer`: what the reader has."""

    name: str
    size_bytes: int
    sha256: str


def provider_id(provider: str) -> str:
    """The id of a provider, which may be known or not."""
    if not provider:
        raise invalid_field("provider", "must be the id of a provider, such as chatgpt")
    return provider


def session_order(request: pb.CreateSessionRequest) -> SessionOrder:
    """`CreateSession`."""
    provider = provider_id(request.provider)
    if request.session_id and not is_session_id(request.session_id):
        raise invalid_field("session_id", "must be 1 to 63 characters of a-z, 0-9 and -, or empty")
    policy, tab, group = _tab_policy(request)
    return SessionOrder(
        provider=provider,
        policy=policy,
        tab=tab,
        browser=fields.first_browser("browser", request.browser),
        session_id=request.session_id,
        conversation_uri=fields.uri("conversation_uri", request.conversation_uri),
        labels=fields.new_labels("labels", request.labels),
        ttl=ttl(request.ttl) if request.HasField("ttl") else DEFAULT_TTL,
        group=group or request.provider,
        activate=request.new_tab.activate,
    )


def _tab_policy(request: pb.CreateSessionRequest) -> tuple[TabPolicy, str, str]:
    """Policy, the tab named, and the group of a tab to come."""
    match request.WhichOneof("tab_policy"):
        case "pooled_tab":
            return TabPolicy.POOLED, "", fields.group("pooled_tab.group", request.pooled_tab.group)
        case "front_tab":
            return TabPolicy.FRONT, "", ""
        case "tab":
            return TabPolicy.NAMED, fields.tab_name("tab", request.tab), ""
        case "new_tab" | None:
            return TabPolicy.NEW, "", fields.group("new_tab.group", request.new_tab.group)


def prompt_order(request: pb.SendPromptRequest) -> PromptOrder:
    """`SendPrompt`."""
    session = fields.session_name("parent", request.parent)
    if not is_request_key(request.request_id):
        raise invalid_field("request_id", "must be 1 to 64 characters of A-Z, a-z, 0-9, -, _, . and :")
    answer_timeout = (
        fields.clamped("answer_timeout", request.answer_timeout, least=_LEAST_ANSWER_TIMEOUT, most=_MOST_ANSWER_TIMEOUT)
        if request.HasField("answer_timeout")
        else None
    )
    attachments = fields.few("attachments", request.attachments, MAX_ATTACHMENTS)
    for index, name in enumerate(attachments):
        fields.artifact_name(f"attachments[{index}]", name)
        if name in attachments[:index]:
            raise invalid_field(f"attachments[{index}]", "must name another file than those before")
    if request.model and _MODEL.fullmatch(request.model) is None:
        raise invalid_field("model", "must be an id of a-z, 0-9 and - within, at most 63 characters, or empty")
    prompt = prompt_of(request.prompt)
    return PromptOrder(
        session=session,
        prompt=prompt,
        request_id=request.request_id,
        payload_sha256=payload_sha256(request, without="attachments"),
        attachments=attachments,
        answer_timeout=answer_timeout,
        release_tab=request.release_tab,
        model=request.model,
    )


def turn_wait(request: pb.WaitTurnRequest) -> TurnWait:
    """`WaitTurn`."""
    return TurnWait(
        name=fields.turn_name("name", request.name),
        max_wait=(
            fields.clamped("max_wait_duration", request.max_wait_duration, most=_MOST_WAIT)
            if request.HasField("max_wait_duration")
            else _DEFAULT_WAIT
        ),
        after_revision=fields.natural("after_revision", request.after_revision),
    )


def known_answer(request: pb.StreamAnswerRequest) -> KnownAnswer:
    """`StreamAnswer`; a size comes with its hash."""
    size_bytes = fields.natural("known_size_bytes", request.known_size_bytes)
    hashed = request.known_sha256
    if (size_bytes or hashed) and _SHA256.fullmatch(hashed) is None:
        raise invalid_field("known_sha256", "must be 64 lower-case hex digits, and is required with known_size_bytes")
    return KnownAnswer(fields.turn_name("name", request.name), size_bytes, hashed)
