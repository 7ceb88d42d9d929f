"""Which addresses of other tools are taken for a provider's."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.importing.addresses import trusted_part

HOSTS = ("chatgpt.com", "chat.openai.com")


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("https://chatgpt.com/c/1", "https://chatgpt.com/c/1"),
        ("https://chat.openai.com/c/1?model=%20#..\t".rstrip(), "https://chat.openai.com/c/1"),
        ("https://chatgpt.com", "https://chatgpt.com"),
        ("https://chatgpt.com?x=https://evil.example/", "https://chatgpt.com"),
        ("https://chatgpt.com/share/1", "https://chatgpt.com/share/1"),
    ],
)
def test_trusted(address: str, part: str) -> None:
    """An address whose host is the provider's is taken without its query and fragment."""
    assert trusted_part(address, HOSTS) == part


@pytest.mark.parametrize(
    "address",
    [
        "", "chatgpt.com/c/1", "http://chatgpt.com/c/1", "HTTPS://chatgpt.com/c/1", " https://chatgpt.com/c/1",
        "javascript:alert(1)", "file:///etc/passwd", "https:/chatgpt.com/c/1", "https:///chatgpt.com/c/1",
        "https://ChatGPT.com/c/1", "https://chatgpt.com./c/1", "https://chatgpt.com:443/c/1",
        "https://user@chatgpt.com/c/1", "https://chatgpt.com@evil.example/c/1", "https://chatgpt.com:x@evil.example/",
        "https://evil.example/https://chatgpt.com/c/1", "https://chatgpt.com.evil.example/c/1",
        "https://chatgpt.co/c/1", "https://www.chatgpt.com/c/1", "https://gemini.google.com/app/1",
        "https://chatgpt.com\\@evil.example/c/1", "https://evil.example\\.chatgpt.com/c/1",
        "https://chatgpt.com/../c/1", "https://chatgpt.com/c/..", "https://chatgpt.com/c/%2e%2e",
        "https://chatgpt%2ecom/c/1", "https://chatgpt.com/c/\t1", "https://chat\ngpt.com/c/1",
        "https://chatgpt.com/c/1\n", "https://chatgpt.com/c/\x00", "https://chatgpt.com/c/\x7f",
        "https://сhatgpt.com/c/1", "https://chatgpt.com/c/é", "https://chatgpt\u3002com/c/1",
        "https://chatgpt.com/c/1#\u202e", f"https://chatgpt.com/c/{'1' * 8192}", "https://[chatgpt.com]/c/1", "https://chatgpt.com\u2028/c/1",
    ],
)  # fmt: skip
def test_refused(address: str) -> None:
    """What a parser could take for another host than it shows, or another provider's, is refused as it stands."""
    assert trusted_part(address, HOSTS) is None


_PARTS = [*"htps:/\\@.?#%c1 \t\n", "chatgpt.com", "https://", "https://chatgpt.com", "/c/1", "evil.example", "é"]


@given(st.lists(st.sampled_from(_PARTS), max_size=8).map("".join))
def test_only_ours(address: str) -> None:
    """Whatever is trusted is at one of the hosts for a parser too, without port, user or anything behind the path."""
    part = trusted_part(address, HOSTS)
    if part is None:
        return
    parts = urlsplit(part)

    assert (parts.scheme, parts.netloc in HOSTS, parts.query, parts.fragment) == ("https", True, "", "")
    assert address.startswith(part)
