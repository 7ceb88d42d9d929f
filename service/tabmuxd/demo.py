"""The demo: three conversations at once on the local chat pages, their answers side by side."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tabmux.client import Client, connect
from tabmux.errors import TabmuxError

from tabmuxd import settings as server_settings
from tabmuxd.app import launch_options, running
from tabmuxd.cdp.launcher import LaunchError, find_executable
from tabmuxd.playground import answer_to

_QUESTIONS: Final = {
    "playground-textarea": "How do many programs share one browser without stepping on each other?",
    "playground-editor": "Why is a prompt recorded before Send is pressed?\nAnd what happens after a crash?",
    "playground-shadow": "How does a watcher come back without having missed an event?",
}
# The pages answer in plain paragraphs within about four seconds, so that every character can be compared.
_DIRECTIVES: Final = "{{plain=1 seconds=4}}"
_TIMEOUT: Final = timedelta(minutes=1)
_GAP: Final = " │ "


@dataclass(slots=True)
class Column:
    """One conversation as it is shown."""

    provider: str
    prompt: str
    text: str = ""
    state: str = "PENDING"
    seconds: float = 0.0
    ended: bool = False
    error: str = ""

    @property
    def correct(self) -> bool:
        """Whether the answer is complete, character by character."""
        return self.state == "SUCCEEDED" and self.text == answer_to(self.prompt)


async def run() -> int:
    """Run the demo on a temporary state directory; the exit code: 0 only if all three answers are whole and right."""
    with tempfile.TemporaryDirectory(prefix="tabmux-demo-") as folder:
        settings = server_settings.load({"state_dir": folder, "playground": "true"}, _environment(os.environ))
        try:
            find_executable(launch_options(settings.browsers[0], settings))
        except LaunchError as error:
            sys.stderr.write(f"tabmuxd demo: {error}\n")
            return 1
        async with running(settings), connect(f"unix://{settings.socket}") as client:
            _say(f"A server, its own Chromium and three chat pages run in {folder}. Three questions at once:\n")
            columns = [Column(provider, f"{text} {_DIRECTIVES}") for provider, text in _QUESTIONS.items()]
            began = time.monotonic()
            shown = asyncio.Event()
            board = asyncio.create_task(_show(columns, shown))
            await asyncio.gather(*(_converse(client, column, shown) for column in columns))
            await board
            _close(columns, time.monotonic() - began)
    return 0 if all(column.correct for column in columns) else 1


def _environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Only what says which browser to launch: the demo has nothing to do with a server that is configured here."""
    return {key: environment[key] for key in ("TABMUX_CHROMIUM",) if key in environment}


async def _converse(client: Client, column: Column, changed: asyncio.Event) -> None:
    began = time.monotonic()
    try:
        answer = await client.ask(column.provider, column.prompt, answer_timeout=_TIMEOUT)
        async for part in answer:
            column.text = part.text
            changed.set()
        column.text = (await answer.result()).answer_markdown
        column.state = "SUCCEEDED"
    except TabmuxError as error:
        column.state = "FAILED"
        column.error = str(error)
    finally:
        column.seconds = time.monotonic() - began
        column.ended = True
        changed.set()


async def _show(columns: Sequence[Column], changed: asyncio.Event) -> None:
    """Print each row once all columns have it: nothing is redrawn, so a terminal and a log show the same."""
    width = column_width(shutil.get_terminal_size((120, 24)).columns, len(columns))
    _say(_row([column.provider for column in columns], width))
    _say(_row(["─" * width for _ in columns], width).replace(_GAP, "─┼─"))
    printed = 0
    while True:
        changed.clear()
        rows = [wrapped(column.text, width) for column in columns]
        ended = all(column.ended for column in columns)
        ready = (
            max(map(len, rows))
            if ended
            else min(10**9 if column.ended else len(lines) - 1 for column, lines in zip(columns, rows, strict=True))
        )
        while printed < ready:
            _say(_row([lines[printed] if printed < len(lines) else "" for lines in rows], width))
            printed += 1
        if ended:
            return
        await changed.wait()


def column_width(terminal: int, count: int) -> int:
    """Width of each of `count` columns in a terminal of this many cells: 20 to 60 cells."""
    return min(60, max(20, (terminal - len(_GAP) * (count - 1)) // count))


def wrapped(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` cells, broken at blanks; the first lines stay as text grows."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            if line and cells(line) + 1 + cells(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return lines


def cells(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _row(texts: Sequence[str], width: int) -> str:
    return _GAP.join(text + " " * (width - cells(text)) for text in texts).rstrip()


def _close(columns: Sequence[Column], makespan: float) -> None:
    _say("\nprovider              state      characters  seconds  every character right")
    for column in columns:
        _say(
            f"{column.provider:<21} {column.state:<10} {len(column.text):>10}  {column.seconds:>7.1f}  "
            f"{'yes' if column.correct else 'NO'}"
        )
        if column.error:
            _say(f"  {column.error}")
    total = sum(column.seconds for column in columns)
    _say(f"\nAll three took {makespan:.1f} s together; one after the other it would have been {total:.1f} s.")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
