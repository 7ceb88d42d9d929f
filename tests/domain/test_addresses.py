from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Refused
from tabmuxd.tabs.addresses import BLANK, check_address, check_adopted, is_marker, marker_address

_SCHEME = "scheme-http-https-data"
_CONTROL = "no-control-characters"
_FORM = "well-formed"


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.com",
        "http://127.0.0.1:8000/a?b=c#d",
        "HTTPS://EXAMPLE.com/",
        "http://[::1]:80/",
        "https://ü.example/%0a",
        "data:text/html,<p>hi</p>",
        "DATA:,x",
        "https://example.com/?next=javascript:alert(1)",
        "https://example.com/?path=a\\b",
    ],
)
def test_allowed(uri: str) -> None:
    """An http, https or data address is given back as it came."""
    assert check_address(uri) == uri


@pytest.mark.parametrize("uri", ["", "about:blank"])
def test_blank(uri: str) -> None:
    """An empty address is a blank page."""
    assert check_address(uri) == BLANK


@pytest.mark.parametrize(
    ("uri", "rule"),
    [
        ("javascript:alert(1)", _SCHEME),
        ("JavaScript:alert(1)", _SCHEME),
        ("file:///etc/passwd", _SCHEME),
        ("FILE:///etc/passwd", _SCHEME),
        ("chrome://settings", _SCHEME),
        ("chrome-extension://abc/x.html", _SCHEME),
        ("chrome-untrusted://x", _SCHEME),
        ("devtools://devtools/bundled/inspector.html", _SCHEME),
        ("view-source:https://example.com", _SCHEME),
        ("about:config", _SCHEME),
        ("about:blank#tabmux-0123456789-ff", _SCHEME),
        ("blob:https://example.com/1", _SCHEME),
        ("filesystem:https://example.com/temporary/x", _SCHEME),
        ("ftp://example.com/", _SCHEME),
        ("ws://example.com/", _SCHEME),
        ("intent://x", _SCHEME),
        ("example.com", _SCHEME),
        ("//example.com/", _SCHEME),
        ("/etc/passwd", _SCHEME),
        ("\ufeffjavascript:alert(1)", _SCHEME),
        ("java\tscript:alert(1)", _CONTROL),
        ("java\nscript:alert(1)", _CONTROL),
        ("java\rscript:alert(1)", _CONTROL),
        ("java\x00script:alert(1)", _CONTROL),
        (" javascript:alert(1)", _CONTROL),
        ("\x01javascript:alert(1)", _CONTROL),
        ("\u00a0https://example.com", _CONTROL),
        ("https://example.com/\n", _CONTROL),
        ("https://example.com/\x7f", _CONTROL),
        ("https://exa mple.com/", _CONTROL),
        ("https:", _FORM),
        ("https://", _FORM),
        ("https:///example.com", _FORM),
        ("https:example.com", _FORM),
        ("https:/example.com", _FORM),
        ("https:\\\\example.com", _FORM),
        ("https://example.com\\@evil.example/", _FORM),
        ("https://example.com/a\\b", _FORM),
        ("https://:443/", _FORM),
        ("https://user@/", _FORM),
        ("https://example.com:99999/", _FORM),
        ("https://example.com:-1/", _FORM),
        ("https://example.com:8a/", _FORM),
        ("https://example.com:\u0663/", _FORM),
        ("https://[::1/", _FORM),
        ("https://exa\u2100mple.com/", _FORM),
    ],
)
def test_refused(uri: str, rule: str) -> None:
    """Every other scheme or form is URI_NOT_ALLOWED with its rule, whatever tricks are played with it (SEC-04)."""
    with pytest.raises(Refused) as raised:
        check_address(uri, "start_uri")

    assert raised.value.reason == "URI_NOT_ALLOWED"
    assert (raised.value.metadata["field"], raised.value.metadata["rule"]) == ("start_uri", rule)


def test_refusal_is_silent() -> None:
    """The refusal tells the host and neither user, password, path nor query (SEC-03)."""
    with pytest.raises(Refused) as raised:
        check_address("ftp://user:pa55@example.com/s3cret?token=t0p")

    refused = raised.value
    assert refused.metadata == {"field": "uri", "host": "example.com", "rule": _SCHEME}
    assert not [word for word in ("pa55", "s3cret", "t0p") if word in refused.message]


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.com/a", "http://127.0.0.1/", "data:text/html,x", "blob:https://example.com/1", "about:blank",
        "about:blank#x", "",
    ],
)  # fmt: skip
def test_adopted(uri: str) -> None:
    """A page of the web, or a blank one, may be adopted (O-33)."""
    check_adopted(uri, "front")


@pytest.mark.parametrize(
    "uri",
    [
        "chrome://newtab/", "chrome-error://chromewebdata/", "chrome-extension://abc/x.html", "file:///etc/passwd",
        "devtools://devtools/bundled/inspector.html", "FILE:///etc/passwd", "view-source:https://example.com/",
        "javascript:alert(1)", "about:srcdoc",
    ],
)  # fmt: skip
def test_not_adopted(uri: str) -> None:
    """Pages of the browser itself and of the file system are not adopted, and their address is not told (SEC-04)."""
    with pytest.raises(Refused) as caught:
        check_adopted(uri, "front")
    assert caught.value.metadata == {"field": "front", "host": "", "rule": "scheme-http-https-data"}
    assert uri not in caught.value.message


@given(st.text(max_size=60))
def test_anything(text: str) -> None:
    """Whatever is asked, a tab goes to http, https, data or a blank page (SEC-04)."""
    try:
        address = check_address(text)
    except Refused as refused:
        assert refused.reason == "URI_NOT_ALLOWED"  # noqa: PT017 - either is right
    else:
        assert address == BLANK or address.lower().startswith(("http://", "https://", "data:"))


@given(
    scheme=st.sampled_from(["javascript", "file", "chrome", "devtools", "view-source"]),
    inserted=st.lists(st.tuples(st.integers(0, 12), st.sampled_from("\t\n\r\x00 \x0b\x1f\u200b\\/")), max_size=3),
    upper=st.booleans(),
)
def test_disguised(scheme: str, inserted: list[tuple[int, str]], *, upper: bool) -> None:
    """No disguise of a scheme that is refused lets it pass (SEC-04)."""
    uri = f"{scheme.upper() if upper else scheme}:x"
    for place, character in inserted:
        uri = uri[:place] + character + uri[place:]

    with pytest.raises(Refused):
        check_address(uri)


def test_marker() -> None:
    """The marker address holds id and random value; no client can send a tab to one (O-19)."""
    address = marker_address("browsers/main/tabs/0123456789", "ff00")

    assert address == "about:blank#tabmux-0123456789-ff00"
    assert is_marker(address)
    assert not is_marker("about:blank")
    assert not is_marker("https://example.com/about:blank#tabmux-0123456789-ff00")
