"""Where the server is and who the caller is: one rule for server, packages and command line."""

from pathlib import Path

import pytest
from tabmux.client import connect
from tabmux.errors import PlaceError
from tabmux.places import Place, find_authorization, find_place, state_directory

from tests.clients.python.scripted import Connected, ScriptedServer

SOCKET = Place("unix:///s", Path("/s"))
TCP = Place("127.0.0.1:7777")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"TABMUX_STATE_DIR": "/a", "XDG_STATE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_STATE_HOME": "/b", "HOME": "/c"}, "/b/tabmux"),
        ({"TABMUX_STATE_DIR": "", "XDG_STATE_HOME": "", "HOME": "/c"}, "/c/.local/state/tabmux"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/c"}, "/c/.local/state/tabmux"),
    ],
)
def test_state_directory(environment: dict[str, str], expected: str) -> None:
    """The state directory is TABMUX_STATE_DIR, else under XDG_STATE_HOME if that is absolute, else under the home."""
    assert state_directory(environment) == Path(expected)


@pytest.mark.parametrize(
    ("address", "environment", "expected"),
    [
        ("unix:///a/s", {"TABMUX_ADDRESS": "unix:///b"}, Place("unix:///a/s", Path("/a/s"))),
        (None, {"TABMUX_ADDRESS": "unix:///b", "TABMUX_STATE_DIR": "/c"}, Place("unix:///b", Path("/b"))),
        (None, {"TABMUX_STATE_DIR": "/c"}, Place("unix:///c/tabmuxd.sock", Path("/c/tabmuxd.sock"))),
        ("127.0.0.1:80", {}, Place("127.0.0.1:80")),
        ("[::1]:80", {}, Place("[::1]:80")),
        ("localhost:80", {}, Place("localhost:80")),
        ("example.test:80", {}, Place("example.test:80", encrypted=True)),
        ("192.0.2.1:80", {}, Place("192.0.2.1:80", encrypted=True)),
        ("unix:///a b%/é", {}, Place("unix:///a%20b%25/%C3%A9", Path("/a b%/é"))),
    ],
)
def test_place(address: str | None, environment: dict[str, str], expected: object) -> None:
    """The address is the argument, else TABMUX_ADDRESS, else the socket in the state directory; TLS is for others."""
    assert find_place(address, environment) == expected


@pytest.mark.parametrize(
    "address",
    [
        "unix:s",
        "unix:/s",
        "unix://s",
        "http://host:80",
        "host",
        "host:",
        ":80",
        "host:x",
        "host:0",
        "host:65536",
        "::1:80",
    ],
)
def test_not_an_address(address: str) -> None:
    """Anything but unix:///PATH and HOST:PORT is refused, with both forms in the message."""
    with pytest.raises(PlaceError, match="write unix:///PATH or HOST:PORT"):
        find_place(address, {})


def test_socket_path_length() -> None:
    """A socket path of 107 bytes is taken, and one of 108 is refused before anything is tried."""
    assert find_place("unix:///" + "a" * 106, {}).socket == Path("/" + "a" * 106)
    with pytest.raises(PlaceError, match="has 108 bytes, and at most 107 are possible"):
        find_place("unix:///" + "é" * 53 + "a", {})


@pytest.mark.parametrize(
    ("place", "token", "as_", "environment", "expected"),
    [
        (SOCKET, None, None, {}, None),
        (SOCKET, None, "night-report", {}, "Local night-report"),
        (SOCKET, "t", None, {}, "Bearer t"),
        (SOCKET, None, None, {"TABMUX_TOKEN": "e"}, "Bearer e"),
        (SOCKET, "t", None, {"TABMUX_TOKEN": "e"}, "Bearer t"),
        (SOCKET, None, "a", {"TABMUX_TOKEN": "e"}, "Local a"),
        (TCP, "t", None, {"TABMUX_TOKEN": "e"}, "Bearer t"),
        (TCP, None, None, {"TABMUX_TOKEN": "e"}, "Bearer e"),
        (TCP, None, None, {"TABMUX_STATE_DIR": "/nowhere"}, None),
    ],
)
def test_authorization(
    place: Place, token: str | None, as_: str | None, environment: dict[str, str], expected: object
) -> None:
    """A caller is a name on the socket, or a token; arguments go before the environment."""
    assert find_authorization(place, token, as_, environment) == expected


@pytest.mark.parametrize(
    ("place", "token", "as_", "message"),
    [
        (SOCKET, None, "", "is not a name"),
        (SOCKET, None, "Night", "is not a name"),
        (SOCKET, None, "a/b", "is not a name"),
        (SOCKET, None, "a\n", "is not a name"),
        (SOCKET, None, "a" * 64, "is not a name"),
        (SOCKET, "t", "a", "not both"),
        (TCP, None, "a", "on the Unix socket only"),
        (TCP, "a b", None, "characters that no token has"),
    ],
)
def test_refused_callers(place: Place, token: str | None, as_: str | None, message: str) -> None:
    """Names have 1 to 63 of a-z, 0-9 and -, belong to the socket, and exclude a token."""
    with pytest.raises(PlaceError, match=message):
        find_authorization(place, token, as_, {})


def test_name_of_63() -> None:
    """A name of 63 characters is taken."""
    assert find_authorization(SOCKET, None, "a" * 63, {}) == "Local " + "a" * 63


def test_token_file(directory: Path) -> None:
    """On TCP the token file is read if its mode is 0600, and not on the socket."""
    file = directory / "token"
    file.write_text("secret\n")
    file.chmod(0o600)
    environment = {"TABMUX_STATE_DIR": str(directory)}
    assert find_authorization(TCP, None, None, environment) == "Bearer secret"
    assert find_authorization(SOCKET, None, None, environment) is None


def test_token_file_of_others(directory: Path) -> None:
    """A token file that others can read is refused with its mode and the remedy, and its content is not shown."""
    file = directory / "token"
    file.write_text("secret\n")
    file.chmod(0o640)
    with pytest.raises(PlaceError, match="has mode 0640, not 0600") as caught:
        find_authorization(TCP, None, None, {"TABMUX_STATE_DIR": str(directory)})
    assert "secret" not in str(caught.value)


async def test_headers(server: ScriptedServer, connected: Connected) -> None:
    """Each call carries the caller's name and the client's language and version."""
    async with connected(as_="night-report"):
        pass
    (call,) = server.calls
    shown = {key: value for key, value in call.metadata.items() if key != "user-agent"}
    assert shown == {"authorization": "Local night-report", "x-tabmux-client": "python/0.1.0"}


async def test_socket_with_special_characters(server: ScriptedServer, directory: Path) -> None:
    """A socket path with a space, a percent sign and a letter beyond ASCII is reached as it is."""
    odd = directory / "a %20 é"
    odd.symlink_to(server.socket)
    async with connect(f"unix://{odd}", environment={}) as client:
        assert client.info.principal == "local"
