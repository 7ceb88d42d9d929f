"""What a command says about an error: what happened, whether anything was done, what to do next."""

from collections.abc import Mapping
from types import MappingProxyType

from tabmux.cli.advice import ADVICE, ADVICE_BY_CODE
from tabmux.cli.exits import Exit
from tabmux.cli.output import Output, json_line
from tabmux.cli.text import harmless_line
from tabmux.errors import AmbiguousNameError, PlaceError, TabmuxError, TurnFailed

_TOUCHED = {
    "no": "nothing was done on the page",
    "yes": "the page was acted on",
    "unknown": "it is not known whether the page was acted on",
}
_NOTHING = "nothing was done"
_UNKNOWN = "it is not known whether it was done"
# The step was done, and its result is what failed.
_DONE_REASONS = frozenset({"SCRIPT_FAILED", "RESULT_NOT_SERIALIZABLE", "RESULT_TOO_LARGE"})
_UNKNOWN_REASONS = frozenset({"OUTCOME_UNKNOWN", "LEASE_LOST"})
# Made by gRPC itself, possibly after the server began.
_UNKNOWN_CODES = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED"})


class UnreachableError(TabmuxError):
    """No server was reached when the command began; nothing was sent."""


class RefusedError(TabmuxError):
    """The command itself refused to go on, before anything was sent; `advice` says what to do."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


_ADVICE_BY_CLASS: Mapping[type[TabmuxError], str] = MappingProxyType(
    {
        AmbiguousNameError: "give more of the id",
        PlaceError: "correct it and try again",
        UnreachableError: "start the server with `tabmuxd`, or name its address with --address or TABMUX_ADDRESS",
    },
)


def exit_of(error: TabmuxError) -> Exit:
    """Exit code for an error."""
    match error:
        case TurnFailed():
            return Exit.TURN_FAILED
        case PlaceError() | AmbiguousNameError():
            return Exit.USAGE
        case UnreachableError():
            return Exit.UNREACHABLE
        case _ if error.code == "UNAVAILABLE" and not error.reason:
            return Exit.UNREACHABLE
        case _:
            return Exit.REFUSED


def done(error: TabmuxError) -> str:
    """Whether anything was done, as far as the error tells."""
    match error:
        case TurnFailed():
            return _done_by_turn(error)
        case PlaceError() | AmbiguousNameError() | UnreachableError() | RefusedError():
            return _NOTHING
        case _:
            return _done_by_call(error)


def next_step(error: TabmuxError) -> str:
    """What to do next; empty if there is nothing to say."""
    if isinstance(error, RefusedError):
        return error.advice
    advice = _ADVICE_BY_CLASS.get(type(error)) or ADVICE.get(error.reason) or ADVICE_BY_CODE.get(error.code, "")
    if isinstance(error, TurnFailed) and not error.reason:
        advice = "send another prompt, if that is wanted"
    return advice if error.retry_delay is None else f"{advice} (after {error.retry_delay.total_seconds():g} s)"


def lines_of(error: TabmuxError) -> list[str]:
    """What people read about an error."""
    details = ", ".join(f"{key}={value}" for key, value in sorted(error.metadata.items()))
    lines = [f"tabmux: {error}" + (f" [{details}]" if details else ""), f"  done: {done(error)}"]
    if advice := next_step(error):
        lines.append(f"  next: {advice}")
    return [harmless_line(line) for line in lines]


def json_of_error(error: TabmuxError) -> str:
    """What programs read about an error, on one line."""
    told: dict[str, object] = {
        "reason": error.reason,
        "code": error.code,
        "message": error.message,
        "metadata": dict(error.metadata),
        "done": done(error),
        "next": next_step(error),
    }
    if error.retry_delay is not None:
        told["retryDelay"] = f"{error.retry_delay.total_seconds():g}s"
    if isinstance(error, AmbiguousNameError):
        told["candidates"] = list(error.candidates)
    return json_line({"error": told})


def tell(error: TabmuxError, output: Output) -> None:
    """Print an error to standard error."""
    for line in [json_of_error(error)] if output.as_json else lines_of(error):
        output.note(line)


def _done_by_call(error: TabmuxError) -> str:
    if touched := _TOUCHED.get(error.metadata.get("page_touched", "")):
        return touched
    if error.reason in _DONE_REASONS:
        return _TOUCHED["yes"]
    unknown = error.reason in _UNKNOWN_REASONS or (not error.reason and error.code in _UNKNOWN_CODES)
    return _UNKNOWN if unknown else _NOTHING


def _done_by_turn(error: TurnFailed) -> str:
    if error.turn.HasField("submit_time"):
        return "the prompt was submitted; what there is of the answer is kept"
    if error.metadata.get("page_touched") == "no":
        return "the prompt was not submitted"
    if error.reason == "SUBMIT_UNCONFIRMED" or error.metadata.get("page_touched") == "unknown":
        return "it is not known whether the prompt was submitted; it was not submitted again"
    return "the provider was not seen to show the prompt"
