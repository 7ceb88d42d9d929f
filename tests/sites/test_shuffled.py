"""Whatever else stands in a page, nothing but its composer is typed into, and nothing but its send control is pressed.

`TABMUX_SITE_PAGES` makes it longer, `TABMUX_SITE_SEED` repeats a run.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn

from tests.e2e.serving import Server
from tests.e2e.test_conversations import talk
from tests.hostile.script import plain
from tests.hostile.site import MODULES, Site
from tests.sites.places import EDITORS, stand_for

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.editors,
    pytest.mark.long,
    pytest.mark.usefixtures("closed_afterwards"),
]

PAGES: Final = int(os.environ.get("TABMUX_SITE_PAGES") or "12")
SEED: Final = int(os.environ.get("TABMUX_SITE_SEED") or secrets.randbelow(1_000_000))
_TEXT: Final = "The answer is some words long, so that it can be told from others."
_ANSWER_TIMEOUT: Final = 25
_ROOM: Final = 4
_REASONS: Final = {
    "PROVIDER_PAGE_CHANGED",
    "PROVIDER_COMPOSER_UNUSABLE",
    "SUBMIT_UNCONFIRMED",
    "ANSWER_TIMEOUT",
}


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a page."""
    assert MODULES.exists(), "scripts/editors installs what these pages need"

    def write(directory: Path) -> None:
        for name in EDITORS:
            for number in range(PAGES):
                stand_for(directory, site, name, str(SEED + number), "shuffled")

    return write


async def _fault(server: Server, site: Site, name: str, number: int) -> str:
    """What is wrong with how a prompt went on such a page; empty where nothing is."""
    provider = f"{name}-{SEED + number}"
    prompt = site.answer(f"Prompt {uuid4().hex} for {provider}", plain(_TEXT))
    one = await talk(server, provider)
    turn = await one.answer(prompt, answer_timeout=_ANSWER_TIMEOUT)
    count = len(site.received(prompt))
    if turn.state == Turn.STATE_SUCCEEDED:
        return "" if (turn.answer_markdown, count) == (_TEXT, 1) else f"{provider}: {count} {turn.answer_markdown!r}"
    may_be_sent = turn.error.metadata["page_touched"] != "no"
    sound = turn.error.reason in _REASONS and (count == 0 or (count == 1 and may_be_sent))
    return "" if sound else f"{provider}: {count} {turn.error.reason} {dict(turn.error.metadata)}"


@pytest.mark.timeout(60 + 20 * PAGES)
@pytest.mark.parametrize("name", EDITORS)
async def test_shuffled(name: str, server: Server, site: Site) -> None:
    """A prompt goes where it belongs, once, or is refused with what the page did not show (SUB-10, SUB-11)."""
    room = asyncio.Semaphore(_ROOM)

    async def go(number: int) -> str:
        async with room:
            return await _fault(server, site, name, number)

    faults = await asyncio.gather(*(go(number) for number in range(PAGES)))

    assert [fault for fault in faults if fault] == []
    assert [got.prompt for got in site.received() if got.prompt.startswith("decoy")] == []
