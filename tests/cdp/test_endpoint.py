import json
import socket
from pathlib import Path

import pytest
from tabmuxd.cdp.endpoint import EndpointError, Located, locate

from tests.cdp.browsers import RunningChromium, http, listener

VERSION = json.dumps({"Browser": "Chrome/1", "webSocketDebuggerUrl": "ws://elsewhere:1/devtools/browser/abc"})


def free_port() -> int:
    """A port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def refusal(address: str, *, timeout: float = 10, allow_remote: bool = False) -> EndpointError:
    """How the address is refused."""
    with pytest.raises(EndpointError) as caught:
        await locate(address, timeout=timeout, allow_remote=allow_remote)
    return caught.value


@pytest.mark.chromium
async def test_all_three_forms(chromium: RunningChromium) -> None:
    """CON-12: an HTTP address, a profile directory and a socket address lead to the same browser."""
    proven = Located(chromium.uri, chromium.host_port, chromium.process_key)
    told = Located(chromium.uri, chromium.host_port, chromium.process_key, key_proven=False)
    found = [
        await locate(address, timeout=10)
        for address in (f"http://127.0.0.1:{chromium.port}", str(chromium.profile), chromium.uri)
    ]
    assert found == [proven, proven, told]


@pytest.mark.chromium
async def test_localhost(chromium: RunningChromium) -> None:
    """CON-11: `localhost` finds a Chrome that listens on 127.0.0.1 only, and the literal address is named."""
    found = await locate(f"http://localhost:{chromium.port}", timeout=10)
    assert found == Located(chromium.uri, chromium.host_port, chromium.process_key)


async def test_localhost_is_six() -> None:
    """CON-11: `localhost` finds what listens on ::1 only, over HTTP and as a socket address."""
    async with listener(http("200 OK", VERSION), host="::1") as port:
        found = [
            await locate(f"{address}", timeout=10)
            for address in (f"http://localhost:{port}", f"ws://localhost:{port}/x")
        ]
    assert found == [
        Located(f"ws://[::1]:{port}/devtools/browser/abc", f"[::1]:{port}", "abc"),
        Located(f"ws://[::1]:{port}/x", f"[::1]:{port}", "/x", key_proven=False),
    ]


async def test_only_path_is_believed() -> None:
    """The host that a browser names for its socket is not followed: the one that answered is kept."""
    async with listener(http("200 OK", VERSION)) as port:
        found = await locate(f"http://127.0.0.1:{port}", timeout=10)
    assert found == Located(f"ws://127.0.0.1:{port}/devtools/browser/abc", f"127.0.0.1:{port}", "abc")


async def test_no_origin_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """CON-15: no Origin header is sent, and a proxy named in the environment is not used."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    requests: list[bytes] = []
    async with listener(http("200 OK", VERSION), requests=requests) as port:
        await locate(f"http://127.0.0.1:{port}", timeout=10)
    lines = requests[0].lower().split(b"\r\n")
    assert lines[0] == b"get /json/version http/1.1"
    assert [line for line in lines if line.startswith(b"origin")] == []


async def test_nothing_listens() -> None:
    """CON-14: a port where nothing listens is told as such, with the hint about the default profile."""
    port = free_port()
    errors = [await refusal(address) for address in (f"http://127.0.0.1:{port}", f"ws://127.0.0.1:{port}/x")]
    assert [(error.cause, error.address) for error in errors] == [
        ("nothing_listens", f"http://127.0.0.1:{port}"),
        ("nothing_listens", f"ws://127.0.0.1:{port}"),
    ]
    assert "default profile" in str(errors[0])


@pytest.mark.parametrize(
    ("reply", "cause"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not_chrome"),
        (http("200 OK", "<html>hello</html>"), "not_chrome"),
        (http("200 OK", '{"webSocketDebuggerUrl": 1}'), "not_chrome"),
        (http("200 OK", "[]"), "not_chrome"),
        (http("404 Not Found", "", "Server: nginx"), "not_chrome"),
        (http("302 Found", "", "Location: http://127.0.0.1:1/"), "not_chrome"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort", "not_chrome"),
        (b"", "not_chrome"),
        (http("404 Not Found", ""), "no_http"),
    ],
)
async def test_something_else_listens(reply: bytes, cause: str) -> None:
    """CON-14: another program, and a Chrome that has only its WebSocket, are told apart."""
    async with listener(reply) as port:
        error = await refusal(f"http://localhost:{port}")
    assert (error.cause, error.address) == (cause, f"http://localhost:{port}")


async def test_silence_is_bounded() -> None:
    """CON-14: a listener that never answers is given up after the time the caller allows."""
    async with listener(None) as port:
        error = await refusal(f"http://127.0.0.1:{port}", timeout=0.2)
    assert (error.cause, error.address) == ("no_answer", f"http://127.0.0.1:{port}")


@pytest.mark.parametrize(
    "address", ["http://192.0.2.1:9222", "ws://example.com/devtools/browser/a", "http://[2001:db8::1]:1"]
)
async def test_not_loopback(address: str) -> None:
    """A browser on another machine is refused, before anything is sent, unless it was allowed."""
    assert (await refusal(address)).cause == "not_loopback"


@pytest.mark.parametrize(
    "address",
    ["ftp://127.0.0.1:1", "http://", "http://127.0.0.1:port", "ws://user:secret@127.0.0.1:1/x", "http://[::1"],
)
async def test_bad_address(address: str) -> None:
    """An address of no known form is refused, without repeating what may be secret in it."""
    error = await refusal(address)
    assert (error.cause, "secret" in str(error)) == ("bad_address", False)


async def test_no_profile(profile: Path) -> None:
    """A directory that is missing, or where no Chrome wrote its port, is told as such."""
    errors = [await refusal(str(directory)) for directory in (profile / "none", profile)]
    assert [error.cause for error in errors] == ["no_profile", "no_port_file"]


@pytest.mark.parametrize("content", ["", "9222", "9222\n", "x\n/devtools/browser/a", "0\n/a", "99999\n/a"])
async def test_port_file_in_the_making(profile: Path, content: str) -> None:
    """A port file that is not whole counts as none."""
    (profile / "DevToolsActivePort").write_text(content)
    assert (await refusal(str(profile))).cause == "no_port_file"


@pytest.mark.parametrize("reply", [None, http("200 OK", VERSION), http("404 Not Found", "", "Server: nginx")])
async def test_stale_port_file(profile: Path, reply: bytes | None) -> None:
    """CON-13: a port file is stale if nothing, another browser or another program is on its port, and named so."""
    async with listener(reply or b"") as port:
        shown = free_port() if reply is None else port
        (profile / "DevToolsActivePort").write_text(f"{shown}\n/devtools/browser/mine")
        error = await refusal(str(profile))
    assert (error.cause, error.address) == ("stale_port_file", str(profile))


async def test_profile_without_http(profile: Path) -> None:
    """CON-12: the port file is believed where a Chrome answers no HTTP but its WebSocket."""
    async with listener(http("404 Not Found", "")) as port:
        (profile / "DevToolsActivePort").write_text(f"{port}\n/devtools/browser/mine")
        found = await locate(str(profile), timeout=10)
    assert found == Located(f"ws://127.0.0.1:{port}/devtools/browser/mine", f"127.0.0.1:{port}", "mine")
