"""One connection to one Chrome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConnectionStatistics:
    """What a connection holds now and has counted since it was opened."""

    pending_calls: int
    unsent_calls: int
    sessions: int
    received_replies: int
    received_events: int
    unread_events: int
    late_replies: int
    bad_frames: int
    handler_failures: int


class Connection:
    """A browser-level DevTools connection that carries the sessions of all its targets."""

    @classmethod
    async def open(
        cls, uri: str, *, timeout: float = 5.0, ping_interval: float = 10.0, ping_timeout: float = 15.0
    ) -> "Connection":
        """Connect to the DevTools address `uri` (ws://host:port/devtools/browser/...)."""
        raise NotImplementedError

    uri: str

    @property
    def closed(self) -> bool:
        """The socket has ended."""
        raise NotImplementedError

    async def call(
        self, method: str, params: Mapping[str, object] | None = None, *, session_id: str = "", timeout: float
    ) -> dict[str, Any]:
        """The result of a DevTools method."""
        raise NotImplementedError

    def on(self, method: str, handler: Callable[[dict[str, Any]], None], *, session_id: str = "") -> Callable[[], None]:
        """Have `handler` called with the parameters of each such event; gives what stops it."""
        raise NotImplementedError

    async def wait_closed(self) -> str:
        """Why the connection ended, once it has."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the connection and its threads."""
        raise NotImplementedError

    def statistics(self) -> ConnectionStatistics:
        """What the connection holds and has counted."""
        raise NotImplementedError
