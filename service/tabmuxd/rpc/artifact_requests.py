"""Requests of `WebAiService` about files, checked for form."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Final

from tabmux.v1 import web_ai_service_pb2 as pb

from tabmuxd.artifacts.naming import is_media_type, name_fault
from tabmuxd.resources.artifacts import MAX_UPLOAD_BYTES, UploadOrder
from tabmuxd.resources.errors import invalid_field
from tabmuxd.rpc import fields

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


async def upload_order(requests: AsyncIterator[pb.UploadArtifactRequest]) -> UploadOrder:
    """The first request of `UploadArtifact`."""
    async for request in requests:
        if request.WhichOneof("part") == "info":
            return _order(request.info)
        break
    raise invalid_field("info", "must be sent first")


def artifact_part(request: pb.ReadArtifactRequest) -> tuple[str, int]:
    """`ReadArtifact`: name of the file, and the byte to begin at."""
    return fields.artifact_name("name", request.name), fields.natural("offset_bytes", request.offset_bytes)


def _order(info: pb.ArtifactInfo) -> UploadOrder:
    if problem := name_fault(info.display_name):
        raise invalid_field("info.display_name", problem)
    media_type = info.media_type.lower()
    if not is_media_type(media_type):
        raise invalid_field("info.media_type", "must be a media type without parameters, such as text/plain")
    if not 1 <= info.size_bytes <= MAX_UPLOAD_BYTES:
        raise invalid_field("info.size_bytes", f"must be 1 to {MAX_UPLOAD_BYTES}", limit=MAX_UPLOAD_BYTES)
    if _SHA256.fullmatch(info.sha256) is None:
        raise invalid_field("info.sha256", "must be 64 lower-case hex digits")
    return UploadOrder(info.display_name, media_type, info.size_bytes, info.sha256)
