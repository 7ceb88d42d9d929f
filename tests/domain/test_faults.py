from __future__ import annotations

import pytest
from tabmuxd.cdp.errors import CallTimeout, CdpError, ConnectionBusy, ConnectionLost, ProtocolError, TargetGone
from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.tabs import faults

from tests.domain.values import TAB, told

_BROWSER = "browsers/main"
_METHOD = "Page.navigate"


def _unanswered(*, handed_over: bool) -> list[CdpError]:
    return [
        TargetGone(_METHOD, handed_over=handed_over, crashed=False),
        TargetGone(_METHOD, handed_over=handed_over, crashed=True),
        CallTimeout(_METHOD, handed_over=handed_over),
        ConnectionLost(_METHOD, handed_over=handed_over),
    ]


@pytest.mark.parametrize("handed_over", [False, True])
def test_look(*, handed_over: bool) -> None:
    """A look that failed says which of page, browser and patience came to its end."""
    errors = [*_unanswered(handed_over=handed_over), ConnectionBusy(_METHOD)]

    assert [told(faults.of_look(error, TAB, _BROWSER)) for error in errors] == [
        "TAB_GONE",
        "TAB_GONE",
        "TAB_UNRESPONSIVE",
        "BROWSER_UNREACHABLE",
        "BROWSER_UNREACHABLE",
    ]


def _step(error: CdpError) -> tuple[str | None, str, str]:
    refused = faults.of_step(error, TAB, _BROWSER)
    return told(refused), refused.metadata["page_touched"], refused.metadata["retry"]


def test_step_handed_over() -> None:
    """A step that was handed over and lost is OUTCOME_UNKNOWN with its cause, and not to be repeated (O-72)."""
    assert [_step(error) for error in _unanswered(handed_over=True)] == [
        ("OUTCOME_UNKNOWN:tab_gone", "unknown", "after-verify"),
        ("OUTCOME_UNKNOWN:tab_crashed", "unknown", "after-verify"),
        ("OUTCOME_UNKNOWN:timeout", "unknown", "after-verify"),
        ("OUTCOME_UNKNOWN:connection_lost", "unknown", "after-verify"),
    ]


def test_step_not_begun() -> None:
    """A step that was never handed over touched nothing; only an unreachable browser makes it safe to repeat (O-72)."""
    assert [_step(error) for error in [*_unanswered(handed_over=False), ConnectionBusy(_METHOD)]] == [
        ("TAB_GONE", "no", "after-verify"),
        ("TAB_GONE", "no", "after-verify"),
        ("TAB_UNRESPONSIVE", "no", "after-verify"),
        ("BROWSER_UNREACHABLE", "no", "safe"),
        ("BROWSER_UNREACHABLE", "no", "safe"),
    ]


def test_touched() -> None:
    """What a refusal says of the page is read back from it; what says nothing touched nothing."""
    said = [faults.lost_result(TAB, "timeout"), refuse(Reason.NAVIGATION_FAILED, "", page_touched="yes")]

    assert [faults.touched(refused) for refused in said] == ["unknown", "yes"]
    assert faults.touched(refuse(Reason.TAB_GONE, "")) == "no"


def test_unreachable_again() -> None:
    """BROWSER_UNREACHABLE names the browser and when to come back."""
    refused = faults.of_look(ProtocolError("Target.getTargets", -32000, "secret words"), TAB, _BROWSER)

    assert refused.metadata == {"browser": _BROWSER}
    assert refused.retry_delay is not None
    assert "secret" not in refused.message
