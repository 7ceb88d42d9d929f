"""Files that the service keeps for a while: what an upload says of itself, and what is known of one that is there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tabmuxd.resources.session import Artifact

MAX_CHUNK_BYTES: Final = 256 * 1024
MAX_UPLOAD_BYTES: Final = 32 * 1024 * 1024
MAX_NAME_BYTES: Final = 255
UPLOAD_TTL: Final = timedelta(hours=24)
ANSWER_TTL: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class UploadOrder:
    """`UploadArtifact`: what the chunks will be together; `sha256` is lower-case hex."""

    display_name: str
    media_type: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class KeptArtifact:
    """A file and whose it is; `turn` is the one whose answer it belongs to, empty for an upload."""

    artifact: Artifact
    owner: str
    turn: str = ""

    @property
    def name(self) -> str:
        """Its resource name."""
        return self.artifact.name


@dataclass(frozen=True, slots=True)
class ArtifactUsage:
    """How many uploads a principal has that have not expired, and how large they are together."""

    count: int
    size_bytes: int
