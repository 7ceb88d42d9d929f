"""Each method of the contract has a deadline, and a rule on repeating it."""

from datetime import timedelta

import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from tabmux.errors import TabmuxError
from tabmux.methods import METHODS, may_repeat, rule_of
from tabmux.v1 import tab_service_pb2 as tab
from tabmux.v1 import web_ai_service_pb2 as ai

from tests.clients.python.scripted import duration

DESCRIPTORS = [
    method
    for file, service in ((tab, "TabService"), (ai, "WebAiService"))
    for method in file.DESCRIPTOR.services_by_name[service].methods
]
ENDLESS = {"WatchTabs", "WatchSessions", "StreamAnswer", "ReadArtifact"}
NEVER = {"CloseTabs", "ImportSessions", "UploadArtifact", *ENDLESS}
BY_FIELD = {
    "CreateTab": "request_id",
    "AdoptTab": "target_id",
    "NavigateTab": "request_id",
    "PerformAction": "request_id",
    "EvaluateScript": "request_id",
    "AcquireLease": "request_id",
    "CreateSession": "session_id",
    "SendPrompt": "request_id",
}
AWAY = TabmuxError("away", code="UNAVAILABLE")


def request_of(method: MethodDescriptor, **fields: str) -> Message:
    """A request of that method."""
    module = tab if method.containing_service.name == "TabService" else ai
    request: Message = getattr(module, method.input_type.name)(**fields)
    return request


def seconds(count: float) -> Duration:
    """So many seconds, as the contract has them."""
    return duration(timedelta(seconds=count))


def test_every_method_has_a_rule() -> None:
    """The methods with a rule are those of the contract, and each is found by its request."""
    assert set(METHODS) == {method.name for method in DESCRIPTORS}
    assert [rule_of(request_of(method)) for method in DESCRIPTORS] == [METHODS[method.name] for method in DESCRIPTORS]


def test_every_method_has_a_deadline() -> None:
    """Only streams that are resumed have no deadline."""
    without = {
        method.name for method in DESCRIPTORS if rule_of(request_of(method)).deadline(request_of(method)) is None
    }
    assert without == ENDLESS


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (tab.GetServerInfoRequest(), 5),
        (tab.CreateTabRequest(), 45),
        (tab.CreateTabRequest(milestone_timeout=seconds(2)), 17),
        (tab.NavigateTabRequest(milestone_timeout=seconds(600)), 135),
        (tab.CheckTabHealthRequest(), 5),
        (tab.CheckTabHealthRequest(probe_timeout=seconds(1)), 4),
        (tab.PerformActionRequest(action=tab.Action(click=tab.Click(ref="s1e1"))), 15),
        (tab.PerformActionRequest(action=tab.Action(wait_for=tab.WaitFor(text="x"))), 15),
        (
            tab.PerformActionRequest(action=tab.Action(wait_for=tab.WaitFor(text="x", condition_timeout=seconds(30)))),
            35,
        ),
        (tab.PerformActionRequest(action=tab.Action(wait_for=tab.WaitFor(duration=seconds(50)))), 55),
        (tab.EvaluateScriptRequest(), 15),
        (tab.EvaluateScriptRequest(result_timeout=seconds(20)), 25),
        (ai.SendPromptRequest(), 10),
        (ai.WaitTurnRequest(), 35),
        (ai.WaitTurnRequest(max_wait_duration=seconds(3600)), 605),
    ],
)
def test_deadlines(request_: Message, expected: float) -> None:
    """A deadline is longer than the time the request gives the service, as far as the service grants it."""
    assert rule_of(request_).deadline(request_) == timedelta(seconds=expected)


@pytest.mark.parametrize("method", DESCRIPTORS, ids=lambda method: method.name)
def test_repeatable(method: MethodDescriptor) -> None:
    """A method is repeated if it is always safe, or by the id in its request, and else never."""
    plain = may_repeat(request_of(method), AWAY)
    if field := BY_FIELD.get(method.name):
        assert (plain, may_repeat(request_of(method, **{field: "x"}), AWAY)) == (False, True)
    else:
        assert plain is (method.name not in NEVER)


@pytest.mark.parametrize(
    ("code", "retry", "expected"),
    [
        ("UNAVAILABLE", None, False),
        ("UNAVAILABLE", "safe", True),
        ("UNAVAILABLE", "after-verify", False),
        ("UNAVAILABLE", "never", False),
        ("ABORTED", "safe", False),
        ("DEADLINE_EXCEEDED", None, False),
    ],
)
def test_step_on_a_page(code: str, retry: str | None, expected: float) -> None:
    """A step on a page without a request id is repeated only where the service calls that safe."""
    error = TabmuxError("x", code=code, metadata={"retry": retry} if retry else {})
    assert may_repeat(tab.NavigateTabRequest(), error) is expected
