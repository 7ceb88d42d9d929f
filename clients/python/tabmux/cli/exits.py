"""Exit codes of the command."""

from enum import IntEnum


class Exit(IntEnum):
    """How the command ended; the help lists them."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3
    TURN_FAILED = 4
    INTERRUPTED = 130


MEANINGS = {
    Exit.OK: "done",
    Exit.REFUSED: "the service answered with an error",
    Exit.USAGE: "the command line, an address or a name cannot be used as it is",
    Exit.UNREACHABLE: "the server was not reached",
    Exit.TURN_FAILED: "the turn failed or was cancelled; the answer there was is printed",
    Exit.INTERRUPTED: "interrupted; a turn goes on without the command",
}
