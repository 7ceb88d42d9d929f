"""Tabs by DevTools commands alone, over one socket: the least that opens a tab, or asks pages for something."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import websocket
from tabmuxd.cdp.profile import read_port_file

T = TypeVar("T")

_TIMEOUT_SECONDS: Final = 10.0
_PAINTING: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
    (
        "Page.startScreencast",
        {"format": "jpeg", "quality": 1, "maxWidth": 16, "maxHeight": 16, "everyNthFrame": 1_000_000},
    ),
)

Message = dict[str, Any]
Expected = Callable[[Message], bool]
Steps = Generator[Sequence[Expected], None, T]
"""Sends, and gives what has to come before it goes on; in the end its result."""


class BareBrowser:
    """A blocking DevTools connection to the browser of a profile directory; `with` opens and closes it.

    It is websocket-client alone: one thread, no queue, no futures, no look at anything but what is waited for. Our own
    connection would bring with it two threads that the server has to pay for as well.
    """

    def __init__(self, profile: Path) -> None:
        self._uri = browser_uri(profile)
        self._socket = websocket.WebSocket(skip_utf8_validation=True)
        self._ids = itertools.count(1)
        self._sessions: dict[str, str] = {}
        self._loaded: set[str] = set()

    def __enter__(self) -> Self:
        self._socket.connect(self._uri, timeout=_TIMEOUT_SECONDS, suppress_origin=True)  # type: ignore[no-untyped-call]  # of websocket-client
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def open_tabs(self, uris: Sequence[str], *, painting: bool) -> list[str]:
        """Open a tab for each address in the background, all at once; their target ids, once each is committed.

        `painting`: as the server places its tabs, so that a page runs at full speed though it is hidden.
        """
        return self._run([self._open(uri, painting=painting) for uri in uris])

    def close_tab(self, target_id: str) -> None:
        """Close a tab that was opened here, and return once its session has ended."""
        self._run([self._close(target_id)])

    def attach_all(self, target_ids: Sequence[str]) -> list[str]:
        """Attach to these pages, whoever opened them; their session ids."""
        return self._run([self._attach(target_id) for target_id in target_ids])

    def evaluate_all(self, session_ids: Sequence[str], expression: str) -> list[object]:
        """Values of an expression in the pages of these sessions: all are asked before any answer is read."""
        return self._run([self._evaluate(session_id, expression) for session_id in session_ids])

    def call_in_turn(self, session_id: str, commands: Sequence[tuple[str, dict[str, object]]]) -> list[Message]:
        """Results of commands to one page, each sent once the one before has its result."""
        return self._run([self._in_turn(session_id, commands)])[0]

    def _in_turn(self, session_id: str, commands: Sequence[tuple[str, dict[str, object]]]) -> Steps[list[Message]]:
        results: list[Message] = []
        for method, params in commands:
            yield [self._replied(results, method, params, session_id)]
        return results

    def _open(self, uri: str, *, painting: bool) -> Steps[str]:
        created: list[Message] = []
        yield [self._replied(created, "Target.createTarget", {"url": "about:blank", "background": True})]
        target_id = str(created[0]["targetId"])
        session_id = yield from self._attach(target_id)
        self._sessions[target_id] = session_id
        commands = [("Page.enable", dict[str, object]()), *(_PAINTING if painting else ())]
        yield [self._replied([], method, params, session_id) for method, params in commands]
        yield [
            self._replied([], "Page.navigate", {"url": uri}, session_id),
            partial(_commits, session_id=session_id, uri=uri),
        ]
        return target_id

    def _close(self, target_id: str) -> Steps[None]:
        session_id = self._sessions.pop(target_id)
        # Chrome 156 sometimes forgets to close a tab that has only just been committed.
        if session_id not in self._loaded:
            yield [lambda _message: session_id in self._loaded]
        yield [
            self._replied([], "Target.closeTarget", {"targetId": target_id}),
            lambda message: (
                message.get("params", {}).get("sessionId") == session_id
                and message["method"] == "Target.detachedFromTarget"
            ),
        ]
        self._loaded.discard(session_id)

    def _attach(self, target_id: str) -> Steps[str]:
        attached: list[Message] = []
        yield [self._replied(attached, "Target.attachToTarget", {"targetId": target_id, "flatten": True})]
        return str(attached[0]["sessionId"])

    def _evaluate(self, session_id: str, expression: str) -> Steps[object]:
        found: list[Message] = []
        yield [self._replied(found, "Runtime.evaluate", {"expression": expression, "returnByValue": True}, session_id)]
        return found[0]["result"].get("value")

    def _run(self, all_steps: Sequence[Steps[T]]) -> list[T]:
        """Go on with each as soon as what it waits for has come, in whatever order; their results."""
        results: dict[int, T] = {}
        missing: dict[int, list[Expected]] = {}

        def go_on(index: int) -> None:
            try:
                missing[index] = list(next(all_steps[index]))
            except StopIteration as end:
                missing.pop(index, None)
                results[index] = end.value

        for index in range(len(all_steps)):
            go_on(index)
        while missing:
            message = self._receive()
            for index in list(missing):
                missing[index] = [fits for fits in missing[index] if not fits(message)]
                if not missing[index]:
                    go_on(index)
        return [results[index] for index in range(len(all_steps))]

    def _receive(self) -> Message:
        message: Message = json.loads(self._socket.recv())
        if message.get("method") == "Page.loadEventFired":
            self._loaded.add(message["sessionId"])
        return message

    def _replied(
        self, results: list[Message], method: str, params: dict[str, object], session_id: str = ""
    ) -> Expected:
        """Send a command; gives what its reply is known by, which puts the result into `results`."""
        call_id = next(self._ids)
        command: dict[str, object] = {"id": call_id, "method": method, "params": params}
        if session_id:
            command["sessionId"] = session_id
        self._socket.send(json.dumps(command))

        def replies(message: Message) -> bool:
            if message.get("id") != call_id:
                return False
            if "result" not in message:
                raise RuntimeError(f"{method}: {message}")
            results.append(message["result"])
            return True

        return replies


def browser_uri(profile: Path) -> str:
    """Address of the DevTools socket of the browser that runs on a profile directory."""
    port_file = read_port_file(profile)
    if port_file is None:
        raise RuntimeError(f"no browser on {profile}")
    return f"ws://127.0.0.1:{port_file.port}{port_file.path}"


def _commits(message: Message, *, session_id: str, uri: str) -> bool:
    return (
        message.get("method") == "Page.frameNavigated"
        and message.get("sessionId") == session_id
        and message["params"]["frame"]["url"] == uri
    )
