"""The value of a script as JSON: exact, or refused with the part that has no such form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class NotSerializable(Exception):
    """A part of the value has no exact JSON form."""

    def __init__(self, kind: str, path: str) -> None:
        """`kind` such as `bigint`, `map` or `cycle`; `path` from `$`, such as `$.a[0]`."""
        super().__init__(f"{kind} at {path}")
        self.kind = kind
        self.path = path


class TooLarge(Exception):
    """The JSON would be larger than the limit; `size_bytes` is at least what it is known to have."""

    def __init__(self, size_bytes: int) -> None:
        """At least this many bytes."""
        super().__init__(f"{size_bytes} bytes")
        self.size_bytes = size_bytes


def primitive_json(result: Mapping[str, Any], *, limit: int) -> str | None:
    """JSON of a `Runtime.RemoteObject` that holds its value itself; empty for undefined, None for an object.

    At most `limit` bytes in UTF-8. Raises NotSerializable, TooLarge.
    """
    kind = str(result.get("type", ""))
    if kind == "undefined":
        return ""
    if "unserializableValue" in result:
        text = str(result["unserializableValue"])
        if text == "-0":
            return text
        raise NotSerializable(kind if kind == "bigint" else text, "$")
    if kind in {"symbol", "function"}:
        raise NotSerializable(kind, "$")
    if "objectId" in result:
        return None
    text = json.dumps(result.get("value"), ensure_ascii=False, allow_nan=False)
    try:
        return _bounded(text, limit)
    except UnicodeEncodeError:  # half of a surrogate pair has no form in UTF-8, and one in JSON
        return _bounded(json.dumps(result.get("value")), limit)


def object_json(read: Mapping[str, Any], *, limit: int) -> str:
    """JSON of an object, by what `serialize.js` tells of it; raises NotSerializable, TooLarge."""
    if "size" in read:
        raise TooLarge(int(read["size"]))
    if "kind" in read:
        raise NotSerializable(str(read["kind"]), str(read["path"]))
    return _bounded(str(read["json"]), limit)


def _bounded(text: str, limit: int) -> str:
    size = len(text) if text.isascii() else len(text.encode())
    if size > limit:
        raise TooLarge(size)
    return text
