"""Memory of a server for each watcher that waits, against a bare server with as many streams open."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from benchmarks.bare_streams import WATCH, bare_server
from benchmarks.comparison import alternate, report, tell
from benchmarks.processes import tabmuxd
from benchmarks.watchers import QUIET_WATCH, WATCH_TABS, watchers

GOAL: Final = 1.5
_WATCHERS: Final = 1000
_WARM_UP: Final = 100
_CONNECTIONS: Final = 10
_ROUNDS: Final = 5
_SETTINGS: Final = f"max_watch_count = {2 * _WATCHERS}\nmax_principal_watch_count = {2 * _WATCHERS}\n"
_KIB: Final = 1024


async def run() -> str:
    """Measure, and give the line that says what came out.

    A new process each time, since what a process has got it hardly gives back: what it grows by from 100 watchers, who
    stay, to 1,100, after each has got its first reply. Counted are its own pages (`RssAnon`), files not.
    """
    comparison = await alternate(_ours, _bare, rounds=_ROUNDS, progress=lambda _: None)
    ours, bare = (_middle(rounds) for rounds in (comparison.measured, comparison.against))
    more = {"watch_bytes": ours, "bare_bytes": bare, "watchers": _WATCHERS, "rounds": _ROUNDS}
    return report("watch_memory", comparison.ratio, GOAL, more)


async def _ours(_round: int) -> list[float]:
    async with tabmuxd(settings=_SETTINGS) as server:
        return [await _growth(server.pid, server.address, WATCH_TABS, QUIET_WATCH)]


async def _bare(_round: int) -> list[float]:
    async with _directory() as directory, bare_server(directory) as server:
        return [await _growth(server.pid, server.address, WATCH, QUIET_WATCH)]


async def _growth(pid: int, address: str, method: str, request: bytes) -> float:
    """Bytes for each watcher."""
    async with watchers(address, method, request, count=_WARM_UP, connections=_CONNECTIONS):
        before = _own_bytes(pid)
        async with watchers(address, method, request, count=_WATCHERS, connections=_CONNECTIONS):
            growth = (_own_bytes(pid) - before) / _WATCHERS
    tell(f"process {pid}: {growth:.0f} bytes a watcher")
    return growth


def _own_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * _KIB for line in lines if line.startswith("RssAnon:"))


@asynccontextmanager
async def _directory() -> AsyncGenerator[Path]:
    path = Path(tempfile.mkdtemp(prefix="tm"))  # the path of a socket must be short
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _middle(rounds: tuple[tuple[float, ...], ...]) -> int:
    return round(sorted(growth for (growth,) in rounds)[len(rounds) // 2])


if __name__ == "__main__":
    print(asyncio.run(run()))
