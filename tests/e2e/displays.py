"""Screens that are nowhere, for browsers with windows."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Final

_SCREEN: Final = "1600x1200x24"


@contextlib.contextmanager
def running_display() -> Generator[str]:
    """An X server on a number that was free; gives its name for DISPLAY. It is gone afterwards."""
    executable = shutil.which("Xvfb")
    assert executable is not None, "no Xvfb on PATH; see scripts/xvfb"
    told, tell = os.pipe()
    with (
        os.fdopen(told) as numbers,
        subprocess.Popen(
            [executable, "-displayfd", str(tell), "-screen", "0", _SCREEN, "-nolisten", "tcp", "-noreset"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[tell],
        ) as process,
    ):
        os.close(tell)
        try:
            number = numbers.readline().strip()  # empty at its end
            assert number, f"Xvfb ended with {process.wait()}"
            yield f":{number}"
        finally:
            process.terminate()
            process.wait()


def with_windows(state_directory: Path) -> Path:
    """The state directory, where it now stands that the browser has windows."""
    (state_directory / "tabmuxd.toml").write_text("[browsers.main]\nheadless = false\n")
    return state_directory
