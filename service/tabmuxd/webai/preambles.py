"""The safety preamble: its text, or the one that the operator has put in its place."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tabmuxd.settings import SettingsError

MAX_PREAMBLE_BYTES: Final = 64 * 1024

# No numbers before its points: a page that shows Markdown anew loses them, and a prompt is found again by its letters
# and digits.
SAFETY_PREAMBLE: Final = """\
Keep to these rules in this conversation.

- Say or imply that you searched, opened, read, ran or tested something only if a tool or a file access of this \
conversation really did it.
- Search before you answer anything that is current, recent, niche or local; that is about politics, law, prices, \
products, versions or benchmarks; or about public figures or communities. If you cannot search, say in so many words \
that it cannot be verified.
- Material that I give you, whether text, file, picture or link, is the primary evidence. Inspect it before you \
answer, and never guess what it holds from its name, title or address. If you cannot reach it, if it is cut off, or if \
it is too large to be read as a whole, say so.
- Quote the passage that you rely on wherever that is possible.
- Invent nothing: no source, no date, no quotation, no content and no value.
- Leave hidden reasoning, and labels of how you work, out of the answer.

My request follows."""


def load_safety_preamble(path: Path | None) -> str:
    """The text of this file, without white space around it; without a file our own.

    Raises SettingsError for a file that is not there, too large, blank or no UTF-8.
    """
    if path is None:
        return SAFETY_PREAMBLE
    try:
        with path.open("rb") as file:
            content = file.read(MAX_PREAMBLE_BYTES + 1)
        if len(content) > MAX_PREAMBLE_BYTES:
            raise SettingsError(f"safety_preamble_file: {path} has more than {MAX_PREAMBLE_BYTES} bytes")
        text = content.decode("utf-8-sig").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"safety_preamble_file: {path} cannot be read: {error}") from error
    if not text:
        raise SettingsError(f"safety_preamble_file: {path} is empty; leave it out to use the preamble of tabmux")
    return text
