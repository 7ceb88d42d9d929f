"""A process that writes until it is killed: `python -m tests.events.crashing FILE SEED [before|after COMMIT]`.

Prints the revision of each answer. With a point it kills itself right before, or right after, that commit.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

from tabmuxd.events import Log
from tabmuxd.store import Store

from tests.events.steps import Clock, know_browser, step


def kill_at(point: str, number: int) -> None:
    """Kill this process around its `number`th commit."""
    commit = Store._commit
    left = number

    def wrapped(store: Store) -> None:
        nonlocal left
        left -= 1
        if left == 0 and point == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        commit(store)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    Store._commit = wrapped  # type: ignore[assignment,method-assign]


def tell(revision: int) -> None:
    """Tell the parent that this revision was answered."""
    sys.stdout.write(f"{revision}\n")
    sys.stdout.flush()


async def write(path: Path, seed: int) -> None:
    """Change things at random, eight at once."""
    chance = random.Random(seed)
    async with Log(path, clock=Clock()) as log:
        await log.change(know_browser)
        tell(log.progress.revision)

        async def worker() -> None:
            while True:
                written = await log.change(step(chance.randrange(11), chance.randrange(1000)))
                if written is not None:
                    tell(written.revision)

        await asyncio.gather(*(worker() for _ in range(8)))


if __name__ == "__main__":
    if len(sys.argv) > 3:
        kill_at(sys.argv[3], int(sys.argv[4]))
    asyncio.run(write(Path(sys.argv[1]), int(sys.argv[2])))
