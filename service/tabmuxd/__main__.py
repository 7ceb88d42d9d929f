"""The command `tabmuxd`: serve, playground, demo."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Final, NoReturn

from tabmuxd import settings as server_settings
from tabmuxd.app import launch_options, serve
from tabmuxd.cdp.launcher import LaunchError, find_executable
from tabmuxd.logs import configure
from tabmuxd.playground import serve as serve_playground
from tabmuxd.resources.names import is_browser_id
from tabmuxd.settings import Settings, SettingsError
from tabmuxd.state_directory import StateDirectoryError, StateDirectoryInUse
from tabmuxd.store import StoreError
from tabmuxd.webai.providers.descriptor import DescriptorError
from tabmuxd.webai.providers.linting import lint

_FAILED: Final = 1
_USAGE: Final = 2
_IN_USE: Final = 3
_NO_BROWSER: Final = 4
_DAMAGED: Final = 5

_EXIT_CODES: Final = """exit codes:
  0  stopped in order; lint: all files are good
  1  something else failed; the message says what
  2  a setting is wrong
  3  another server uses the state directory, or the profile directory of a browser
  4  no Chromium or Chrome is installed
  5  the store cannot be read
"""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and end the process with its exit code."""
    parsed = _parser().parse_args(arguments)
    sys.exit(parsed.run(parsed))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tabmuxd",
        description="Lets many programs share Chrome without stepping on each other.",
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    serving = commands.add_parser("serve", help="serve on a Unix socket until SIGTERM")
    _add_settings(serving)
    serving.set_defaults(run=_serve)

    linting = commands.add_parser("lint", help="say what is wrong with descriptors of chat pages; serves nothing")
    linting.add_argument("files", nargs="+", metavar="FILE")
    linting.add_argument("--json", action="store_true", help="one JSON object a file")
    linting.set_defaults(run=_lint)

    playing = commands.add_parser("playground", help="serve local chat pages for demos and tests")
    playing.add_argument("--port", type=int, default=0, help="port on the loopback address; 0 takes a free one")
    playing.add_argument("--store", type=Path, help="file that keeps the conversations")
    playing.set_defaults(run=_playground)

    demo = commands.add_parser("demo", help="three conversations at once in a browser of its own")
    demo.set_defaults(run=_demo)
    return parser


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state-dir", help="state directory; also TABMUX_STATE_DIR")
    parser.add_argument("--config", help="TOML file; by default tabmuxd.toml in the state directory")
    parser.add_argument("--address", help="unix:///PATH to listen on; by default tabmuxd.sock in the state directory")
    parser.add_argument("--attach", help="use a Chrome that runs: http://HOST:PORT, ws://... or a profile directory")
    parser.add_argument("--chromium", help="executable to launch; by default the first Chromium or Chrome on PATH")
    parser.add_argument("--playground", action="store_const", const="true", help="also serve the local chat pages")
    parser.add_argument("--playground-port", help="port of the local chat pages, here or elsewhere; 0 takes a free one")
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"))


def _settings(parsed: argparse.Namespace) -> Settings:
    names = ("state_dir", "config", "address", "attach", "chromium", "playground", "playground_port", "log_level")
    given = {name: str(value) for name in names if (value := getattr(parsed, name)) is not None}
    settings = server_settings.load(given, os.environ)
    for browser in settings.browsers:
        if not is_browser_id(browser.id):
            raise SettingsError(f"browsers.{browser.id}: an id has 1 to 63 characters of a-z, 0-9 and - within")
    return settings


def _serve(parsed: argparse.Namespace) -> int:
    try:
        settings = _settings(parsed)
        for browser in settings.browsers:
            if not browser.address:
                find_executable(launch_options(browser, settings))
        configure(settings.log_level)
        asyncio.run(_until_stopped(settings))
    except (SettingsError, DescriptorError, LaunchError, StateDirectoryError, StoreError, OSError) as error:
        return _told(error)
    return 0


async def _until_stopped(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def stopped() -> None:
        if stop.is_set():
            os._exit(_FAILED)  # the second signal ends it at once
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped)
    await serve(settings, stop)


def _lint(parsed: argparse.Namespace) -> int:
    found = lint(parsed.files)
    for one in found:
        lines = [json.dumps(one.entry())] if parsed.json else one.lines()
        sys.stdout.writelines(f"{line}\n" for line in lines)
    return _FAILED if any(one.problems for one in found) else 0


def _playground(parsed: argparse.Namespace) -> int:
    configure("warning")
    return _until_interrupted(serve_playground(parsed.port, parsed.store))


def _demo(_parsed: argparse.Namespace) -> int:
    from tabmuxd.demo import run  # noqa: PLC0415 - only the demo is a client too

    configure("error")
    return asyncio.run(run())


def _until_interrupted(work: Coroutine[object, object, None]) -> int:
    async def until() -> None:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    try:
        asyncio.run(until())
    except OSError as error:
        return _told(error)
    return 0


def _told(error: Exception) -> int:
    """Say what is wrong, and give the exit code for it."""
    sys.stderr.write(f"tabmuxd: {error}\n")
    match error:
        case StateDirectoryInUse():
            return _IN_USE
        case LaunchError(cause="profile_in_use"):
            return _IN_USE
        case SettingsError() | DescriptorError() | StateDirectoryError() | LaunchError(cause="profile_not_writable"):
            return _USAGE
        case LaunchError():
            return _NO_BROWSER
        case StoreError():
            return _DAMAGED
        case _:
            return _FAILED


if __name__ == "__main__":
    main()
