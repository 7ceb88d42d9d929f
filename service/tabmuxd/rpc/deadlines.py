"""How long the caller of the call at hand still waits."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Final

_DEADLINE: Final[ContextVar[float | None]] = ContextVar("deadline", default=None)


def begin_call(seconds: float | None) -> None:
    """A call begins, in a task of its own, whose caller waits this long, or for ever."""
    _DEADLINE.set(None if seconds is None else asyncio.get_running_loop().time() + seconds)


def time_left() -> float | None:
    """Seconds until the caller's deadline, never below zero; None where it has none."""
    deadline = _DEADLINE.get()
    return None if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
