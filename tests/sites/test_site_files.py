"""Files on ChatGPT, Gemini and Grok by their shipped descriptors, on local pages of their structure and behaviour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from tests.e2e.serving import Server
from tests.e2e.test_conversations import talk
from tests.e2e.test_entering import told
from tests.e2e.test_files import BOTH, both
from tests.hostile.site import Received, Site
from tests.sites.places import stand_for

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.editors,
    pytest.mark.long,
    pytest.mark.timeout(150),
    pytest.mark.usefixtures("closed_afterwards"),
]

_PAGES: Final = {
    "chatgpt": "site-decoys,files",
    "gemini": "site-decoys,files,files-chooser",
    "grok": "site-decoys,files",
}


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a site."""

    def write(directory: Path) -> None:
        for name, traits in _PAGES.items():
            stand_for(directory, site, name, "files", traits)

    return write


async def _journey(server: Server, site: Site, name: str) -> tuple[list[tuple[str, str]], list[Received]]:
    """How a prompt with files, and one without behind it, ended; and all that the page got."""
    one = await talk(server, f"{name}-files")
    prompts = [f"Prompt {uuid4().hex}" for _ in range(2)]
    turns = [
        await one.end(await one.ask(prompts[0], attachments=await both(server))),
        await one.end(await one.ask(prompts[1])),
    ]
    got = [each for each in site.received() if name in each.variant.split(",")]
    # And nothing else of the page was pressed.
    assert [each.prompt for each in got] == prompts, [turn.error for turn in turns]
    return [told(turn) for turn in turns], got


async def test_files(server: Server, site: Site) -> None:
    """Each site gets the files with their prompt, once, and none with the next; nothing else is pressed (SUB-19)."""
    found = await asyncio.gather(*(_journey(server, site, name) for name in _PAGES))
    assert {name: (ends, [each.files for each in got]) for name, (ends, got) in zip(_PAGES, found, strict=True)} == {
        name: ([("SUCCEEDED", "")] * 2, [BOTH, ()]) for name in _PAGES
    }
