"""Conversations of other tools: where these keep them, and how their files reach the server."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from tabmux.calls import Calls
from tabmux.durations import duration_of
from tabmux.v1.web_ai_service_pb2 import ImportInfo, ImportSessionsRequest, ImportSessionsResponse

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only

Source = Literal["agbrowse", "cli-jaw"]

SOURCES: Mapping[Source, ImportInfo.Source.ValueType] = MappingProxyType(
    {"agbrowse": ImportInfo.SOURCE_AGBROWSE, "cli-jaw": ImportInfo.SOURCE_CLI_JAW},
)
_FILE_NAME: Final = "web-ai-sessions.json"
_CHUNK_BYTES: Final = 256 * 1024
_MOST_BYTES: Final = 256 * 1024 * 1024  # what the server takes
_ATTEMPTS: Final = 4
_PAUSE: Final = 0.2


def default_file(source: Source, environment: Mapping[str, str]) -> Path:
    """Where the tool keeps its conversations, unless it was told otherwise."""
    home = Path(environment.get("HOME") or Path.home())
    if source == "agbrowse":
        return Path(environment.get("BROWSER_AGENT_HOME") or home / ".browser-agent") / _FILE_NAME
    moved = environment.get("CLI_JAW_HOME") or "~/.cli-jaw"
    return (home / moved[2:] if moved == "~" or moved.startswith("~/") else Path(moved)) / _FILE_NAME


async def read_whole(path: Path, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> bytes:
    """The content of a file that its tool may be writing to: read again, three times at most, while it is no JSON.

    What is no JSON even then is given as it is, for the server to refuse. Raises `OSError`.
    """
    content = b""
    for attempt in range(_ATTEMPTS):
        if attempt:
            await sleep(_PAUSE)
        content, whole = await asyncio.to_thread(_read, path)
        if whole:
            break
    return content


async def import_file(
    service: "WebAiServiceAsyncStub",
    calls: Calls,
    content: bytes,
    *,
    source: Source,
    browser: str,
    ttl: timedelta | None,
    dry_run: bool,
) -> ImportSessionsResponse:
    """Import the content of a file; safe to repeat."""
    info = ImportInfo(source=SOURCES[source], browser=browser, ttl=duration_of(ttl), dry_run=dry_run)

    async def requests() -> AsyncGenerator[ImportSessionsRequest, None]:
        yield ImportSessionsRequest(info=info)
        for start in range(0, len(content), _CHUNK_BYTES):
            yield ImportSessionsRequest(chunk=content[start : start + _CHUNK_BYTES])

    return await calls.upload(service.ImportSessions, requests(), ImportSessionsRequest())


def _read(path: Path) -> tuple[bytes, bool]:
    """The content, as far as the server can take it, and whether it is JSON, or too large to ask."""
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        return content, True
    try:
        json.loads(content)
    except (ValueError, RecursionError):
        return content, False
    return content, True
