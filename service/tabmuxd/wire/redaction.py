"""Addresses and failures as they may be shown: values that look like secrets are replaced."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final
from urllib.parse import quote, unquote

from tabmuxd.resources.errors import Failure

REDACTED: Final = "redacted"

# Words of a key, such as `access` and `token` in `access_token`, that make its value a secret.
_SECRET_WORDS: Final = frozenset(
    {
        "auth", "authorization", "bearer", "code", "cookie", "credential", "credentials", "jwt", "key", "otp", "pass",
        "passcode", "passphrase", "pwd", "sess", "session", "sid", "sig", "ticket",
    }
)  # fmt: skip
_SECRET_BEGINNINGS: Final = ("saml",)
_SECRET_ENDINGS: Final = (
    "apikey", "authcode", "cookie", "passwd", "password", "secret", "sessid", "sessionid", "signature", "token",
)  # fmt: skip
# `state` is a secret of a sign-in only: it is a plain filter in many other addresses.
_SIGN_IN_WORDS: Final = frozenset({"client", "nonce", "redirect", "scope", "relaystate"})
_STATE_KEYS: Final = frozenset({"state", "relaystate"})

_SECRET_SHAPE: Final = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"  # a JSON Web Token
    r"|bearer[ +]\S+"
    r"|(?:sk|pk|rk|gh[oprsu]|xox[abprs]|github_pat)[-_][\w-]{16,}",  # keys of well-known makers
    re.IGNORECASE,
)
_PAIR: Final = re.compile(r"[?&;#]([^=&;?#]*)=")
_SECRET_END: Final = re.compile(r"[&#]")
_VALUE_END: Final = re.compile(r"[&;?#]")
_PASSWORD: Final = re.compile(r"^([a-zA-Z][\w+.-]*://[^/?#@]*?:)[^/?#]*(?=@)")
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MAX_DEPTH: Final = 3


def redact_uri(uri: str) -> str:
    """`uri` with each value that looks like a secret replaced by `redacted`; everything else stays byte for byte.

    Secret are a password before the host; in query, fragment and path parameters the values of keys such as `code`,
    `token`, `key`, `session`, `signature` or `SAMLResponse`, and of `state` beside other keys of a sign-in; values of
    the shape of a JSON Web Token or a maker's key; and all this in an address inside a value. To redact twice changes
    nothing.
    """
    if "=" not in uri and "@" not in uri:  # as in nearly all titles: no value, and no password
        return uri
    return _redacted(_PASSWORD.sub(rf"\g<1>{REDACTED}", uri), depth=0)


def shown_failure(failure: Failure) -> Failure:
    """`failure` with its address, if it has one, as `redact_uri` shows it, in metadata and message alike."""
    uri = failure.metadata.get("uri", "")
    shown = redact_uri(uri)
    if shown == uri:
        return failure
    return replace(failure, message=failure.message.replace(uri, shown), metadata={**failure.metadata, "uri": shown})


def _redacted(text: str, depth: int) -> str:
    keys = [_words(match[1]) for match in _PAIR.finditer(text)]
    sign_in = any(_is_secret(words) or not _SIGN_IN_WORDS.isdisjoint(words) for words in keys)
    pieces: list[str] = []
    position = 0
    while match := _PAIR.search(text, position):
        pieces.append(text[position : match.end()])
        words = _words(match[1])
        secret = _is_secret(words) or (sign_in and not _STATE_KEYS.isdisjoint(words))
        # A secret may itself hold `;` or `?`, so it goes on to the next `&`.
        end = (_SECRET_END if secret else _VALUE_END).search(text, match.end())
        position = end.start() if end else len(text)
        value = text[match.end() : position]
        pieces.append(REDACTED if secret and value else _value(value, depth))
    pieces.append(text[position:])
    return "".join(pieces)


def _value(value: str, depth: int) -> str:
    """One value under a harmless key: replaced if it has the shape of a secret, redacted inside if it is an address."""
    plain = unquote(value)
    if _SECRET_SHAPE.search(plain):
        return REDACTED
    if plain == value or "=" not in plain:
        return value
    if depth == _MAX_DEPTH:
        return REDACTED
    shown = _redacted(_PASSWORD.sub(rf"\g<1>{REDACTED}", plain), depth + 1)
    return value if shown == plain else quote(shown, safe="")


def _words(key: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(unquote(key)))


def _is_secret(words: frozenset[str]) -> bool:
    return any(
        word in _SECRET_WORDS or word.startswith(_SECRET_BEGINNINGS) or word.endswith(_SECRET_ENDINGS) for word in words
    )
