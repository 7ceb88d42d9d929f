"""A server that is killed while it types into a page that sends by itself: what may be sent is not typed again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import grpc.aio
import pytest
import pytest_asyncio
from tabmux.v1.session_pb2 import Turn

from tests.cdp.browsers import fresh_profile
from tests.e2e.killing import Mortal
from tests.e2e.serving import PlaygroundProcess
from tests.e2e.test_conversations import Talk, talk
from tests.hostile.descriptors import describe
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(90),
]


@pytest_asyncio.fixture(loop_scope="module")
async def typist(playground: PlaygroundProcess, site: Site) -> AsyncIterator[Mortal]:
    """A server to kill, which knows the pages that send by themselves."""
    with fresh_profile() as directory:
        for variant in ("sends-silently", "sends-typed"):
            describe(directory, site, variant, windows={"commit_wait": 3.0})
        mortal = Mortal(directory, playground.port)
        try:
            await mortal.revive()
            yield mortal
        finally:
            await mortal.close()


async def _typed_and_killed(server: Mortal, variant: str) -> tuple[Talk, Turn, str]:
    """A prompt whose server was killed right after it had typed it."""
    one, prompt = await talk(server, f"hostile-{variant}"), f"Prompt {uuid4().hex}"
    server.kill_at("type:after")
    turn = await one.ask(prompt)
    try:
        await one.end(turn)
    except grpc.aio.AioRpcError as error:
        assert error.code() is grpc.StatusCode.UNAVAILABLE, error  # noqa: PT017 - how a call ends whose server dies
    await server.killed()
    await server.revive()
    return one, turn, prompt


async def test_sent_unseen(typist: Mortal, site: Site) -> None:
    """What a page took and shows nowhere is SUBMIT_UNCONFIRMED after a restart, not typed again (O-132, SUB-03)."""
    one, turn, prompt = await _typed_and_killed(typist, "sends-silently")

    ended = await one.end(turn)

    assert (ended.error.reason, ended.error.metadata["page_touched"]) == ("SUBMIT_UNCONFIRMED", "unknown")
    assert [got.prompt for got in site.received()].count(prompt) == 1


@pytest.mark.long
async def test_sent_and_shown(typist: Mortal, site: Site) -> None:
    """What a page took and shows is followed to its answer after a restart (O-132, SUB-03)."""
    one, turn, prompt = await _typed_and_killed(typist, "sends-typed")

    ended = await one.end(turn)

    assert (ended.state, ended.answer_markdown) == (Turn.STATE_SUCCEEDED, f"Answer to: {prompt}")
    assert [got.prompt for got in site.received()].count(prompt) == 1
