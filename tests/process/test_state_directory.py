from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tabmuxd.state_directory import StateDirectory, StateDirectoryError, StateDirectoryInUse

_HOLDER = """
import sys, time
from pathlib import Path
from tabmuxd.state_directory import StateDirectory
with StateDirectory(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def loose_umask() -> Iterator[None]:
    """A umask that takes nothing away."""
    before = os.umask(0)
    yield
    os.umask(before)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("loose_umask")
def test_private(directory: Path) -> None:
    """The directory has mode 0700 and its lock 0600, also under a loose umask (SEC-02)."""
    with StateDirectory(directory / "state") as state:
        assert (_mode(state.path), _mode(state.path / "tabmuxd.lock")) == (0o700, 0o600)
        assert state.database == directory / "state" / "tabmuxd.sqlite3"


def test_open_to_others(directory: Path) -> None:
    """One that was there and that others may enter is refused, and left as it is: it may be theirs (SEC-02)."""
    directory.chmod(0o750)

    with pytest.raises(StateDirectoryError, match=f"can be entered by others .mode bits 050.*chmod 700 {directory}"):
        StateDirectory(directory).__enter__()

    assert (_mode(directory), list(directory.iterdir())) == (0o750, [])


def test_parents_too(directory: Path) -> None:
    """What is missing above it is made."""
    with StateDirectory(directory / "a" / "b"):
        assert (directory / "a" / "b").is_dir()


def test_second(directory: Path) -> None:
    """A second server of one directory is refused with its way out; when the first is done it may begin (PRO-05)."""
    with StateDirectory(directory):
        with pytest.raises(
            StateDirectoryInUse, match=f"another tabmuxd uses the state directory {directory}.*--state-dir"
        ):
            StateDirectory(directory).__enter__()
        with pytest.raises(StateDirectoryError):
            StateDirectory(directory).__enter__()
    with StateDirectory(directory):
        pass


def test_dead_process(directory: Path) -> None:
    """The lock of a living process holds, that of a dead one is no obstacle, whatever is in the file (PRO-05)."""
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(directory)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StateDirectoryError):
            StateDirectory(directory).__enter__()
        holder.send_signal(signal.SIGKILL)
        holder.wait()

    (directory / "tabmuxd.lock").write_text(str(os.getpid()))
    with StateDirectory(directory):
        pass


def test_no_directory(directory: Path) -> None:
    """What is there and no directory is refused by name; nothing stays open."""
    (directory / "file").write_text("")

    for path in (directory / "file", directory / "file" / "state"):
        with pytest.raises(StateDirectoryError, match=f"the state directory {path} cannot be used"):
            StateDirectory(path).__enter__()


def test_lock_is_not_inherited(directory: Path) -> None:
    """A process that the server starts does not keep the lock of a server that died (PRO-05)."""
    with StateDirectory(directory):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with StateDirectory(directory):
            pass
    finally:
        child.kill()
        child.wait()
