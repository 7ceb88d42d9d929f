"""Files: what is sent with a prompt goes up in chunks, and what an answer carries comes down again."""

import asyncio
import hashlib
import mimetypes
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import grpc

from tabmux.calls import Calls
from tabmux.errors import TabmuxError
from tabmux.streams import resumed
from tabmux.v1.session_pb2 import Artifact
from tabmux.v1.web_ai_service_pb2 import (
    ArtifactInfo,
    ReadArtifactRequest,
    ReadArtifactResponse,
    UploadArtifactRequest,
)

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only

_CHUNK_BYTES: Final = 256 * 1024
_SILENCE_LIMIT: Final = timedelta(seconds=45)


async def upload(
    service: "WebAiServiceAsyncStub", calls: Calls, file: Path, *, name: str = "", media_type: str = ""
) -> Artifact:
    """Upload a file, by default under its own name; what it is, is guessed from that. Raises `OSError`."""
    name = name or file.name
    kind = media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    size_bytes, sha256 = await asyncio.to_thread(_measured, file)
    info = ArtifactInfo(display_name=name, media_type=kind, size_bytes=size_bytes, sha256=sha256)

    async def requests() -> AsyncGenerator[UploadArtifactRequest, None]:
        yield UploadArtifactRequest(info=info)
        with await asyncio.to_thread(file.open, "rb") as opened:
            while chunk := await asyncio.to_thread(opened.read, _CHUNK_BYTES):
                yield UploadArtifactRequest(chunk=chunk)

    return (await calls.upload(service.UploadArtifact, requests(), UploadArtifactRequest())).artifact


async def uploaded(service: "WebAiServiceAsyncStub", calls: Calls, files: Sequence[str | Path]) -> list[str]:
    """Names of artifacts: those given, and those that these files become, in order."""
    return [file if isinstance(file, str) else (await upload(service, calls, file)).name for file in files]


async def pieces(service: "WebAiServiceAsyncStub", calls: Calls, name: str) -> AsyncGenerator[bytes, None]:
    """The bytes of an artifact as they come, over lost connections.

    Raises `TabmuxError`, also at the end where they do not have the size and hash that the service tells.
    """
    size_bytes, digest = 0, hashlib.sha256()
    artifact = Artifact()

    def open_stream() -> grpc.aio.UnaryStreamCall[ReadArtifactRequest, ReadArtifactResponse]:
        return calls.stream(service.ReadArtifact, ReadArtifactRequest(name=name, offset_bytes=size_bytes))

    async with aclosing(resumed(open_stream, _SILENCE_LIMIT)) as replies:
        async for reply in replies:
            if reply.WhichOneof("part") == "artifact":
                artifact = reply.artifact
                continue
            size_bytes += len(reply.chunk)
            digest.update(reply.chunk)
            yield reply.chunk
    if (size_bytes, digest.hexdigest()) != (artifact.size_bytes, artifact.sha256):
        raise TabmuxError(f"what came of {name} is not what the service keeps")


def _measured(file: Path) -> tuple[int, str]:
    """Size and SHA-256 of a file."""
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256")
        return opened.tell(), digest.hexdigest()
