"""Gradio's ChatInterface by its shipped descriptor alone, on real pages of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_service_pb2 import NavigateTabRequest

from tests.e2e.serving import LIMIT, Server
from tests.e2e.test_conversations import talk
from tests.gradio.app_text import MARKDOWN
from tests.gradio.chats import Chats, Got

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.gradio,
    pytest.mark.long,
    pytest.mark.timeout(240),
    pytest.mark.usefixtures("closed_afterwards"),
]

HOSTILE: Final = """# Not a title
1. first
2. second

```python
print("<b>x</b>")
```
[a link](https://example.org/x?y=1) and <i>tags</i>, $x^2$, é 😀 ﷽ \\n
| a | b |
|---|---|
\ttabbed   and  wide"""


@pytest.fixture(scope="module")
def describe_providers(chats: Chats) -> Callable[[Path], None]:
    """One provider a chat."""
    return chats.describe


def _outcome(turn: Turn) -> tuple[str, str, str]:
    return Turn.State.Name(turn.state), turn.error.reason, turn.answer_markdown


def _succeeded(text: str) -> tuple[str, str, str]:
    return "STATE_SUCCEEDED", "", text


async def test_conversation(server: Server, chats: Chats) -> None:
    """Prompts of many lines and marks go out whole and once, into one conversation (SUB-06, SUB-20).

    Examples, Retry and Undo are beside them, and are not pressed.
    """
    one, mark = await talk(server, "gradio-chat"), uuid4().hex
    prompts = [f"{mark} {HOSTILE}", f"{mark} and then?", f"{mark} and then?"]

    turns = [await one.answer(prompt) for prompt in prompts]

    assert [_outcome(turn) for turn in turns] == [_succeeded(f"Answer {count}. The end.") for count in (1, 2, 3)]
    assert chats.got(mark) == [Got("chat", prompt, 2 * count) for count, prompt in enumerate(prompts)]
    assert all(turn.completion.done_mark for turn in turns)
    assert [list(turn.warnings) for turn in turns] == [[], [], []]


async def test_markdown(server: Server) -> None:
    """An answer is the Markdown of what the page shows (FIN-14)."""
    turn = await (await talk(server, "gradio-chat")).answer(f"{uuid4().hex} [markdown]")

    assert _outcome(turn) == _succeeded(MARKDOWN)


async def test_stop(server: Server, chats: Chats) -> None:
    """An answer that is written is streamed, and stopped by the page's own control; what was said stays said."""
    one, mark = await talk(server, "gradio-chat"), uuid4().hex
    turn = await one.ask(f"{mark} [endless]")
    assert (await one.text(turn)).startswith("Answer 1.")

    cancelled = await one.cancel(turn)
    after = await one.answer(f"{mark} and now?")

    assert (cancelled.state, list(cancelled.warnings)) == (Turn.STATE_CANCELLED, [])
    assert cancelled.answer_markdown.startswith("Answer 1.")
    assert _outcome(after) == _succeeded("Answer 2. The end.")
    assert [got.history for got in chats.got(mark)] == [0, 2]


@pytest.mark.parametrize("error", ["[error]", "[late error]"])
async def test_error(error: str, server: Server, chats: Chats) -> None:
    """A function that raises ends the turn; its page is of no use then: that is told, and nothing is sent."""
    one, mark = await talk(server, "gradio-chat"), uuid4().hex

    failed = await one.answer(f"{mark} {error}")
    after = await one.answer(f"{mark} again")
    fresh = await (await talk(server, "gradio-chat")).answer(f"{mark} anew")

    assert (failed.state, failed.error.reason) == (Turn.STATE_FAILED, "PROVIDER_FAILED")
    assert (after.error.reason, after.error.metadata["page_touched"]) == ("PROVIDER_COMPOSER_UNUSABLE", "no")
    assert _outcome(fresh) == _succeeded("Answer 1. The end.")
    assert [got.prompt for got in chats.got(mark)] == [f"{mark} {error}", f"{mark} anew"]


async def test_queue(server: Server, chats: Chats) -> None:
    """A prompt that waits in Gradio's queue is answered when it is its turn, and sent once."""
    first, second, mark = await talk(server, "gradio-chat"), await talk(server, "gradio-chat"), uuid4().hex
    held = await first.ask(f"{mark} [hold]")
    await first.text(held)
    waiting = await second.ask(f"{mark} next")
    await second.when(waiting, Turn.STATE_RUNNING)
    assert [got.prompt for got in chats.got(mark)] == [f"{mark} [hold]"]

    chats.go_on()
    ends = await asyncio.gather(first.end(held), second.end(waiting))

    assert [end.state for end in ends] == [Turn.STATE_SUCCEEDED] * 2
    assert ends[1].answer_markdown == "Answer 1. The end."
    assert [got.prompt for got in chats.got(mark)] == [f"{mark} [hold]", f"{mark} next"]


async def test_long_prompt(server: Server, chats: Chats) -> None:
    """60,000 characters arrive whole (SUB-07)."""
    one, mark = await talk(server, "gradio-chat"), uuid4().hex
    prompt = "\n".join([mark, *(f"{number:05d} 0123456789 é 😀 abcdefghijklmnopqrstuvwxyz" for number in range(1250))])

    turn = await one.answer(prompt)

    assert _outcome(turn) == _succeeded("Answer 1. The end.")
    assert [got.prompt for got in chats.got(mark)] == [prompt]


@pytest.mark.parametrize("chat", ["at-once", "thinking", "files", "inputs"])
async def test_kinds(chat: str, server: Server, chats: Chats) -> None:
    """Functions that give all at once or think first, and boxes for files and further inputs."""
    one, mark = await talk(server, f"gradio-{chat}"), uuid4().hex

    turns = [await one.answer(f"{mark} {count}") for count in (1, 2)]

    texts = ["Answer.", "Answer."] if chat == "thinking" else ["Answer 1.", "Answer 2."]
    assert [_outcome(turn) for turn in turns] == [_succeeded(text) for text in texts]
    assert [got.prompt for got in chats.got(mark)] == [f"{mark} 1", f"{mark} 2"]


async def test_loaded_again(server: Server, chats: Chats) -> None:
    """A page that was loaded again shows another conversation: no prompt goes into that (O-140)."""
    one, mark = await talk(server, "gradio-chat"), uuid4().hex
    before = await one.answer(f"{mark} first")
    tab = (await one.session()).tab
    await server.tabs.NavigateTab(NavigateTabRequest(name=tab, uri=chats.at("chat")), timeout=LIMIT)

    refused = [await one.answer(f"{mark} next") for _ in range(2)]

    assert before.state == Turn.STATE_SUCCEEDED
    assert [turn.error.reason for turn in refused] == ["PROVIDER_CONVERSATION_CHANGED"] * 2
    assert [turn.error.metadata["page_touched"] for turn in refused] == ["no"] * 2
    assert [got.prompt for got in chats.got(mark)] == [f"{mark} first"]


async def test_started_again(server: Server, chats: Chats) -> None:
    """An app that was started anew has forgotten the conversation: a warning says so, or its page gives no answer."""
    one, mark = await talk(server, "gradio-chat"), uuid4().hex
    assert (await one.answer(f"{mark} first")).state == Turn.STATE_SUCCEEDED
    chats.stop()
    chats.start()

    turn = await one.answer(f"{mark} second", answer_timeout=40)

    outcome = turn.answer_markdown, [warning.code for warning in turn.warnings]
    answered = turn.state == Turn.STATE_SUCCEEDED
    assert outcome == (("Answer 1. The end.", ["conversation-restarted"]) if answered else ("", []))
    assert [got.history for got in chats.got(mark)] in [[0], [0, 0]]


async def test_away(server: Server, chats: Chats) -> None:
    """While the app is away a prompt fails, and is not sent by the page when it is back."""
    one, mark = await talk(server, "gradio-chat"), uuid4().hex
    assert (await one.answer(f"{mark} first")).state == Turn.STATE_SUCCEEDED
    chats.stop()
    try:
        turn = await one.answer(f"{mark} second", answer_timeout=40)
    finally:
        chats.start()

    assert turn.state == Turn.STATE_FAILED
    assert [got.prompt for got in chats.got(mark)] == [f"{mark} first"]
