"""Which addresses a tab may be sent to, and the marker address that proves a target is ours."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.resources.names import id_of

BLANK = "about:blank"
_SCHEMES = frozenset({"http", "https", "data"})
# What a page of the web makes for itself, beside where a tab may be sent.
_ADOPTED_SCHEMES = _SCHEMES | {"blob"}
_MARKER = f"{BLANK}#tabmux-"
MAX_ADDRESS_BYTES = 8192
_BLANK_CHARACTER = 0x20
_DELETE = 0x7F


def check_address(uri: str, field: str = "uri") -> str:
    """`uri` if a tab may go there, `about:blank` for an empty one.

    Allowed are http and https with a host, data, and about:blank. Raises URI_NOT_ALLOWED, with the rule broken, for all
    else, such as file, chrome, devtools, javascript and view-source.
    """
    if uri in ("", BLANK):
        return BLANK
    rule = _broken_rule(uri)
    if rule is None:
        return uri
    raise refuse(
        Reason.URI_NOT_ALLOWED,
        f"{field}: this address is not allowed ({rule}); nothing was opened. Use an http or https address.",
        field=field,
        host=_host(uri),
        rule=rule,
    )


def check_adopted(uri: str, field: str) -> None:
    """Raise URI_NOT_ALLOWED, without the address, unless a page that is at `uri` may become a tab."""
    scheme = uri.partition(":")[0].lower()
    if uri and scheme not in _ADOPTED_SCHEMES and uri.partition("#")[0] != BLANK:
        raise refuse(
            Reason.URI_NOT_ALLOWED,
            f"{field}: a page at such an address cannot be a tab; it stays as it is, somebody else's.",
            field=field,
            host="",
            rule="scheme-http-https-data",
        )


def _broken_rule(uri: str) -> str | None:
    if uri != uri.strip() or any(ord(character) <= _BLANK_CHARACTER or ord(character) == _DELETE for character in uri):
        return "no-control-characters"
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return "well-formed"
    if parts.scheme.lower() not in _SCHEMES:
        return "scheme-http-https-data"
    if parts.scheme.lower() != "data" and (not parts.hostname or "\\" in uri.partition("?")[0]):
        return "well-formed"
    return None


def _host(uri: str) -> str:
    try:
        return urlsplit(uri).hostname or ""
    except ValueError:
        return ""


def is_title_of_none(title: str, uri: str) -> bool:
    """Whether `title` is what Chrome makes of the address where a document has none: without scheme, partly decoded."""
    shown = unquote(uri).rstrip("/")
    return unquote(title).rstrip("/") in (shown, shown.partition("://")[2])


def marker_address(tab: str, marker: str) -> str:
    """Address that the target of an OPENING tab starts on: proof that it is ours."""
    return f"{_MARKER}{id_of(tab)}-{marker}"


def marked_tab(uri: str) -> str | None:
    """Id of the tab that a marker address names; None for any other address."""
    return uri.removeprefix(_MARKER).partition("-")[0] if is_marker(uri) else None


def is_marker(uri: str) -> bool:
    """Whether this has the form of a marker address, whoever made it."""
    return uri.startswith(_MARKER)
