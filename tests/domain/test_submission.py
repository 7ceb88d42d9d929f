from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai import submission
from tabmuxd.webai.samples import Composer, Sample

from tests.domain.values import SESSION, TAB, chat_session, playground, sample, told

_HERE = "http://textarea.localhost:8000"
_ONE = f"{_HERE}/c/0123456789ab"
_OTHER = f"{_HERE}/c/ba9876543210"


@pytest.mark.parametrize(
    ("uri", "conversation", "submitted", "reason"),
    [
        (f"{_HERE}/", "", False, None),
        (f"{_HERE}/?model=x#top", "", False, None),
        (_ONE, "", False, "PROVIDER_CONVERSATION_CHANGED"),
        (_ONE, "", True, None),
        (_ONE, _ONE, False, None),
        (_ONE, _ONE, True, None),
        (f"{_ONE}?model=x#top", _ONE, True, None),
        (f"http://TEXTAREA.localhost:8000{_ONE.removeprefix(_HERE)}", _ONE, True, None),
        (_OTHER, _ONE, False, "PROVIDER_CONVERSATION_CHANGED"),
        (_OTHER, _ONE, True, "PROVIDER_CONVERSATION_CHANGED"),
        (f"{_HERE}/", _ONE, True, "PROVIDER_CONVERSATION_CHANGED"),
        ("https://example.com/", "", False, "PROVIDER_NOT_SHOWN"),
        ("about:blank", _ONE, True, "PROVIDER_NOT_SHOWN"),
        ("https://textarea.localhost.evil.example/", "", False, "PROVIDER_NOT_SHOWN"),
    ],
)
def test_where(uri: str, conversation: str, reason: str | None, *, submitted: bool) -> None:
    """A prompt is typed, and an answer taken, only where the page shows the session's conversation (SUB-13, O-135)."""
    shown, session = replace(sample(), uri=uri), chat_session(conversation)

    refused = submission.where(playground(), shown, session, TAB, submitted=submitted)

    assert told(refused) == reason


def test_where_by_alias() -> None:
    """Another of the provider's hosts shows the same conversation (FIN-17)."""
    descriptor = replace(playground(), hosts=("textarea.localhost", "chat.localhost"))
    shown = replace(sample(), uri="http://chat.localhost:8000/c/0123456789ab")

    assert submission.where(descriptor, shown, chat_session(_ONE), TAB, submitted=True) is None
    assert told(submission.where(descriptor, shown, chat_session(_OTHER), TAB, submitted=True)) == (
        "PROVIDER_CONVERSATION_CHANGED"
    )


def test_where_is_silent() -> None:
    """The refusal names session and tab, and not what is shown there."""
    refused = submission.where(playground(), replace(sample(), uri=_OTHER), chat_session(_ONE), TAB, submitted=True)

    assert refused is not None
    assert refused.metadata == {"provider": "playground-textarea", "session": SESSION, "tab": TAB}
    assert "ba9876543210" not in refused.message


@pytest.mark.parametrize(
    ("ready", "composer", "stop", "verdict"),
    [
        (True, "usable", False, None),
        (False, "usable", False, "wait"),
        (True, "absent", False, "wait"),
        (True, "blocked", False, "wait"),
        (False, "absent", True, "wait"),
        (True, "usable", True, "PROVIDER_COMPOSER_UNUSABLE:busy"),
    ],
)
def test_may_type(composer: Composer, verdict: str | None, *, ready: bool, stop: bool) -> None:
    """A composer that is not there yet is waited for; one whose page still writes is refused (SUB-09, SUB-11)."""
    shown = replace(sample(), ready=ready, composer=composer, stop=stop)

    found = submission.may_type(playground(), shown, TAB)

    assert (found if found == "wait" else told(found)) == verdict


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        (None, "absent"),
        (replace(sample(), composer="absent"), "absent"),
        (replace(sample(), composer="blocked"), "blocked"),
        (replace(sample(), stop=True), "busy"),
        (replace(sample(), ready=False), "absent"),
    ],
)
def test_unusable(shown: Sample | None, cause: str) -> None:
    """When the wait is over the cause is told: never there, covered, or busy (SUB-09, SUB-10)."""
    refused = submission.unusable(playground(), shown, TAB)

    assert refused.failure().metadata == {"provider": "playground-textarea", "tab": TAB, "cause": cause}


def test_occupied() -> None:
    """A draft that is not ours is refused and not told (SUB-08)."""
    assert told(submission.occupied(playground(), TAB)) == "PROVIDER_COMPOSER_UNUSABLE:occupied"


@pytest.mark.parametrize(
    ("held", "own"),
    [
        ("", False),
        (" \n ", False),
        ("Line one", True),
        ("Line one\nLine", True),
        ("Line  one line two", False),
        ("Line one Line two", True),
        ("Line one\n\nLine two\n", True),
        ("Line one Line two and more", False),
        ("Dear diary", False),
        ("one", False),
    ],
)
def test_own_leftover(held: str, *, own: bool) -> None:
    """Only what begins as the prompt does is our own leftover, to be removed; all else is a foreign draft (SUB-08)."""
    shown = replace(sample(), composer_text=held)

    assert submission.is_own_leftover(shown, "Line one\nLine two") is own


@pytest.mark.parametrize(
    ("held", "prompt", "exact", "whole"),
    [
        ("a\nb", "a\nb", True, True),
        ("a\nb", "a\r\nb", True, True),
        ("a\nb", "a\rb", True, True),
        ("a", "a\nb", True, False),
        ("a b", "a\nb", True, False),
        ("a\nb ", "a\nb", True, False),
        ("draft a\nb", "a\nb", True, False),
        ("", "a", True, False),
        ("a\n\nb\n", "a\nb", False, True),
        ("a\u00a0b", "a b", False, True),
        ("a", "a\nb", False, False),
        ("ab", "a b", False, False),
        ("/help", "/help", False, True),
        ("@web find", "@web find", True, True),
    ],
)
def test_holds(held: str, prompt: str, *, exact: bool, whole: bool) -> None:
    """A text area has to hold exactly the prompt, a rich editor all its words alone (SUB-06, SUB-07, SUB-08)."""
    shown = replace(sample(), composer_text=held, composer_exact=exact)

    assert submission.holds(shown, prompt) is whole


_PROMPTS = ["x" * 49_999, "y z\n" * 15_000, "\N{GRINNING FACE}\u05e9\u05dc\u05d5\u05dd\u200f" * 500, "/run @all"]


@pytest.mark.parametrize("prompt", _PROMPTS, ids=["49,999", "60,000", "right to left", "command"])
@pytest.mark.parametrize("exact", [True, False])
def test_holds_long(prompt: str, *, exact: bool) -> None:
    """Long and foreign texts are compared as a whole: without their last word they are not held (SUB-06, SUB-07)."""
    shown = replace(sample(), composer_text=prompt, composer_exact=exact)

    assert submission.holds(shown, prompt)
    assert not submission.holds(replace(shown, composer_text=prompt.rstrip()[:-1]), prompt)


@given(st.text(), st.text())
def test_holds_exactly(held: str, prompt: str) -> None:
    """A text area that holds anything but the prompt does not hold it (SUB-07)."""
    normal = prompt.replace("\r\n", "\n").replace("\r", "\n")

    assert submission.holds(replace(sample(), composer_text=held), prompt) is (held == normal)
    assert submission.holds(replace(sample(), composer_text=normal), prompt)


@pytest.mark.parametrize(("text", "length"), [("", 0), ("abc", 3), ("ä", 1), ("\N{GRINNING FACE}", 2), ("a\nb", 3)])
def test_utf16_length(text: str, length: int) -> None:
    """Lengths are told to the page as JavaScript counts them (SUB-07)."""
    assert submission.utf16_length(text) == length


@pytest.mark.parametrize(
    ("why", "reason"),
    [
        ("absent", "PROVIDER_COMPOSER_UNUSABLE:absent"),
        ("changed", "PROVIDER_COMPOSER_UNUSABLE:occupied"),
        ("busy", "PROVIDER_COMPOSER_UNUSABLE:busy"),
        ("disabled", "PROVIDER_PAGE_CHANGED"),
        ("ambiguous", "PROVIDER_PAGE_CHANGED"),
        ("anything", "PROVIDER_PAGE_CHANGED"),
    ],
)
def test_not_pressed(why: str, reason: str) -> None:
    """Two send controls, a disabled one or another text are no press, and told apart (SUB-10, SUB-11)."""
    assert told(submission.not_pressed(playground(), TAB, why)) == reason


def test_not_pressed_tells() -> None:
    """PROVIDER_PAGE_CHANGED says what was looked for, and by which version of the descriptor."""
    assert submission.not_pressed(playground(), TAB, "disabled").metadata == {
        "provider": "playground-textarea",
        "tab": TAB,
        "expected": "send",
        "descriptor_version": "1",
    }
