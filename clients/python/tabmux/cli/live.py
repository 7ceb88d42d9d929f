"""Shows what exists as a table that follows every change, on a terminal."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from typing import Final

from tabmux.cli.output import Output
from tabmux.cli.text import table
from tabmux.client import Client
from tabmux.mirror import Mirror
from tabmux.watch import WatchScope

Rows = Callable[[Mirror], Sequence[Sequence[str]]]

# Drawn this often at most, so that a page that changes all the time is readable still.
_PAUSE: Final = 0.2
_UP: Final = "\x1b[{count}F\x1b[J"


async def follow(
    client: Client, scope: WatchScope, head: Sequence[str], rows: Rows, *, again: str, output: Output
) -> None:
    """Draw the table anew after each change until interrupted; `again` is the command that follows the changes on."""
    drawn = 0
    async with client.mirror(scope=scope) as mirror:
        try:
            while True:
                revision = mirror.progress.revision
                size = shutil.get_terminal_size()
                lines = screen(head, rows(mirror), columns=size.columns, height=size.lines)
                output.text((_UP.format(count=drawn) if drawn else "") + "".join(f"{line}\n" for line in lines))
                drawn = len(lines)
                await asyncio.sleep(_PAUSE)
                await mirror.until(_behind(revision))
        except asyncio.CancelledError:
            place = mirror.progress
            output.note(f"To go on from here: {again} --since {place.history_id}:{place.revision}")
            raise


def _behind(revision: int) -> Callable[[Mirror], bool]:
    return lambda mirror: mirror.progress.revision != revision


def screen(head: Sequence[str], rows: Sequence[Sequence[str]], *, columns: int, height: int) -> list[str]:
    """Lines of the table that fit on a terminal; what does not fit is counted in the last one."""
    lines = table(head, rows, columns)
    most = max(2, height - 1)
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], f"… and {len(lines) - most + 1} more"]
