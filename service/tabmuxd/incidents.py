"""Faults of the server's own, as the log has them: where they happened, never what a request held."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Iterator


def new_incident() -> str:
    """An id under which a fault is found in the log."""
    return secrets.token_hex(6)


def trace_of(error: BaseException) -> list[str]:
    """Type and places of an exception and of those it came from, the first cause last.

    Without their messages, which can hold what a request held.
    """
    lines: list[str] = []
    for link in _chain(error):
        lines.append(type(link).__qualname__)
        lines.extend(
            f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(link.__traceback__)
        )
    return lines


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__
