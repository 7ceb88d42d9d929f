"""A process that imports a file and kills itself: `python -m tests.imports.crashing FOLDER before|after COMMIT`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path

from tabmuxd.resources.imports import ImportOrder, ImportSource

from tests.domain.below import below
from tests.domain.values import ADMIN
from tests.events.crashing import kill_at
from tests.imports.files import providers

ORDER = ImportOrder(ImportSource.AGBROWSE, "", timedelta(days=30))


async def chunks(path: Path) -> AsyncGenerator[bytes, None]:
    """The file in one."""
    yield await asyncio.to_thread(path.read_bytes)


async def run(folder: Path) -> None:
    """Import the file that is in the folder into the store that is there."""
    async with below(folder, providers=providers()) as parts:
        await parts.web_ai.imports.run(ADMIN, ORDER, chunks(folder / "file.json"))


if __name__ == "__main__":
    kill_at(sys.argv[2], int(sys.argv[3]))
    asyncio.run(run(Path(sys.argv[1])))
