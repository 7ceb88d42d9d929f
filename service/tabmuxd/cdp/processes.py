"""Browser processes of this machine: what /proc says of one, whether it is ours, starting it, waiting for its end."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Doubt = Literal["gone", "reused_pid", "other_group", "not_a_browser", "other_profile", "other_port"]

LAUNCH_FLAG = "--tabmux-launch="
"""Names one launch; Chrome 156 says nothing of a switch that it does not know, and keeps it from its helpers."""

_PROFILE_FLAG = "--user-data-dir="
# Of Linux on 64 bits; a number read from a file may be any.
_LAST_PID = 4194304


@dataclass(frozen=True, slots=True)
class BrowserProcess:
    """One browser process that was launched here.

    `start_time` is in clock ticks since the machine started (field 22 of /proc/PID/stat); `port` is 0 until known.
    """

    pid: int
    start_time: int
    process_group: int
    port: int


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What /proc tells of a living process; the command line of one that is about to be gone is empty."""

    start_time: int
    process_group: int
    command_line: tuple[str, ...]


def read_facts(pid: int) -> ProcessFacts | None:
    """What is known of process `pid`; None if there is none or it is dead and waits to be reaped."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        command_line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    # The name is in parentheses and may hold spaces and parentheses itself; field 3, the state, comes after the last.
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    words = command_line.decode(errors="surrogateescape").rstrip("\0")
    return ProcessFacts(
        start_time=int(fields[19]),
        process_group=int(fields[2]),
        command_line=tuple(words.split("\0")) if words else (),
    )


def doubt(process: BrowserProcess, profile: Path, found: ProcessFacts | None, port: int | None) -> Doubt | None:
    """Why the process found under this pid is not, or not surely, the one that was launched; None if all fits.

    `port` is what the profile's port file says. A `process.port` of 0 was never read, so it fits no port.
    """
    if found is None or (found.start_time == process.start_time and not found.command_line):
        return "gone"
    if found.start_time != process.start_time:
        return "reused_pid"
    if any(argument.startswith("--type=") for argument in found.command_line):
        return "not_a_browser"
    if _values(found, _PROFILE_FLAG) != {str(profile)}:
        return "other_profile"
    if not found.process_group == process.process_group == process.pid:
        return "other_group"
    return None if process.port == port else "other_port"


def find_launched(profile: Path, launch: str) -> BrowserProcess | None:
    """The process that was started on the profile with this id of a launch; None if not surely one.

    It is for a launch of which no pid was written down: of what `doubt` asks only the port is left open (0), and since
    everybody may read the id in the command line, a process of another user is none.
    """
    found: list[BrowserProcess] = []
    for pid in _pids():
        facts = read_facts(pid)
        if facts is None or _values(facts, LAUNCH_FLAG) != {launch}:
            continue
        process = BrowserProcess(pid=pid, start_time=facts.start_time, process_group=facts.process_group, port=0)
        if doubt(process, profile, facts, port=0) is None and _user(pid) == os.geteuid():
            found.append(process)
    return found[0] if len(found) == 1 else None


def start(arguments: list[str], environment: Mapping[str, str], log: Path) -> int:
    """Start a program as leader of a session and process group of its own and give its pid.

    It reads nothing, its standard error goes to `log` (emptied first), and it outlives this process. posix_spawn runs
    no fork handlers, so gRPC's threads do not mind. Raises OSError if the program cannot be run.
    """
    null, write_only = os.devnull, os.O_WRONLY
    return os.posix_spawn(
        arguments[0],
        arguments,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, null, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, null, write_only, 0),
            (os.POSIX_SPAWN_OPEN, 2, str(log), write_only | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600),
            *((os.POSIX_SPAWN_CLOSE, descriptor) for descriptor in _inheritable_descriptors()),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGPIPE, signal.SIGTERM, signal.SIGINT),
    )


async def wait_ended(pid: int, seconds: float) -> bool:
    """Whether process `pid` ends within this time; true as well if there is none."""
    if not 0 < pid <= _LAST_PID:
        return True
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    # A pidfd can be read as soon as the process is dead, reaped or not, child of ours or not.
    loop.add_reader(descriptor, ended.set)
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
    return True


def exit_code(pid: int) -> int | None:
    """Exit code or number of the deadly signal of a child that has ended and is not reaped; None for any other."""
    try:
        # Not reaped here: until it is, nobody else can get its pid, nor its group's number.
        found = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_status if found else None


async def reap_ended(pid: int, limit: float = 5.0) -> None:
    """Reap a child that is about to be gone: its sockets close, and its command line empties, before it is a zombie."""
    await wait_ended(pid, limit)
    reap(pid)


def reap(pid: int) -> None:
    """Take note of a child's end, so that it is no zombie; nothing happens if it lives or is no child of ours."""
    if 0 < pid <= _LAST_PID:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


async def end_group(leader: int, *, patience: float, limit: float = 5.0) -> bool:
    """End a process group whose leader was proven to be ours, and reap it; false if something of it is left.

    The leader alone is asked first (SIGTERM), since it ends its helpers in good order and stores what it knows; what
    is left after `patience` seconds is killed.
    """
    with contextlib.suppress(ProcessLookupError):
        os.kill(leader, signal.SIGTERM if patience > 0 else signal.SIGKILL)
    if not await wait_ended(leader, patience):
        _kill_group(leader)
        if not await wait_ended(leader, limit):
            return False
    # Helpers are looked for before the leader is reaped: until then nobody else can get this group's number.
    members = [pid for pid in _group_members(leader) if pid != leader]
    if members:
        _kill_group(leader)
    ended = [await wait_ended(pid, limit) for pid in members]
    reap(leader)
    return all(ended)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _group_members(group: int) -> Iterator[int]:
    for pid in _pids():
        facts = read_facts(pid)
        if facts is not None and facts.process_group == group:
            yield pid


def _pids() -> Iterator[int]:
    """Every process of the machine."""
    return (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal())


def _user(pid: int) -> int | None:
    """The effective user of a process; None if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    # Not the owner of the folder, which is root's for each process that keeps its memory to itself.
    return next((int(line.split()[2]) for line in lines if line.startswith("Uid:")), None)


def _values(found: ProcessFacts, flag: str) -> set[str]:
    """All that a command line gives for a flag."""
    return {argument.removeprefix(flag) for argument in found.command_line if argument.startswith(flag)}


def _inheritable_descriptors() -> list[int]:
    """Descriptors that a program would inherit; Python's own are not, those of C libraries may be."""
    found: list[int] = []
    for name in [entry.name for entry in Path("/proc/self/fd").iterdir()]:
        with contextlib.suppress(OSError):  # the one that listed the folder is closed by now
            if int(name) > 2 and os.get_inheritable(int(name)):  # noqa: PLR2004 - the three standard streams
                found.append(int(name))
    return found
