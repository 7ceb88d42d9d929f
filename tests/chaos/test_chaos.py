"""Many programs at work while somebody closes and crashes pages and kills Chrome and the server: nothing is lost.

`TABMUX_CHAOS_OPERATIONS`, `_CLIENTS` and `_ROUNDS` make it longer (`make chaos` does), `_SEED` repeats a round.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final

import pytest

from tests.cdp.browsers import fresh_profile
from tests.chaos.browsers import nothing_left
from tests.chaos.plan import Stage, plan
from tests.chaos.rounds import play
from tests.chaos.verdict import table
from tests.e2e.pages import Pages
from tests.e2e.serving import PlaygroundProcess

OPERATIONS: Final = int(os.environ.get("TABMUX_CHAOS_OPERATIONS", "40"))
CLIENTS: Final = int(os.environ.get("TABMUX_CHAOS_CLIENTS", "4"))
ROUNDS: Final = int(os.environ.get("TABMUX_CHAOS_ROUNDS", "1"))
SEED: Final = os.environ.get("TABMUX_CHAOS_SEED", "")

_SECONDS_PER_OPERATION: Final = 0.5
_SECONDS_BESIDE: Final = 150

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(_SECONDS_BESIDE + _SECONDS_PER_OPERATION * OPERATIONS),
]


@pytest.mark.parametrize("number", range(ROUNDS))
async def test_chaos(number: int, pages: Pages, playground: PlaygroundProcess, tmp_path: Path) -> None:
    """Whatever is closed, crashed or killed, nothing is lost, leaked, seized or done twice (O-32, O-98, O-128, O-129).

    Each call ends with success or a typed refusal; in the end the store and Chrome agree, the person's pages are as
    they were, a watch has seen every revision, no prompt was submitted twice, and no process is left.
    """
    stage = tuple(Stage)[number % len(Stage)]
    seed = int(SEED) if SEED else secrets.randbits(32)
    told = f"TABMUX_CHAOS_SEED={seed}, round {number}: {stage.value}"
    print(told)  # noqa: T201 - how to repeat a round that failed
    with ExitStack() as stack:
        directory = stack.enter_context(fresh_profile())
        stack.push(partial(_keep, directory, tmp_path))
        attached = stack.enter_context(fresh_profile()) if stage.attached else None
        world = await play(
            plan(seed, stage, operations=OPERATIONS, clients=CLIENTS), directory, attached, pages, playground
        )
        nothing_left(*([directory] if attached is None else [directory, attached]))
    print(table(world.answers))  # noqa: T201 - what the round was made of


def _keep(
    directory: Path, place: Path, _kind: object, error: BaseException | None, _trace: TracebackType | None
) -> None:
    """Keep the records of a round that failed."""
    if error is not None:
        for file in (*directory.glob("tabmuxd.sqlite3*"), *directory.glob("**/*.log"), *directory.glob("**/*.dmp")):
            shutil.copy(file, place)
        print(f"records of the round: {place}")  # noqa: T201 - where to look
