"""What a fault of the DevTools connection means for a call on a tab."""

from __future__ import annotations

from tabmuxd.cdp.errors import CallTimeout, CdpError, ConnectionLost, TargetGone
from tabmuxd.resources.errors import PageTouched, Reason, Refused, refuse
from tabmuxd.resources.outcomes import with_outcome


def unreachable(browser: str) -> Refused:
    """BROWSER_UNREACHABLE: nothing was handed over."""
    return refuse(
        Reason.BROWSER_UNREACHABLE,
        f"{browser} does not answer; nothing was done. Repeat the call later.",
        retry_after=2,
        browser=browser,
    )


def close_owed(browser: str, tab: str) -> Refused:
    """BROWSER_UNREACHABLE: the close was not seen to be done, and is tried again by the service itself."""
    return refuse(
        Reason.BROWSER_UNREACHABLE,
        f"{browser} did not show that {tab} closed. The tab stays as it is, and its close is tried again by itself.",
        retry_after=2,
        browser=browser,
    )


def of_look(error: CdpError, tab: str, browser: str) -> Refused:
    """The refusal for a command that changes nothing in the page."""
    match error:
        case TargetGone():
            return _no_page(tab)
        case CallTimeout():
            return unresponsive(tab)
        case _:
            return unreachable(browser)


def of_step(error: CdpError, tab: str, browser: str) -> Refused:
    """The refusal for a command that may have changed the page: OUTCOME_UNKNOWN once it was handed over."""
    handed_over = isinstance(error, CallTimeout | ConnectionLost | TargetGone) and error.handed_over
    if not handed_over:
        return with_outcome(of_look(error, tab, browser), "no")
    cause = "connection_lost"
    if isinstance(error, CallTimeout):
        cause = "timeout"
    elif isinstance(error, TargetGone):
        cause = "tab_crashed" if error.crashed else "tab_gone"
    return lost_result(tab, cause)


def lost_result(tab: str, cause: str) -> Refused:
    """OUTCOME_UNKNOWN: the step was handed over and its result was lost; `cause` as in `ErrorReason`."""
    refused = refuse(
        Reason.OUTCOME_UNKNOWN,
        f"The step was handed to the page of {tab}, and its result was lost ({cause}). Look at the page first.",
        tab=tab,
        cause=cause,
    )
    return with_outcome(refused, "unknown")


def touched(refused: Refused) -> PageTouched:
    """What a refusal says of the page; `no` where it says nothing."""
    match refused.metadata.get("page_touched"):
        case "yes":
            return "yes"
        case "unknown":
            return "unknown"
        case _:
            return "no"


def _no_page(tab: str) -> Refused:
    return refuse(
        Reason.TAB_GONE,
        f"{tab} lost its page during the call. Recover it, or open another tab.",
        tab=tab,
        state="LOST",
        generation="",
    )


def unresponsive(tab: str) -> Refused:
    """TAB_UNRESPONSIVE: the target is there, and its page does not answer."""
    return refuse(Reason.TAB_UNRESPONSIVE, f"The page of {tab} does not answer. Recover the tab, or close it.", tab=tab)
