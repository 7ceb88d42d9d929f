"""The connection to the browser ends under a turn, right after a command was carried out."""

from __future__ import annotations

import pytest
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab

from tests.e2e.conversing import Conversation, end_of
from tests.e2e.killing import Mortal
from tests.e2e.serving import PlaygroundProcess

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(90),
]


@pytest.mark.parametrize(
    "lost",
    [
        "Target.createTarget",
        pytest.param("Target.attachToTarget", marks=pytest.mark.long),
        "Page.navigate",
        pytest.param("Page.createIsolatedWorld", marks=pytest.mark.long),
        "Input.insertText",
        "tabmux.press(",
    ],
)
async def test_turn_goes_on(lost: str, mortal: Mortal, playground: PlaygroundProcess) -> None:
    """A turn whose connection is lost goes on over the next, in one tab, pressed once (SUB-02, O-115, O-128, O-132)."""
    conversation, losses = Conversation(), mortal.log().count("browser_disconnected")
    mortal.lose_answer(lost)
    await conversation.start(mortal)
    turn = await end_of(mortal, await conversation.send(mortal))
    tabs = await mortal.tabs_when(lambda tabs: all(tab.state == Tab.STATE_READY for tab in tabs))

    assert (turn.state, turn.error.reason) == (Turn.STATE_SUCCEEDED, "")
    assert playground.prompts().count(conversation.text) == 1
    # The counts are recorded after what is counted.
    await mortal.browser_when(
        lambda browser: (
            (browser.tab_counts.managed_count, browser.tab_counts.lost_count, browser.tab_counts.foreign_count)
            == (1, 0, 0)
        )
    )
    assert list(await mortal.page_targets()) == [tab.target_id for tab in tabs]
    assert mortal.log().count("browser_disconnected") > losses
