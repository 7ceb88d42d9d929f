"""Addresses and failures as they may be shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Failure
from tabmuxd.wire import redact_uri, shown_failure

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N"

UNCHANGED = [
    "",
    "about:blank",
    "http://127.0.0.1:8080/",
    "https://example.com/a/b;v=2?q=tab+mux&page=2#top",
    "https://example.com/?state=open&sort=asc",
    "https://example.com/?keyword=a&monkey=b&encode=c&author=d",
    "https://example.com/?next=https%3A%2F%2Fexample.com%2F%3Fq%3D1",
    "https://user@example.com/?q=a@b",
    "https://example.com/?token=",
    "https://example.com/#/chat/abc?tab=1",
    "https://example.com/?token",
]

REDACTED = [
    ("https://e.com/?code=SECRET", "https://e.com/?code=redacted"),
    ("https://e.com/?q=1&token=SECRET&p=2#x", "https://e.com/?q=1&token=redacted&p=2#x"),
    ("https://e.com/?access_token=SECRET", "https://e.com/?access_token=redacted"),
    ("https://e.com/?accessToken=SECRET", "https://e.com/?accessToken=redacted"),
    ("https://e.com/?ACCESS_TOKEN=SECRET", "https://e.com/?ACCESS_TOKEN=redacted"),
    ("https://e.com/?access%5Ftoken=SECRET", "https://e.com/?access%5Ftoken=redacted"),
    ("https://e.com/?api_key=SECRET&apikey=SECRET", "https://e.com/?api_key=redacted&apikey=redacted"),
    ("https://e.com/?key=SECRET;SECRET?SECRET", "https://e.com/?key=redacted"),
    ("https://e.com/?password=SECRET", "https://e.com/?password=redacted"),
    ("https://e.com/?client_secret=SECRET", "https://e.com/?client_secret=redacted"),
    ("https://e.com/?session_id=SECRET&PHPSESSID=SECRET", "https://e.com/?session_id=redacted&PHPSESSID=redacted"),
    ("https://e.com/a;jsessionid=SECRET", "https://e.com/a;jsessionid=redacted"),
    ("https://e.com/?X-Amz-Signature=SECRET", "https://e.com/?X-Amz-Signature=redacted"),
    ("https://e.com/?SAMLResponse=SECRET", "https://e.com/?SAMLResponse=redacted"),
    ("https://e.com/?SAMLRequest=SECRET&RelayState=SECRET", "https://e.com/?SAMLRequest=redacted&RelayState=redacted"),
    ("https://e.com/?state=SECRET&code=SECRET", "https://e.com/?state=redacted&code=redacted"),
    ("https://e.com/?client_id=a&state=SECRET", "https://e.com/?client_id=a&state=redacted"),
    ("https://e.com/#access_token=SECRET&expires_in=5", "https://e.com/#access_token=redacted&expires_in=5"),
    ("https://e.com/#/done?id_token=SECRET", "https://e.com/#/done?id_token=redacted"),
    ("https://user:SECRET@e.com/", "https://user:redacted@e.com/"),
    ("https://user:SEC@RET@e.com/", "https://user:redacted@e.com/"),
    (f"https://e.com/?q={JWT}", "https://e.com/?q=redacted"),
    ("https://e.com/?h=Bearer%20SECRET", "https://e.com/?h=redacted"),
    ("https://e.com/?q=sk-abcdefghijklmnop1234", "https://e.com/?q=redacted"),
    (
        "https://e.com/?next=https%3A%2F%2Fe.com%2F%3Ftoken%3DSECRET%26p%3D1",
        "https://e.com/?next=https%3A%2F%2Fe.com%2F%3Ftoken%3Dredacted%26p%3D1",
    ),
    ("https://e.com/?next=https://e.com/?token=SECRET", "https://e.com/?next=https://e.com/?token=redacted"),
]


@pytest.mark.parametrize("uri", UNCHANGED)
def test_unchanged(uri: str) -> None:
    """An address without secrets is shown byte for byte."""
    assert redact_uri(uri) == uri


@pytest.mark.parametrize(("uri", "shown"), REDACTED)
def test_redacted(uri: str, shown: str) -> None:
    """A value that looks like a secret is shown as `redacted`, and nothing else changes (O-150)."""
    assert redact_uri(uri) == shown


@given(st.text(alphabet="htps:/?#&;=@%24Fabctokenstdr.-_ ", max_size=60))
def test_twice(uri: str) -> None:
    """To redact an address twice changes nothing."""
    assert redact_uri(redact_uri(uri)) == redact_uri(uri)


@given(
    st.lists(st.tuples(st.sampled_from(["q", "page", "state", "tab.x"]), st.text("abc1", max_size=3)), max_size=4),
    st.sampled_from(["token", "code", "api-key", "PASSWORD", "sessionId", "sig"]),
    st.sampled_from("?#;"),
    st.text("ABC;?/", min_size=1, max_size=8),
)
def test_planted(pairs: list[tuple[str, str]], key: str, start: str, tail: str) -> None:
    """Wherever a secret stands among other values, it is not shown (O-150)."""
    pieces = [f"{name}={value}" for name, value in pairs]
    pieces.insert(len(pieces) // 2, f"{key}=PLANTED{tail}")
    assert "PLANTED" not in redact_uri(f"https://e.com/a{start}" + "&".join(pieces))


def test_failure() -> None:
    """A failure shows its address redacted, in message and metadata."""
    uri = "https://e.com/?token=SECRET"
    failure = Failure("NAVIGATION_FAILED", f"{uri} did not load", {"uri": uri, "net_error": "x"})
    assert shown_failure(failure) == Failure(
        "NAVIGATION_FAILED",
        "https://e.com/?token=redacted did not load",
        {"uri": "https://e.com/?token=redacted", "net_error": "x"},
    )
