"""A chat page that behaves as badly as the tests say, served on loopback; its conversations live on the server's side.

The address chooses how the page is built, `/v/VARIANT,VARIANT/`, and the prompt how it is answered: a test gives an
`Answer` for it before it is sent. Each variant is a module in `page/variants`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from tests.hostile.script import Answer, plain

PAGE: Final = Path(__file__).parent / "page"
MODULES: Final = PAGE.parent / "node_modules"
"""Editors that pages are built on; `scripts/editors` installs them."""
_LONGEST_WAIT: Final = 10.0
_TYPES: Final = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".mjs": "text/javascript"}


@dataclass(frozen=True)
class Received:
    """One prompt, as often as the page sent it: journal entry.

    `model`: on a page with a picker what was chosen, and what was pressed there since the prompt before.
    """

    prompt: str
    conversation: str
    variant: str
    files: tuple[tuple[str, str], ...] = ()
    """Name and SHA-256 of each file that came with it."""
    model: str = ""


@dataclass
class _Turn:
    id: str
    conversation: str
    prompt: str
    answer: Answer
    began: float
    stopped: float | None = None
    stop_presses: int = 0
    ran: set[int] = field(default_factory=set)

    def at(self, now: float) -> tuple[int, dict[str, Any], float | None, bool]:
        """Number, view, time of the next change on the server's clock, and whether it is the last one."""
        stopped = None if self.stopped is None else self.stopped - self.began
        number, view, following = self.answer.at(now - self.began, stopped)
        ended = following is None and (view.stop == 0 or self.stopped is not None)
        return number, asdict(view), None if following is None else self.began + following, ended


class Site:
    """The hostile page as tests see it: what it shall answer, and the journal of what it got."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.hosts: dict[str, str] = {}
        """Names of hosts that are pages as a whole, at the addresses of the site they stand for, and their variants."""
        self.default: Callable[[str], Answer] = lambda prompt: plain(f"Answer to: {prompt}")
        self._answers: dict[str, Answer] = {}
        self._received: list[Received] = []
        self._turns: dict[str, _Turn] = {}
        self._conversations: dict[str, list[_Turn]] = {}
        self._moved = threading.Condition()
        self._closed = False

    # What tests say and ask

    def at(self, variant: str, conversation: str = "", host: str = "127.0.0.1") -> str:
        """Address of a conversation, or of a new one."""
        return f"http://{host}:{self.port}/v/{variant}/" + (f"c/{conversation}" if conversation else "")

    def answer(self, prompt: str, answer: Answer) -> str:
        """From now on this prompt is answered so; gives the prompt."""
        self._answers[prompt] = answer
        return prompt

    def begin(self, turns: Sequence[tuple[str, str]], variant: str = "") -> str:
        """A conversation that holds these prompts and finished answers already; its id."""
        conversation = _new_id(variant)
        with self._moved:
            self._conversations[conversation] = []
            for prompt, text in turns:
                self._add(conversation, prompt, plain(text, 0.0), time.monotonic() - 3600)
        return conversation

    def received(self, prompt: str | None = None) -> list[Received]:
        """Journal of all prompts, or of this one, in order."""
        with self._moved:
            return [one for one in self._received if prompt in (None, one.prompt)]

    def text_of(self, prompt: str) -> str:
        """The whole text of the last answer to this prompt, as the page shows it in the end."""
        return self._last(prompt).answer.last.text

    def shown_of(self, prompt: str) -> str:
        """The text that the page shows now of the last answer to this prompt."""
        return str(self._last(prompt).at(time.monotonic())[1]["text"])

    def stop_presses(self, prompt: str) -> int:
        """How often Stop was pressed while the page showed the answer to this prompt."""
        return self._last(prompt).stop_presses

    def go_on(self, prompt: str) -> None:
        """The answer to this prompt goes on with its next phase at once."""
        turn = self._last(prompt)
        with self._moved:
            now = time.monotonic()
            _number, _view, following, _ended = turn.at(now)
            turn.began -= (following or now) - now
            self._moved.notify_all()

    def stop(self, prompt: str) -> None:
        """A person presses Stop."""
        self._press_stop(self._last(prompt))

    def _last(self, prompt: str) -> _Turn:
        with self._moved:
            return [turn for turn in self._turns.values() if turn.prompt == prompt][-1]

    # What the page asks

    def conversation(self, conversation: str) -> list[dict[str, Any]] | None:
        """Its turns as they are now; None if there is none."""
        with self._moved:
            turns = self._conversations.get(conversation)
            return None if turns is None else [self._told(turn, time.monotonic()) for turn in turns]

    def submit(
        self,
        conversation: str,
        variant: str,
        prompt: str,
        files: Sequence[Mapping[str, str]] = (),
        model: str = "",
    ) -> dict[str, Any] | None:
        """A prompt was sent; the conversation `new` makes one."""
        with self._moved:
            if conversation == "new":
                conversation = _new_id(variant)
                self._conversations[conversation] = []
            if conversation not in self._conversations:
                return None
            sent = tuple((file["name"], file["sha256"]) for file in files)
            self._received.append(Received(prompt, conversation, variant, sent, model))
            answer = self._answers.get(prompt) or self.default(prompt)
            return self._told(self._add(conversation, prompt, answer, time.monotonic()), time.monotonic())

    def follow(self, turn_id: str, since: int) -> dict[str, Any] | None:
        """What is shown of a turn, once it is another view than `since`, or after some seconds."""
        deadline = time.monotonic() + _LONGEST_WAIT
        with self._moved:
            turn = self._turns.get(turn_id)
            while turn is not None:
                now = time.monotonic()
                number, _view, following, ended = turn.at(now)
                if number != since or ended or self._closed or now >= deadline:
                    return self._told(turn, now)
                self._moved.wait(min(deadline, following or deadline) - now)
        return None

    def press_stop(self, turn_id: str) -> None:
        """Stop was pressed."""
        with self._moved:
            turn = self._turns[turn_id]
        self._press_stop(turn)

    def _press_stop(self, turn: _Turn) -> None:
        with self._moved:
            turn.stop_presses += 1
            if turn.stopped is None:
                turn.stopped = time.monotonic()
            self._moved.notify_all()

    def close(self) -> None:
        """Let all that wait go."""
        with self._moved:
            self._closed = True
            self._moved.notify_all()

    def _add(self, conversation: str, prompt: str, answer: Answer, began: float) -> _Turn:
        turn = _Turn(secrets.token_hex(4), conversation, prompt, answer, began)
        self._turns[turn.id] = turn
        self._conversations[conversation].append(turn)
        return turn

    def _told(self, turn: _Turn, now: float) -> dict[str, Any]:
        number, view, _following, ended = turn.at(now)
        if number in turn.ran:
            view["do"] = ""
        turn.ran.add(number)
        return {
            "id": turn.id,
            "conversation": turn.conversation,
            "prompt": turn.prompt,
            "number": number,
            "view": view,
            "ended": ended,
        }


def _new_id(variant: str) -> str:
    return str(uuid4()) if "grok" in variant.split(",") else secrets.token_hex(6)


class _SiteServer(ThreadingHTTPServer):
    daemon_threads = True  # a browser may hold a connection on which it asks for nothing

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.site = Site(self.server_port)

    def handle_error(self, request: object, client_address: object) -> None:
        """A browser that goes away in the middle is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Say nothing."""

    @property
    def _site(self) -> Site:
        return cast("_SiteServer", self.server).site

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        match parts.path.strip("/").split("/"):
            case ["v", variant] | ["v", variant, "c", _]:
                self._send_page(variant)
            case ["api", "conversations", conversation]:
                self._send_json(self._site.conversation(conversation))
            case ["api", "turns", turn]:
                self._send_json(self._site.follow(turn, int(query["since"])))
            case ["modules", *names]:
                self._send_file(MODULES.joinpath(*names))
            case ["static", *names]:
                self._send_file(PAGE.joinpath(*names))
            case _ if hosted := self._site.hosts.get(self.headers.get("Host", "").partition(":")[0]):
                self._send_page(hosted)
            case _:
                self._send(404, b"", _TYPES[".html"])

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if urlsplit(self.path).path == "/api/files":
            self._send_json({"sha256": hashlib.sha256(content).hexdigest()})
            return
        body = json.loads(content)
        match urlsplit(self.path).path.strip("/").split("/"):
            case ["api", "conversations", conversation]:
                files, model = body.get("files", ()), body.get("model", "")
                self._send_json(self._site.submit(conversation, body["variant"], body["prompt"], files, model))
            case ["api", "turns", turn, "stop"]:
                self._site.press_stop(turn)
                self._send_json({})
            case _:
                self._send(404, b"", _TYPES[".html"])

    def _send_page(self, variant: str) -> None:
        page = (PAGE / "page.html").read_text("utf-8").replace("VARIANTS", variant)
        self._send(200, page.encode(), _TYPES[".html"])

    def _send_file(self, path: Path) -> None:
        inside = path.resolve().is_relative_to(PAGE.parent.resolve())
        if not inside or not path.is_file():
            self._send(404, b"", _TYPES[".html"])
            return
        self._send(200, path.read_bytes(), _TYPES.get(path.suffix, "application/octet-stream"))

    def _send_json(self, value: object) -> None:
        self._send(404 if value is None else 200, json.dumps(value).encode(), "application/json")

    def _send(self, status: int, content: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{content_type}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)


@contextlib.contextmanager
def running_site() -> Generator[Site, None, None]:
    """Serve the hostile page from a thread."""
    server = _SiteServer()
    thread = threading.Thread(target=server.serve_forever, name="hostile page", kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.site
    finally:
        server.site.close()
        server.shutdown()
        server.server_close()
        thread.join()
