"""The scripts that read a page by a descriptor's marks, as text: each made of one main part and those it shares."""

from __future__ import annotations

from dataclasses import asdict
from importlib import resources
from typing import Final

from tabmuxd.webai.providers.marks import PageMarks

_PARTS: Final = ("finding", "turns", "composer", "files", "barriers", "choosing")
_SCRIPTS: Final = resources.files("tabmuxd.webai.providers")


def page_script(main: str) -> str:
    """A function of the marks: the script `main`, which gets the parts."""
    script, *parts = (_SCRIPTS.joinpath(f"{name}.js").read_text("utf-8") for name in (main, *_PARTS))
    told = ", ".join(f"{name}: ({part})" for name, part in zip(_PARTS, parts, strict=True))
    return f"(marks) => ({script})(marks, {{{told}}})"


def marks_of(marks: PageMarks) -> dict[str, object]:
    """The marks of a descriptor as the scripts read them."""
    elements = {
        "composer": marks.composer,
        "send": marks.send,
        "stop": marks.stop,
        "not_send": marks.not_send,
        "busy": marks.busy,
        "not_ready": marks.not_ready,
        **marks.of_files(),
        **marks.barriers(),
        **marks.signs(),
    }
    return {
        "root": marks.root,
        "ready": marks.ready,
        "user_turn": marks.user_turn,
        "assistant_turn": marks.assistant_turn,
        "turn_key": marks.turn_key,
        "prompt_text": marks.prompt_text,
        "prompt_attribute": marks.prompt_attribute,
        "prompt_prefix": marks.prompt_prefix,
        "answer_text": marks.answer_text,
        "done_mark": marks.done_mark,
        "hint_mark": marks.hint_mark,
        "answer_files": marks.answer_files,
        "failure": marks.failure,
        "composer_root": marks.composer_root,
        **{kind: [asdict(mark) for mark in found] for kind, found in elements.items()},
    }
