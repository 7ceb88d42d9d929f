"""Finished bytes of the replies of a watch, put together from finished events.

`WatchTabsResponse` and `WatchSessionsResponse` are alike on the wire: events are field 1, progress is field 2.
"""

from __future__ import annotations

from collections.abc import Iterable

from tabmuxd.resources.event import Progress

_EVENTS = b"\x0a"  # field 1, length-delimited; protobuf's encoding
_PROGRESS = b"\x12"  # field 2, length-delimited
_HISTORY_ID = b"\x0a"  # field 1 of WatchProgress, length-delimited
_REVISION = b"\x10"  # field 2 of WatchProgress, varint

_CONTINUED = 0x80  # in a varint: more bytes follow


def reply(events: Iterable[bytes], progress: Progress) -> bytes:
    """The bytes of a reply with these finished events."""
    place = _progress(progress)
    parts: list[bytes] = []
    for event in events:
        parts.append(_header(len(event)))
        parts.append(event)
    parts += (_PROGRESS, varint(len(place)), place)
    return b"".join(parts)


def _header(size_bytes: int) -> bytes:
    """What comes before an event of this size."""
    if _CONTINUED <= size_bytes < _CONTINUED**2:  # as nearly all have
        return bytes((_EVENTS[0], size_bytes % _CONTINUED | _CONTINUED, size_bytes // _CONTINUED))
    return _EVENTS + varint(size_bytes)


def varint(number: int) -> bytes:
    """`number`, not negative, as a varint of protobuf."""
    encoded = bytearray()
    while number >= _CONTINUED:
        encoded.append(number % _CONTINUED | _CONTINUED)
        number //= _CONTINUED
    encoded.append(number)
    return bytes(encoded)


def _progress(progress: Progress) -> bytes:
    history_id = progress.history_id.encode()
    revision = _REVISION + varint(progress.revision) if progress.revision else b""
    return _HISTORY_ID + varint(len(history_id)) + history_id + revision
