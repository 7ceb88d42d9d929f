"""Answers: made from the prompt alone."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.playground import answer_to
from tabmuxd.playground.answers import first_words


def test_the_whole_text() -> None:
    """An answer quotes the first words, counts the prompt, and has bold, code, a list and an emoji."""
    prompt = "How do *tabs*\nwork? {{seconds=1}}"
    fingerprint = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    assert answer_to(prompt) == (
        "You wrote “How do tabs work?”. Thank you, that is a good place to start. 😀\n\n"
        f"Your message has **33 characters** in 2 lines, and its fingerprint is `{fingerprint}`. Equal messages get"
        " equal answers here, so that a test can compare every character.\n\n"
        "Three things are worth knowing about this page:\n\n"
        "- It streams its answers in small pieces, as the large chat pages do. 😉\n"
        "- A press on Stop ends the answer and keeps what has been written.\n"
        "- Its address changes as soon as the first message has been taken. 😎\n\n"
        "Ask again whenever you like: a conversation keeps all of its messages, and a page that is loaded again goes on"
        " where it was. ✔"
    )


def test_plain() -> None:
    """With `plain` there is no markup but paragraphs."""
    answer = answer_to("Hello {{plain=1}}")
    assert [mark for mark in ("**", "`", "- ") if mark in answer] == []


def test_code() -> None:
    """With `code` there is a fenced block."""
    assert '```python\nfor word in ("one", "two"):\n    print(word)\n```' in answer_to("Hello {{code=1}}")


@pytest.mark.parametrize("characters", [0, 1, 2, 15, 39, 40, 500, 9_000, 60_000, 1_000_000])
def test_length(characters: int) -> None:
    """With `characters` an answer has exactly that many, none of them white space at an end."""
    answer = answer_to(f"Hello 🙂 {{{{characters={characters}}}}}")
    assert (len(answer), answer) == (characters, answer.strip())


@given(st.text(), st.integers(0, 700))
def test_exact_for_any_prompt(prompt: str, characters: int) -> None:
    """Length is exact whatever the prompt holds, and white space at an end does not occur."""
    answer = answer_to(prompt + f"{{{{characters={characters}}}}}")
    assert (len(answer), answer) == (characters, answer.strip())


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_usual_length(prompt: str) -> None:
    """Without directives an answer has 550 to 900 characters, and equal prompts get equal ones."""
    prompt = prompt.replace("{", "")
    answer_to.cache_clear()
    first = answer_to(prompt)
    answer_to.cache_clear()
    assert (550 <= len(first) <= 900, answer_to(prompt)) == (True, first)


def test_first_words() -> None:
    """The first words are one line without markup, and a prompt of directives alone has none."""
    assert [first_words(text) for text in ("  a\n\n**b** ", "{{seconds=1}}", "w" * 100, "1 " * 20)] == [
        "a b",
        "no words",
        "w" * 80,
        "1 1 1 1 1 1 1 1 1 1 1 1",
    ]
