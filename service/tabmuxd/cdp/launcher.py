"""Launch a Chrome on a profile directory of ours, take back one that outlived its server, end one that is ours."""

import asyncio
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from tabmuxd.cdp.endpoint import EndpointError, Located, locate
from tabmuxd.cdp.processes import (
    LAUNCH_FLAG,
    BrowserProcess,
    Doubt,
    doubt,
    end_group,
    exit_code,
    find_launched,
    read_facts,
    reap_ended,
    start,
    wait_ended,
)
from tabmuxd.cdp.profile import (
    LOG_FILE,
    forget_process,
    hold,
    lock_holder,
    log_tail,
    make_writable,
    read_launch,
    read_port_file,
    read_record,
    remove_lock,
    write_launch,
    write_record,
)

__all__ = [
    "BrowserProcess",
    "EndRefused",
    "LaunchError",
    "LaunchOptions",
    "Launched",
    "end",
    "hold_profile",
    "launch_or_take_back",
]

Cause = Literal["no_executable", "profile_in_use", "profile_not_writable", "absorbed", "exited", "timeout"]

_EXECUTABLES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome")
_ARGUMENTS = (
    "--no-startup-window",
    "--window-size=1400,1000",
    # A tab that nobody looks at must run as fast as one in front.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    # Chromium 156 loads these pages of its address bar anew with each tab, though nobody types there: half the CPU time
    # that a tab costs.
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
)
_HEADLESS_ARGUMENTS = ("--headless=new", "--disable-gpu")

_POLL_SECONDS = 0.02
_ANSWER_SECONDS = 2.0
# Chrome 156: the profile directory is locked by another process.
_EXIT_PROFILE_IN_USE = 21
# The process that was written down lives no more.
_DEAD: tuple[Doubt, ...] = ("gone", "reused_pid")

_MESSAGES: dict[Cause, str] = {
    "no_executable": "no browser to launch: {detail}. Install Chromium or Chrome, or name its executable",
    "profile_in_use": "the profile directory {profile} is in use by {detail}. "
    "End that program, or give another directory",
    "profile_not_writable": "the profile directory {profile} cannot be written: {detail}. Give one that can",
    "absorbed": "the browser ended at once, without an error and without a port: a browser that already runs "
    "took over. End that browser, or give another directory than {profile}",
    "exited": "the browser ended before it opened its port: {detail}",
    "timeout": "the browser on {profile} did not answer in time: {detail}",
}


class LaunchError(Exception):
    """No browser could be launched on the profile directory, and `cause` tells why."""

    def __init__(self, cause: Cause, profile_directory: Path, detail: str = "") -> None:
        self.cause: Cause = cause
        self.profile_directory = profile_directory
        self.detail = detail
        super().__init__(_MESSAGES[cause].format(profile=profile_directory, detail=detail))


class EndRefused(Exception):
    """A process was not signalled, since it is not surely the browser that was launched; `doubt` tells why."""

    def __init__(self, process: BrowserProcess, doubt: Doubt) -> None:
        self.process = process
        self.doubt: Doubt = doubt
        super().__init__(f"process {process.pid} was not ended: it is not surely our browser ({doubt})")


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """What to launch.

    `executable` None means the first Chromium or Chrome on PATH. `break_lock` removes Chrome's lock on the directory
    also if another host holds it; never that of a live process of this host.
    """

    profile_directory: Path
    executable: Path | None = None
    headless: bool = True
    extra_arguments: tuple[str, ...] = ()
    break_lock: bool = False


@dataclass(frozen=True, slots=True)
class Launched:
    """A browser of ours that answers; `taken_back` if it outlived the server that launched it."""

    process: BrowserProcess
    located: Located
    taken_back: bool


def hold_profile(directory: Path) -> int:
    """Lock the profile directory against other servers and give the descriptor that holds the lock until closed.

    Raises LaunchError if another server holds it or it cannot be written.
    """
    profile = _prepare(directory)
    try:
        return hold(profile)
    except BlockingIOError:
        raise LaunchError("profile_in_use", profile, "another server") from None


async def launch_or_take_back(options: LaunchOptions, *, known: BrowserProcess | None, timeout: float = 20) -> Launched:
    """Take back the browser that lives on the profile directory if it is ours; else launch one.

    It is ours if pid, start time, port and profile fit `known` or the record in the directory, or, where no living
    process is recorded, if it alone has the profile and the recorded id of a launch. Raises LaunchError within
    `timeout` seconds; a browser started meanwhile is ended then, and as well on cancellation.
    """
    profile = _prepare(options.profile_directory)
    deadline = asyncio.get_running_loop().time() + timeout
    for survivor in _survivors(known, profile):
        if _is_ours(survivor, profile):
            launched = await _take_back(survivor, profile, deadline)
            if launched is not None:
                return launched
        if _doubt(survivor, profile) == "gone":
            await reap_ended(survivor.pid)
    _pass_lock(profile, break_lock=options.break_lock)
    return await _launch(options, profile, deadline)


async def end(process: BrowserProcess, profile_directory: Path, *, timeout: float = 5) -> None:
    """End a browser and its helpers, and return when they are gone; nothing is done if it is gone already.

    It is asked to end (SIGTERM) and killed after `timeout` seconds. Raises EndRefused, and signals nothing, unless
    pid, start time, port and profile all fit; TimeoutError if a killed process does not go.
    """
    profile = _absolute(profile_directory)
    reason = _doubt(process, profile)
    if reason is None:
        if not await end_group(process.pid, patience=timeout):
            raise TimeoutError(f"process {process.pid} and its helpers did not end")
    elif reason == "gone":
        await reap_ended(process.pid)
    else:
        raise EndRefused(process, reason)
    if read_record(profile) == process:
        forget_process(profile)


def arguments(options: LaunchOptions, profile: Path, executable: str, launch: str, *, as_root: bool) -> list[str]:
    """The command line that launches a browser; what it must be comes last, since Chrome heeds the last of a kind."""
    return [
        executable,
        *_ARGUMENTS,
        *(_HEADLESS_ARGUMENTS if options.headless else ()),
        *(("--no-sandbox",) if as_root else ()),
        *options.extra_arguments,
        "--remote-debugging-port=0",
        f"{LAUNCH_FLAG}{launch}",
        f"--user-data-dir={profile}",
    ]


def _survivors(known: BrowserProcess | None, profile: Path) -> Iterator[BrowserProcess]:
    """Processes that may be the browser on the profile, each looked for only if none before was it."""
    written = [process for process in (known, read_record(profile)) if process is not None]
    yield from written
    launch = read_launch(profile)
    # One that lives and fits in part is in doubt: its launch does not make it ours.
    if launch is None or any(_doubt(process, profile) not in _DEAD for process in written):
        return
    launched = find_launched(profile, launch)
    if launched is not None:
        yield launched


async def _take_back(survivor: BrowserProcess, profile: Path, deadline: float) -> Launched | None:
    """Wait until the living browser answers; None if it ends meanwhile."""
    try:
        located, port = await _await_answer(survivor.pid, profile, deadline)
    except LaunchError as error:
        if error.cause == "timeout":
            raise
        return None
    process = replace(survivor, port=port)
    if read_record(profile) != process:
        write_record(profile, process)
    return Launched(process, located, taken_back=True)


async def _launch(options: LaunchOptions, profile: Path, deadline: float) -> Launched:
    executable = find_executable(options)
    # The port file of another browser must be gone before there is a record for which a port is read from it.
    forget_process(profile)
    launch = secrets.token_hex(16)
    command = arguments(options, profile, executable, launch, as_root=os.geteuid() == 0)
    # Chrome need not know the secrets of this server.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TABMUX")}
    # Before there is a process, so that one whose server is killed right after its start is known to the next one.
    write_launch(profile, launch)
    try:
        pid = start(command, environment, profile / LOG_FILE)
    except OSError as error:
        forget_process(profile)
        raise LaunchError("no_executable", profile, f"{executable}: {error.strerror}") from error
    try:
        facts = read_facts(pid)
        process = BrowserProcess(pid=pid, start_time=facts.start_time if facts else 0, process_group=pid, port=0)
        # Without a port yet: that of a browser whose server is killed right now is read by the next one.
        write_record(profile, process)
        located, port = await _await_answer(pid, profile, deadline)
        process = replace(process, port=port)
        write_record(profile, process)
    except BaseException:
        await asyncio.shield(end_group(pid, patience=0))
        forget_process(profile)
        raise
    return Launched(process, located, taken_back=False)


async def _await_answer(pid: int, profile: Path, deadline: float) -> tuple[Located, int]:
    """Where the browser of this profile answers, and its port.

    Raises LaunchError if process `pid` ends before, or at the deadline, in the time of the loop.
    """
    loop = asyncio.get_running_loop()
    seen = "it opened no port"
    while loop.time() < deadline:
        port_file = read_port_file(profile)
        if port_file is not None:
            try:
                return await locate(str(profile), timeout=_ANSWER_SECONDS), port_file.port
            except EndpointError as error:
                seen = str(error)
        if await wait_ended(pid, _POLL_SECONDS):
            raise _early_end(profile, exit_code(pid))
    raise LaunchError("timeout", profile, f"process {pid}; {seen}")


def _early_end(profile: Path, code: int | None) -> LaunchError:
    if code == 0:
        return LaunchError("absorbed", profile)
    if code == _EXIT_PROFILE_IN_USE:
        return LaunchError("profile_in_use", profile, "another browser")
    return LaunchError("exited", profile, f"exit code {code}\n{log_tail(profile)}".strip())


def _doubt(process: BrowserProcess, profile: Path) -> Doubt | None:
    port_file = read_port_file(profile)
    return doubt(process, profile, read_facts(process.pid), port_file.port if port_file else None)


def _is_ours(process: BrowserProcess, profile: Path) -> bool:
    """Whether the process lives and is ours; one that was recorded before its port was known needs no port."""
    reason = _doubt(process, profile)
    return reason is None or (reason == "other_port" and process.port == 0)


def _pass_lock(profile: Path, *, break_lock: bool) -> None:
    """Remove Chrome's lock if its holder is dead; raises LaunchError if it is, or may be, alive."""
    holder = lock_holder(profile)
    if holder is None:
        return
    if holder.state == "alive" or (holder.state == "elsewhere" and not break_lock):
        raise LaunchError("profile_in_use", profile, f"process {holder.pid} on {holder.host}")
    remove_lock(profile)


def find_executable(options: LaunchOptions) -> str:
    names: Sequence[str] = _EXECUTABLES if options.executable is None else (str(options.executable),)
    for name in names:
        found = shutil.which(name)
        if found is not None:
            return found
    raise LaunchError("no_executable", options.profile_directory, f"found none of {', '.join(names)}")


def _prepare(directory: Path) -> Path:
    """The directory, made and proven to be writable before anything is launched on it."""
    profile = _absolute(directory)
    try:
        make_writable(profile)
    except OSError as error:
        raise LaunchError("profile_not_writable", profile, error.strerror or type(error).__name__) from error
    return profile


def _absolute(directory: Path) -> Path:
    return directory.expanduser().resolve()
