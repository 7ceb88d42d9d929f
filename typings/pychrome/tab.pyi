from collections.abc import Callable
from queue import Queue
from threading import Event, Thread
from typing import ClassVar

import websocket

class Tab:
    # The real class answers any other attribute through __getattr__ with a DevTools domain. It is left out here, so that a
    # misspelt name is an error; commands go through call_method.
    status_initial: ClassVar[str]
    status_started: ClassVar[str]
    status_stopped: ClassVar[str]

    id: str | None
    type: str | None
    debug: str | bool
    status: str
    event_handlers: dict[str, Callable[..., object]]
    method_results: dict[int, Queue[dict[str, object]]]
    event_queue: Queue[dict[str, object]]

    _websocket_url: str | None
    _kwargs: dict[str, object]
    _cur_id: int
    _ws: websocket.WebSocket | None
    _recv_th: Thread
    _handle_event_th: Thread
    _stopped: Event
    _started: bool

    def __init__(self, **kwargs: object) -> None: ...
    def _send(self, message: dict[str, object], timeout: float | None = None) -> dict[str, object]: ...
    def _recv_loop(self) -> None: ...
    def _handle_event_loop(self) -> None: ...
    def call_method(self, _method: str, *args: object, **kwargs: object) -> dict[str, object]: ...
    def set_listener(self, event: str, callback: Callable[..., object] | None) -> object: ...
    def get_listener(self, event: str) -> Callable[..., object] | None: ...
    def del_all_listeners(self) -> bool: ...
    def start(self) -> bool: ...
    def stop(self) -> bool: ...
    def wait(self, timeout: float | None = None) -> bool: ...
