"""What is told of a file that cannot be used: all of it at once, each with its line."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import Descriptor, DescriptorError

_GOOD = (
    resources.files("tabmuxd.webai.providers")
    .joinpath("playground-editor.toml")
    .read_text("utf-8")
    .replace("{port}", "1")
)


def _told(text: str) -> list[str]:
    with pytest.raises(DescriptorError) as caught:
        descriptor.parse(text, "mine.toml")
    return str(caught.value).split("\n")


_BROKEN = """\
schema = 1
id = "My Chat"
version = 2
hosts = ["https://chat.example/", ""]
start_uri = "https://chat.example/"
conversation_path = "/c/("
anwser_prefix = "x"
answer_timeout_seconds = 0
max_prompt_characters = 99999999999
composer = ["#prompt"]

[page]
send = [
  "#send",
  "button:contains('Send')",
  7,
]
stop = "#stop"
user_turn = '[data-turn="user"'
assistant_turn = "svg|a"
turn_key = "[data-id]"
prompt_text = ""
answer_text = [".markdown"]
done_mark = []
failure = []
sign_in = [{selector = "a:hovr", txt = "x"}, 5]

[windows]
quiet = [[40, 3], [16, 8]]
done_quiet = -1

[policy]
draft = "keep"
max_prompt_characters = 5

[limit]
turns = 5
"""


def test_all_at_once() -> None:
    """Everything that is wrong is told, by line, with what was expected."""
    most = 2**31 - 1
    assert _told(_BROKEN) == [
        "mine.toml:1: display_name: is missing, and must be a text",
        "mine.toml:2: id: must be an id of a-z, 0-9 and - within, at most 63 characters, and is 'My Chat'",
        "mine.toml:3: version: must be a text, and is the number 2",
        "mine.toml:4: hosts: has 'https://chat.example/', which is no host; write it alone, such as chat.example",
        "mine.toml:4: hosts[1]: must be a text that is not empty, and is an empty text",
        "mine.toml:6: conversation_path: is no regular expression: missing ), unterminated subpattern at position 3",
        "mine.toml:7: anwser_prefix: is unknown; did you mean 'answer_prefix'?",
        f"mine.toml:8: answer_timeout_seconds: must be a whole number above 0 and at most {most}, and is the number 0",
        f"mine.toml:9: max_prompt_characters: must be a whole number above 0 and at most {most}, and is a number",
        "mine.toml:10: composer: is unknown here; it belongs below [page]",
        (
            "mine.toml:12: page.composer: is missing, and must be a list of marks: each is a CSS selector,"
            ' {selector = "…", text = "…", name = "…"} or {role = "…", name = "…"}'
        ),
        (
            "mine.toml:15: page.send[1]: \"button:contains('Send')\" has ':contains', which CSS does not have: text"
            " cannot be selected by"
        ),
        (
            'mine.toml:16: page.send[2]: must be a CSS selector, {selector = "…", text = "…", name = "…"} or'
            ' {role = "…", name = "…"}, and is the number 7'
        ),
        (
            'mine.toml:18: page.stop: must be a list of marks: each is a CSS selector, {selector = "…", text = "…",'
            ' name = "…"} or {role = "…", name = "…"}, and is the text \'#stop\''
        ),
        (
            "mine.toml:19: page.user_turn: '[data-turn=\"user\"' is no CSS selector: Malformed attribute selector at"
            " position 0"
        ),
        "mine.toml:20: page.assistant_turn: 'svg|a' has the prefix 'svg'; a page's selectors have none",
        "mine.toml:21: page.turn_key: must be the name of an attribute, such as data-message-id, and is '[data-id]'",
        "mine.toml:22: page.prompt_text: must be a text, and is empty",
        (
            "mine.toml:26: page.sign_in[0].selector: 'a:hovr' has ':hovr', which Chrome does not know; did you mean"
            " ':hover'?"
        ),
        "mine.toml:26: page.sign_in[0].txt: is unknown; did you mean 'text'?",
        (
            'mine.toml:26: page.sign_in[1]: must be a CSS selector, {selector = "…", text = "…", name = "…"} or'
            ' {role = "…", name = "…"}, and is the number 5'
        ),
        (
            "mine.toml:29: windows.quiet: must be a list of pairs of numbers, the first of which rise, such as"
            " [[16, 8], [40, 3]]"
        ),
        "mine.toml:30: windows.done_quiet: must be a number, not below 0, and is the number -1",
        'mine.toml:33: policy.draft: must be "refuse" or "clear", and is the text \'keep\'',
        "mine.toml:34: policy.max_prompt_characters: is unknown here; it belongs above all tables",
        "mine.toml:36: limit: is unknown; did you mean 'limits'?",
    ]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("schema = 1\n", "", "1: schema: is missing; write schema = 1 at the top (docs/providers.md tells what it is)"),
        *(
            (
                "schema = 1",
                f"schema = {version}",
                (
                    "2: schema: is not 1, the only one that this server reads; write the file by docs/providers.md with"
                    " schema = 1, or use a server that reads this one"
                ),
            )
            for version in ("2", "true", '"1"', "1.0", "[1]")
        ),
        ("[page]", "[page", "14: is no TOML: Expected ']' at the end of a table declaration"),
        ("[windows]", "[page]", "38: is no TOML: Cannot declare ('page',) twice"),
        ("done_quiet = 0.5\n", "done_quiet = ", "39: is no TOML: Invalid value"),
        (
            "http://editor.localhost:1/",
            "http://other.localhost:1/",
            "7: start_uri: must be an http or https address at one of 'hosts', without user and password",
        ),
        (
            '"/c/[0-9a-f]{12}"',
            '"/.*"',
            "8: conversation_path: fits 'start_uri' too, so that a new conversation could not be told from an old",
        ),
        (
            "[page]",
            'sign_in_hosts = ["editor.localhost"]\n[page]',
            "6: hosts: has 'editor.localhost', which cannot stand in the way as well",
        ),
        (
            "[page]",
            'sign_in_hosts = ["a.example"]\nconsent_hosts = ["A.example"]\n[page]',
            "15: consent_hosts: has 'a.example', which is in 'sign_in_hosts' too, or twice",
        ),
        ("[page]", '"" = 1\n[page]', None),
    ],
)
def test_one(before: str, after: str, told: str | None) -> None:
    """One thing that is wrong is told alone, on its line."""
    assert before in _GOOD
    found = _told(_GOOD.replace(before, after, 1))
    assert len(found) == 1
    assert told is None or found == [f"mine.toml:{told}"]


def test_harmless() -> None:
    """What a file holds does not steer the terminal that shows what is wrong with it."""
    assert _told(_GOOD.replace("[page]", '"id\\u001b\\n" = 1\n[page]')) == [
        r"mine.toml:14: id\x1b\n: is unknown; did you mean 'id'?"
    ]


def test_windows_text() -> None:
    """Line ends of another system, and a mark of the byte order, change nothing."""
    assert descriptor.parse("\ufeff" + _GOOD.replace("\n", "\r\n"), "a") == descriptor.parse(_GOOD, "a")


_STRANGE = (
    *("a = " + "[" * 5000, "a = " + "[" * 200 + "]" * 200, "a = " + "9" * 5000, "schema = 1\nid = " + "9" * 400),
    *(
        "\x00",
        "\ufeff",
        "",
        "#",
        "[page]",
        "schema = 1",
        "schema = 1\npage.x.y = 1\nwindows = 7\nlimits = [{}]",
        "=" * 9,
    ),
    *("a.b = 1\n" * 2, "schema = 1\n" + "x" * 2_000_000),
)


@pytest.mark.parametrize("text", _STRANGE, ids=range(len(_STRANGE)))
def test_strange(text: str) -> None:
    """No document, however strange, is more than a list of problems."""
    assert all(re.match(r"mine\.toml:\d+: ", line) for line in _told(text))


_NAMES = [
    *sorted(set(re.findall(r"^([a-z_]+) =", _GOOD, re.MULTILINE))),
    "quiet",
    "turns",
    "draft",
    "sign_in",
    "nosuch",
]
_WORDS = st.sampled_from(["", "#a", "a:hover", "(", "[", "(a+)+$", "\x00", "é", "https://a/", "a.example", "\u202e"])
_JSON = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), _WORDS, st.text(max_size=8)),
    lambda values: st.one_of(
        st.lists(values, max_size=3), st.dictionaries(st.sampled_from(["selector", "text", "a"]), values, max_size=2)
    ),
    max_leaves=5,
)


def _toml(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(_toml(each) for each in value) + "]"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case float():
            return "inf" if value == float("inf") else "-inf" if value == float("-inf") else repr(value)
        case _:
            return str(value).lower()


@given(st.dictionaries(st.sampled_from(_NAMES), _JSON, min_size=1, max_size=4), st.booleans())
def test_changed(changed: dict[str, object], appended: bool) -> None:  # noqa: FBT001 - drawn by hypothesis
    """A good file whose fields hold anything is a descriptor, or problems with lines within the file."""
    text = _GOOD
    for name, value in changed.items():
        line = f"{name} = {_toml(value)}"
        text, count = re.subn(rf"^{name} = .*$", line.replace("\\", r"\\"), text, count=1, flags=re.MULTILINE)
        text += "" if count or not appended else f"{line}\n"
    _judged(text)


@given(st.integers(0, len(_GOOD)), st.integers(0, 30), st.text("[]{}\"'=.,#\n 1aé\\", max_size=6))
def test_cut(start: int, size: int, text: str) -> None:
    """A file with a piece cut out, or put in, is a descriptor, or problems with lines within the file."""
    _judged(_GOOD[:start] + text + _GOOD[start + size :])


def _judged(text: str) -> None:
    lines: set[int] = set()
    try:
        assert isinstance(descriptor.parse(text, "mine.toml"), Descriptor)
    except DescriptorError as error:
        lines = {problem.line for problem in error.problems} or {0}
    assert all(1 <= line <= text.count("\n") + 1 for line in lines)
