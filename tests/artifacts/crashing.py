"""A process that uploads a file and kills itself: `python -m tests.artifacts.crashing FOLDER POINT NUMBER`.

A point is `before` or `after` a commit of that number, or right after that call of a method of `Incoming`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

from tabmuxd.artifacts.disk import Incoming

from tests.artifacts.test_keeping import opened
from tests.events.crashing import kill_at


def kill_after(method: str, number: int) -> None:
    """Kill this process right after the `number`th call of a method of `Incoming`."""
    original = getattr(Incoming, method)
    left = number

    def wrapped(*arguments: object) -> None:
        nonlocal left
        original(*arguments)
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Incoming, method, wrapped)


async def run(folder: Path) -> None:
    """Upload one file."""
    async with opened(folder) as parts:
        if sys.argv[2] in {"before", "after"}:
            kill_at(sys.argv[2], int(sys.argv[3]))
        else:
            kill_after(sys.argv[2], int(sys.argv[3]))
        await parts.upload()


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1])))
