"""Files of agbrowse and cli-jaw as the tools write them, and the descriptors of the providers they know."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from tabmuxd.resources.imports import ImportSource
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import Descriptor

Record: TypeAlias = dict[str, Any]

SECRET: Final = "hunter2"
"""Stands in every field that must not be copied."""

_SHAPES: Final = {
    "chatgpt": (["chatgpt.com", "chat.openai.com"], "/(?:g/[A-Za-z0-9-]+/)?c/[A-Za-z0-9-]+"),
    "gemini": (["gemini.google.com"], "/app/[A-Za-z0-9]+"),
    "grok": (["grok.com"], "/(?:c|chat)/[0-9a-f-]+"),
}


def providers() -> dict[str, Descriptor]:
    """Providers with the hosts and addresses of the real ones, and nothing else of theirs."""
    return {name: descriptor.parse(text, name) for name, text in descriptors().items()}


def descriptors() -> dict[str, str]:
    """The same as TOML."""
    return {name: _descriptor(name, hosts, path) for name, (hosts, path) in _SHAPES.items()}


def _descriptor(name: str, hosts: list[str], path: str) -> str:
    lists = ("composer", "send", "stop", "done_mark", "failure")
    texts = ("user_turn", "assistant_turn", "turn_key", "prompt_text", "answer_text")
    marks = "\n".join([*(f'{mark} = ["x"]' for mark in lists), *(f'{mark} = "x"' for mark in texts)])
    return f"""
schema = 1
id = "{name}"
display_name = "{name}"
version = "7"
hosts = {json.dumps(hosts)}
start_uri = "https://{hosts[0]}/"
conversation_path = '{path}'
answer_timeout_seconds = 300
max_prompt_characters = 1000

[page]
{marks}
"""


def old_id(number: int, source: ImportSource) -> str:
    """The id of a record, as the tool makes it."""
    if source is ImportSource.AGBROWSE:
        return f"01M6DRK0ZED4T8W0YX{number:08d}"
    return f"3c0b8f52-6a1e-4d7b-9a55-{number:012d}"


def agbrowse(number: int = 0, /, **fields: object) -> Record:
    """A record of agbrowse: complete, with an answer; a field of None is null, an ellipsis leaves it out."""
    record: Record = {
        "sessionId": old_id(number, ImportSource.AGBROWSE),
        "vendor": "gemini",
        "createdAt": "2026-01-02T09:14:03.118Z",
        "updatedAt": "2026-01-02T09:14:52.660Z",
        "deadlineAt": "2026-01-02T09:34:03.117Z",
        "targetId": SECRET,
        "tabId": SECRET,
        "tabState": {"createdAt": "2026-01-02T09:14:03.118Z", "recoveryCount": 3, "closeCount": 4},
        "originalUrl": f"https://gemini.google.com/app?key={SECRET}",
        "conversationUrl": f"https://gemini.google.com/app/7be1f0c29d?key={SECRET}#{SECRET}",
        "promptHash": f"sha256:{SECRET}",
        "envelopeSummary": {"model": "pro", "filePath": SECRET, "assistantCount": 0},
        "status": "complete",
        "answer": "Lisbon.",
        "completedAt": "2026-01-02T09:14:52.655Z",
        "lastError": None,
        "warnings": [SECRET],
        "lastDomHash": SECRET,
        "trace": [{"step": SECRET}],
        "artifacts": [],
        "somethingNew": SECRET,
    }
    return _changed(record, fields)


def cli_jaw(number: int = 0, /, **fields: object) -> Record:
    """A record of cli-jaw: complete, with an answer; an ellipsis leaves a field out."""
    record: Record = {
        "sessionId": old_id(number, ImportSource.CLI_JAW),
        "vendor": "chatgpt",
        "targetId": SECRET,
        "url": f"https://chatgpt.com/?token={SECRET}",
        "conversationUrl": f"https://chatgpt.com/c/68f2-aa10?token={SECRET}",
        "promptHash": SECRET,
        "assistantCount": 0,
        "status": "complete",
        "timeoutMs": 600_000,
        "answerText": "Text.",
        "answerArtifact": {"markdown": "# Markdown", "text": SECRET, "responseStableMs": 1500, "warnings": [SECRET]},
        "sourceAudit": {"found": SECRET},
        "completedAt": "2026-01-02T09:14:50.000Z",
        "staleAt": "2026-01-02T09:14:51.000Z",
        "trace": [SECRET],
        "createdAt": "2026-01-02T09:14:03.118Z",
        "updatedAt": "2026-01-02T09:14:52.660Z",
    }
    return _changed(record, fields)


def record(source: ImportSource, number: int = 0, /, **fields: object) -> Record:
    """A record of either tool."""
    return (agbrowse if source is ImportSource.AGBROWSE else cli_jaw)(number, **fields)


def whole(source: ImportSource, /, *records: object, **members: object) -> dict[str, object]:
    """What the tool writes around its records."""
    around: Mapping[str, object] = (
        {"version": 1, "sessions": list(records)}
        if source is ImportSource.AGBROWSE
        else {"baselines": [{"url": SECRET}], "sessions": list(records), "notifications": [{"text": SECRET}]}
    )
    return _changed(dict(around), members)


def file_of(source: ImportSource, /, *records: object, **members: object) -> bytes:
    """The same as the bytes of a file."""
    return json.dumps(whole(source, *records, **members)).encode()


def _changed(values: Record, fields: Mapping[str, object]) -> Record:
    return {name: value for name, value in {**values, **fields}.items() if value is not ...}
