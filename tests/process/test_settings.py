from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tabmuxd.settings import BrowserSettings, Settings, SettingsError, default_state_directory, load


@pytest.fixture
def directory() -> Iterator[Path]:
    """A folder of its own, with a short name."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)


def _load(directory: Path, text: str = "", flags: Mapping[str, str] | None = None, **environment: str) -> Settings:
    """Settings of a server with this file, these flags and this environment."""
    (directory / "tabmuxd.toml").write_text(text, "utf-8")
    return load({"state_dir": str(directory), **(flags or {})}, {"HOME": "/home/x", **environment})


def test_defaults(directory: Path) -> None:
    """Without file, environment and flags there is one launched browser and a socket in the state directory."""
    assert load({}, {"TABMUX_STATE_DIR": str(directory)}) == Settings(
        state_directory=directory,
        socket=directory / "tabmuxd.sock",
        providers_directory=directory / "providers",
        browsers=(BrowserSettings("main"),),
        playground=False,
        playground_port=0,
        log_level="info",
        max_watch_count=256,
        max_principal_watch_count=64,
        max_turn_count=5,
        safety_preamble_file=None,
        scripts=True,
    )


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"TABMUX_STATE_DIR": "/s", "XDG_STATE_HOME": "/x", "HOME": "/h"}, "/s"),
        ({"XDG_STATE_HOME": "/x", "HOME": "/h"}, "/x/tabmux"),
        ({"XDG_STATE_HOME": "x", "HOME": "/h"}, "/h/.local/state/tabmux"),
        ({"TABMUX_STATE_DIR": "", "XDG_STATE_HOME": "", "HOME": "/h"}, "/h/.local/state/tabmux"),
        ({"TABMUX_STATE_DIR": "s"}, f"{Path.cwd()}/s"),
    ],
)
def test_state_directory(environment: dict[str, str], place: str) -> None:
    """The state directory is the one that clients look into (design 8); a relative XDG_STATE_HOME is ignored."""
    assert default_state_directory(environment) == Path(place)


_FILE = """
address = "unix:///tmp/file.sock"
playground = true
playground_port = 1
log_level = "DEBUG"
max_watch_count = 2
max_principal_watch_count = 1
max_turn_count = 0
chromium = "/file/chromium"
attach = "http://127.0.0.1:1"
providers_directory = "/file/providers"
safety_preamble_file = "/file/preamble.md"
scripts = false
"""


def test_file(directory: Path) -> None:
    """The file sets everything that a flag can."""
    assert _load(directory, _FILE) == Settings(
        state_directory=directory,
        socket=Path("/tmp/file.sock"),
        providers_directory=Path("/file/providers"),
        browsers=(BrowserSettings("main", address="http://127.0.0.1:1", executable=Path("/file/chromium")),),
        playground=True,
        playground_port=1,
        log_level="debug",
        max_watch_count=2,
        max_principal_watch_count=1,
        max_turn_count=0,
        safety_preamble_file=Path("/file/preamble.md"),
        scripts=False,
    )


def test_precedence(directory: Path) -> None:
    """Flags win over the environment, that over the file; an empty variable is none."""
    flags = {"playground_port": "3", "log_level": "error"}

    found = _load(
        directory,
        _FILE,
        flags,
        TABMUX_PLAYGROUND_PORT="2",
        TABMUX_ADDRESS="unix:///tmp/environment.sock",
        TABMUX_PLAYGROUND="off",
        TABMUX_CHROMIUM="",
        TABMUX_MAX_WATCH_COUNT="7",
        TABMUX_MAX_PRINCIPAL_WATCH_COUNT="5",
        TABMUX_MAX_TURN_COUNT="8",
        TABMUX_SAFETY_PREAMBLE_FILE="/environment/preamble.md",
        TABMUX_SCRIPTS="on",
        TABMUX_LOG_LEVEL="warning",
    )

    assert found == Settings(
        state_directory=directory,
        socket=Path("/tmp/environment.sock"),
        providers_directory=Path("/file/providers"),
        browsers=(BrowserSettings("main", address="http://127.0.0.1:1", executable=Path("/file/chromium")),),
        playground=False,
        playground_port=3,
        log_level="error",
        max_watch_count=7,
        max_principal_watch_count=5,
        max_turn_count=8,
        safety_preamble_file=Path("/environment/preamble.md"),
        scripts=True,
    )


def test_browsers(directory: Path) -> None:
    """Each table is a browser; what is said for all is for those that do not say it, `attach` for the first one."""
    text = """
        chromium = "/usr/bin/one"
        attach = "http://127.0.0.1:1"
        [browsers.work]
        headless = false
        max_tab_count = 0
        extra_arguments = ["--lang=de"]
        [browsers.play-2]
        profile = "/profiles/play"
        executable = "/usr/bin/two"
        [browsers.there]
        address = "ws://127.0.0.1:2/devtools/browser/x"
    """

    assert _load(directory, text).browsers == (
        BrowserSettings(
            "work",
            address="http://127.0.0.1:1",
            executable=Path("/usr/bin/one"),
            headless=False,
            max_tab_count=0,
            extra_arguments=("--lang=de",),
        ),
        BrowserSettings("play-2", profile=Path("/profiles/play"), executable=Path("/usr/bin/two")),
        BrowserSettings("there", address="ws://127.0.0.1:2/devtools/browser/x", executable=Path("/usr/bin/one")),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("adress = 'unix:///x'", "unknown setting 'adress'; known are .*address.*max_watch_count"),
        ("state_dir = '/x'", "unknown setting 'state_dir'"),
        ("address = 5", "address: 5 "),
        ("address = '127.0.0.1:7000'", "address: .*Unix socket only"),
        ("address = '0.0.0.0:7000'", "address: .*Unix socket only"),
        ("address = 'localhost:0'", "address: .*Unix socket only"),
        ("address = '[::]:7000'", "address: .*Unix socket only"),
        ("address = 'tcp://127.0.0.1:7000'", "address: .*Unix socket only"),
        ("address = 'https://tabmux.example'", "address: .*Unix socket only"),
        ("address = '/tmp/x.sock'", "address: .*Unix socket only"),
        ('address = "unix:///tmp/\\u0000x"', "address: "),
        ("address = 'unix://x.sock'", "address: .*not absolute"),
        (f"address = 'unix:///{'x' * 107}'", "address: .* has 108 bytes, .*at most 107"),
        (f"address = 'unix:///{'ü' * 54}'", "address: .* has 109 bytes"),
        ("playground = 'maybe'", "playground: 'maybe' "),
        ("playground = 2", "playground: 2 "),
        ("playground_port = -1", "playground_port: -1 "),
        ("playground_port = 65536", "playground_port: 65536 "),
        ("playground_port = 1.5", "playground_port: 1.5 "),
        ("playground_port = true", "playground_port: True "),
        ("playground_port = 'http'", "playground_port: 'http' "),
        ("max_watch_count = -2", "max_watch_count: -2 is negative"),
        ("max_watch_count = 'many'", "max_watch_count: 'many' "),
        ("log_level = 'loud'", "log_level: 'loud' "),
        ("log_level = 3", "log_level: 3 "),
        ("chromium = 3", "chromium: 3 "),
        ("attach = ['x']", "attach: "),
        ("browsers = 3", "browsers: must be tables"),
        ("browsers = ['main']", "browsers: must be tables"),
        ("[[browsers]]", "browsers: must be tables"),
        ("[browsers]\nmain = 3", "browsers.main: must be a table"),
        ("[browsers.main]\nheadles = true", "browsers.main: unknown setting 'headles'; known are .*headless"),
        ("[browsers.main]\nid = 'x'", "browsers.main: unknown setting 'id'"),
        ("[browsers.main]\nheadless = 'perhaps'", "browsers.main.headless: 'perhaps' "),
        ("[browsers.main]\nmax_tab_count = -1", "browsers.main.max_tab_count: -1 is negative"),
        ("[browsers.main]\nmax_tab_count = 'x'", "browsers.main.max_tab_count: 'x' "),
        ("[browsers.main]\nextra_arguments = '--x'", "browsers.main.extra_arguments: must be a list of texts"),
        ("[browsers.main]\nextra_arguments = [1]", "browsers.main.extra_arguments: must be a list of texts"),
        ("[browsers.main]\naddress = 9222", "browsers.main.address: 9222 "),
        ("[browsers.main]\nprofile = 5", "browsers.main.profile: 5 "),
        ("[browsers.main]\nexecutable = false", "browsers.main.executable: False "),
        ("address = ", "config: .*tabmuxd.toml cannot be read"),
    ],
)
def test_refused(directory: Path, text: str, told: str) -> None:
    """A setting that is unknown, of the wrong kind or not allowed is named, with what is right (SEC-01)."""
    with pytest.raises(SettingsError, match=f"^{told}"):
        _load(directory, text)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"TABMUX_ADDRESS": "127.0.0.1:7000"}, "address: "),
        ({"TABMUX_PLAYGROUND": "2"}, "playground: '2' "),
        ({"TABMUX_PLAYGROUND_PORT": "-1"}, "playground_port: -1 "),
        ({"TABMUX_MAX_WATCH_COUNT": "1e3"}, "max_watch_count: '1e3' "),
        ({"TABMUX_LOG_LEVEL": "loud"}, "log_level: 'loud' "),
        ({"TABMUX_CONFIG": "/nonexistent/x.toml"}, "config: there is no file /nonexistent/x.toml"),
    ],
)
def test_environment_refused(directory: Path, environment: dict[str, str], told: str) -> None:
    """What the environment sets is checked like the file."""
    with pytest.raises(SettingsError, match=f"^{told}"):
        _load(directory, "", None, **environment)


def test_long_state_directory() -> None:
    """A state directory whose socket would not fit is refused with the way out, before anything is made."""
    with pytest.raises(SettingsError, match=r"at most 107\. Choose a shorter state directory \(TABMUX_STATE_DIR\)"):
        load({"state_dir": f"/tmp/{'x' * 100}"}, {})


def test_longest_socket_path(directory: Path) -> None:
    """A path of 107 bytes just fits."""
    path = "/" + "x" * 106

    assert _load(directory, f"address = 'unix://{path}'").socket == Path(path)


def test_named_file(directory: Path) -> None:
    """The flag names another file than the environment, and one that is named must be there and readable."""
    (directory / "a.toml").write_text("log_level = 'error'", "utf-8")
    (directory / "b.toml").write_bytes(b"log_level = '\xff'")
    environment = {"TABMUX_STATE_DIR": str(directory), "TABMUX_CONFIG": str(directory / "b.toml")}

    assert load({"config": str(directory / "a.toml")}, environment).log_level == "error"
    for unreadable in (str(directory / "b.toml"), str(directory)):
        with pytest.raises(SettingsError, match=r"^config: .* cannot be read"):
            load({"config": unreadable}, environment)
