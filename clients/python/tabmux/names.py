"""Resource names, ids and keys: made, taken apart and checked here, so that nobody else cuts strings."""

import re
import secrets
from uuid import uuid4

_ID_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32 in lower case, as the server's ids
_ID_LENGTH = 10
_SESSION_ID = re.compile(r"[a-z0-9-]{1,63}")
_REQUEST_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


def id_of(name: str) -> str:
    """Id of a resource: `k3v9x2m7qd` of `browsers/main/tabs/k3v9x2m7qd`."""
    return name.rpartition("/")[2]


def session_of(turn: str) -> str:
    """Name of the session that a turn is of."""
    return turn.partition("/turns/")[0]


def browser_of(tab: str) -> str:
    """Name of the browser that a tab is of."""
    return tab.partition("/tabs/")[0]


def session_name(given: str) -> str:
    """Name of a session, from its name or its id."""
    return given if given.startswith("sessions/") else f"sessions/{given}"


def artifact_name(given: str) -> str:
    """Name of an artifact, from its name or its id."""
    return given if given.startswith("artifacts/") else f"artifacts/{given}"


def browser_name(given: str) -> str:
    """Name of a browser, from its name or its id; empty stays empty."""
    return given if not given or given.startswith("browsers/") else f"browsers/{given}"


def new_request_id() -> str:
    """Id for a request, never used before."""
    return str(uuid4())


def new_session_id() -> str:
    """Id for a session, never used before: so that making it is safe to repeat."""
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))


def checked_session_id(given: str) -> str:
    """`given`, if a session can have that id; else raises `ValueError`."""
    if not _SESSION_ID.fullmatch(given):
        raise ValueError(f"{given!r} cannot be the id of a session: 1 to 63 of a-z, 0-9 and -")
    return given


def checked_request_id(given: str) -> str:
    """`given`, if a prompt can have that key; else raises `ValueError`."""
    if not _REQUEST_ID.fullmatch(given):
        raise ValueError(f"{given!r} cannot be the key of a prompt: 1 to 64 of A-Z, a-z, 0-9, -, _, . and :")
    return given
