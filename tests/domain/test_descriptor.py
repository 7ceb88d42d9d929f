from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from importlib import resources

import pytest
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import Descriptor, DescriptorError, Windows
from tabmuxd.webai.providers.marks import Mark, PageMarks

_TEXT = """
schema = 1
id = "chat"
display_name = "Chat"
version = "7"
hosts = ["chat.example", "Alias.example"]
start_uri = "https://chat.example/"
conversation_path = "/c/[0-9a-f]{4}"
answer_timeout_seconds = 300
max_prompt_characters = 1000
placeholders = ["Thinking", "SEARCHING…"]

[page]
root = "chat-app"
ready = "main"
composer = ["#prompt", "textarea"]
send = ["#send"]
stop = ["#stop"]
user_turn = ".user"
assistant_turn = ".assistant"
turn_key = "data-id"
prompt_text = ".text"
answer_text = ".markdown"
done_mark = [".copy"]
failure = ["[role=alert]"]

[windows]
done_quiet = 1.5
"""


def _chat() -> Descriptor:
    return descriptor.parse(_TEXT, "chat.toml")


def test_parse() -> None:
    """A descriptor is what its TOML says, with defaults for what may be left out."""
    assert _chat() == Descriptor(
        id="chat",
        display_name="Chat",
        version="7",
        hosts=("chat.example", "alias.example"),
        start_uri="https://chat.example/",
        conversation_path=re.compile("/c/[0-9a-f]{4}"),
        default_answer_timeout=timedelta(minutes=5),
        max_prompt_character_count=1000,
        placeholders=frozenset({"thinking", "searching…"}),
        marks=PageMarks(
            composer=(Mark("#prompt"), Mark("textarea")),
            send=(Mark("#send"),),
            stop=(Mark("#stop"),),
            user_turn=".user",
            assistant_turn=(".assistant",),
            turn_key=("data-id",),
            prompt_text=".text",
            answer_text=(".markdown",),
            done_mark=(".copy",),
            failure=("[role=alert]",),
            root="chat-app",
            ready="main",
        ),
        windows=Windows(done_quiet=1.5),
    )


_MORE = (
    _TEXT.replace(
        "[page]",
        """sign_in_hosts = ["Login.example"]
challenge_hosts = ["check.example"]
limit_reset = ["in (?P<hours>[0-9]+) hours"]

[page]
composer_root = "form"
not_send = [".voice"]
sign_in = ["#login", {selector = "[role=dialog]", text = "Log in"}]
limit = [{selector = ".toast"}]""",
    )
    + """
[policy]
draft = "clear"
long_text = "paste"
"""
)


def test_barriers() -> None:
    """What stands in the way is a list of selectors, with or without a text, and hosts (SUB-12, FIN-16)."""
    told = descriptor.parse(_MORE, "chat.toml")

    assert (told.marks.composer_root, told.marks.not_send) == ("form", (Mark(".voice"),))
    assert (told.draft, told.long_text) == ("clear", "paste")
    assert told.marks.barriers() == {
        "sign_in": (Mark("#login"), Mark("[role=dialog]", "Log in")),
        "challenge": (),
        "consent": (),
        "limit": (Mark(".toast"),),
    }
    assert told.barrier_hosts == {"login.example": "sign_in", "check.example": "challenge"}
    assert [pattern.pattern for pattern in told.limit_reset] == ["in (?P<hours>[0-9]+) hours"]


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ('["Login.example"]', '["check.example"]', "sign_in_hosts"),
        ('["Login.example"]', '["chat.example"]', "chat.example"),
        ('["Login.example"]', '"login.example"', "sign_in_hosts"),
        ('draft = "clear"', 'draft = "keep"', "draft"),
        ('draft = "clear"', "draft = true", "draft"),
        ('draft = "clear"', 'drafts = "clear"', "drafts"),
        ('long_text = "paste"', 'long_text = "type"', "long_text"),
        ('{selector = ".toast"}', "5", "limit"),
        ('{selector = ".toast"}', '{text = "x"}', "selector"),
        ('{selector = ".toast"}', '{selector = ".toast", test = "x"}', "test"),
        ('{selector = ".toast"}', '""', "selector"),
        ('"in (?P<hours>[0-9]+) hours"', '"("', "limit_reset"),
        ('not_send = [".voice"]', 'not_send = ".voice"', "not_send"),
    ],
)
def test_wrong_barriers(before: str, after: str, named: str) -> None:
    """A mark of another shape is refused with file and field."""
    assert before in _MORE

    with pytest.raises(DescriptorError, match=rf"^mine\.toml:\d+: .*{named}"):
        descriptor.parse(_MORE.replace(before, after), "mine.toml")


def test_answers() -> None:
    """What stands in the place of an answer, and how long quiet has to be, are in the descriptor too."""
    head = 'placeholder_prefixes = ["Pro Thinking"]\nhalted_texts = ["Stopped"]\nanswer_prefix = "Thought.*\\n"\n'
    page = 'hint_mark = [".hint"]\nanswer_files = ["img"]\n'
    times = "quiet = [[16, 8], [40, 3.5]]\nquiet_longer = 4\nhint_quiet = 2\nlast_done_quiet = 5\nlast_quiet = 6\n"
    text = _TEXT.replace("[page]\n", f"{head}[page]\n{page}").replace('done_mark = [".copy"]', "done_mark = []") + times
    found = descriptor.parse(text, "chat.toml")

    assert (found.placeholder_prefixes, found.halted_texts) == (("pro thinking",), frozenset({"stopped"}))
    assert found.answer_prefix == re.compile("Thought.*\n")
    assert (found.marks.done_mark, found.marks.hint_mark, found.marks.answer_files) == ((), (".hint",), ("img",))
    assert (found.quiet_completes, _chat().quiet_completes) == (True, False)
    assert found.windows == Windows(1.5, 2.0, ((16.0, 8.0), (40.0, 3.5)), 4.0, 5.0, 6.0)
    assert [found.windows.quiet_for(count) for count in (0, 15, 16, 39, 40)] == [8.0, 8.0, 3.5, 3.5, 4.0]


def test_usual_windows() -> None:
    """Short texts need longer, since some pages pause behind their first words (FIN-12)."""
    windows = Windows()

    assert [windows.quiet_for(count) for count in (1, 15, 16, 39, 40, 499, 500)] == [8.0, 8.0, 3.0, 3.0, 2.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "value", ["5", "[5]", "[[1]]", "[[1, 2, 3]]", '[["1", 2]]', "[[1, -2]]", "[[1, inf]]", "[[2, 1], [1, 1]]"]
)
def test_wrong_pairs(value: str) -> None:
    """Windows by length are pairs of numbers in order, or refused with file and field."""
    with pytest.raises(DescriptorError, match=r"^mine\.toml:\d+: .*quiet"):
        descriptor.parse(f"{_TEXT}quiet = {value}\n", "mine.toml")


@pytest.mark.parametrize(
    ("uri", "conversation"),
    [
        ("https://chat.example/", ""),
        ("https://chat.example", ""),
        ("https://chat.example/c/12ab", "https://chat.example/c/12ab"),
        ("https://chat.example/c/12ab?x=1#y", "https://chat.example/c/12ab"),
        ("https://chat.example:443/c/12ab", "https://chat.example/c/12ab"),
        ("HTTPS://CHAT.Example/c/12ab", "https://chat.example/c/12ab"),
        ("https://alias.example/c/12ab", "https://alias.example/c/12ab"),
        ("https://chat.example/c/12AB", ""),
        ("https://chat.example/c/12ab/", ""),
        ("https://chat.example/c/12ab/../34cd", ""),
        ("https://chat.example/c%2f12ab", ""),
        ("https://chat.example/c/%2e%2e", ""),
        ("https://chat.example//c/12ab", ""),
        ("https://chat.example/x/c/12ab", ""),
    ],
)
def test_at_provider(uri: str, conversation: str) -> None:
    """An address at the provider shows a conversation only if its whole path is one; told plainly then (SEC-05)."""
    assert _chat().is_at(uri)
    assert _chat().conversation_of(uri) == conversation


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "about:blank",
        "chat.example",
        "//chat.example/c/12ab",
        "http://chat.example/c/12ab",
        "http://chat.example:443/c/12ab",
        "ftp://chat.example/",
        "javascript://chat.example/%0aalert(1)",
        "https://chat.example:8443/c/12ab",
        "https://chat.example:80/c/12ab",
        "https://chat.example:x/",
        "https://user@chat.example/c/12ab",
        "https://user:pass@chat.example/c/12ab",
        "https://@chat.example/c/12ab",
        "https://:@chat.example/c/12ab",
        "https://chat.example@evil.example/c/12ab",
        "https://chat.example\\@evil.example/",
        "https://evil.example\\.chat.example/",
        "https://chat.example.evil.example/",
        "https://xchat.example/",
        "https://chat.example./c/12ab",
        "https://sub.chat.example/",
        "https://evil.example/https://chat.example/c/12ab",
        "https://evil.example/?chat.example",
        "https://evil.example#@chat.example/",
        "https://ch\u0430t.example/",
        "https://chat.example%2eevil.example/",
        "https://[chat.example]/",
        "https://[::1/",
    ],
)
def test_elsewhere(uri: str) -> None:
    """Look-alikes, other schemes and ports, and user info are not the provider, and show nothing (SEC-05)."""
    assert not _chat().is_at(uri)
    assert _chat().conversation_of(uri) == ""


_MISSING = [
    "id",
    "display_name",
    "version",
    "hosts",
    "start_uri",
    "conversation_path",
    "answer_timeout_seconds",
    "max_prompt_characters",
    "composer",
    "send",
    "stop",
    "user_turn",
    "assistant_turn",
    "turn_key",
    "prompt_text",
    "answer_text",
    "done_mark",
    "failure",
]


@pytest.mark.parametrize("field", _MISSING)
def test_missing(field: str) -> None:
    """A field that is missing is named, with the file."""
    text = re.sub(rf"^{field} = .*$", "", _TEXT, flags=re.MULTILINE)

    with pytest.raises(DescriptorError, match=rf"^mine\.toml:\d+: .*{field}"):
        descriptor.parse(text, "mine.toml")


def test_no_page() -> None:
    """Without marks of a page there is no descriptor."""
    with pytest.raises(DescriptorError, match=r"^mine\.toml:\d+: .*page"):
        descriptor.parse(_TEXT.partition("[page]")[0], "mine.toml")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "5"),
        ("id", '""'),
        ("display_name", "true"),
        ("version", "1"),
        ("hosts", '"chat.example"'),
        ("hosts", "[]"),
        ("hosts", "[5]"),
        ("hosts", '[""]'),
        ("start_uri", "5"),
        ("start_uri", '"https://evil.example/"'),
        ("start_uri", '"https://chat.example:{port}/"'),
        ("start_uri", '"file:///chat.example"'),
        ("conversation_path", "5"),
        ("conversation_path", '"("'),
        ("answer_timeout_seconds", '"soon"'),
        ("answer_timeout_seconds", "0"),
        ("answer_timeout_seconds", "-1"),
        ("answer_timeout_seconds", "inf"),
        ("answer_timeout_seconds", "nan"),
        ("answer_timeout_seconds", "true"),
        ("max_prompt_characters", '"many"'),
        ("max_prompt_characters", "0"),
        ("max_prompt_characters", "1.5"),
        ("max_prompt_characters", "inf"),
        ("placeholders", '"Thinking"'),
        ("placeholders", "[5]"),
        ("composer", '"#prompt"'),
        ("composer", "[]"),
        ("composer", "[5]"),
        ("composer", '[""]'),
        ("send", "{}"),
        ("done_mark", '".copy"'),
        ("done_mark", "[5]"),
        ("assistant_turn", "[]"),
        ("assistant_turn", '[""]'),
        ("answer_text", "5"),
        ("user_turn", "5"),
        ("user_turn", '""'),
        ("turn_key", '""'),
        ("root", "5"),
        ("ready", "false"),
        ("done_quiet", '"long"'),
        ("done_quiet", "-1"),
        ("done_quiet", "inf"),
        ("done_quiet", "nan"),
        ("done_quiet", "true"),
    ],
)
def test_wrong(field: str, value: str) -> None:
    """A value of the wrong kind is refused with file and field, not bent into another."""
    text = re.sub(rf"^{field} = .*$", lambda _match: f"{field} = {value}", _TEXT, flags=re.MULTILINE)

    with pytest.raises(DescriptorError, match=rf"^mine\.toml:\d+: .*{field}"):
        descriptor.parse(text, "mine.toml")


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ("placeholders =", "place_holders =", "place_holders"),
        ("failure =", "failures =", "failure"),
        ("ready =", "redy =", "redy"),
        ("done_quiet =", "quiet_done =", "quiet_done"),
        ("[windows]\ndone_quiet = 1.5", "[window]\ndone_quiet = 1.5", "window"),
        ("[page]", "[[page]]", "page"),
        ("[windows]", "[[windows]]", "windows"),
    ],
)
def test_unknown(before: str, after: str, named: str) -> None:
    """A field that is misspelt is named: it is not silently left at its default."""
    with pytest.raises(DescriptorError, match=rf"^mine\.toml:\d+: .*{named}"):
        descriptor.parse(_TEXT.replace(before, after), "mine.toml")


@pytest.mark.parametrize(
    ("told", "expected"), [("", []), ("preambles = []", []), ('preambles = ["safety"]', ["safety"])]
)
def test_preambles(told: str, expected: list[str]) -> None:
    """What may be put before a first prompt is said by the descriptor; by default nothing."""
    assert sorted(descriptor.parse(f"{told}\n{_TEXT}", "mine.toml").preambles) == expected


@pytest.mark.parametrize("told", ['["safe"]', '"safety"', "[1]"])
def test_wrong_preambles(told: str) -> None:
    """A preamble that nobody knows is refused by name."""
    with pytest.raises(DescriptorError, match=r"^mine\.toml:\d+: .*preambles"):
        descriptor.parse(f"preambles = {told}\n{_TEXT}", "mine.toml")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ("", (None, 60.0)),
        ("[limits]\nturns = 3", (3, 60.0)),
        ("[limits]\nturns = 0\ncool_down = 1.5", (0, 1.5)),
    ],
)
def test_limits(limits: str, expected: tuple[int | None, float]) -> None:
    """How many turns may be at work at a provider is the descriptor's to say, or else the server's (O-141)."""
    found = descriptor.parse(f"{_TEXT}\n{limits}\n", "mine.toml")
    assert (found.max_turn_count, found.cool_down) == expected


@pytest.mark.parametrize("turns", ["-1", "true", "1.5", '"many"'])
def test_wrong_limits(turns: str) -> None:
    """A limit that is no whole number is refused with file and field; so is one that nobody knows."""
    for text, named in ((f"[limits]\nturns = {turns}", "turns"), ("[limits]\ntabs = 1", "tabs")):
        with pytest.raises(DescriptorError, match=rf"^mine\.toml:\d+: .*{named}"):
            descriptor.parse(f"{_TEXT}\n{text}\n", "mine.toml")


def test_not_toml() -> None:
    """What is not TOML is refused with the file."""
    with pytest.raises(DescriptorError, match=r"^mine\.toml:\d+: "):
        descriptor.parse("id = ", "mine.toml")


_SHIPPED = sorted(
    path.name.removesuffix(".toml")
    for path in resources.files("tabmuxd.webai.providers").iterdir()
    if path.name.endswith(".toml")
)


@pytest.mark.parametrize("name", _SHIPPED)
def test_shipped(name: str) -> None:
    """Every descriptor that is shipped can be loaded, and starts at itself with a new conversation."""
    loaded = descriptor.load(name, {"port": "8000"})

    assert loaded.id == name
    assert loaded.is_at(loaded.start_uri)
    assert loaded.conversation_of(loaded.start_uri) == ""


def test_shipped_are_found() -> None:
    """The playground's three pages are among those shipped."""
    assert {"playground-editor", "playground-shadow", "playground-textarea"} <= set(_SHIPPED)


_ELSEWHERE = """
schema = 1
extends = "gradio"
id = "mine"
hosts = ["models.example"]
start_uri = "https://models.example:8443/chat/"

[page]
composer = ["#box"]

[windows]
done_quiet = 2
"""


def test_extended() -> None:
    """A file that extends a shipped descriptor is that one, but for the fields that it has (SEC-05)."""
    shipped, found = descriptor.load("gradio"), descriptor.parse(_ELSEWHERE, "mine.toml")

    assert found == replace(
        shipped,
        id="mine",
        hosts=("models.example",),
        start_uri="https://models.example:8443/chat/",
        marks=replace(shipped.marks, composer=(Mark("#box"),)),
        windows=Windows(done_quiet=2.0),
    )
    assert found.is_at("https://models.example:8443/chat/")
    assert not found.is_at("https://models.example/chat/")
    assert not found.is_at("http://127.0.0.1:7860/")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (
            'extends = "gradio"',
            'extends = "gradioo"',
            "mine.toml:3: extends: must be one of chatgpt, gemini, gradio, grok",
        ),
        ('extends = "gradio"', "extends = 1", "mine.toml:3: extends: must be one of chatgpt, gemini, gradio, grok"),
        (
            'extends = "gradio"',
            'extends = "playground-editor"',
            "mine.toml:3: extends: must be one of chatgpt, gemini, gradio, grok",
        ),
        ("schema = 1", "", "mine.toml:1: schema: is missing; write schema = 1 at the top"),
        ("[page]", "page = 1\n[pages]", "mine.toml:8: page: must be a table"),
        ("done_quiet", "done_quite", "mine.toml:12: windows.done_quite: is unknown"),
        ('"models.example"', '"other.example"', "mine.toml:6: start_uri: must be an http or https address"),
    ],
)
def test_extended_wrongly(before: str, after: str, told: str) -> None:
    """What such a file says wrong is told by its own lines."""
    with pytest.raises(DescriptorError) as raised:
        descriptor.parse(_ELSEWHERE.replace(before, after), "mine.toml")

    assert str(raised.value).startswith(told)


def test_without_addresses() -> None:
    """Where conversations have no address no address is one; turns without a key are known by their text."""
    found = descriptor.parse(
        _TEXT.replace('"/c/[0-9a-f]{4}"', '""').replace('turn_key = "data-id"', "turn_key = []"), "chat.toml"
    )

    assert [found.conversation_of(f"https://chat.example{path}") for path in ("", "/", "/c/12ab")] == ["", "", ""]
    assert found.marks.turn_key == ()


@pytest.mark.parametrize("name", ['"a b"', '"="', "1", "[]"])
def test_wrong_prompt_attribute(name: str) -> None:
    """The attribute with the prompt is named as HTML names one."""
    text = _TEXT.replace("[windows]", f"prompt_attribute = {name}\n[windows]")
    with pytest.raises(DescriptorError, match=r"page\.prompt_attribute: must be"):
        descriptor.parse(text, "chat.toml")


def test_roles() -> None:
    """A mark may be a role with names: the elements that have it by themselves or are said to have it."""
    found = descriptor.parse(
        _TEXT.replace('send = ["#send"]', 'send = ["#send", {role = "link", name = ["Send", "보내기"]}]'), "chat.toml"
    )

    assert found.marks.send == (
        Mark("#send"),
        Mark("[role=link], :is(a[href]):not([role])", name="Send\n보내기", role="link"),
    )


@pytest.mark.parametrize(
    ("mark", "told"),
    [
        ('{role = "link"}', "name: is missing"),
        ('{role = "link", name = ""}', "name: must be a text, and is empty"),
        ('{role = "link", name = []}', "name: must have one text at least"),
        ('{role = "buton", name = "Send"}', 'role: must be "button" or "checkbox"'),
        ('{role = "link", name = "Send", selector = "a"}', "selector: must not stand beside"),
    ],
)
def test_wrong_role(mark: str, told: str) -> None:
    """What a mark by role lacks, or has too much, is told by field."""
    with pytest.raises(DescriptorError) as raised:
        descriptor.parse(_TEXT.replace('send = ["#send"]', f"send = [{mark}]"), "chat.toml")

    assert told in str(raised.value)
