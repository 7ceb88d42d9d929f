"""One connection to one Chrome: the calls in flight, the sessions, and who listens to which event.

Everything here runs on the loop but `Connection._cross`, the one place where what was received comes over from the
reading thread.
"""

import asyncio
import contextlib
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self, assert_never

import structlog

from tabmuxd.cdp.browser_socket import BadFrame, BrowserSocket, Delivery, Ended, Finished, LineFull, Opened
from tabmuxd.cdp.errors import (
    CallTimeout,
    CdpError,
    ConnectionBusy,
    ConnectionLost,
    HandshakeRefused,
    ProtocolError,
    TargetGone,
)
from tabmuxd.cdp.message import Event, Refusal, Reply

# What was received and waits for the loop; beyond it the reading thread does not read until the loop has taken it.
_MOST_RECEIVED: Final = 1_000
# Taken in at one turn of the loop, so that a flood of events does not keep others waiting.
_AT_ONCE: Final = 100
# Chrome 156: the code of "Session with given id not found"; such a call was not carried out.
_SESSION_NOT_FOUND: Final = -32001

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

EventHandler = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class ConnectionStatistics:
    """What a connection holds now (the first three) and has counted since it was opened."""

    pending_calls: int
    unsent_calls: int
    sessions: int
    received_replies: int
    received_events: int
    unread_events: int
    late_replies: int
    bad_frames: int
    handler_failures: int


@dataclass(slots=True)
class _Counts:
    received_replies: int = 0
    received_events: int = 0
    unread_events: int = 0
    late_replies: int = 0
    bad_frames: int = 0
    handler_failures: int = 0


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that waits for its reply."""

    method: str
    session_id: str
    answer: asyncio.Future[dict[str, Any]]
    deadline: asyncio.TimerHandle


@dataclass(frozen=True, slots=True)
class _Session:
    """A session that Chrome told of; `parent_id` is the session that it was told in, empty for the browser."""

    target_id: str
    parent_id: str


class Connection:
    """A browser-level DevTools connection that carries the sessions of all its targets.

    Made by `open`. All methods belong to the loop it was opened on.
    """

    def __init__(self, uri: str, *, timeout: float, ping_interval: float, ping_timeout: float) -> None:
        self.uri = uri
        self._loop = asyncio.get_running_loop()
        self._socket = BrowserSocket(
            uri, self._cross, connect_timeout=timeout, ping_interval=ping_interval, ping_timeout=ping_timeout
        )
        self._received: deque[Delivery] = deque()
        self._crossing = False
        self._room = threading.Event()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._finished: asyncio.Future[None] = self._loop.create_future()
        self._calls: dict[int, _Call] = {}
        self._sessions: dict[str, _Session] = {}
        self._handlers: dict[tuple[str, str], list[EventHandler]] = {}
        self._counts = _Counts()

    @classmethod
    async def open(
        cls, uri: str, *, timeout: float = 5.0, ping_interval: float = 10.0, ping_timeout: float = 15.0
    ) -> Self:
        """Connect to the DevTools address `uri`, of the form ws://host:port/devtools/browser/id.

        After `ping_interval` seconds in which nothing was received Chrome is pinged; `ping_timeout` seconds without
        any sign of life after that end the connection.

        Raises:
            HandshakeRefused: something listens there, but not a DevTools socket of this address.
            ConnectionLost: nothing listens, or it did not answer within `timeout` seconds.
        """
        connection = cls(uri, timeout=timeout, ping_interval=ping_interval, ping_timeout=ping_timeout)
        connection._socket.start()
        try:
            async with asyncio.timeout(timeout):
                await connection._opened
        except TimeoutError:
            connection._socket.stop()
            raise ConnectionLost("", handed_over=False, reason=f"no handshake within {timeout:g} s") from None
        except asyncio.CancelledError:
            connection._socket.stop()
            raise
        except ConnectionLost:
            await connection.close()
            raise
        return connection

    def __repr__(self) -> str:
        state = f"ended: {self._ended.result()}" if self.closed else "open"
        return f"<Connection {self.uri} {state}, {self.statistics()}>"

    @property
    def closed(self) -> bool:
        """The socket has ended, and no call can be made any more."""
        return self._ended.done()

    async def call(
        self, method: str, params: Mapping[str, object] | None = None, *, session_id: str = "", timeout: float
    ) -> dict[str, Any]:
        """Call a DevTools method, in a session or in the browser itself, and give its result.

        When the task is cancelled, a call that was not sent yet never is.

        Raises:
            ProtocolError: Chrome refused.
            CallTimeout: no answer within `timeout` seconds.
            ConnectionLost: the socket ended.
            TargetGone: the session ended, or its renderer crashed while the call was in flight.
            ConnectionBusy: too many calls wait to be sent.
            TypeError, ValueError: `params` have no form in JSON.
        """
        if self._ended.done():
            raise ConnectionLost(method, handed_over=False, reason=self._ended.result())
        if session_id and session_id not in self._sessions:
            raise TargetGone(method, handed_over=False, crashed=False)
        if timeout <= 0:
            raise CallTimeout(method, handed_over=False)
        try:
            call_id = self._socket.submit(method, params, session_id)
        except LineFull:
            raise ConnectionBusy(method) from None
        answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        deadline = self._loop.call_later(timeout, self._expire, call_id)
        self._calls[call_id] = _Call(method, session_id, answer, deadline)
        try:
            return await answer
        finally:
            deadline.cancel()
            if self._calls.pop(call_id, None) is not None:  # cancelled
                self._socket.withdraw(call_id)

    def on(self, method: str, handler: EventHandler, *, session_id: str = "") -> Callable[[], None]:
        """Have `handler` called with the parameters of each such event of a session; gives what stops it.

        Handlers run on the loop, in order of arrival. One that raises is logged and counted, and hinders no other.
        Those of a session are dropped once it has ended; its `Target.detachedFromTarget` is the last they see.
        """
        key = (session_id, method)
        if self.closed or (session_id and session_id not in self._sessions):
            return lambda: None
        self._handlers.setdefault(key, []).append(handler)

        def stop() -> None:
            handlers = self._handlers.get(key, [])
            if handler in handlers:
                handlers.remove(handler)
            if not handlers:
                self._handlers.pop(key, None)

        return stop

    def attached(self, session_id: str) -> bool:
        """The session is there: Chrome told of it, and has not ended it."""
        return session_id in self._sessions

    async def wait_closed(self) -> str:
        """Wait until the socket has ended; gives why, in words for people."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """End the connection: calls in flight fail, both threads end. May be repeated."""
        self._socket.stop()
        await asyncio.shield(self._finished)

    def statistics(self) -> ConnectionStatistics:
        """What the connection holds, and what it has counted."""
        counts = self._counts
        return ConnectionStatistics(
            pending_calls=len(self._calls),
            unsent_calls=self._socket.unsent(),
            sessions=len(self._sessions),
            received_replies=counts.received_replies,
            received_events=counts.received_events,
            unread_events=counts.unread_events,
            late_replies=counts.late_replies,
            bad_frames=counts.bad_frames,
            handler_failures=counts.handler_failures,
        )

    # What was received.

    def _cross(self, delivery: Delivery) -> None:
        """Bring what was received over to the loop. Runs on the reading thread, and waits there for room."""
        self._received.append(delivery)
        if not self._crossing:
            self._crossing = True
            try:
                self._loop.call_soon_threadsafe(self._take_received)
            except RuntimeError:  # the loop is closed, and with it everybody who could be told
                self._socket.stop()
                self._received.clear()
        while len(self._received) >= _MOST_RECEIVED and not self._loop.is_closed():
            self._room.clear()
            if len(self._received) >= _MOST_RECEIVED:
                self._room.wait(1)

    def _take_received(self) -> None:
        # `_crossing` is cleared before the last look at `_received`: what the reading thread appends after that look
        # finds it cleared and has this called again.
        self._crossing = False
        try:
            for _ in range(min(_AT_ONCE, len(self._received))):
                self._take(self._received.popleft())
        finally:
            if self._received and not self._crossing:
                self._crossing = True
                self._loop.call_soon(self._take_received)
            self._room.set()

    def _take(self, delivery: Delivery) -> None:
        match delivery:
            case Reply():
                self._counts.received_replies += 1
                self._answer(delivery)
            case Event():
                self._counts.received_events += 1
                self._happen(delivery)
            case BadFrame():
                self._counts.bad_frames += 1
            case Opened():
                if not self._opened.done():
                    self._opened.set_result(None)
            case Ended():
                self._end(delivery)
            case Finished():
                self._socket.join()
                self._finished.set_result(None)
            case _:
                assert_never(delivery)

    def _answer(self, reply: Reply) -> None:
        call = self._calls.pop(reply.id, None)
        if call is None:
            self._counts.late_replies += 1
            self._release(reply)
        elif reply.refusal is None:
            _resolve(call, reply.result)
        else:
            _resolve(call, _refused(call, reply.refusal))

    def _release(self, reply: Reply) -> None:
        """End a session whose attaching nobody waited for any more: nobody else would."""
        session_id = reply.result.get("sessionId")
        if isinstance(session_id, str):
            with contextlib.suppress(LineFull):
                self._socket.submit("Target.detachFromTarget", {"sessionId": session_id}, "")

    def _happen(self, event: Event) -> None:
        read = False
        match event.method:
            case "Target.attachedToTarget":
                info = event.params.get("targetInfo", {})
                self._sessions[str(event.params.get("sessionId"))] = _Session(
                    info.get("targetId", ""), event.session_id
                )
            case "Target.detachedFromTarget":
                session_id = str(event.params.get("sessionId"))
                self._detach(session_id)
                read = self._dispatch(Event(event.method, event.params, session_id))
                self._drop_handlers(session_id)
            case "Inspector.targetCrashed":
                self._fail_session(event.session_id, crashed=True)
            case "Target.targetCrashed":
                for session_id, session in self._sessions.items():
                    if session.target_id == event.params.get("targetId"):
                        self._fail_session(session_id, crashed=True)
            case _:
                pass
        read = self._dispatch(event) or read
        if not read:
            self._counts.unread_events += 1

    def _dispatch(self, event: Event) -> bool:
        """Call who listens; False where nobody does."""
        handlers = self._handlers.get((event.session_id, event.method))
        if not handlers:
            return False
        for handler in tuple(handlers):
            try:
                handler(event.params)
            except Exception as error:  # noqa: BLE001 - the top of somebody else's work
                self._counts.handler_failures += 1
                # The message of the error may hold what the event held; where it was raised does not.
                _log.error(
                    "cdp_handler_failed",
                    method=event.method,
                    error=type(error).__name__,
                    stack="".join(traceback.format_tb(error.__traceback__)),
                )
        return True

    # What ends.

    def _expire(self, call_id: int) -> None:
        call = self._calls.pop(call_id, None)
        if call is not None:
            _resolve(call, CallTimeout(call.method, handed_over=not self._socket.withdraw(call_id)))

    def _detach(self, session_id: str) -> None:
        """Forget a session and those attached through it: Chrome ends them without a word."""
        self._sessions.pop(session_id, None)
        self._fail_session(session_id, crashed=False)
        for child_id in [each for each, session in self._sessions.items() if session.parent_id == session_id]:
            self._detach(child_id)
            self._drop_handlers(child_id)

    def _fail_session(self, session_id: str, *, crashed: bool) -> None:
        for call_id in [each for each, call in self._calls.items() if call.session_id == session_id]:
            call = self._calls.pop(call_id)
            handed_over = not self._socket.withdraw(call_id)
            _resolve(call, TargetGone(call.method, handed_over=handed_over, crashed=crashed))

    def _drop_handlers(self, session_id: str) -> None:
        for key in [each for each in self._handlers if each[0] == session_id]:
            del self._handlers[key]

    def _end(self, ended: Ended) -> None:
        if not self._opened.done():
            self._opened.set_exception(
                ConnectionLost("", handed_over=False, reason=ended.reason)
                if ended.status is None
                else HandshakeRefused(status=ended.status, reason=ended.reason)
            )
        self._ended.set_result(ended.reason)
        calls, self._calls = self._calls, {}
        for call_id, call in calls.items():
            handed_over = not self._socket.withdraw(call_id)
            _resolve(call, ConnectionLost(call.method, handed_over=handed_over, reason=ended.reason))
        self._sessions.clear()
        self._handlers.clear()


def _refused(call: _Call, refusal: Refusal) -> CdpError:
    if refusal.code == _SESSION_NOT_FOUND:
        return TargetGone(call.method, handed_over=False, crashed=False)
    return ProtocolError(call.method, refusal.code, refusal.message, refusal.data)


def _resolve(call: _Call, outcome: dict[str, Any] | CdpError) -> None:
    if call.answer.done():  # its task was cancelled and has not run since
        return
    if isinstance(outcome, CdpError):
        call.answer.set_exception(outcome)
    else:
        call.answer.set_result(outcome)
