"""Models of ChatGPT, Gemini and Grok by their shipped descriptors, on local pages with pickers of their kinds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn

from tests.e2e.serving import Server
from tests.e2e.test_conversations import Talk, talk
from tests.hostile.script import plain
from tests.hostile.site import MODULES, Site
from tests.sites.places import EDITORS, stand_for

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.editors,
    pytest.mark.long,
    pytest.mark.timeout(200),
    pytest.mark.usefixtures("closed_afterwards"),
]

_ROOM: Final = 3


@dataclass(frozen=True)
class Asked:
    """A prompt for a model; `told` is what the page sent of it, or the cause for which nothing was sent.

    `shown`: the model that the page showed. `warned`: codes of warnings.
    """

    model: str
    told: str
    shown: str = ""
    warned: tuple[str, ...] = ()


def _chosen(model: str, told: str, shown: str = "", warned: tuple[str, ...] = ()) -> Asked:
    return Asked(model, told, shown or told.partition(" ")[0], warned)


_ONE: Final = {
    "chatgpt": _chosen("high", "High open High"),
    "gemini": _chosen("pro", "3.1 Pro open 3.1 Pro", "3.1 Pro"),
    "grok": _chosen("expert", "Expert open Expert"),
}
_TRAITS: Final = ("late", "slow", "twins", "menus-closes")
CASES: Final[Mapping[str, tuple[Asked, ...]]] = {
    # Nothing is pressed unasked, nor what is chosen already; a choice stays (SUB-17).
    "chatgpt-plain": (
        _chosen("", "Instant"),
        _chosen("instant", "Instant"),
        _chosen("high", "High open High"),
        _chosen("high", "High"),
        _chosen("", "High"),
        Asked("extra-high", "Extra High open Extra High", "Extra High"),
    ),
    "gemini-plain": (
        _chosen("", "3.1 Flash-Lite", "3.1 Flash-Lite"),
        # One name is the beginning of another's.
        _chosen("flash", "3.1 Flash open 3.1 Flash", "3.1 Flash"),
        _chosen("pro", "3.1 Pro open 3.1 Pro", "3.1 Pro"),
        _chosen("flash-lite", "3.1 Flash-Lite open 3.1 Flash-Lite", "3.1 Flash-Lite"),
        _chosen("deep-think", "Deep Think tools Deep Think", "3.1 Flash-Lite"),
        # It stays on, and would answer for any model.
        _chosen("", "Deep Think", "3.1 Flash-Lite", ("mode-on",)),
        Asked("pro", "mode-on"),
        _chosen("deep-think", "Deep Think", "3.1 Flash-Lite"),
    ),
    "grok-plain": (
        _chosen("", "Auto"),
        _chosen("expert", "Expert open Expert"),
        _chosen("grok-4-3", "Grok 4.3 open Grok 4.3", "Grok 4.3"),
        _chosen("heavy", "Heavy open Heavy"),
    ),
    # Languages.
    "chatgpt-ko": (_chosen("high", "High open High", "높음"), _chosen("pro", "Pro open Pro", "Pro 확장")),
    "chatgpt-zh": (
        _chosen("extra-high", "Extra High open Extra High", "极高"),
        _chosen("high", "High open High", "高"),
    ),
    "gemini-ko": (
        _chosen("pro", "3.1 Pro open 3.1 Pro", "3.1 Pro"),
        _chosen("deep-think", "Deep Think tools Deep Think", "3.1 Pro"),
    ),
    # Other ways to choose in ChatGPT.
    "chatgpt-slider": (
        _chosen("high", "High open ArrowRight ArrowRight escape"),
        _chosen("medium", "Medium open ArrowLeft escape"),
    ),
    "chatgpt-submenu": (_chosen("high", "High open effort High"),),
    "grok-unlabelled": (_chosen("expert", "Expert open Expert"), _chosen("fast", "Fast open Fast")),
    # Pickers that come late, or show late what was chosen; that stand twice, among other menus, or stay open.
    **{f"{name}-{trait}": (asked,) for name, asked in _ONE.items() for trait in _TRAITS},
    **{f"{name}-stays": (replace(asked, told=f"{asked.told} escape"),) for name, asked in _ONE.items()},
    # Not there, not offered, or not to be had.
    "chatgpt-none": (Asked("high", "no-menu"), Asked("", "Instant", "")),
    "gemini-none": (Asked("pro", "no-menu"), Asked("", "3.1 Flash-Lite", "")),
    "grok-gone": (Asked("heavy", "not-offered"), Asked("", "Auto open escape", "Auto")),
    "chatgpt-disabled": (Asked("pro", "disabled"), Asked("", "Instant open escape", "Instant")),
    "gemini-disabled": (Asked("pro", "disabled"), Asked("", "3.1 Flash-Lite open escape", "3.1 Flash-Lite")),
    "chatgpt-other": (Asked("high", "unverified"), Asked("", "Medium open High", "Medium")),
    "grok-upgrade": (Asked("heavy", "unverified"),),
    "chatgpt-flips": (Asked("high", "unverified"), Asked("", "Instant open High", "Instant")),
    # A mode that is on from the start.
    "gemini-deepon": (
        Asked("pro", "mode-on"),
        Asked("", "Deep Think", "3.1 Flash-Lite", ("mode-on",)),
        Asked("deep-think", "Deep Think", "3.1 Flash-Lite"),
    ),
}  # fmt: skip
"""By site and what is special of its picker: prompts of one conversation."""


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a page."""
    assert MODULES.exists(), "scripts/editors installs what these pages need"

    def write(directory: Path) -> None:
        for case in CASES:
            name, trait = case.split("-", 1)
            language = f"{trait}," if trait in ("ko", "zh") else ""
            stand_for(directory, site, name, trait, f"{language}models")

    return write


async def _asked(one: Talk, site: Site, asked: Asked) -> Asked:
    """What came of asking so."""
    prompt = site.answer(f"Prompt {uuid4().hex}", plain("An answer of some words, so that it is one."))
    turn = await one.answer(prompt, model=asked.model)
    received = site.received(prompt)
    warned = tuple(warning.code for warning in turn.warnings)
    if turn.state == Turn.STATE_SUCCEEDED:
        assert turn.model == asked.model
        return Asked(turn.model, " / ".join(got.model for got in received), turn.shown_model, warned)
    metadata = turn.error.metadata
    assert (turn.error.reason, metadata["page_touched"], metadata["retry"], received) == (
        "PROVIDER_MODEL_UNAVAILABLE",
        "no",
        "never",
        [],
    ), turn.error
    return Asked(turn.model, metadata["cause"], turn.shown_model, warned)


async def _case(server: Server, site: Site, case: str) -> tuple[Asked, ...]:
    one = await talk(server, case)
    return tuple([await _asked(one, site, asked) for asked in CASES[case]])


@pytest.mark.parametrize("name", EDITORS)
async def test_models(name: str, server: Server, site: Site) -> None:
    """The model asked for is what the page shows when the prompt goes out, or it does not go out (SUB-17)."""
    cases = [case for case in CASES if case.startswith(name)]
    room = asyncio.Semaphore(_ROOM)

    async def go(case: str) -> tuple[Asked, ...]:
        async with room:
            return await _case(server, site, case)

    found = await asyncio.gather(*(go(case) for case in cases))

    assert dict(zip(cases, found, strict=True)) == {case: CASES[case] for case in cases}
    assert [got.prompt for got in site.received() if got.prompt.startswith("decoy")] == []
