"""What stands in a profile directory: Chrome's port file and lock, our record of the process, and our own lock."""

import fcntl
import json
import os
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, cast

from tabmuxd.cdp.processes import BrowserProcess, read_facts

PORT_FILE = "DevToolsActivePort"
SINGLETON_LOCK = "SingletonLock"
RECORD_FILE = "tabmux-process.json"
LOCK_FILE = "tabmux.lock"
LOG_FILE = "tabmux-browser.log"

_HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class PortFile:
    """Content of `DevToolsActivePort`: a port, and the path of the browser's socket there."""

    port: int
    path: str


@dataclass(frozen=True, slots=True)
class LockHolder:
    """The process that `SingletonLock` names; of one on another host it is not known whether it lives."""

    host: str
    pid: int
    state: Literal["alive", "dead", "elsewhere"]


def read_port_file(directory: Path) -> PortFile | None:
    """Port and path that Chrome wrote, or None if there is no whole file.

    Chrome 156 writes it only with `--remote-debugging-port=0` and leaves it behind however it ends.
    """
    try:
        port, path = (directory / PORT_FILE).read_text().split("\n")[:2]
        found = PortFile(port=int(port), path=path.strip())
    except (OSError, ValueError):
        return None
    return found if 0 < found.port <= _HIGHEST_PORT and found.path.startswith("/") else None


def read_record(directory: Path) -> BrowserProcess | None:
    """The process that a server launched here and wrote down; None if there is none yet, or no readable record."""
    match _read_fields(directory):
        case {"pid": int(pid), "start_time": int(start_time), "process_group": int(process_group), "port": int(port)}:
            return BrowserProcess(pid=pid, start_time=start_time, process_group=process_group, port=port)
        case _:
            return None


def read_launch(directory: Path) -> str | None:
    """Id of the launch that a server began here and wrote down; None if there is no readable record of one."""
    match _read_fields(directory):
        case {"launch": str(launch)} if launch:
            return launch
        case _:
            return None


def write_launch(directory: Path, launch: str) -> None:
    """Write down that a launch with this id begins, and no process of it is known yet; else as `write_record`."""
    _write_fields(directory, {"launch": launch})


def write_record(directory: Path, process: BrowserProcess) -> None:
    """Write the process of the launch down so that it is there as a whole, or not at all, whenever the machine stops.

    The id of the launch stays.
    """
    launch = read_launch(directory)
    _write_fields(directory, asdict(process) | ({} if launch is None else {"launch": launch}))


def _read_fields(directory: Path) -> dict[str, object]:
    """Fields of the record; none if it cannot be read."""
    try:
        fields: object = json.loads((directory / RECORD_FILE).read_text())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, object]", fields) if isinstance(fields, dict) else {}


def _write_fields(directory: Path, fields: Mapping[str, object]) -> None:
    passing = directory / f"{RECORD_FILE}.new"
    with passing.open("w") as file:
        json.dump(fields, file)
        file.flush()
        os.fsync(file.fileno())
    passing.replace(directory / RECORD_FILE)
    folder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def forget_process(directory: Path) -> None:
    """Remove record and port file of a process that is gone; may be repeated."""
    (directory / RECORD_FILE).unlink(missing_ok=True)
    (directory / PORT_FILE).unlink(missing_ok=True)


def lock_holder(directory: Path) -> LockHolder | None:
    """Who holds Chrome's own lock on the directory; None if nobody does, or the link is not one of Chrome's."""
    try:
        host, _, pid = (directory / SINGLETON_LOCK).readlink().name.rpartition("-")
        holder = int(pid)
    except (OSError, ValueError):
        return None
    if host != socket.gethostname():
        return LockHolder(host=host, pid=holder, state="elsewhere")
    return LockHolder(host=host, pid=holder, state="dead" if read_facts(holder) is None else "alive")


def remove_lock(directory: Path) -> None:
    """Remove Chrome's lock, whose holder must be known to be dead."""
    (directory / SINGLETON_LOCK).unlink(missing_ok=True)


def make_writable(directory: Path) -> None:
    """Make the directory, for us alone, and prove that it can be written.

    Raises OSError if not. Permission bits prove nothing: root passes them and a read-only mount ignores them.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory):
        pass


def hold(directory: Path) -> int:
    """Lock the directory against other servers and give the descriptor that holds the lock.

    Raises BlockingIOError while another holds it. The lock ends with its descriptor, so a dead server stops nobody;
    Chrome does not inherit it.
    """
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def log_tail(directory: Path, limit: int = 600) -> str:
    """The last `limit` characters that the browser wrote to its standard error."""
    try:
        return (directory / LOG_FILE).read_text(errors="replace")[-limit:].strip()
    except OSError:
        return ""
