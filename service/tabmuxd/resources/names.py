"""Resource names and ids, and the rules for what clients may choose."""

from __future__ import annotations

import re
from collections.abc import Callable

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32, lower case
ID_LENGTH = 10

_ID = re.compile(r"[0-9a-hjkmnp-tv-z]{10}")
_BROWSER_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_SESSION_ID = re.compile(r"[a-z0-9-]{1,63}")
_TAB = re.compile(r"browsers/(-|[a-z0-9-]{1,63})/tabs/([0-9a-hjkmnp-tv-z]{10})")
_BROWSER = re.compile(r"browsers/([a-z0-9-]{1,63})")
_SESSION = re.compile(r"sessions/([a-z0-9-]{1,63})")
_TURN = re.compile(r"sessions/([a-z0-9-]{1,63})/turns/([0-9a-hjkmnp-tv-z]{10})")
_ARTIFACT = re.compile(r"artifacts/[0-9a-hjkmnp-tv-z]{10}")
_GROUP = re.compile(r"[a-z0-9_.-]{0,63}")
_REQUEST_KEY = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_PRINCIPAL = re.compile(r"[A-Za-z0-9._-]{1,63}(?:/[a-z0-9-]{1,63})?")
_LOCAL_NAME = re.compile(r"[a-z0-9-]{1,63}")

RandomBytes = Callable[[int], bytes]


def new_id(random: RandomBytes) -> str:
    """Ten random characters of Crockford's base 32; `random(n)` gives n bytes, such as `secrets.token_bytes`."""
    return "".join(_ALPHABET[byte & 31] for byte in random(ID_LENGTH))


def browser_name(browser_id: str) -> str:
    """Name of the browser with this id."""
    return f"browsers/{browser_id}"


def tab_name(browser: str, tab_id: str) -> str:
    """Name of the tab with this id in the browser of this name."""
    return f"{browser}/tabs/{tab_id}"


def session_name(session_id: str) -> str:
    """Name of the session with this id."""
    return f"sessions/{session_id}"


def turn_name(session: str, turn_id: str) -> str:
    """Name of the turn with this id in the session of this name."""
    return f"{session}/turns/{turn_id}"


def lease_name(lease_id: str) -> str:
    """Name of the lease with this id."""
    return f"leases/{lease_id}"


def artifact_name(artifact_id: str) -> str:
    """Name of the file with this id."""
    return f"artifacts/{artifact_id}"


def browser_of(tab: str) -> str:
    """Name of the browser in which the tab of this name is."""
    return tab.partition("/tabs/")[0]


def session_of(turn: str) -> str:
    """Name of the session to which the turn of this name belongs."""
    return turn.partition("/turns/")[0]


def id_of(name: str) -> str:
    """Last part of a resource name."""
    return name.rpartition("/")[2]


def is_browser_id(text: str) -> bool:
    """Whether a browser may be configured under this id."""
    return _BROWSER_ID.fullmatch(text) is not None


def is_browser_name(text: str) -> bool:
    """Whether this has the form `browsers/{browser}`."""
    return _BROWSER.fullmatch(text) is not None


def is_tab_name(text: str) -> bool:
    """Whether this has the form `browsers/{browser}/tabs/{tab}`, where `browsers/-` is allowed."""
    return _TAB.fullmatch(text) is not None


def is_session_name(text: str) -> bool:
    """Whether this has the form `sessions/{session}`."""
    return _SESSION.fullmatch(text) is not None


def is_turn_name(text: str) -> bool:
    """Whether this has the form `sessions/{session}/turns/{turn}`."""
    return _TURN.fullmatch(text) is not None


def is_artifact_name(text: str) -> bool:
    """Whether this has the form `artifacts/{artifact}`."""
    return _ARTIFACT.fullmatch(text) is not None


def is_session_id(text: str) -> bool:
    """Whether a caller may give a session this id."""
    return _SESSION_ID.fullmatch(text) is not None


def is_group(text: str) -> bool:
    """Whether this is a group, or empty for none."""
    return _GROUP.fullmatch(text) is not None


def is_request_key(text: str) -> bool:
    """Whether this may be the `request_id` of `SendPrompt`."""
    return _REQUEST_KEY.fullmatch(text) is not None


def is_uuid(text: str) -> bool:
    """Whether this may be the `request_id` of any other method."""
    return _UUID.fullmatch(text) is not None


def is_principal(text: str) -> bool:
    """Whether a tab can be shared with a principal of this name."""
    return _PRINCIPAL.fullmatch(text) is not None


def is_local_name(text: str) -> bool:
    """Whether a program on the socket may give itself this name."""
    return _LOCAL_NAME.fullmatch(text) is not None
