"""The socket of a browser and the two threads that own it: one reads, one sends.

pychrome 0.2.4 is made for one page: its Tab blocks the caller's thread, numbers calls without a lock, knows no
sessions, and its reader dies at a close frame and leaves every call waiting. Its start, send, receive and stop are
replaced here.
"""

import contextlib
import itertools
import select
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn, Protocol
from urllib.parse import urlsplit

import websocket
from pychrome import Tab
from websocket import ABNF

from tabmuxd.cdp.message import Event, Reply, decode, encode
from tabmuxd.cdp.pulse import Pulse

MOST_UNSENT: Final = 10_000

# Python hands a thread the interpreter only every 5 ms while another computes: too long between a reply and its reader.
_SWITCH_INTERVAL_SECONDS: Final = 0.0005
# While Chrome does not read, the sender looks this often whether it should still wait.
_BLOCKED_LOOK_SECONDS: Final = 0.1
# A wait that ended this late means that the whole process stood still.
_OVERSLEPT_SECONDS: Final = 1.0
# The first piece of frames is sent under the lock that the loop takes to withdraw a call, so it is small.
_FIRST_PIECE_BYTES: Final = 65_536


@dataclass(frozen=True, slots=True)
class Opened:
    """The handshake is done."""


@dataclass(frozen=True, slots=True)
class BadFrame:
    """A frame came that holds neither reply nor event."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more will come; `status` is the HTTP status of a refused handshake, else None."""

    reason: str
    status: int | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """The socket is closed, and both threads are at their end. The last thing that is delivered."""


Delivery = Opened | Reply | Event | BadFrame | Ended | Finished


class _Frames(Protocol):
    """Where frames are read; the library's own class is not annotated here."""

    def recv_frame(self) -> ABNF:
        """Wait for a frame."""
        ...


class LineFull(Exception):
    """As many messages as are allowed wait to be sent."""


class BrowserSocket(Tab):
    """pychrome's Tab at a browser's own address, with no thread but its own two ever at the socket.

    `deliver` is called on the reading thread, in order of arrival. `_line` guards `_unsent`, `_pong` and `_stopped`.
    """

    def __init__(
        self,
        uri: str,
        deliver: Callable[[Delivery], None],
        *,
        connect_timeout: float,
        ping_interval: float,
        ping_timeout: float,
    ) -> None:
        super().__init__(id=uri, type="browser", webSocketDebuggerUrl=uri)
        self._uri = uri
        self._deliver = deliver
        self._connect_timeout = connect_timeout
        self._pulse = Pulse(ping_interval, ping_timeout, heard_at=time.monotonic())
        self._ids = itertools.count(1)
        self._line = threading.Condition()
        self._unsent: OrderedDict[int, bytes] = OrderedDict()
        self._pong: bytes | None = None
        self._failure = ""
        self._delivering = False
        self._reader = threading.Thread(target=self._recv_loop, name="cdp-read", daemon=True)

    if not TYPE_CHECKING:

        def __getattr__(self, item: str) -> NoReturn:
            """Refuse what is not there; pychrome would make a DevTools domain of any misspelt name."""
            raise AttributeError(item)

    def start(self) -> bool:
        """Begin to connect, on the reading thread; `Opened` or `Ended` will be delivered."""
        if self._started:
            return False
        sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
        self._started = True
        self.status = self.status_started
        self._reader.start()
        return True

    def stop(self) -> bool:
        """Have both threads end soon; does not wait for them."""
        with self._line:
            if self._stopped.is_set():
                return False
            self._stopped.set()
            self._line.notify()
        self.status = self.status_stopped
        return True

    def join(self) -> None:
        """Wait for the threads; immediate once `Finished` was delivered."""
        self._reader.join()

    def submit(self, method: str, params: Mapping[str, object] | None, session_id: str) -> int:
        """Put a call in the line and give its id.

        Raises:
            LineFull: too many wait already.
            TypeError, ValueError: as `encode`.
        """
        message_id = next(self._ids)
        self._put(message_id, encode(message_id, method, params, session_id))
        return message_id

    def withdraw(self, message_id: int) -> bool:
        """Take a call out of the line; False where it was handed over to the socket, in part at least."""
        with self._line:
            return self._unsent.pop(message_id, None) is not None

    def unsent(self) -> int:
        """Number of calls in the line."""
        return len(self._unsent)

    def _send(self, message: dict[str, object], timeout: float | None = None) -> NoReturn:
        """Refuse pychrome's blocking way to call."""
        raise NotImplementedError("calls go through submit")

    def _handle_event_loop(self) -> NoReturn:
        """Refuse pychrome's second thread: events are delivered as replies are."""
        raise NotImplementedError("events are delivered by the reading thread")

    def _put(self, message_id: int, payload: bytes) -> None:
        with self._line:
            if len(self._unsent) >= MOST_UNSENT:
                raise LineFull
            self._unsent[message_id] = payload
            self._line.notify()

    # The reading thread.

    def _recv_loop(self) -> None:
        """Connect, deliver what comes until nothing more can, then close the socket."""
        try:
            with self._connect() as plain:
                frames = self._shake_hands(plain)
                self._deliver(Opened())
                self._pulse.heard_at = time.monotonic()
                sender = threading.Thread(target=self._send_loop, args=(plain,), name="cdp-send", daemon=True)
                sender.start()
                reason = self._read(frames)
                if not self.stop():
                    reason = self._failure or "closed on this side"
                self._deliver(Ended(reason))
                sender.join()
        except websocket.WebSocketBadStatusException as error:
            status = error.status_code
            self._deliver(Ended(f"the handshake was answered with HTTP status {status}", status))
        except (OSError, ValueError, websocket.WebSocketException) as error:
            self._deliver(Ended(f"cannot connect: {error}"))
        self._deliver(Finished())

    def _connect(self) -> socket.socket:
        address = urlsplit(self._uri)
        if address.scheme != "ws" or not address.hostname or not address.port:
            raise ValueError("the address is not of the form ws://host:port/path")
        return socket.create_connection((address.hostname, address.port), timeout=self._connect_timeout)

    def _shake_hands(self, plain: socket.socket) -> "_Frames":
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Chrome answers 403 to an Origin header. Checking UTF-8 made a reply of 4 MiB take 1.3 s instead of 0.15.
        # With a socket of ours the library does not look for a proxy in the environment.
        self._ws = websocket.create_connection(
            self._uri,
            timeout=self._connect_timeout,
            socket=plain,
            suppress_origin=True,
            skip_utf8_validation=True,
            redirect_limit=0,
        )
        plain.settimeout(None)
        return self._ws

    def _read(self, frames: "_Frames") -> str:
        """Deliver what comes; gives why it ended."""
        pieces: list[bytes] = []
        try:
            while True:
                frame = frames.recv_frame()
                self._hear()
                match frame.opcode:
                    case ABNF.OPCODE_CLOSE:
                        return f"the browser said goodbye ({int.from_bytes(_bytes(frame.data)[:2])})"
                    case ABNF.OPCODE_PING:
                        with self._line:
                            self._pong = _bytes(frame.data)
                            self._line.notify()
                    case ABNF.OPCODE_TEXT | ABNF.OPCODE_BINARY | ABNF.OPCODE_CONT:
                        pieces.append(_bytes(frame.data))
                        if frame.fin:
                            data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
                            pieces.clear()
                            self._hand_on(data)
                    case _:
                        pass
        except websocket.WebSocketConnectionClosedException:
            return "the browser closed the connection"
        except (OSError, websocket.WebSocketException) as error:
            return f"the connection broke: {error}"

    def _hear(self) -> None:
        asking = self._pulse.asking
        self._pulse.heard_at = time.monotonic()
        if asking:
            with self._line:  # the sender waits for this, and is to look for the next time to ask
                self._line.notify()

    def _hand_on(self, data: bytes) -> None:
        self._delivering = True
        self._deliver(decode(data) or BadFrame())
        self._delivering = False

    # The sending thread.

    def _send_loop(self, plain: socket.socket) -> None:
        """Send what is in the line, pings and pongs, until the end; then wake the reading thread."""
        try:
            while (frames := self._next_frames()) is not None:
                self._send_frames(plain, frames)
            plain.send(_frame(b"\x03\xe8", ABNF.OPCODE_CLOSE), socket.MSG_DONTWAIT)
        except OSError as error:
            self._fail(f"the connection broke: {error}")
        finally:
            with contextlib.suppress(OSError):  # the other end was faster
                plain.shutdown(socket.SHUT_RDWR)

    def _next_frames(self) -> dict[int, bytes] | None:
        """The next frames by the ids of their calls (0: none), as soon as there is one; None at the end."""
        with self._line:
            while not self._stopped.is_set():
                if self._pong is not None:
                    pong, self._pong = self._pong, None
                    return {0: _frame(pong, ABNF.OPCODE_PONG)}
                if self._unsent:
                    payloads = self._first_payloads()
                    break
                if self._pulse.ping_due(time.monotonic()):
                    self._pulse.ask(time.monotonic())
                    return {0: _frame(b"", ABNF.OPCODE_PING)}
                if not self._alive():
                    return None
                self._wait()
            else:
                return None
        return {message_id: _frame(payload, ABNF.OPCODE_TEXT) for message_id, payload in payloads.items()}

    def _first_payloads(self) -> dict[int, bytes]:
        """The calls at the beginning of the line that fit a first piece, one at least; the line is held."""
        payloads: dict[int, bytes] = {}
        size = 0
        for message_id, payload in self._unsent.items():
            size += len(payload)
            if payloads and size > _FIRST_PIECE_BYTES:
                break
            payloads[message_id] = payload
        return payloads

    def _wait(self) -> None:
        """Wait for something to send, or until the pulse is to be looked at; the line is held."""
        until = self._pulse.next_look()
        self._line.wait(max(until - time.monotonic(), 0))
        now = time.monotonic()
        if now - until > _OVERSLEPT_SECONDS:
            self._pulse.overslept(now)

    def _send_frames(self, plain: socket.socket, frames: dict[int, bytes]) -> None:
        """Send frames, each whole, or not at all where its call is withdrawn before its first byte is taken.

        Those that the socket has taken nothing of when the first are sent stay in the line.
        """
        taken, rest = 0, memoryview(b"")
        while not taken:
            with self._line:
                frames = {number: frame for number, frame in frames.items() if not number or number in self._unsent}
                if not frames:
                    return
                taken = _offer(plain, memoryview(b"".join(frames.values()))[:_FIRST_PIECE_BYTES])
                rest = self._begun(frames, taken)
            if not taken and not self._wait_writable(plain):
                return
        while rest:
            taken = _offer(plain, rest)
            rest = rest[taken:]
            if not taken and not self._wait_writable(plain):
                return

    def _begun(self, frames: dict[int, bytes], taken: int) -> memoryview:
        """Take calls out of the line whose frames are begun; gives what is missing of the last. The line is held."""
        rest = memoryview(b"")
        for number, frame in frames.items():
            if taken <= 0:
                break
            self._unsent.pop(number, None)
            rest = memoryview(frame)[taken:]
            taken -= len(frame)
        return rest

    def _wait_writable(self, plain: socket.socket) -> bool:
        """Wait a moment for Chrome to read; False at the end."""
        self._pulse.ask(time.monotonic())
        poll = select.poll()
        poll.register(plain, select.POLLOUT)
        before = time.monotonic()
        poll.poll(_BLOCKED_LOOK_SECONDS * 1000)
        now = time.monotonic()
        if now - before > _BLOCKED_LOOK_SECONDS + _OVERSLEPT_SECONDS:
            self._pulse.overslept(now)
        return self._alive()

    def _alive(self) -> bool:
        """Nobody stopped this, and Chrome is not silent; ends the connection where it is."""
        if self._delivering:
            self._pulse.overslept(time.monotonic())  # what arrived waits for the loop, which is busy
        if self._pulse.silent(time.monotonic()):
            self._fail(f"no sign of life for {self._pulse.timeout:g} s")
        return not self._stopped.is_set()

    def _fail(self, reason: str) -> None:
        with self._line:
            if not self._stopped.is_set():
                self._failure = reason
                self._stopped.set()


def _offer(plain: socket.socket, data: memoryview) -> int:
    """Number of bytes that the socket took at once."""
    try:
        return plain.send(data, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0


def _frame(data: bytes, opcode: int) -> bytes:
    return ABNF.create_frame(data, opcode).format()


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
