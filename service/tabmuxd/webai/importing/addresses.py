"""Whether an address that another tool kept is one of a provider, judged on the text itself.

No parser sees it before: parsers drop tabs, turn backslashes, and differ in what they take for a host.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from tabmuxd.tabs.addresses import MAX_ADDRESS_BYTES

_PRINTABLE: Final = re.compile(r"[ -~]*")
_END: Final = re.compile(r"[?#]")
_SCHEME: Final = "https://"


def trusted_part(address: str, hosts: Collection[str]) -> str | None:
    """The address without query and fragment; None unless its host is, letter by letter, one of `hosts`.

    One of more than 8 KiB is none.
    """
    if len(address) > MAX_ADDRESS_BYTES or _PRINTABLE.fullmatch(address) is None or "\\" in address:
        return None
    kept = _END.split(address, maxsplit=1)[0]
    if "%" in kept or ".." in kept or not kept.startswith(_SCHEME):
        return None
    host = kept.removeprefix(_SCHEME).partition("/")[0]
    return kept if host in hosts else None
