"""For each method of the contract: the deadline of a call, and whether repeating it is safe. No I/O."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from tabmux.errors import TabmuxError
from tabmux.v1.tab_service_pb2 import PerformActionRequest

_REQUEST_SUFFIX = "Request"


@dataclass(frozen=True, slots=True)
class MethodRule:
    """How a method is called.

    `deadline` gives the time of a call from its request, `None` for a stream that has no end. `repeatable` tells from
    the request whether a second call does no harm.
    """

    deadline: Callable[[Message], timedelta | None]
    repeatable: Callable[[Message], bool]


def rule_of(request: Message) -> MethodRule:
    """Rule of the method that takes this request: in the contract each method has a request of its own."""
    return METHODS[request.DESCRIPTOR.name.removesuffix(_REQUEST_SUFFIX)]


def may_repeat(request: Message, error: TabmuxError) -> bool:
    """Whether the client itself may repeat a call that ended with `error`.

    Only on UNAVAILABLE. What the service says in `retry` goes before what is known of the method.
    """
    if error.code != "UNAVAILABLE":
        return False
    if retry := error.metadata.get("retry"):
        return retry == "safe"
    return rule_of(request).repeatable(request)


def _seconds(count: float) -> Callable[[Message], timedelta | None]:
    time = timedelta(seconds=count)
    return lambda _request: time


def _asked_time(field: str, default: float, most: float, margin: float) -> Callable[[Message], timedelta | None]:
    """Deadline of `margin` seconds more than the time in `field`, which the server limits to `most` seconds."""

    def deadline(request: Message) -> timedelta:
        asked = timedelta(seconds=default)
        if request.HasField(field):
            value: Duration = getattr(request, field)
            asked = min(value.ToTimedelta(), timedelta(seconds=most))
        return asked + timedelta(seconds=margin)

    return deadline


def _action_time(request: Message) -> timedelta:
    """15 s; for a wait its own time and 5 s more."""
    if not isinstance(request, PerformActionRequest) or not request.action.HasField("wait_for"):
        return timedelta(seconds=15)
    wait = request.action.wait_for
    asked = timedelta(seconds=10)
    if wait.WhichOneof("condition") == "duration":
        asked = wait.duration.ToTimedelta()
    elif wait.HasField("condition_timeout"):
        asked = wait.condition_timeout.ToTimedelta()
    return min(asked, timedelta(minutes=1)) + timedelta(seconds=5)


def _endless(_request: Message) -> None:
    return None


def _always(_request: Message) -> bool:
    return True


def _never(_request: Message) -> bool:
    return False


def _with_field(field: str) -> Callable[[Message], bool]:
    return lambda request: bool(getattr(request, field))


_with_request_id = _with_field("request_id")
_opening = _asked_time("milestone_timeout", default=30, most=120, margin=15)

METHODS: Mapping[str, MethodRule] = MappingProxyType(
    {
        "GetServerInfo": MethodRule(_seconds(5), _always),
        "GetBrowser": MethodRule(_seconds(5), _always),
        "ListBrowsers": MethodRule(_seconds(5), _always),
        "GetTab": MethodRule(_seconds(5), _always),
        "ListTabs": MethodRule(_seconds(5), _always),
        "ListLeases": MethodRule(_seconds(5), _always),
        "CreateTab": MethodRule(_opening, _with_request_id),
        "AdoptTab": MethodRule(_seconds(10), _with_field("target_id")),
        "UpdateTab": MethodRule(_seconds(5), _always),
        "CloseTab": MethodRule(_seconds(10), _always),
        "CloseTabs": MethodRule(_seconds(30), _never),
        "RecoverTab": MethodRule(_seconds(30), _always),
        "CheckTabHealth": MethodRule(_asked_time("probe_timeout", default=2, most=10, margin=3), _always),
        "NavigateTab": MethodRule(_opening, _with_request_id),
        "ActivateTab": MethodRule(_seconds(5), _always),
        "TakeSnapshot": MethodRule(_seconds(10), _always),
        "PerformAction": MethodRule(_action_time, _with_request_id),
        "EvaluateScript": MethodRule(_asked_time("result_timeout", default=10, most=60, margin=5), _with_request_id),
        "CaptureScreenshot": MethodRule(_seconds(20), _always),
        "AcquireLease": MethodRule(_seconds(5), _with_request_id),
        "RenewLease": MethodRule(_seconds(5), _always),
        "ReleaseLease": MethodRule(_seconds(5), _always),
        "WatchTabs": MethodRule(_endless, _never),  # resumed from its place instead: watch.py
        "ListProviders": MethodRule(_seconds(5), _always),
        "RenderPrompt": MethodRule(_seconds(5), _always),
        "GetProviderStatus": MethodRule(_seconds(10), _always),
        "ProbeProvider": MethodRule(_seconds(10), _always),
        "CreateSession": MethodRule(_seconds(15), _with_field("session_id")),
        "GetSession": MethodRule(_seconds(5), _always),
        "ListSessions": MethodRule(_seconds(5), _always),
        "GetTurn": MethodRule(_seconds(5), _always),
        "ListTurns": MethodRule(_seconds(5), _always),
        "UpdateSession": MethodRule(_seconds(10), _always),
        "RetireSession": MethodRule(_seconds(10), _always),
        "RecoverSession": MethodRule(_seconds(45), _always),
        "ImportSessions": MethodRule(_seconds(300), _never),  # its request is a stream
        "UploadArtifact": MethodRule(_seconds(60), _never),
        "SendPrompt": MethodRule(_seconds(10), _with_request_id),
        "WaitTurn": MethodRule(_asked_time("max_wait_duration", default=30, most=600, margin=5), _always),
        "CancelTurn": MethodRule(_seconds(10), _always),
        "StreamAnswer": MethodRule(_endless, _never),  # resumed by size and hash instead: ai.py
        "ReadArtifact": MethodRule(_endless, _never),
        "WatchSessions": MethodRule(_endless, _never),  # resumed from its place instead: watch.py
    },
)
