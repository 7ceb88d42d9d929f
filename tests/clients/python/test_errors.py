"""One error for one reason, however it came. Scenario CLI-06."""

import re
from datetime import timedelta
from pathlib import Path

import grpc
import pytest
from tabmux import errors
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.reasons import CODES
from tabmux.statuses import error_of_failure, turn_failed
from tabmux.v1.error_reason_pb2 import ErrorReason, Failure
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import GetTabResponse

from tests.clients.python.scripted import Refuse, ScriptedServer, duration

CONTRACT = Path(__file__).parents[3] / "proto/tabmux/v1/error_reason.proto"
REASONS = [name.removeprefix("ERROR_REASON_") for name, number in ErrorReason.items() if number]
CLASSES = {
    "TAB_GONE": errors.TabGoneError,
    "TAB_CLOSED": errors.TabClosedError,
    "SESSION_RETIRED": errors.SessionRetiredError,
    "STALE_REF": errors.StaleRefError,
    "OUTCOME_UNKNOWN": errors.OutcomeUnknownError,
    "LEASE_LOST": errors.LeaseLostError,
}
DELAY = timedelta(seconds=1, milliseconds=500)


def shown(error: TabmuxError) -> tuple[type, str, str, dict[str, str], timedelta | None, str]:
    """All that an error tells."""
    return type(error), error.reason, error.code, dict(error.metadata), error.retry_delay, error.message


def documented_codes() -> dict[str, str]:
    """Code of each reason, from the comments of the contract."""
    text = CONTRACT.read_text(encoding="utf-8")
    found = re.findall(r"// Code: ([A-Z_]+)\.(?:(?!// Code:)[\s\S])*?ERROR_REASON_(\w+) = \d+;", text)
    return {reason: code for code, reason in found}


def test_codes_of_reasons() -> None:
    """The code of each reason is the one its comment in the contract tells."""
    assert dict(CODES) == documented_codes()
    assert set(CODES) == set(REASONS)


@pytest.mark.parametrize("reason", [*REASONS, "SOMETHING_NEW"])
async def test_status_and_failure_alike(server: ScriptedServer, client: Client, reason: str) -> None:
    """A reason gives the same error from a status and from a Failure: its class, reason, code, metadata and delay."""
    code = CODES.get(reason, "ABORTED")
    server.script(
        "UpdateTab",
        [
            Refuse(
                grpc.StatusCode[code],
                reason,
                {"tab": "t"},
                DELAY,
                "no",
            )
        ],
    )
    server.script("GetTab", [GetTabResponse(tab=Tab(name="browsers/main/tabs/t"))])
    tab = await client.tab("browsers/main/tabs/t")
    if code == "UNAVAILABLE":
        # It would be repeated as long as the deadline lasts.
        server.script("UpdateTab", [Refuse(grpc.StatusCode[code], reason, {"tab": "t"}, timedelta(hours=1), "no")])
    with pytest.raises(TabmuxError) as caught:
        await tab.pin()
    delay = timedelta(hours=1) if code == "UNAVAILABLE" else DELAY
    from_status = shown(caught.value)
    failure = Failure(reason=reason, message="no", metadata={"tab": "t"}, retry_delay=duration(delay))
    from_failure = shown(error_of_failure(failure))
    assert from_status == (CLASSES.get(reason, TabmuxError), reason, code, {"tab": "t"}, delay, "no")
    assert from_failure == (*from_status[:2], CODES.get(reason, ""), *from_status[3:])


@pytest.mark.parametrize(
    "step",
    [
        Refuse(grpc.StatusCode.INTERNAL, message="incident 17"),
        Refuse(grpc.StatusCode.INTERNAL, "TAB_GONE", message="incident 17", domain="proxy.example"),
    ],
)
async def test_status_of_others(server: ScriptedServer, client: Client, step: Refuse) -> None:
    """A status without our ErrorInfo, or with one of another domain, has its code and no reason."""
    server.script("GetTab", [step])
    with pytest.raises(TabmuxError) as caught:
        await client.tab("browsers/main/tabs/t")
    assert shown(caught.value) == (TabmuxError, "", "INTERNAL", {}, None, "incident 17")


async def test_not_built_yet(client: Client) -> None:
    """UNIMPLEMENTED comes as the root class and names the method."""
    with pytest.raises(TabmuxError) as caught:
        await client.session("s").get()
    assert str(caught.value) == "UNIMPLEMENTED: GetSession is not built yet"


def test_failed_turn() -> None:
    """A failed turn raises TurnFailed with the reason, what the Failure says and the text there was."""
    turn = Turn(
        name="sessions/s/turns/t",
        state=Turn.STATE_FAILED,
        answer_markdown="half",
        error=Failure(reason="ANSWER_TIMEOUT", message="late", metadata={"page_touched": "yes"}),
    )
    error = turn_failed(turn)
    assert shown(error) == (errors.TurnFailed, "ANSWER_TIMEOUT", "ABORTED", {"page_touched": "yes"}, None, "late")
    assert (error.text, error.turn) == ("half", turn)


def test_cancelled_turn() -> None:
    """A cancelled turn raises TurnFailed without a reason."""
    error = turn_failed(Turn(state=Turn.STATE_CANCELLED, answer_markdown="half"))
    assert (error.reason, str(error), error.text) == ("", "the turn was cancelled", "half")
