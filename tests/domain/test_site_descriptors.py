"""What the shipped descriptors of ChatGPT, Gemini and Grok say of addresses and of texts in an answer's place."""

from __future__ import annotations

import pytest
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.readings import Reading, reading

_UUID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize(
    ("site", "uri", "conversation"),
    [
        ("chatgpt", "https://chatgpt.com/", ""),
        ("chatgpt", "https://chatgpt.com/?temporary-chat=true", ""),
        ("chatgpt", "https://chatgpt.com/g/g-p-67ab_x", ""),
        ("chatgpt", "https://chatgpt.com/c/67ab-12?model=o3#x", "https://chatgpt.com/c/67ab-12"),
        ("chatgpt", "https://www.chatgpt.com/g/g-p-1/c/67ab-12", "https://www.chatgpt.com/g/g-p-1/c/67ab-12"),
        ("chatgpt", "https://chat.openai.com/c/67ab-12", "https://chat.openai.com/c/67ab-12"),
        ("gemini", "https://gemini.google.com/app", ""),
        ("gemini", "https://gemini.google.com/app/1a2b_c", "https://gemini.google.com/app/1a2b_c"),
        ("grok", "https://grok.com/", ""),
        ("grok", f"https://grok.com/c/{_UUID}?rid={_UUID}", f"https://grok.com/c/{_UUID}"),
        ("grok", f"https://grok.com/chat/{_UUID}", f"https://grok.com/chat/{_UUID}"),
    ],
)
def test_pages(site: str, uri: str, conversation: str) -> None:
    """A page to talk to a site is one of a conversation, or one where a conversation begins (SEC-05)."""
    told = descriptor.load(site)
    assert (told.is_at(uri), told.conversation_of(uri)) == (True, conversation)


@pytest.mark.parametrize(
    ("site", "uri"),
    [
        ("chatgpt", "https://chatgpt.com/share/67ab-12"),
        ("chatgpt", "https://chatgpt.com/share/e/67ab-12"),
        ("chatgpt", "https://chatgpt.com/c/67ab-12/../34"),
        ("chatgpt", "https://chatgpt.com/c/67ab_12"),
        ("chatgpt", "https://chatgpt.com/c/"),
        ("chatgpt", "https://chatgpt.com\\@evil.example/c/67ab-12"),
        ("chatgpt", "https://chatgpt.com.evil.example/c/67ab-12"),
        ("chatgpt", "https://user@chatgpt.com/c/67ab-12"),
        ("chatgpt", "https://chatgpt.com:8443/c/67ab-12"),
        ("chatgpt", "https://chatgpt.com/c/67ab\0"),
        ("chatgpt", "http://chatgpt.com/c/67ab-12"),
        ("chatgpt", "https://evil.chatgpt.com/c/67ab-12"),
        ("chatgpt", "https://chatgpt.com/gpts"),
        ("gemini", "https://gemini.google.com/share/1a2b"),
        ("gemini", "https://gemini.google.com/faq"),
        ("gemini", "https://google.com/app"),
        ("grok", "https://grok.com/c/67ab-12"),
        ("grok", f"https://grok.com/share/{_UUID}"),
        ("grok", f"https://x.com/c/{_UUID}"),
    ],
)
def test_other_pages(site: str, uri: str) -> None:
    """Shared snapshots, other pages of a site, and links that only look like its own take no prompts (SEC-05)."""
    told = descriptor.load(site)
    assert (told.is_at(uri), told.conversation_of(uri)) == (False, "")


def test_same_conversation() -> None:
    """A conversation is its id, whatever host and project its address names (O-135)."""
    told = descriptor.load("chatgpt")
    of_project, own, other = (
        told.conversation_of(uri)
        for uri in (
            "https://www.chatgpt.com/g/g-p-1/c/67ab-12?model=o3",
            "https://chatgpt.com/c/67ab-12",
            "https://chatgpt.com/c/67ab-13",
        )
    )
    assert told.same_conversation(of_project, own)
    assert not told.same_conversation(own, other)
    assert not told.same_conversation("", own)


@pytest.mark.parametrize(
    ("site", "uri", "barrier"),
    [
        ("chatgpt", "https://auth.openai.com/log-in", "sign_in"),
        ("chatgpt", "https://chatgpt.com/auth/login", "sign_in"),
        ("chatgpt", "https://evil.example/auth/login", None),
        ("chatgpt", "https://chatgpt.com/c/67ab-12?next=/login", None),
        ("gemini", "https://accounts.google.com/v3/signin", "sign_in"),
        ("gemini", "https://consent.google.com/m", "consent"),
        ("grok", "https://accounts.x.ai/sign-in", "sign_in"),
    ],
)
def test_sign_in_pages(site: str, uri: str, barrier: str | None) -> None:
    """Pages to sign in are told by host and path, never by a query (SEC-05)."""
    assert descriptor.load(site).barrier_at(uri) == barrier


@pytest.mark.parametrize(
    ("site", "shown", "told"),
    [
        ("chatgpt", "Thinking", Reading("")),
        ("chatgpt", " pro THINKING • 4 s", Reading("")),
        ("chatgpt", "Thought for 3m 2s", Reading("")),
        ("chatgpt", "Thought for 12 seconds\n\nIt is 42.", Reading("It is 42.")),
        ("chatgpt", "Thought for a while, I say no.", Reading("Thought for a while, I say no.")),
        ("chatgpt", "Stopped thinking", Reading("", halted=True)),
        ("chatgpt", "Stopped thinking\nIt is 42.", Reading("It is 42.")),
        ("chatgpt", "Thinking of it: 42.", Reading("Thinking of it: 42.")),
        ("grok", "Thought for 12s\n1.2s\nIt is 42.", Reading("It is 42.")),
        ("grok", "850ms", Reading("850ms")),
        ("gemini", "Show thinking\nGemini said\nIt is 42.", Reading("It is 42.")),
        ("gemini", "I'm on it. Responses with Deep Think can take some time.", Reading("", pending=True)),
        ("gemini", "Quote: check back later. " + "word " * 60, Reading("Quote: check back later. " + "word " * 60)),
    ],
)
def test_readings(site: str, shown: str, told: Reading) -> None:
    """What a site puts in the place of an answer, or before one, is no answer; an answer is never cut (FIN-11)."""
    assert reading(shown, descriptor.load(site)) == told
