"""Tabs by DevTools commands alone, one after another, over one socket: the least that opens a tab."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import websocket
from tabmuxd.cdp.profile import read_port_file

_TIMEOUT_SECONDS: Final = 10.0
_PAINTING: Final[tuple[tuple[str, dict[str, object]], ...]] = (
    ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
    (
        "Page.startScreencast",
        {"format": "jpeg", "quality": 1, "maxWidth": 16, "maxHeight": 16, "everyNthFrame": 1_000_000},
    ),
)


class BareBrowser:
    """A blocking DevTools connection to the browser of a profile directory; `with` opens and closes it.

    It is websocket-client alone: one thread, no queue, no futures, no look at anything but the reply that is waited
    for. Our own connection would bring with it two threads that the server has to pay for as well.
    """

    def __init__(self, profile: Path) -> None:
        port_file = read_port_file(profile)
        if port_file is None:
            raise RuntimeError(f"no browser on {profile}")
        self._uri = f"ws://127.0.0.1:{port_file.port}{port_file.path}"
        self._socket = websocket.WebSocket(skip_utf8_validation=True)
        self._ids = itertools.count(1)

    def __enter__(self) -> Self:
        self._socket.connect(self._uri, timeout=_TIMEOUT_SECONDS, suppress_origin=True)  # type: ignore[no-untyped-call]  # of websocket-client
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def open_tab(self, uri: str, *, painting: bool) -> str:
        """Open a tab in the background, and return its target id once its document is committed.

        `painting`: as the server places its tabs, so that a page runs at full speed though it is hidden.
        """
        target_id = str(self._call("Target.createTarget", {"url": "about:blank", "background": True})["targetId"])
        session_id = str(self._call("Target.attachToTarget", {"targetId": target_id, "flatten": True})["sessionId"])
        calls = [self._send("Page.enable", {}, session_id)]
        if painting:
            calls += [self._send(method, params, session_id) for method, params in _PAINTING]
        self._wait_for(*(partial(_answers, call_id) for call_id in calls))
        call_id = self._send("Page.navigate", {"url": uri}, session_id)
        self._wait_for(lambda message: message.get("id") == call_id, lambda message: _commits(message, session_id, uri))
        return target_id

    def close_tab(self, target_id: str) -> None:
        """Close the tab that `open_tab` opened last, and return once its session has ended."""
        # Chrome 156 sometimes forgets to close a tab that has only just been committed.
        self._wait_for(lambda message: message.get("method") == "Page.loadEventFired")
        call_id = self._send("Target.closeTarget", {"targetId": target_id})
        self._wait_for(
            lambda message: message.get("id") == call_id,
            lambda message: message.get("method") == "Target.detachedFromTarget",
        )

    def _call(self, method: str, params: dict[str, object], session_id: str = "") -> dict[str, Any]:
        call_id = self._send(method, params, session_id)
        (message,) = self._wait_for(lambda message: message.get("id") == call_id)
        if "result" not in message:
            raise RuntimeError(f"{method}: {message}")
        result: dict[str, Any] = message["result"]
        return result

    def _wait_for(self, *expected: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
        """Read on until one message for each of `expected` has come, in whatever order; gives them."""
        found: dict[int, dict[str, Any]] = {}
        while len(found) < len(expected):
            message: dict[str, Any] = json.loads(self._socket.recv())
            found.update({index: message for index, fits in enumerate(expected) if fits(message)})
        return [found[index] for index in range(len(expected))]

    def _send(self, method: str, params: dict[str, object], session_id: str = "") -> int:
        call_id = next(self._ids)
        message: dict[str, object] = {"id": call_id, "method": method, "params": params}
        if session_id:
            message["sessionId"] = session_id
        self._socket.send(json.dumps(message))
        return call_id


def _answers(call_id: int, message: dict[str, Any]) -> bool:
    return message.get("id") == call_id


def _commits(message: dict[str, Any], session_id: str, uri: str) -> bool:
    return (
        message.get("method") == "Page.frameNavigated"
        and message.get("sessionId") == session_id
        and message["params"]["frame"]["url"] == uri
    )
