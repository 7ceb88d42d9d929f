"""ChatGPT, Gemini and Grok by their shipped descriptors, on local pages of their structure and behaviour."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn

from tests.e2e.serving import Server
from tests.e2e.test_conversations import Talk, talk
from tests.hostile.script import Answer, answer, grow, show
from tests.hostile.site import MODULES, Site
from tests.sites.places import EDITORS, TRAITS, stand_for

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.editors,
    pytest.mark.long,
    pytest.mark.timeout(150),
    pytest.mark.usefixtures("closed_afterwards"),
]

_TEXT: Final = "\n\n".join(f"Paragraph {number} of an answer that has some length." for number in range(9))
_COPIED: Final = _TEXT.replace("answer", "**answer**")
_ROOM: Final = 4
_OTHER: Final = "Other prompt"
"""How the prompts begin that other tests send to the same pages."""


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a page."""
    assert MODULES.exists(), "scripts/editors installs what these pages need"

    def write(directory: Path) -> None:
        for name in EDITORS:
            for trait, traits in TRAITS.items():
                stand_for(directory, site, name, trait, traits)
        stand_for(directory, site, "chatgpt", "work", "work")

    return write


def _thinking(name: str) -> Answer:
    """An answer after a thought: placeholders, a pause without Stop, what precedes an answer, and the whole of it."""
    prefix = "" if name == "gemini" else "Thought for 2s\n\n"
    placeholder = "Generating your response, check back later." if name == "gemini" else "Thought for 1s"
    return answer(
        show(0.2),
        show(0.3, placeholder=placeholder),
        show(0.3, stop=0),
        show(0.2, stop=1),
        grow(prefix + _TEXT, 0.8),
        show(0, stop=0, done=True, copied=_COPIED),
    )


@dataclass(frozen=True)
class Journey:
    """What a conversation came to: states and texts of its turns, prompts that the page got, and its places."""

    states: tuple[str, ...]
    texts: tuple[str, ...]
    received: tuple[str, ...]
    conversation_count: int
    is_named: bool


def _prompts() -> tuple[str, str]:
    return f"First prompt {uuid4().hex}\n\n- with two\n- lines", f"Second prompt {uuid4().hex}"


async def _journey(server: Server, site: Site, name: str, trait: str) -> tuple[Journey, Journey]:
    """Send, then go on in the same conversation; what came of it, and what should have."""
    one = await talk(server, f"{name}-{trait}")
    prompts = _prompts()
    for prompt in prompts:
        site.answer(prompt, _thinking(name))
    turns = [await one.answer(prompt) for prompt in prompts]
    uri = (await one.session()).conversation_uri
    received = [
        got
        for got in site.received()
        if got.variant.split(",") == _variants(site, name, trait) and not got.prompt.startswith(_OTHER)
    ]
    text = _TEXT if trait == "no-copy" else _COPIED
    return (
        Journey(
            tuple(Turn.State.Name(turn.state) + turn.error.reason for turn in turns),
            tuple(turn.answer_markdown for turn in turns),
            tuple(got.prompt for got in received),
            len({got.conversation for got in received}),
            is_named=bool(received) and urlsplit(uri).path.endswith(received[-1].conversation),
        ),
        Journey(("STATE_SUCCEEDED",) * 2, (text,) * 2, prompts, 1, is_named=True),
    )


def _variants(site: Site, name: str, trait: str) -> list[str]:
    return site.hosts[f"{name}-{trait}.localhost"].split(",")


async def _all(
    server: Server, site: Site, pages: list[tuple[str, str]]
) -> tuple[dict[str, Journey], dict[str, Journey]]:
    room = asyncio.Semaphore(_ROOM)

    async def go(name: str, trait: str) -> tuple[Journey, Journey]:
        async with room:
            return await _journey(server, site, name, trait)

    found = await asyncio.gather(*(go(name, trait) for name, trait in pages))
    names = [f"{name}-{trait}" for name, trait in pages]
    return (
        {page: seen for page, (seen, _wanted) in zip(names, found, strict=True)},
        {page: wanted for page, (_seen, wanted) in zip(names, found, strict=True)},
    )


async def test_three_sites(server: Server, site: Site) -> None:
    """Each site takes a prompt and its follow-up once, in one conversation, and gives the whole answer (SUB-20)."""
    seen, wanted = await _all(server, site, [(name, "plain") for name in EDITORS])
    assert seen == wanted


@pytest.mark.parametrize("name", EDITORS)
async def test_pages(name: str, server: Server, site: Site) -> None:
    """So it is on pages that hydrate late, are covered, doubled, in other languages, virtual, or full of decoys.

    (SUB-10, SUB-11, SUB-20, FIN-03, FIN-11, FIN-13, FIN-14, FIN-21)
    """
    seen, wanted = await _all(server, site, [(name, trait) for trait in TRAITS if trait != "plain"])
    assert seen == wanted


@pytest.mark.parametrize("name", EDITORS)
async def test_stop(name: str, server: Server, site: Site) -> None:
    """A cancelled answer is stopped by the site's own control, once, also beside other controls called Stop."""
    one = await talk(server, f"{name}-decoys")
    prompt = site.answer(f"{_OTHER} {uuid4().hex}", answer(show(0.2), grow(_TEXT[:90], 0.5), show(600)))

    turn = await one.ask(prompt)
    assert await one.text(turn)
    cancelled = await one.cancel(turn)

    assert (cancelled.state, site.stop_presses(prompt)) == (Turn.STATE_CANCELLED, 1)
    assert _TEXT.startswith(cancelled.answer_markdown)
    assert [got.prompt for got in site.received(prompt)] == [prompt]


async def test_other_surface(server: Server, site: Site) -> None:
    """Nothing is sent on the Work surface of ChatGPT."""
    prompt = f"Prompt {uuid4().hex}"

    turn = await (await talk(server, "chatgpt-work")).answer(prompt)

    assert (turn.error.reason, turn.error.metadata["page_touched"]) == ("PROVIDER_COMPOSER_UNUSABLE", "no")
    assert site.received(prompt) == []


@pytest.mark.parametrize("name", EDITORS)
async def test_long_prompt(name: str, server: Server, site: Site) -> None:
    """A text of many lines is sent whole (SUB-06, SUB-07)."""
    lines = [f"{number:03d} line é 😀 of a long prompt {uuid4().hex}" for number in range(200)]
    prompt = "\n".join([_OTHER, *lines])
    one: Talk = await talk(server, f"{name}-plain")

    turn = await one.answer(prompt)

    assert (turn.state, turn.error.reason) == (Turn.STATE_SUCCEEDED, "")
    assert [got.prompt for got in site.received() if got.prompt[-32:] == prompt[-32:]] == [prompt]
