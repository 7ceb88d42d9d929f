"""The model that a prompt asks for, on the playground's pages: chosen by their menu, or the prompt is not sent."""

from __future__ import annotations

from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.provider_pb2 import Provider, ProviderCapability
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.web_ai_service_pb2 import GetProviderStatusRequest, ListProvidersRequest

from tests.e2e.person import Person
from tests.e2e.refusals import reason
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server
from tests.e2e.test_conversations import PROVIDERS, TEXTAREA, Talk, talk, unique

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


_OPEN: Final = "document.querySelector('[role=menu]') !== null"
_ONCE_OPEN: Final = f"new Promise((go) => {{ const look = () => ({_OPEN} ? go() : setTimeout(look, 20)); look(); }})"


async def _shown(one: Talk) -> str:
    request = GetProviderStatusRequest(tab=(await one.session()).tab)
    return (await one.server.ai.GetProviderStatus(request, timeout=LIMIT)).status.shown_model


@pytest.mark.parametrize(
    "provider", [PROVIDERS[0], *(pytest.param(one, marks=pytest.mark.long) for one in PROVIDERS[1:])]
)
async def test_chosen(provider: str, server: Server, playground: PlaygroundProcess) -> None:
    """A model is chosen where it is asked for, and stays where none is; the turn tells both (SUB-17)."""
    one = await talk(server, provider)
    prompts = [unique() for _ in range(4)]

    turns = [
        await one.answer(prompt, model=model)
        for prompt, model in zip(prompts, ["thorough", "", "thorough", "quick"], strict=True)
    ]

    assert [(Turn.State.Name(turn.state) + turn.error.reason, turn.model, turn.shown_model) for turn in turns] == [
        ("STATE_SUCCEEDED", "thorough", "Thorough"),
        ("STATE_SUCCEEDED", "", "Thorough"),
        ("STATE_SUCCEEDED", "thorough", "Thorough"),
        ("STATE_SUCCEEDED", "quick", "Quick"),
    ]
    assert [sent for sent in playground.prompts() if sent in prompts] == prompts
    assert await _shown(one) == "Quick"


@pytest.mark.long
async def test_for_others(server: Server, playground: PlaygroundProcess) -> None:
    """A model that cannot be chosen ends the turn before anything is typed, and the page is as it was (SUB-17)."""
    one = await talk(server)
    prompt, next_prompt = unique(), unique()

    turn = await one.answer(prompt, model="thorough-max")
    following = await one.answer(next_prompt)

    assert (turn.error.reason, dict(turn.error.metadata), turn.model) == (
        "PROVIDER_MODEL_UNAVAILABLE",
        {
            "provider": TEXTAREA,
            "model": "thorough-max",
            "cause": "disabled",
            "page_touched": "no",
            "retry": "never",
        },
        "thorough-max",
    )
    assert (following.state, following.shown_model) == (Turn.STATE_SUCCEEDED, "Quick")
    assert [sent for sent in playground.prompts() if sent in (prompt, next_prompt)] == [next_prompt]


@pytest.mark.long
async def test_refused(server: Server) -> None:
    """A model that no prompt may ask for is refused at once; with another one it is another request."""
    one = await talk(server)
    key = uuid4().hex

    unknown = await reason(one.ask(unique(), model="no-such-model", request_id=key))
    turn = await one.ask("One {{plain=1 seconds=0.1}}", model="quick", request_id=key)
    reused = await reason(one.ask("One {{plain=1 seconds=0.1}}", model="thorough", request_id=key))
    again = await one.ask("One {{plain=1 seconds=0.1}}", model="quick", request_id=key)

    assert (unknown, reused, again.name) == ("PROVIDER_MODEL_UNAVAILABLE", "REQUEST_ID_REUSED", turn.name)
    await one.end(turn)


async def test_told(server: Server) -> None:
    """Providers tell which models a prompt may ask for, and that one can."""
    reply = await server.ai.ListProviders(ListProvidersRequest(), timeout=LIMIT)
    found = {provider.id: provider for provider in reply.providers}

    def told(provider: Provider) -> tuple[list[str], bool]:
        return list(provider.models), ProviderCapability.PROVIDER_CAPABILITY_MODEL_CHOICE in provider.capabilities

    assert {one: told(found[one]) for one in (TEXTAREA, "chatgpt", "gemini", "grok")} == {
        TEXTAREA: (["quick", "thorough", "thorough-max"], True),
        "chatgpt": (["instant", "medium", "high", "extra-high", "pro", "web-search"], True),
        "gemini": (["flash-lite", "flash", "pro", "deep-think"], True),
        "grok": (["auto", "fast", "expert", "grok-4-3", "heavy"], True),
    }


@pytest.mark.long
async def test_cancelled_while_choosing(server: Server, person: Person, playground: PlaygroundProcess) -> None:
    """A turn that is cancelled in the middle of a menu leaves none open, and nothing is sent (SUB-17)."""
    one = await talk(server)
    assert (await one.answer(unique())).state == Turn.STATE_SUCCEEDED
    page = await person.attach((await one.tab()).target_id)
    prompt = unique()

    turn = await one.ask(prompt, model="thorough-max")
    await person.call("Runtime.evaluate", page, expression=_ONCE_OPEN, awaitPromise=True)
    cancelled = await one.cancel(turn)
    is_open = await person.evaluate(page, _OPEN)
    following = await one.answer(unique())

    # On a slow machine it has failed by then, since that model cannot be chosen.
    assert cancelled.state in (Turn.STATE_CANCELLED, Turn.STATE_FAILED)
    assert (is_open, following.state) == (False, Turn.STATE_SUCCEEDED)
    assert prompt not in playground.prompts()
