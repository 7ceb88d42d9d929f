"""Chat pages built on real editors: what the editor's own model holds is what was asked to be sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn

from tests.e2e.serving import Server
from tests.e2e.test_conversations import talk
from tests.hostile.descriptors import TomlValue, describe
from tests.hostile.site import MODULES, Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.editors,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]

COMPOSERS: Final[dict[str, dict[str, TomlValue]]] = {
    "prosemirror": {"composer": ['textarea[name="prompt"]', "#prompt", '[contenteditable="true"]']},
    "quill": {"composer": ["rich-textarea .ql-editor", 'div[contenteditable="true"]']},
}
PROMPTS: Final = {
    "slash": "/command and\n/another",
    "at": "@name\n\n\tthree   blanks\n\n\n👩‍👩‍👧‍👦 e\u0301 ﷽ 🏳️‍🌈 \U0001f600\nשלום עולם\nمرحبا and back",
    "markdown": "# title\n- one\n- two\n1. three\n> said\n```\ncode  here\n```",
    "long": "\n".join(f"{number:05d} 0123456789 é 😀 abcdefghijklmnopqrstuvwxyz" for number in range(1250)),
}
LONG: Final = {("prosemirror", "long")}
"""Takes 8 s of typing."""
CASES: Final = [
    pytest.param(editor, text, id=f"{editor}-{name}", marks=[pytest.mark.long] if (editor, name) in LONG else [])
    for editor in COMPOSERS
    for name, text in PROMPTS.items()
]


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider an editor."""
    assert MODULES.exists(), "scripts/editors installs what these pages need"

    def write(directory: Path) -> None:
        windows = {"composer_wait": 20.0, "commit_wait": 20.0}
        for variant, page in COMPOSERS.items():
            tables = {"policy": {"long_text": "paste" if variant == "quill" else "insert"}}
            describe(directory, site, variant, page=page, windows=windows, tables=tables)

    return write


@pytest.mark.parametrize(("editor", "text"), CASES)
async def test_editor(editor: str, text: str, server: Server, site: Site) -> None:
    """Each line and character is in the editor's own model, and is sent once (SUB-06, SUB-07)."""
    prompt = f"{text}\n{uuid4().hex}"
    turn = await (await talk(server, f"hostile-{editor}")).answer(prompt)

    mark = prompt[-32:]
    assert (turn.state, turn.error.reason) == (Turn.STATE_SUCCEEDED, "")
    assert [found.prompt for found in site.received() if mark in found.prompt] == [prompt]
