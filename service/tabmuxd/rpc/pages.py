"""Pages of lists: how many, how much, and the token of the next one."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final, TypeAlias, TypeVar

from google.protobuf.message import Message
from tabmux.v1 import tab_service_pb2 as pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb

from tabmuxd.resources.errors import Refused, invalid_field
from tabmuxd.resources.event import Progress
from tabmuxd.rpc import fields

DEFAULT_PAGE_SIZE: Final = 50
MAX_PAGE_SIZE: Final = 500
MAX_PAGE_BYTES: Final = 1024 * 1024
_ENTRY_BYTES: Final = 8  # what one entry of a list adds to its own size: tag and length
_CHECK_BYTES: Final = 8
_MAX_TOKEN_CHARACTERS: Final = 1024
MAX_REVISION: Final = 2**63 - 1

Entry = TypeVar("Entry", bound=Message)


PagedRequest: TypeAlias = (
    pb.ListBrowsersRequest
    | pb.ListLeasesRequest
    | pb.ListTabsRequest
    | ai_pb.ListProvidersRequest
    | ai_pb.ListSessionsRequest
    | ai_pb.ListTurnsRequest
)


@dataclass(frozen=True, slots=True)
class PagePlace:
    """Where a page begins: behind the entry with `key` (empty: at the first), in a list begun at `progress`."""

    key: tuple[str, ...]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Page:
    """What was asked for: a place, the most entries, and what the next token is bound to."""

    place: PagePlace
    size: int
    fingerprint: str

    def token_behind(self, *key: str) -> str:
        """Token of the page that begins behind the entry with `key`."""
        body = json.dumps([key, self.place.progress.revision, self.fingerprint], separators=(",", ":")).encode()
        return _encoded(_check(body) + body)


def page_of(request: PagedRequest, now: Progress) -> Page:
    """The page that `request` asks for, at the first of which the history stands at `now`.

    Raises INVALID_FIELD for a negative size, and for a token that we did not give, that was changed, or that belongs to
    other fields, another method or another history. The size may differ from page to page.
    """
    size = min(fields.natural("page_size", request.page_size) or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
    fingerprint = _fingerprint(request, now.history_id)
    if not request.page_token:
        return Page(PagePlace((), now), size, fingerprint)
    key, revision, bound_to = _opened(request.page_token)
    if bound_to != fingerprint:
        raise invalid_field("page_token", "belongs to a request with other fields; begin again without a token")
    return Page(PagePlace(key, Progress(now.history_id, revision)), size, fingerprint)


def fitting(entries: Iterable[Entry], size: int) -> list[Entry]:
    """The first entries that make one page: at most `size`, at most 1 MiB together, and at least one."""
    taken: list[Entry] = []
    total_bytes = 0
    for entry in entries:
        total_bytes += entry.ByteSize() + _ENTRY_BYTES
        if len(taken) == size or (taken and total_bytes > MAX_PAGE_BYTES):
            break
        taken.append(entry)
    return taken


def _fingerprint(request: Message, history_id: str) -> str:
    other = type(request)()
    other.CopyFrom(request)
    other.ClearField("page_size")
    other.ClearField("page_token")
    text = f"{other.DESCRIPTOR.full_name}\n{history_id}\n".encode()
    return sha256(text + other.SerializeToString(deterministic=True)).hexdigest()[:16]


def _opened(token: str) -> tuple[tuple[str, ...], int, str]:
    if len(token) > _MAX_TOKEN_CHARACTERS:
        raise not_ours()
    try:
        sealed = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        # Base64 has several texts for one value; only the one that we write is ours.
        if _encoded(sealed) != token or sealed[:_CHECK_BYTES] != _check(sealed[_CHECK_BYTES:]):
            raise not_ours()
        opened = json.loads(sealed[_CHECK_BYTES:])
    except ValueError:
        raise not_ours() from None
    match opened:
        case [[*key], int(revision), str(fingerprint)] if 0 <= revision <= MAX_REVISION:
            return tuple(str(part) for part in key), revision, fingerprint
        case _:
            raise not_ours()


def _encoded(sealed: bytes) -> str:
    return base64.urlsafe_b64encode(sealed).rstrip(b"=").decode("ascii")


def _check(body: bytes) -> bytes:
    return sha256(b"tabmux page token 1\n" + body).digest()[:_CHECK_BYTES]


def not_ours() -> Refused:
    """INVALID_FIELD for a token that we did not give."""
    return invalid_field("page_token", "must be the next_page_token of the page before, as it came")
