"""Where the server is and how a caller says who it is: one rule for server, packages and command line.

Everything here is decided from arguments and an environment that is passed in. Only the token file is read.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tabmux.errors import PlaceError

SOCKET_NAME = "tabmuxd.sock"
TOKEN_FILE_NAME = "token"  # noqa: S105 - the name of a file
MAX_SOCKET_PATH_BYTES = 107

_PRIVATE_MODE = 0o600
_MAX_PORT = 65_535
_SOCKET_PREFIX = "unix://"
_NAME = re.compile(r"[a-z0-9-]{1,63}")
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Address of a server.

    `target` is in gRPC's form. `socket` is the path of the Unix socket, `None` on TCP. `encrypted` tells whether TLS
    is spoken: on TCP, except to this machine itself.
    """

    target: str
    socket: Path | None = None
    encrypted: bool = False

    def __str__(self) -> str:
        return f"{_SOCKET_PREFIX}{self.socket}" if self.socket else self.target


def state_directory(environment: Mapping[str, str]) -> Path:
    """Directory of the socket and the token: `TABMUX_STATE_DIR`, `$XDG_STATE_HOME/tabmux` or `~/.local/state/tabmux`.

    Raises `PlaceError` if none of them can be told.
    """
    if own := environment.get("TABMUX_STATE_DIR"):
        return Path(own).absolute()
    base = environment.get("XDG_STATE_HOME", "")
    # The XDG Base Directory Specification 0.8: a relative path there is invalid and to be ignored.
    if Path(base).is_absolute():
        return Path(base) / "tabmux"
    home = environment.get("HOME") or os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises instead
    if not Path(home).is_absolute():
        raise PlaceError("there is no home directory: set TABMUX_STATE_DIR or TABMUX_ADDRESS")
    return Path(home) / ".local" / "state" / "tabmux"


def find_place(address: str | None, environment: Mapping[str, str]) -> Place:
    """Where the server is: the argument, else `TABMUX_ADDRESS`, else the socket in the state directory.

    An address is `unix:///PATH` or `HOST:PORT`. Raises `PlaceError` for any other form, and for a socket path of more
    than 107 bytes.
    """
    given = address or environment.get("TABMUX_ADDRESS")
    if not given:
        return _socket_place(state_directory(environment) / SOCKET_NAME)
    if given.startswith(_SOCKET_PREFIX + "/"):
        return _socket_place(Path(given.removeprefix(_SOCKET_PREFIX)))
    host, _, port = given.rpartition(":")
    bare_host = host.removeprefix("[").removesuffix("]")
    port_fits = port.isascii() and port.isdigit() and 0 < int(port) <= _MAX_PORT
    if not bare_host or "/" in given or not port_fits or (":" in bare_host and host == bare_host):
        raise PlaceError(f"{given!r} is not an address: write unix:///PATH or HOST:PORT ([HOST]:PORT for IPv6)")
    return Place(target=given, encrypted=not _loopback(bare_host))


def find_authorization(
    place: Place,
    token: str | None,
    as_: str | None,
    environment: Mapping[str, str],
) -> str | None:
    """Value of the `authorization` header; `None` if there is nothing to say, which on a socket means `local`.

    The token is the argument, else `TABMUX_TOKEN`, else on TCP the file `token` in the state directory. A name (`as_`)
    is for the Unix socket only; there it goes before `TABMUX_TOKEN`. Raises `PlaceError` for a name or token of the
    wrong form, for both as arguments, for a name on TCP, and for a token file that others can read.
    """
    if as_ is not None:
        if not _NAME.fullmatch(as_):
            raise PlaceError(f"{as_!r} is not a name for a program: 1 to 63 of a-z, 0-9 and -")
        if token:
            raise PlaceError("a caller has a name or a token, not both")
        if place.socket is None:
            raise PlaceError("a program names itself on the Unix socket only; on TCP its token has a name")
        return f"Local {as_}"
    found = token or environment.get("TABMUX_TOKEN")
    if not found and place.socket is None:
        found = _read_token(state_directory(environment) / TOKEN_FILE_NAME)
    if not found:
        return None
    if not _TOKEN.fullmatch(found):
        raise PlaceError("the token has characters that no token has: take it from its file again")
    return f"Bearer {found}"


def _socket_place(path: Path) -> Place:
    size = len(os.fsencode(path))
    if size > MAX_SOCKET_PATH_BYTES:
        raise PlaceError(
            f"the path of the socket has {size} bytes, and at most {MAX_SOCKET_PATH_BYTES} are possible: {path}."
            " Set TABMUX_STATE_DIR or TABMUX_ADDRESS to a shorter one",
        )
    # gRPC reads a target as an address in the sense of RFC 3986, and so undoes percent signs in it.
    return Place(target=_SOCKET_PREFIX + quote(os.fsencode(path)), socket=path)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _read_token(path: Path) -> str | None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        text = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise PlaceError(f"the token file {path} cannot be read: {error}") from error
    if mode != _PRIVATE_MODE:
        raise PlaceError(f"the token file {path} has mode {mode:04o}, not 0600, and is not used: chmod 600 {path}")
    return text
