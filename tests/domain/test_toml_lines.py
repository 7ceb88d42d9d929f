"""Lines of the values of a TOML text."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.providers.toml_lines import Place, TooDeep, lines_of

_TEXT = '''# a comment with = and [brackets]
one = "a # b" # and "more"
"two words".'three' = """
first
\\"""" # still line 3
list = [ # with a comment
  1, {a = 'x', b = [2,
  3]},

  """
  text""", 1979-05-27 07:32:00,
]

[table . "of.dots"]
key = 'C:\\'

[[many]]
x = 1
[many.inner]
y = 2
[[many]]
[[many.more]]
z = [[]]
[late.inner]
a = 1
[late]
b = 2
'''


def test_lines() -> None:
    """A key stands on its line, an entry of a list where it begins, a table where its own header is."""
    assert lines_of(_TEXT) == {
        (): 1,
        ("one",): 2,
        ("two words",): 3,
        ("two words", "three"): 3,
        ("list",): 6,
        ("list", 0): 7,
        ("list", 1): 7,
        ("list", 1, "a"): 7,
        ("list", 1, "b"): 7,
        ("list", 1, "b", 0): 7,
        ("list", 1, "b", 1): 8,
        ("list", 2): 10,
        ("list", 3): 11,
        ("table",): 14,
        ("table", "of.dots"): 14,
        ("table", "of.dots", "key"): 15,
        ("many",): 17,
        ("many", 0): 17,
        ("many", 0, "x"): 18,
        ("many", 0, "inner"): 19,
        ("many", 0, "inner", "y"): 20,
        ("many", 1): 21,
        ("many", 1, "more"): 22,
        ("many", 1, "more", 0): 22,
        ("many", 1, "more", 0, "z"): 23,
        ("many", 1, "more", 0, "z", 0): 23,
        ("late",): 26,
        ("late", "inner"): 24,
        ("late", "inner", "a"): 25,
        ("late", "b"): 27,
    }
    assert set(lines_of(_TEXT)) == set(_places(tomllib.loads(_TEXT)))


def _places(value: object, place: Place = ()) -> Iterator[Place]:
    yield place
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _places(entry, (*place, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _places(entry, (*place, number))


_KEYS = st.sampled_from(["a", "b-c", '"d.e"', "'f'", '"\\u0067"', "1"])
_DOTTED = st.lists(_KEYS, min_size=1, max_size=3).map(" . ".join)
_SCALARS = st.sampled_from(
    [
        "1",
        "-0.5e3",
        "true",
        "nan",
        '"]"',
        "'}'",
        '"""x\n"""""',
        "'''\n#'''",
        '"\\"" ',
        "07:32:00",
        "1979-05-27 07:32:00Z",
    ]
)
_GAPS = st.sampled_from(["", " ", "\n", " # ] } =\n", "\r\n\t"])


def _lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    entries = st.tuples(_GAPS, values, _GAPS).map("".join)
    tables = st.lists(st.tuples(_DOTTED, values), max_size=3).map(
        lambda pairs: "{" + ",".join(f" {key} = {value}" for key, value in pairs) + "}"
    )
    return st.one_of(st.lists(entries, max_size=3).map(lambda found: "[" + ",".join(found) + "]"), tables)


_VALUES = st.recursive(_SCALARS, _lists, max_leaves=6)
_STATEMENTS = st.one_of(
    st.tuples(_DOTTED, _VALUES).map(lambda pair: f"{pair[0]} = {pair[1]}"),
    _DOTTED.map(lambda keys: f"[ {keys} ]"),
    _DOTTED.map(lambda keys: f"[[{keys}]]"),
    st.just("# a = 1"),
)


@given(st.lists(_STATEMENTS, max_size=8))
def test_all_are_found(statements: list[str]) -> None:
    """Whatever tomllib reads has a line, within the text, and nothing else has one."""
    text = "\n".join(statements)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = lines_of(text.replace("\r\n", "\n"))
    assert set(lines) == set(_places(values))
    assert {1 <= line <= text.count("\n") + 1 for line in lines.values()} == {True}


def test_too_deep() -> None:
    """A document that is deep beyond reason is refused, whatever the interpreter would bear."""
    text = "a = " + "[" * 120 + "]" * 120
    assert tomllib.loads(text)
    with pytest.raises(TooDeep):
        lines_of(text)
