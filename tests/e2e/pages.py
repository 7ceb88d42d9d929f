"""Local pages for tests: quick and slow ones, redirects, downloads, dialogs, popups, busy and noisy ones."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import Counter
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final, cast
from urllib.parse import parse_qs, urlsplit

_LONGEST_WAIT: Final = 120.0

# Every page here is named after what it does; `{query}` values are put in as they come.
_DOCUMENTS: Final = {
    "/page": "<title>{title}</title><p>A page.</p>",
    "/untitled": "<p>No title.</p>",
    "/404": "<title>Not here</title><p>Not here.</p>",
    "/500": "<title>Broken</title><p>Broken.</p>",
    # Parsed at once, loaded never: its picture does not come.
    "/never-loaded": "<title>Waiting</title><p>Waits for a picture.</p><img src=/never>",
    "/meta-refresh": "<title>Moving</title><meta http-equiv=refresh content='0; url=/page?title=moved'>",
    "/replaces-itself": "<title>Moving</title><script>location.replace('/never-loaded')</script>",
    "/alerts": "<title>Alerts</title><script>{kind}('say {text}')</script><p>After the dialog.</p>",
    "/asks-for-text": (
        "<title>x</title><script>document.title = 'answer: ' + prompt('say', 'default text')</script><p>Asked."
    ),
    "/asks-before-it-is-left": (
        "<title>Draft</title><body style='margin:0'><button style='width:400px;height:400px'>Touch</button>"
        "<script>addEventListener('beforeunload', (event) => { event.preventDefault(); event.returnValue = '1'; })"
        "</script>"
    ),
    "/opens-popup": (
        "<title>Opener</title><body style='margin:0'>"
        "<button style='width:400px;height:400px' onclick=\"window.open('/page?title=popup')\">Open</button>"
    ),
    # Runs nothing but its own script, and counts how often somebody asks for the visibility.
    "/guards-itself": (
        "<title>Guarded</title><meta http-equiv=Content-Security-Policy content=\"default-src 'none'; script-src"
        " 'nonce-own'\"><script nonce=own>window.asked = 0; for (const on of [document, Document.prototype])"
        " Object.defineProperty(on, 'visibilityState', {{ get() {{ return String(++window.asked); }} }});</script>"
    ),
    "/closes-itself": "<title>Closing</title><script>setInterval(() => window.close(), 50)</script>",
    "/busy": "<title>Busy</title><script>addEventListener('load', () => setTimeout(() => { for (;;); }, 50))</script>",
    "/changes-title": (
        "<title>0</title><script>let n = 0; const step = () => {{ document.title = String(++n);"
        " if (n < {count}) setTimeout(step, {every}); }}; setTimeout(step, 100)</script>"
    ),
    "/long-title": "<title>x</title><script>document.title = 'ü'.repeat(500000) + '\\ud800'</script>",
    "/odd-title": "<title>x</title><script>document.title = 'a\\u0000b\\u0007c\\ud800d\\u202ee\\u001b[31m'</script>",
    "/odd-dialog": "<title>x</title><script>setTimeout(() => alert('\\ud800' + '\\0z'.repeat(100000)), 50)</script>",
    "/makes-long-address": (
        "<title>Long</title><script>history.replaceState(null, '', '/page?' + 'x'.repeat(200000))</script>"
    ),
    "/floods": (
        "<title>Flood</title><script>let n = 0; setInterval(() => {{ for (let i = 0; i < 20; i++) {{"
        " console.log('noise ' + i + 'x'.repeat(100)); document.title = 'flood ' + n++; }} }}, 20)</script>"
    ),
    "/floods-dialogs": (
        "<title>Dialogs</title><script>let n = 0; const again = () => {{ alert('again ' + n++);"
        " if (n < {count}) setTimeout(again, 0); else document.title = 'quiet'; }}; setTimeout(again, 50)</script>"
    ),
}
_DEFAULTS: Final = {"title": "Page", "kind": "alert", "text": "something", "count": "100", "every": "1"}
_STATUS: Final = {"/404": 404, "/500": 500}


class Pages:
    """Where the pages are, and how often each path was asked for."""

    def __init__(self, port: int, released: threading.Event) -> None:
        self.port = port
        self.hits: Counter[str] = Counter()
        self.cookie = ""
        self._released = released

    def at(self, path: str, host: str = "127.0.0.1") -> str:
        """Address of the page at this path, which may have a query."""
        return f"http://{host}:{self.port}{path}"


class _PageServer(ThreadingHTTPServer):
    daemon_threads = False  # joined at the end

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.released = threading.Event()
        self.pages = Pages(self.server_port, self.released)
        self._connections: list[socket.socket] = []

    def get_request(self) -> tuple[socket.socket, object]:
        connection, address = super().get_request()
        self._connections.append(connection)
        return connection, address

    def release(self) -> None:
        """Let every page that waits go on, and end connections on which a browser has asked for nothing yet."""
        self.released.set()
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RD)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle is no error."""


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""

    def do_GET(self) -> None:  # noqa: C901 - one case a page
        server = cast("_PageServer", self.server)
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        server.pages.hits[parts.path] += 1
        match parts.path:
            case "/never":
                server.released.wait(_LONGEST_WAIT)
            case "/never-parsed":
                self._begin()
                self.wfile.write(b"<title>Half</title><p>Begun." + b" " * 4096)
                self.wfile.flush()
                server.released.wait(_LONGEST_WAIT)
            case "/empty":
                self.close_connection = True
            case "/redirect":
                self._headers(302, Location=query.get("to", "/page"))
            case "/redirects-for-ever":
                self._headers(302, Location="/redirects-for-ever")
            case "/204":
                self._headers(204)
            case "/download":
                self._headers(200, **{"Content-Type": "application/zip", "Content-Disposition": "attachment"})
                self.wfile.write(b"PK")
            case "/sets-cookie":
                self._headers(200, **{"Content-Type": "text/html", "Set-Cookie": f"login={server.pages.cookie}"})
                self.wfile.write(b"<title>Cookie</title>")
            case path if path in _DOCUMENTS:
                text = _DOCUMENTS[path]
                for name, value in {**_DEFAULTS, **query}.items():
                    text = text.replace(f"{{{name}}}", value)
                self._begin(_STATUS.get(path, 200))
                self.wfile.write(text.replace("{{", "{").replace("}}", "}").encode())
            case _:
                self._headers(404)

    def _begin(self, status: int = 200) -> None:
        self._headers(status, **{"Content-Type": "text/html; charset=utf-8"})

    def _headers(self, status: int, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Cache-Control", "no-store")
        self.end_headers()


@contextlib.contextmanager
def running_pages() -> Generator[Pages]:
    """Serve the pages on a free port of the loopback address; nothing waits any more afterwards."""
    with _PageServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, name="pages")
        thread.start()
        try:
            yield server.pages
        finally:
            server.shutdown()
            server.release()
            thread.join()
