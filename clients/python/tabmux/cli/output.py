"""Where a command prints: results to standard output, all else to standard error."""

import io
import json
import re
import shutil
import sys
from collections.abc import Mapping, Sequence

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from tabmux.cli.text import table

# JSON leaves these as they are, and terminals obey some of them. They stand inside strings only.
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def json_line(value: Mapping[str, object]) -> str:
    """`value` as JSON on one line, with nothing in it that a terminal would obey."""
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def json_of(message: Message) -> dict[str, object]:
    """`message` in proto's JSON mapping, with the fields that have their default too."""
    return MessageToDict(message, always_print_fields_with_no_presence=True)


class Output:
    """Standard output and error of a command; `as_json` tells whether results are JSON lines."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.terminal = sys.stdout.isatty()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # no encoding of a terminal may end a command

    def text(self, text: str) -> None:
        """Print `text` as it is, at once."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def line(self, text: str) -> None:
        """Print a line of a result."""
        self.text(text + "\n")

    def message(self, message: Message) -> None:
        """Print a message as a JSON line."""
        self.line(json_line(json_of(message)))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table, cut to the terminal if it is printed to one."""
        width = shutil.get_terminal_size().columns if self.terminal else None
        for line in table(head, rows, width):
            self.line(line)

    def note(self, text: str) -> None:
        """Print something that is not a result."""
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
