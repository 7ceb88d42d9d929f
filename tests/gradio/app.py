"""Chats made with Gradio's ChatInterface, for the tests of the descriptor `gradio`. Runs in the environment of its own.

`app.py PORT DIRECTORY`: each chat is at a path of its own. What their functions get is written to `received.jsonl` in
the directory; a file `go-on` there ends what the word `[hold]` began.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

gradio: Any = importlib.import_module("gradio")
fastapi: Any = importlib.import_module("fastapi")
uvicorn: Any = importlib.import_module("uvicorn")
MARKDOWN: str = importlib.import_module("app_text").MARKDOWN  # beside this file

PORT, DIRECTORY = int(sys.argv[1]), Path(sys.argv[2])


def note(chat: str, prompt: str, history: list[Any]) -> None:
    """Write down what a function got."""
    with (DIRECTORY / "received.jsonl").open("a") as journal:
        journal.write(json.dumps({"chat": chat, "prompt": prompt, "history": len(history)}) + "\n")


def stream(prompt: str, history: list[Any]) -> Iterator[str]:
    """Answer as the prompt says, bit by bit."""
    note("chat", prompt, history)
    if "[error]" in prompt:
        raise gradio.Error("it is broken")
    if "[markdown]" in prompt:
        for end in range(1, len(MARKDOWN) + 1, 20):
            yield MARKDOWN[:end]
        yield MARKDOWN
        return
    text = f"Answer {len(history) // 2 + 1}."
    yield text
    if "[late error]" in prompt:
        raise gradio.Error("it is broken")
    while "[endless]" in prompt or ("[hold]" in prompt and not (DIRECTORY / "go-on").exists()):
        time.sleep(0.1)
        text += " More."
        yield text
    yield f"{text} The end."


def at_once(prompt: str, history: list[Any]) -> str:
    """Answer with the whole text."""
    note("at-once", prompt, history)
    return f"Answer {len(history) // 2 + 1}."


def thinking(prompt: str, history: list[Any]) -> Iterator[list[Any]]:
    """Think, and answer then."""
    note("thinking", prompt, history)
    for status, more in (("pending", []), ("done", ["Ans"]), ("done", ["Answer."])):
        thought = {"title": "Thought", "status": status}
        messages = [gradio.ChatMessage(role="assistant", content="Long thoughts of mine.", metadata=thought)]
        yield messages + [gradio.ChatMessage(role="assistant", content=text) for text in more]
        time.sleep(0.3)


def with_files(message: dict[str, Any], history: list[Any]) -> str:
    """Answer what may come with files."""
    note("files", message["text"], history)
    return f"Answer {len(history) // 2 + 1}."


def with_inputs(prompt: str, history: list[Any], _system: str) -> str:
    """Answer what comes with another text."""
    note("inputs", prompt, history)
    return f"Answer {len(history) // 2 + 1}."


CHATS: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (stream, {"examples": ["An example", "Another"], "title": "A chat"}),
    "at-once": (at_once, {"examples": ["An example"], "submit_btn": "Ask", "stop_btn": "Halt"}),
    "thinking": (thinking, {}),
    "files": (with_files, {"multimodal": True}),
    "inputs": (
        with_inputs,
        {
            "additional_inputs": [gradio.Textbox("You are helpful.", label="System prompt", render=False)],
            "additional_inputs_accordion": gradio.Accordion("More", open=True, render=False),
        },
    ),
}

app = fastapi.FastAPI()
for name, (function, how) in CHATS.items():
    chat = gradio.ChatInterface(function, analytics_enabled=False, **how)
    app = gradio.mount_gradio_app(app, chat, path=f"/{name}")

uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning")
