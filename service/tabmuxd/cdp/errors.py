"""Why a DevTools call gave no result."""


class CdpError(Exception):
    """A DevTools call gave no result; `method` is empty where no call was made."""

    def __init__(self, method: str, message: str) -> None:
        super().__init__(f"{method}: {message}" if method else message)
        self.method = method


class ProtocolError(CdpError):
    """Chrome refused the call, with its own code and words."""

    def __init__(self, method: str, code: int, message: str, data: str = "") -> None:
        super().__init__(method, f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class UnansweredCall(CdpError):
    """No answer came, and none will; if it was not handed over, Chrome has certainly not acted on it."""

    def __init__(self, method: str, message: str, *, handed_over: bool) -> None:
        super().__init__(method, message)
        self.handed_over = handed_over


class CallTimeout(UnansweredCall):
    """The deadline passed."""

    def __init__(self, method: str, *, handed_over: bool) -> None:
        super().__init__(method, "no answer in time", handed_over=handed_over)


class ConnectionLost(UnansweredCall):
    """The socket ended, or is not there; `reason` is text for people."""

    def __init__(self, method: str, *, handed_over: bool, reason: str = "the connection is closed") -> None:
        super().__init__(method, reason, handed_over=handed_over)
        self.reason = reason


class HandshakeRefused(ConnectionLost):
    """What listens there answered the handshake with another HTTP status: 404 for a browser that was started anew."""

    def __init__(self, *, status: int, reason: str) -> None:
        super().__init__("", handed_over=False, reason=reason)
        self.status = status


class TargetGone(UnansweredCall):
    """The session that was called has ended, or the renderer under it crashed."""

    def __init__(self, method: str, *, handed_over: bool, crashed: bool) -> None:
        super().__init__(
            method, "the renderer crashed" if crashed else "the session has ended", handed_over=handed_over
        )
        self.crashed = crashed


class ConnectionBusy(CdpError):
    """The line of unsent calls is full: Chrome does not read, or far too much is asked of it. Nothing was sent."""

    def __init__(self, method: str) -> None:
        super().__init__(method, "too many calls wait to be sent")
