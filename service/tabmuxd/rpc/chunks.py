"""Files that come in a stream of requests: one that tells of the file, then its bytes in chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.resources.artifacts import MAX_CHUNK_BYTES
from tabmuxd.resources.errors import invalid_field


async def chunks_of(
    requests: AsyncIterator[pb.UploadArtifactRequest | pb.ImportSessionsRequest],
) -> AsyncGenerator[bytes, None]:
    """The chunks behind the first request."""
    async for request in requests:
        if request.WhichOneof("part") != "chunk":
            raise invalid_field("info", "must be sent once, and chunks behind it")
        if len(request.chunk) > MAX_CHUNK_BYTES:
            raise invalid_field("chunk", f"must have at most {MAX_CHUNK_BYTES} bytes", limit=MAX_CHUNK_BYTES)
        yield request.chunk
