"""Prompts as the client and the command send and render them."""

import io
import json
import sys
from collections.abc import Mapping, Sequence
from hashlib import sha256

import pytest
from tabmux.cli.arguments import parse
from tabmux.cli.exits import Exit
from tabmux.cli.output import Output
from tabmux.cli.run import COMMANDS
from tabmux.client import Client
from tabmux.prompts import Preamble, Said, prompt_of
from tabmux.v1.prompt_pb2 import Prompt, PromptParts
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.warning_pb2 import Warning as WarningMessage
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionResponse,
    RenderPromptRequest,
    RenderPromptResponse,
    SendPromptResponse,
)

from tests.clients.python.scripted import ScriptedServer

PARTS = PromptParts(question="why", context="c")
SAFE = Prompt(text="x", preamble=Prompt.PREAMBLE_SAFETY)
RENDERED = RenderPromptResponse(
    text="a\x1b[2J\u202eb", character_count=7, sha256=sha256(b"x").hexdigest(),
    warnings=[WarningMessage(code="part-empty", message="m\nn")],
)  # fmt: skip


async def run(client: Client, *words: str, environment: Mapping[str, str] = {}, terminal: bool = False) -> Exit:
    """Run a command of `ai`, piped or as on a terminal."""
    arguments = parse(["ai", *words], environment)
    output = Output(as_json=arguments.json)
    output.terminal = terminal
    return await COMMANDS[arguments.command](client, arguments, output)


@pytest.mark.parametrize(
    ("said", "preamble", "expected"),
    [
        (" as it is\n", None, Prompt(text=" as it is\n")),
        ("x", "safety", SAFE),
        (PARTS, None, Prompt(parts=PARTS)),
        (PARTS, "none", Prompt(parts=PARTS, preamble=Prompt.PREAMBLE_NONE)),
        (SAFE, None, SAFE),
        (SAFE, "none", Prompt(text="x", preamble=Prompt.PREAMBLE_NONE)),
    ],
)
def test_said(said: Said, preamble: Preamble | None, expected: Prompt) -> None:
    """A text, parts or a whole prompt; what the caller holds is never changed."""
    before = said if isinstance(said, str) else said.SerializeToString()
    assert prompt_of(said, preamble) == expected
    assert before == (said if isinstance(said, str) else said.SerializeToString())


async def test_render(server: ScriptedServer, client: Client) -> None:
    """`client.render` gives the text and its size, and asks for nothing else."""
    server.script("RenderPrompt", [RENDERED])
    assert await client.render("gemini", PARTS, preamble="safety") == RENDERED
    assert server.requests("RenderPrompt") == [
        RenderPromptRequest(provider="gemini", prompt=Prompt(parts=PARTS, preamble=Prompt.PREAMBLE_SAFETY))
    ]
    assert {call.method for call in server.calls} == {"GetServerInfo", "RenderPrompt"}


@pytest.mark.parametrize("command", ["send", "render"])
async def test_parts(server: ScriptedServer, client: Client, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flags of the parts become parts, one of them from standard input; nothing of them is changed."""
    server.script("CreateSession", [CreateSessionResponse(session=Session(name="sessions/s"), created=True)])
    server.script("SendPrompt", [SendPromptResponse(turn=Turn(name="sessions/s/turns/t"))])
    server.script("RenderPrompt", [RENDERED])
    monkeypatch.setattr(sys, "stdin", io.StringIO(" from\0a pipe\n"))
    words = ["--system", "s", "--project", "p", "--goal", "g", "--context", "-", "--question", " q ", "--output", "o"]
    assert await run(client, command, "gemini", *words, "--constraints=-n", "--benchmark-safe") is Exit.OK
    (request,) = server.requests("SendPrompt" if command == "send" else "RenderPrompt")
    assert request.prompt == Prompt(
        parts=PromptParts(
            system="s", project="p", goal="g", context=" from\0a pipe\n", question=" q ", output="o", constraints="-n"
        ),
        preamble=Prompt.PREAMBLE_SAFETY,
    )


async def test_render_piped(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """Piped, the text comes exactly as it would be sent; warnings go to standard error, harmless."""
    server.script("RenderPrompt", [RENDERED])
    assert await run(client, "render", "gemini", " hi\n") is Exit.OK
    assert server.requests("RenderPrompt") == [RenderPromptRequest(provider="gemini", prompt=Prompt(text=" hi\n"))]
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("a\x1b[2J\u202eb", "warning: part-empty: m n\n")


async def test_render_on_a_terminal(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """On a terminal nothing in the text steers it."""
    server.script("RenderPrompt", [RENDERED])
    assert await run(client, "render", "gemini", "hi", terminal=True) is Exit.OK
    assert capsys.readouterr().out == "a\u241b[2J\ufffdb\n"


async def test_render_json(server: ScriptedServer, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json it is one line of JSON with all there is."""
    server.script("RenderPrompt", [RENDERED])
    assert await run(client, "render", "gemini", "hi", "--json") is Exit.OK
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {
        "text": RENDERED.text, "characterCount": 7, "sha256": RENDERED.sha256,
        "warnings": [{"code": "part-empty", "message": "m\nn"}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "words", "asked", "expected"),
    [
        ("gemini", [], "", None),
        ("gemini", [], "1", "safety"),
        ("gemini", [], "TRUE", "safety"),
        ("gemini", [], "0", None),
        ("chatgpt", [], "1", None),
        ("chatgpt", ["--benchmark-safe"], "0", "safety"),
    ],
)
@pytest.mark.parametrize("command", ["query", "send", "render"])
def test_safe(command: str, provider: str, words: Sequence[str], asked: str, expected: str | None) -> None:
    """The safety preamble is asked for by the option, and for gemini by the environment."""
    parsed = parse(["ai", command, provider, "hi", *words], {"TABMUX_GEMINI_SAFE": asked})
    assert (parsed.prompt, parsed.preamble) == ("hi", expected)


@pytest.mark.parametrize(
    ("words", "asked", "told"),
    [
        (["hi", "--goal", "g"], "", "a PROMPT is sent as it is: with --goal say it by --question"),
        (["--goal", "g"], "", "argument --goal: a --question is needed too"),
        (["--question", " \n"], "", "argument --question: it is empty"),
        (["--question", "-", "--context", "-"], "", "argument --question: the standard input is --context already"),
        (["--question", "q", "--goal", "a\udcff"], "", "argument --goal is not text in the encoding"),
        (["a\udcff"], "", "the prompt is not text in the encoding"),
        ([" \u2003"], "", "the prompt is empty"),
        (["hi"], "maybe", "TABMUX_GEMINI_SAFE is 'maybe', which is neither 1 nor 0"),
        (["--context", "c", "--quest", "q"], "", "--quest"),
    ],
)
def test_refused(words: list[str], asked: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be meant ends with code 2 and names what is wrong, before anything is sent."""
    with pytest.raises(SystemExit) as caught:
        parse(["ai", "send", "chatgpt", *words], {"TABMUX_GEMINI_SAFE": asked})
    assert (caught.value.code, told in capsys.readouterr().err) == (2, True)
