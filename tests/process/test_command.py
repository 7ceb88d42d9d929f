from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tabmuxd.__main__ import main
from tabmuxd.cdp.launcher import hold_profile
from tabmuxd.state_directory import StateDirectory

from tests.cdp.browsers import group_members, until

_LIMIT = 25
_ATTACHED = ("--attach", "http://127.0.0.1:1")


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own, with a short name."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)


def _environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TABMUX_", "XDG_"))}
    return {**kept, **more}


def _serve(directory: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and words of a server that does not start; nothing of it is left."""
    command = [sys.executable, "-m", "tabmuxd", "serve", "--state-dir", str(directory), *arguments]
    with subprocess.Popen(
        command, env=_environment(**environment), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as server:
        out, told = server.communicate(timeout=_LIMIT)
        assert (out, group_members(server.pid)) == (b"", [])
    return server.returncode, told.decode()


Refusal = Callable[..., tuple[int, str]]


@pytest.fixture
def serve_here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refusal:
    """As `_serve`, in this process: for what is refused before anything begins."""
    for name in [name for name in os.environ if name.startswith(("TABMUX_", "XDG_"))]:
        monkeypatch.delenv(name)

    def refused(directory: Path, *arguments: str, **environment: str) -> tuple[int, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as ended:
            main(["serve", "--state-dir", str(directory), *arguments])
        out, told = capsys.readouterr()
        assert out == ""
        assert isinstance(ended.value.code, int)
        return ended.value.code, told

    return refused


@contextmanager
def _serving(directory: Path, **environment: str) -> Generator[subprocess.Popen[bytes]]:
    """A server beside a browser that is not there; it serves, and is ended at last."""
    command = [sys.executable, "-m", "tabmuxd", "serve", "--state-dir", str(directory), *_ATTACHED]
    with (directory.parent / f"{directory.name}.log").open("w+b") as log:
        server = subprocess.Popen(command, env=_environment(**environment), stderr=log, start_new_session=True)
        try:
            until(lambda: b'"event": "serving"' in Path(log.name).read_bytes() or server.poll() is not None)
            assert server.poll() is None, Path(log.name).read_text()
            yield server
        finally:
            server.kill()
            server.wait()
            Path(log.name).unlink()
    assert group_members(server.pid) == []


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(("--chromium", "/nonexistent/chromium"), {}), ((), {"PATH": "/nonexistent"}), ((), {"TABMUX_CHROMIUM": "/no/x"})],
)
def test_no_browser(
    directory: Path, serve_here: Refusal, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    """Without a Chromium the server says what it looked for and ends with 4, before it makes anything."""
    code, told = serve_here(directory / "state", *arguments, **environment)

    assert code == 4, told
    assert told.startswith("tabmuxd: ")
    assert "chromium" in told or "/no/x" in told
    assert (told.count("\n"), list(directory.iterdir())) == (1, [])


def test_no_browser_on_path(directory: Path) -> None:
    """A process without a Chromium on its PATH ends with 4 and leaves nothing running."""
    code, told = _serve(directory / "state", PATH="/nonexistent")

    assert (code, told.count("\n"), list(directory.iterdir())) == (4, 1, [])


def test_in_use(directory: Path) -> None:
    """A state directory that another server uses ends it with 3, and that one's socket stays untouched (PRO-05)."""
    (directory / "tabmuxd.sock").write_text("of the other one")
    with StateDirectory(directory):
        code, told = _serve(directory, *_ATTACHED)

    assert code == 3, told
    assert told.startswith(f"tabmuxd: another tabmuxd uses the state directory {directory}")
    assert sorted(path.name for path in directory.iterdir()) == ["tabmuxd.lock", "tabmuxd.sock"]
    assert (directory / "tabmuxd.sock").read_text() == "of the other one"


def test_profile_in_use(directory: Path) -> None:
    """A profile directory that another server holds ends it with 3, before it binds or opens a store (PRO-05, O-130).

    The lock of a dead server, whatever is written in its file, stops nobody.
    """
    profile, state = directory / "profile", directory / "state"
    state.mkdir(mode=0o700)
    (state / "tabmuxd.toml").write_text(f'[browsers.main]\nprofile = "{profile}"\n')
    profile.mkdir()
    (profile / "tabmux.lock").write_text(str(os.getpid()))
    held = hold_profile(profile)
    try:
        code, told = _serve(state, "--chromium", sys.executable)
    finally:
        os.close(held)

    assert code == 3, told
    assert told == (
        f"tabmuxd: the profile directory {profile} is in use by another server. "
        "End that program, or give another directory\n"
    )
    assert sorted(path.name for path in state.iterdir()) == ["tabmuxd.lock", "tabmuxd.toml"]


def test_profile_not_writable(directory: Path) -> None:
    """A profile directory that cannot be made ends it with 2 (PRO-06)."""
    (directory / "tabmuxd.toml").write_text(f'[browsers.main]\nprofile = "{directory}/tabmuxd.toml/profile"\n')
    code, told = _serve(directory, "--chromium", sys.executable)

    assert (code, told.startswith(f"tabmuxd: the profile directory {directory}/tabmuxd.toml/profile")) == (2, True)


def test_open_to_others(directory: Path) -> None:
    """A state directory that others may enter ends it with 2."""
    directory.chmod(0o755)
    code, told = _serve(directory, *_ATTACHED)

    assert (code, told.startswith(f"tabmuxd: the state directory {directory} can be entered by others")) == (2, True)


@pytest.mark.parametrize(
    ("text", "arguments", "told"),
    [
        ("", ("--address", "127.0.0.1:7000"), "address: '127.0.0.1:7000' is refused"),
        ("", ("--address", "0.0.0.0:7000"), "address: '0.0.0.0:7000' is refused"),
        ("", ("--playground-port", "x"), "playground_port: 'x' is not a whole number"),
        ("", ("--address", f"unix:///{'x' * 120}"), "address: the socket path"),
        ("", ("--config", "/nonexistent.toml"), "config: there is no file /nonexistent.toml"),
        ("[browsers.Main]", (), "browsers.Main: an id has"),
        ("[browsers.'a/b']", (), "browsers.a/b: an id has"),
        ("log_level = 'loud'", (), "log_level: 'loud' is none of"),
        ("browser = 1", (), "unknown setting 'browser'"),
    ],
)
def test_bad_setting(directory: Path, serve_here: Refusal, text: str, arguments: tuple[str, ...], told: str) -> None:
    """A wrong setting ends it with 2 and one line that names it, before anything is made (SEC-01)."""
    (directory / "tabmuxd.toml").write_text(text)

    code, words = serve_here(directory, *_ATTACHED, *arguments)

    assert (code, words.count("\n"), words[: len(told) + 9]) == (2, 1, f"tabmuxd: {told}")
    assert [path.name for path in directory.iterdir()] == ["tabmuxd.toml"]


def test_long_socket_path(directory: Path) -> None:
    """A state directory too deep for a socket ends it with 2 and the way out."""
    code, told = _serve(directory / ("x" * 100), *_ATTACHED)

    assert (code, "at most 107" in told, list(directory.iterdir())) == (2, True, [])


@pytest.mark.parametrize("content", [b"noise" * 1000, b"SQLite format 3\0" + b"\xff" * 4096])
def test_damaged(directory: Path, content: bytes) -> None:
    """A store that cannot be read ends it with 5, named, and is left as it was (STO-06)."""
    store = directory / "tabmuxd.sqlite3"
    store.write_bytes(content)

    code, told = _serve(directory, *_ATTACHED)

    assert code == 5, told
    assert told.startswith(f"tabmuxd: the store {store} ")
    assert store.read_bytes() == content


def test_unusable_socket(directory: Path) -> None:
    """An address that cannot be bound ends it with 1 and says which (PRO-05)."""
    (directory / "file").write_text("")

    code, told = _serve(directory / "state", *_ATTACHED, "--address", f"unix://{directory}/file/x.sock")

    assert code == 1, told
    assert told.splitlines()[-1].startswith("tabmuxd: ")
    assert f"{directory}/file" in told.splitlines()[-1]
    assert "Traceback" not in told


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped(directory: Path, number: int) -> None:
    """Told to stop, a server ends with 0, though its browser was never there (PRO-01)."""
    with _serving(directory) as server:
        assert stat.S_IMODE((directory / "tabmuxd.sock").stat().st_mode) == 0o600
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        server.send_signal(number)

        assert server.wait(_LIMIT) == 0


def test_after_a_kill(directory: Path) -> None:
    """What a killed server leaves, socket and lock too, is no obstacle to the next one (PRO-05, STO-05)."""
    with _serving(directory) as server:
        server.kill()
        server.wait(_LIMIT)
        assert (directory / "tabmuxd.sock").exists()

    with _serving(directory) as server:
        server.terminate()
        assert server.wait(_LIMIT) == 0


def test_second_server(directory: Path) -> None:
    """A second server refuses while the first one serves, which goes on (PRO-05)."""
    with _serving(directory) as server:
        code, _told = _serve(directory, *_ATTACHED)

        assert (code, server.poll()) == (3, None)


def test_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a command it tells its usage and ends with 2."""
    with pytest.raises(SystemExit) as ended:
        main([])

    out, told = capsys.readouterr()
    assert (ended.value.code, out, told.startswith("usage: tabmuxd")) == (2, "", True)


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """Its help lists the exit codes."""
    with pytest.raises(SystemExit) as ended:
        main(["-h"])

    lines = capsys.readouterr().out.partition("exit codes:\n")[2].splitlines()
    assert (ended.value.code, [line.split()[0] for line in lines]) == (0, ["0", "1", "2", "3", "4", "5"])
