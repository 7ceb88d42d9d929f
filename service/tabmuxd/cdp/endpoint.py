"""Find the DevTools socket of a browser from what a person configures: an address, or a profile directory."""

import asyncio
import ipaddress
import json
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

import aiohttp

from tabmuxd.cdp.profile import PORT_FILE, PortFile, read_port_file

Cause = Literal[
    "bad_address",
    "not_loopback",
    "no_profile",
    "no_port_file",
    "stale_port_file",
    "nothing_listens",
    "no_answer",
    "not_chrome",
    "no_http",
]

_MESSAGES: dict[Cause, str] = {
    "bad_address": "{address} is no browser address: give http://HOST:PORT, ws://HOST:PORT/… or a profile directory",
    "not_loopback": "{address} is not on this machine; a remote browser must be allowed in the settings",
    "no_profile": "{address} is not a directory; give http://HOST:PORT, ws://HOST:PORT/… or a profile directory",
    "no_port_file": "{address} has no " + PORT_FILE + ": its Chrome does not run, or runs without a port. "
    "Start it with --remote-debugging-port=0",
    "stale_port_file": PORT_FILE + " in {address} is stale: its Chrome no longer answers on the port named there",
    "nothing_listens": "nothing listens on {address}. Start Chrome with --remote-debugging-port",
    "no_answer": "{address} accepts connections but does not answer: its Chrome is stopped or overloaded",
    "not_chrome": "what listens on {address} is not Chrome",
    "no_http": "{address} answers, but tells no socket address: a Chrome or a proxy that has only the WebSocket. "
    "Give its ws:// address, or the profile directory",
}
# Chrome 136 and later.
_DEFAULT_PROFILE = " and --user-data-dir=DIRECTORY: Chrome opens no port while it uses its default profile directory"
_WITH_PROFILE_HINT: frozenset[Cause] = frozenset({"no_port_file", "nothing_listens"})
# Which of several failures tells the person most, last first.
_TELLING: tuple[Cause, ...] = ("nothing_listens", "no_answer", "not_chrome", "no_http")

_SOCKET_PATH = "/devtools/browser/"
_ANSWER_LIMIT_BYTES = 65536
_HTTP_OK, _HTTP_NOT_FOUND = 200, 404
_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}


class EndpointError(Exception):
    """No browser was found at `address`, and `cause` tells why."""

    def __init__(self, cause: Cause, address: str) -> None:
        self.cause: Cause = cause
        self.address = address
        hint = _DEFAULT_PROFILE if cause in _WITH_PROFILE_HINT else ""
        super().__init__(_MESSAGES[cause].format(address=address) + hint)


@dataclass(frozen=True, slots=True)
class Located:
    """Where a browser's socket is.

    `process_key` is the id in /devtools/browser/ID, which changes with each browser process. If it was taken from a
    configured ws:// address, `key_proven` is false: a proxy there may lead to any process. `host_port` is literal, like
    127.0.0.1:9222 or [::1]:9222.
    """

    socket_uri: str
    host_port: str
    process_key: str
    key_proven: bool = True


async def locate(address: str, *, timeout: float, allow_remote: bool = False) -> Located:
    """Find the browser at `address` within `timeout` seconds.

    `address` is http://HOST:PORT, ws://HOST:PORT/PATH, or the path of a profile directory. Nothing is asked of a ws://
    address but whether something listens: a person may have to approve each connection. For `localhost` both loopback
    addresses are tried. Raises EndpointError.
    """
    if "://" not in address:
        return await _locate_profile(address, timeout)
    parts, port = _split(address)
    shown = f"{parts.scheme}://{_host_port(parts.hostname or '', port)}"
    hosts = await _literal_hosts(parts.hostname or "", allow_remote=allow_remote, shown=shown)
    secure = parts.scheme in {"https", "wss"}
    failures: list[Cause] = []
    for host in hosts:
        host_port = _host_port(host, port)
        try:
            async with asyncio.timeout(timeout / len(hosts)):
                if parts.scheme in {"ws", "wss"}:
                    await _touch(host, port)
                    uri = parts._replace(netloc=host_port).geturl()
                    return Located(uri, host_port, _key(parts.path), key_proven=False)
                answer = await _ask_version(f"{parts.scheme}://{host_port}")
        except TimeoutError:
            answer = "no_answer"
        except OSError:
            answer = "nothing_listens"
        match answer:
            case _SocketPath(path):
                return Located(f"{'wss' if secure else 'ws'}://{host_port}{path}", host_port, _key(path))
            case cause:
                failures.append(cause)
    raise EndpointError(max(failures, key=_TELLING.index), shown)


async def _locate_profile(shown: str, timeout: float) -> Located:
    """Find the browser of a profile directory: what its port file names must be what answers on that port."""
    named = _named_in(shown)
    cause: Cause = "stale_port_file"
    for host in ("127.0.0.1", "::1"):
        host_port = _host_port(host, named.port)
        found = Located(f"ws://{host_port}{named.path}", host_port, _key(named.path))
        try:
            async with asyncio.timeout(timeout / 2):
                answer = await _ask_version(f"http://{host_port}")
        except TimeoutError:
            cause = "no_answer"
            continue
        # A Chrome that has only the WebSocket says 404 here; whether its path is right shows in the handshake.
        if answer in (_SocketPath(named.path), "no_http"):
            return found
    raise EndpointError(cause, shown)


def _named_in(shown: str) -> PortFile:
    directory = Path(shown).expanduser()
    if not directory.is_dir():
        raise EndpointError("no_profile", shown)
    named = read_port_file(directory)
    if named is None:
        raise EndpointError("no_port_file", shown)
    return named


@dataclass(frozen=True, slots=True)
class _SocketPath:
    path: str


async def _ask_version(base_uri: str) -> _SocketPath | Cause:
    """The socket's path that /json/version tells, or why it tells none."""
    # No Origin header, or Chrome refuses; no proxy from the environment, or loopback would leave the machine.
    async with aiohttp.ClientSession(trust_env=False) as session:
        try:
            async with session.get(f"{base_uri}/json/version", allow_redirects=False) as response:
                body = b""
                while len(body) < _ANSWER_LIMIT_BYTES and (part := await response.content.readany()):
                    body += part
                return _judge(response.status, by_server="Server" in response.headers, body=body)
        except aiohttp.ClientConnectorError:
            return "nothing_listens"
        except (aiohttp.ClientError, ValueError):
            return "not_chrome"


def _judge(status: int, *, by_server: bool, body: bytes) -> _SocketPath | Cause:
    """What an answer of /json/version means.

    Chrome 156 sends no Server header, with 404 neither; other programs that do not know the path mostly do.
    """
    if status == _HTTP_NOT_FOUND and not by_server:
        return "no_http"
    if status != _HTTP_OK:
        return "not_chrome"
    try:
        answer: object = json.loads(body)
    except ValueError:
        return "not_chrome"
    match answer:
        case {"webSocketDebuggerUrl": str(uri)} if (path := urlsplit(uri).path).startswith(_SOCKET_PATH):
            return _SocketPath(path)
        case _:
            return "not_chrome"


async def _touch(host: str, port: int) -> None:
    """Connect and hang up; raises OSError if nothing listens."""
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


async def _literal_hosts(host: str, *, allow_remote: bool, shown: str) -> tuple[str, ...]:
    """The literal addresses to try for a host; only loopback ones unless `allow_remote`."""
    if host == "localhost":
        return ("127.0.0.1", "::1")
    try:
        literal = ipaddress.ip_address(host)
    except ValueError:
        literal = None
    if literal is not None and (literal.is_loopback or allow_remote):
        return (host,)
    if not allow_remote:
        raise EndpointError("not_loopback", shown)
    # Chrome answers only if the Host header has a literal address, so the name must be gone before it is asked.
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise EndpointError("nothing_listens", shown) from error
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def _split(address: str) -> tuple[SplitResult, int]:
    """Parts and port of an address; it may hold no user and password, since it is shown in messages and logs."""
    shown = address.split("://", 1)[0] + "://…"
    try:
        parts = urlsplit(address)
        default_port = _DEFAULT_PORTS[parts.scheme]
        port = default_port if parts.port is None else parts.port
    except (ValueError, KeyError):
        raise EndpointError("bad_address", shown) from None
    if not parts.hostname or "@" in parts.netloc:
        raise EndpointError("bad_address", shown)
    return parts, port


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _key(path: str) -> str:
    """The browser's id in a socket path, or the whole path if it has none."""
    return path.removeprefix(_SOCKET_PATH)
