"""What Chrome sends, as plain values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

_JSON: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)  # to make one a call took half of its time


@dataclass(frozen=True, slots=True)
class Refusal:
    """The error object of a reply."""

    code: int
    message: str
    data: str


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to the call with this id."""

    id: int
    result: dict[str, Any]
    refusal: Refusal | None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened in a session, or in the browser itself where `session_id` is empty."""

    method: str
    params: dict[str, Any]
    session_id: str


def encode(message_id: int, method: str, params: Mapping[str, object] | None, session_id: str) -> bytes:
    """The bytes of a call.

    Raises:
        TypeError: `params` hold what JSON has no form for.
        ValueError: they hold a number that JSON has no form for, or themselves.
    """
    message: dict[str, object] = {"id": message_id, "method": method, "params": dict(params or {})}
    if session_id:
        message["sessionId"] = session_id
    return _JSON.encode(message).encode("ascii")


def decode(data: bytes) -> Reply | Event | None:
    """The reply or event in a frame; None where it holds neither."""
    try:
        message: object = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not _is_object(message):
        return None
    match message:
        case {"id": int(message_id), "error": {"code": int(code), "message": str(text), **more}}:
            return Reply(message_id, {}, Refusal(code, text, str(more.get("data", ""))))
        case {"id": int(message_id), "result": result} if _is_object(result):
            return Reply(message_id, result, None)
        case {"method": str(method), **more}:
            params, session_id = more.get("params", {}), more.get("sessionId", "")
            return Event(method, params, session_id) if _is_object(params) and isinstance(session_id, str) else None
        case _:
            return None


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
