"""The command `tabmux`: tables for people, one JSON object a line with `--json`."""

import asyncio
import os
import sys
from collections.abc import Sequence

from tabmux.cli.arguments import parse
from tabmux.cli.exits import Exit


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code. Usage errors end the process, as argparse does it, with code 2."""
    # grpcio 1.85.3 writes what it notices about connections to stderr, between our own lines.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        parsed = parse(arguments)
        from tabmux.cli.run import run  # noqa: PLC0415 - `tabmux --help` need not load gRPC

        return asyncio.run(run(parsed))
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone. Python flushes once more at its end, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.REFUSED
    except Exception as error:  # noqa: BLE001 - the top: people read a sentence, not a traceback
        sys.stderr.write(f"tabmux: an error of the command itself: {type(error).__name__}: {error}\n")
        return Exit.REFUSED
