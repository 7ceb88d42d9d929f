from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.samples import (
    Notices,
    OwnTurn,
    Sample,
    SeenFile,
    SeenTurn,
    keys,
    lookup_hash,
    normalised,
    notices,
    own_turn,
    sample_of,
    without_old,
)

from tests.domain.values import sample

_PROMPT = "What is 6 times 7?"
_OWN = lookup_hash(_PROMPT)


def _user(key: str, text: str | None = _PROMPT) -> SeenTurn:
    return SeenTurn(key, "user", text)


def _answer(key: str, text: str | None = "42", *, done: bool = False) -> SeenTurn:
    return SeenTurn(key, "assistant", text, done=done)


def _shown(*turns: SeenTurn) -> Sample:
    return replace(sample(), turns=turns)


def _own(*turns: SeenTurn) -> OwnTurn | None:
    """The own turn, without its keys."""
    found = own_turn(_shown(*turns), _OWN)
    return found and replace(found, user_key="", parts=())


def _seen(*looks: tuple[SeenTurn, ...]) -> list[tuple[str, bool] | None]:
    """Text and mark of the own answer in each of these looks, one after another."""
    found: list[tuple[str, bool] | None] = []
    before: OwnTurn | None = None
    for turns in looks:
        own = own_turn(_shown(*turns), _OWN, before)
        before = own or before
        found.append((own.answer, own.done) if own else None)
    return found


def test_not_there() -> None:
    """Without the own prompt there is no own turn: not on an empty page, nor where another was asked (FIN-03)."""
    assert _own() is None
    assert _own(_answer("a1", done=True)) is None
    assert _own(_user("u1", "Something else"), _answer("a1", done=True)) is None


def test_older_answers() -> None:
    """Three finished turns of the baseline are no answer, nor is there one while nothing is behind (FIN-03)."""
    older = (
        _user("u1", None),
        _answer("a1", None, done=True),
        _user("u2", None),
        _answer("a2", None, done=True),
        _user("u3", None),
        _answer("a3", None, done=True),
    )

    assert _own(*older) is None
    assert _own(*older, _user("u4")) == OwnTurn("", done=False, answered=False)
    assert _own(*older, _user("u4"), _answer("a4")) == OwnTurn("42", done=False, answered=True)
    assert _own(*older, _user("u4"), _answer("a4", done=True)) == OwnTurn("42", done=True, answered=True)


def test_same_text_again() -> None:
    """A prompt that stands in the baseline already is not the own one, though its text is the same (SUB-16)."""
    older = (_user("u1", None), _answer("a1", None, done=True))

    assert _own(*older) is None
    assert _own(*older, _user("u2"), _answer("a2", "43")) == OwnTurn("43", done=False, answered=True)


def test_newest() -> None:
    """Of two that hold the prompt the newer one is the own."""
    assert _own(_user("u1"), _answer("a1", "1", done=True), _user("u2"), _answer("a2", "2")) == OwnTurn(
        "2", done=False, answered=True
    )


def test_up_to_the_next_prompt() -> None:
    """What stands behind another prompt is not the answer."""
    assert _own(_user("u1"), _answer("a1", "1", done=True), _user("u2", "Else"), _answer("a2", "2")) == OwnTurn(
        "1", done=True, answered=True
    )


def test_several_parts() -> None:
    """Parts of one answer are joined; only the mark of the last one tells that it is finished."""
    first, empty, last = _answer("a1", "1", done=True), _answer("a2", ""), _answer("a3", "3")

    assert _own(_user("u1"), first, empty, last) == OwnTurn("1\n\n3", done=False, answered=True)
    assert _own(_user("u1"), first, replace(last, done=True)) == OwnTurn("1\n\n3", done=True, answered=True)


def test_prompt_is_no_answer() -> None:
    """A user turn that the marks also take for an assistant's never comes back as the answer (FIN-15)."""
    assert _own(_user("u1"), _user("u2")) == OwnTurn("", done=False, answered=False)


def test_white_space() -> None:
    """A prompt is found again though the page shows its white space, or its Markdown, in another way (SUB-06)."""
    shown = _shown(_user("u1", " a\n\n b\u00a0c "))

    assert own_turn(shown, lookup_hash("a\tb c")) == OwnTurn("", done=False, answered=False, user_key="u1")
    assert normalised(" a\n\n b\u00a0c ") == "a b c"
    assert lookup_hash("# a\n**b**") == lookup_hash("a b") == hashlib.sha256(b"ab").hexdigest()


def test_lookup_without_letters() -> None:
    """A prompt without letters and digits is found by its marks (SUB-07)."""
    assert lookup_hash(" ?!\n") == lookup_hash("?!") != lookup_hash("!?")


def test_dropped() -> None:
    """What a page drops above what is in sight stays own by its keys, and so does the text of it (FIN-14)."""
    prompt, first, second = _user("u1"), _answer("a1", "1"), _answer("a2", "2")

    assert _seen((prompt, first), (prompt, first, second), (first, second), (replace(second, done=True),)) == [
        ("1", False),
        ("1\n\n2", False),
        ("1\n\n2", False),
        ("1\n\n2", True),
    ]
    assert _seen((prompt, first), (_answer("a0", "0"), _answer("a9", "9"))) == [("1", False), None]
    assert _seen((prompt, first), (first, _user("u2", "Else"), second)) == [("1", False), ("1", False)]


def test_emptied() -> None:
    """A page that empties turns out of sight loses neither the own prompt nor its text (FIN-14)."""
    prompt, answer = _user("u1"), _answer("a1", "42", done=True)

    assert _seen((prompt, answer), (_user("u1", ""), _answer("a1", "", done=True))) == [("42", True), ("42", True)]


def test_remembered() -> None:
    """A part that went while it was the last one may have grown unseen; one with another behind it was finished."""
    prompt, first, second = _user("u1"), _answer("a1", "1"), _answer("a2", "2")
    empty = _answer("a1", "", done=True)

    def remembered(*looks: tuple[SeenTurn, ...]) -> bool:
        before: OwnTurn | None = None
        for turns in looks:
            before = own_turn(_shown(*turns), _OWN, before) or before
        return before is not None and before.remembered

    assert remembered((prompt, first), (prompt, empty))
    assert not remembered((prompt, first), (prompt, empty), (prompt, first))
    assert not remembered((prompt, first, second), (prompt, empty, second))
    assert not remembered((prompt, first, second), (second,))
    assert not remembered((prompt,), (prompt, empty))


def test_replaced() -> None:
    """A node that the page puts in the place of another below the own prompt is not a second answer (FIN-14)."""
    prompt = _user("u1")

    assert _seen((prompt, _answer("draft", "4")), (prompt, _answer("final", "42", done=True))) == [
        ("4", False),
        ("42", True),
    ]


def test_same_text_by_a_person() -> None:
    """The own prompt stays the own, though a person sends the same text again (O-136, SUB-16)."""
    own, theirs = (_user("u1"), _answer("a1", "1", done=True)), (_user("u2"), _answer("a2", "2"))

    assert _seen(own, own + theirs) == [("1", True), ("1", True)]


def test_loaded_again() -> None:
    """A page that is loaded again and gives other keys is read by the text of the prompt (FIN-18)."""
    assert _seen((_user("u1"), _answer("a1", "1")), (_user("x"), _answer("y", "12", done=True))) == [
        ("1", False),
        ("12", True),
    ]


def test_old_notices() -> None:
    """An error or a limit of before the prompt was sent is none of its answer, until it went once (FIN-07)."""
    clear = sample()
    shown = replace(clear, failure="Oops", failure_key=1, barrier="limit", barrier_text="Enough")
    other = replace(shown, failure_key=2, barrier_text="Enough for today")
    old = notices(shown)

    assert notices(clear) == Notices()
    assert without_old(shown, old) == (clear, old)
    assert without_old(other, old) == (other, Notices())
    assert without_old(shown, Notices()) == (shown, Notices())
    assert without_old(clear, old) == (clear, Notices())
    assert without_old(replace(shown, failure="", failure_key=0), old) == (clear, Notices(limit="Enough"))


def test_keys() -> None:
    """The baseline is the keys of all turns that are shown, in order."""
    assert keys(replace(sample(), turns=(_user("u1", None), _answer("a1")))) == ("u1", "a1")


_VALUE = {
    "uri": "http://textarea.localhost:8000/",
    "title": "Playground",
    "ready": True,
    "composer": "usable",
    "composer_text": "",
    "composer_exact": True,
    "send": 1,
    "stop": False,
    "failure": "",
    "failure_key": 0,
    "turns": [],
    "frames": 1,
    "reading": 0,
    "barrier": "",
    "barrier_text": "",
    "still": 0,
    "whole": False,
    "focused": False,
    "touch": "7-9 0",
    "brought": False,
    "files": [],
    "files_busy": False,
    "files_failed": False,
}


def test_sample_of() -> None:
    """What the page script gave becomes a sample; a turn without text is one of the baseline."""
    turns = [
        {"key": "u1", "role": "user"},
        {"key": "a1", "role": "assistant", "text": "42", "done": True},
    ]

    assert sample_of(_VALUE) == sample()
    assert sample_of({**_VALUE, "turns": turns}) == replace(
        sample(), turns=(SeenTurn("u1", "user"), SeenTurn("a1", "assistant", "42", done=True))
    )


def test_files() -> None:
    """Files that the composer shows come with all that names them."""
    shown = {"files": [{"names": ["a.txt", "Remove"], "busy": True, "failed": False}], "files_failed": True}
    assert sample_of({**_VALUE, **shown}) == replace(
        sample(), files=(SeenFile(("a.txt", "Remove"), busy=True),), files_failed=True
    )


def test_half_characters() -> None:
    """Half of a character becomes `?`, for UTF-8 has none; two halves that belong together are one character."""
    value = json.loads(r'{"key": "a1", "role": "assistant", "text": "a\ud83d \ud83d\ude00 \ude00"}')

    assert sample_of({**_VALUE, "turns": [value], "title": "\udfff"}) == replace(
        sample(), title="?", turns=(SeenTurn("a1", "assistant", "a? \N{GRINNING FACE} ?"),)
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("uri", None),
        ("uri", 5),
        ("title", ["x"]),
        ("composer", "elsewhere"),
        ("composer", None),
        ("composer_text", 1),
        ("send", None),
        ("send", "x"),
        ("failure", True),
        ("files", None),
        ("files", [{}]),
        ("files", [{"names": [5], "busy": False, "failed": False}]),
        ("turns", None),
        ("turns", 5),
        ("turns", "text"),
        ("turns", [None]),
        ("turns", ["text"]),
        ("turns", [{}]),
        ("turns", [{"key": "k"}]),
        ("turns", [{"key": 1, "role": "user"}]),
        ("turns", [{"key": "k", "role": "system"}]),
        ("turns", [{"key": "k", "role": "user", "text": 5}]),
        ("frames", {}),
        ("barrier", "toll"),
        ("reading", None),
    ],
)
def test_another_shape(field: str, value: object) -> None:
    """What is not a sample is a ValueError, never a guess."""
    with pytest.raises(ValueError, match=r"."):
        sample_of({**_VALUE, field: value})


@pytest.mark.parametrize("field", _VALUE)
def test_missing(field: str) -> None:
    """A sample without one of its fields is a ValueError that names it."""
    with pytest.raises(ValueError, match=field):
        sample_of({key: value for key, value in _VALUE.items() if key != field})


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "role", "text"]), inner),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(sorted(_VALUE)), _ANY))
def test_any_shape(changed: dict[str, object]) -> None:
    """Whatever a page gives is a sample whose texts UTF-8 can hold, or a ValueError."""
    try:
        found = sample_of({**_VALUE, **changed})
    except ValueError:
        return
    assert isinstance(found, Sample)
    repr(found).encode()
    "".join([found.uri, found.title, found.composer_text, found.failure, *keys(found)]).encode()
