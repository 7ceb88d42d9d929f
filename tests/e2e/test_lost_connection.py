"""The connection to the browser ends under a turn, right after a command was carried out."""

from __future__ import annotations

from pathlib import Path

import pytest
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab

from tests.e2e.conversing import Conversation, end_of
from tests.e2e.crashing_server import crashing
from tests.e2e.serving import PlaygroundProcess, serving

pytestmark = [pytest.mark.chromium, pytest.mark.slow, pytest.mark.timeout(90)]


@pytest.mark.parametrize(
    "lost",
    [
        "Target.createTarget",
        "Target.attachToTarget",
        "Page.navigate",
        "Page.createIsolatedWorld",
        "Input.insertText",
        "tabmux.press(",
    ],
)
async def test_turn_goes_on(lost: str, state_directory: Path, playground: PlaygroundProcess) -> None:
    """A turn whose connection is lost goes on over the next, in one tab, pressed once (SUB-02, O-115, O-128, O-132)."""
    conversation = Conversation()
    async with serving(state_directory, playground.port, *crashing(lose=lost)) as server:
        await conversation.start(server)
        turn = await end_of(server, await conversation.send(server))
        tabs = await server.tabs_when(lambda tabs: all(tab.state == Tab.STATE_READY for tab in tabs))
        counts = (await server.browser()).tab_counts

        assert (turn.state, turn.error.reason) == (Turn.STATE_SUCCEEDED, "")
        assert playground.prompts().count(conversation.text) == 1
        assert list(await server.page_targets()) == [tab.target_id for tab in tabs]
        assert (counts.managed_count, counts.lost_count, counts.foreign_count) == (1, 0, 0)
        assert "browser_disconnected" in server.log()
