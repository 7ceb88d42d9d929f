"""The real Gradio as tests see it: a process that can be started anew, and what its functions got."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.cdp.browsers import until

PYTHON: Final = Path(__file__).parents[2] / ".venv-gradio" / "bin" / "python"
_APP: Final = Path(__file__).parent / "app.py"
# Nothing is told to anybody, and nothing fetched: what would leave loopback ends at a closed port.
_ENVIRONMENT: Final = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}
_START_LIMIT: Final = 120.0
_END_LIMIT: Final = 20.0


@dataclass(frozen=True)
class Got:
    """One call of a function: which chat's, the prompt, and how many messages were said before."""

    chat: str
    prompt: str
    history: int


class Chats:
    """All chats of `app.py`, on a port that stays the same."""

    def __init__(self, directory: Path) -> None:
        """Nothing is started yet."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None

    def at(self, chat: str) -> str:
        """Address of a chat."""
        return f"http://127.0.0.1:{self.port}/{chat}/"

    def describe(self, directory: Path) -> None:
        """Write a provider a chat: the shipped descriptor, at that address."""
        (directory / "providers").mkdir(exist_ok=True)
        for chat in ("chat", "at-once", "thinking", "files", "inputs"):
            text = f'schema = 1\nextends = "gradio"\nid = "gradio-{chat}"\nstart_uri = "{self.at(chat)}"\n'
            (directory / "providers" / f"{chat}.toml").write_text(text)

    def start(self) -> None:
        """Serve."""
        assert PYTHON.exists(), "scripts/gradio installs what these tests need"
        command = [str(PYTHON), str(_APP), str(self.port), str(self._directory)]
        with (self._directory / "app.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **_ENVIRONMENT}
            )
        until(self._serves, seconds=_START_LIMIT)

    def stop(self) -> None:
        """Serve no more; all that the pages' other side knew is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_END_LIMIT)
            self._process = None

    def go_on(self) -> None:
        """End what `[hold]` began."""
        (self._directory / "go-on").touch()

    def got(self, mark: str) -> list[Got]:
        """Calls with this in their prompt, in order."""
        journal = self._directory / "received.jsonl"
        lines = journal.read_text().splitlines() if journal.exists() else []
        return [found for found in (Got(**json.loads(line)) for line in lines) if mark in found.prompt]

    def _serves(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self._directory / "app.log").read_text()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(self.at("chat"), timeout=_END_LIMIT) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False


@contextlib.contextmanager
def running_chats(directory: Path) -> Generator[Chats, None, None]:
    """The chats, served until the end."""
    chats = Chats(directory)
    try:
        chats.start()
        yield chats
    finally:
        chats.stop()
