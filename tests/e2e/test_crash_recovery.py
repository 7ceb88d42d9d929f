"""The server is killed while it brings a tab back; pages are closed and crash while no server runs."""

from __future__ import annotations

import pytest
from tabmux.v1.event_pb2 import ChangeCause
from tabmux.v1.tab_pb2 import Tab

from tests.e2e.driving import opened
from tests.e2e.killing import Mortal
from tests.e2e.person import person_at
from tests.e2e.serving import PlaygroundProcess

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.slow,
    pytest.mark.timeout(90),
]


@pytest.mark.parametrize("moment", ["created:after", "back:before"])
async def test_killed_while_a_tab_comes_back(moment: str, mortal: Mortal, playground: PlaygroundProcess) -> None:
    """What was made for a tab that came back when the server was killed is closed, and it comes back (O-111, O-129)."""
    uri = f"http://textarea.localhost:{playground.port}/"
    generation = (await mortal.browser()).generation
    tab = await opened(mortal, uri, pinned=True)
    await mortal.kill()
    async with person_at(mortal.state_directory / "browsers" / "main") as person:
        await person.close(tab.target_id)
    mortal.begin_mortal(moment)
    await mortal.killed()
    await mortal.revive()
    tabs = await mortal.tabs_when(lambda tabs: [tab.state for tab in tabs] == [Tab.STATE_READY])
    browser = await mortal.browser()

    assert [(back.name, back.uri, back.generation, back.pinned) for back in tabs] == [(tab.name, uri, 2, True)]
    assert list(await mortal.page_targets()) == [tabs[0].target_id]
    counts = browser.tab_counts
    assert (counts.managed_count, counts.foreign_count, browser.generation) == (1, 0, generation)


async def test_lost_and_crashed_meanwhile(mortal: Mortal, playground: PlaygroundProcess) -> None:
    """What crashed while no server ran is CRASHED by the repeated event, what was closed is LOST (O-82, O-110, O-111).

    The pinned ones come back: the crashed one in its own target, the lost one in another. The others wait.
    """
    uri = f"http://textarea.localhost:{playground.port}/"
    crashed, lost = await opened(mortal, uri, pinned=False), await opened(mortal, uri, pinned=False)
    kept_crashed, kept_lost = await opened(mortal, uri, pinned=True), await opened(mortal, uri, pinned=True)
    _, before = await mortal.watch_since(None)
    await mortal.kill()
    async with person_at(mortal.state_directory / "browsers" / "main") as person:
        for tab in (crashed, kept_crashed):
            session = await person.attach(tab.target_id)
            await person.call("Inspector.enable", session)
            gone = person.event("Inspector.targetCrashed", session)
            await person.send("Page.crash", session)
            await gone
        for tab in (lost, kept_lost):
            await person.close(tab.target_id)

    await mortal.revive()
    wanted = {
        crashed.name: (Tab.STATE_CRASHED, 0, 1),
        lost.name: (Tab.STATE_LOST, 0, 1),
        kept_crashed.name: (Tab.STATE_READY, 1, 1),
        kept_lost.name: (Tab.STATE_READY, 1, 2),
    }
    tabs = await mortal.tabs_when(
        lambda tabs: {tab.name: (tab.state, tab.recovery_count, tab.generation) for tab in tabs} == wanted
    )
    events, _ = await mortal.watch_since(before)
    # The first of each state: titles and health are recorded later.
    causes = {
        (event.tab.name, event.tab.state, event.tab.generation): event.cause
        for event in reversed(events)
        if event.tab.name
    }

    assert causes[crashed.name, Tab.STATE_CRASHED, 1] == ChangeCause.CHANGE_CAUSE_CRASH
    assert causes[lost.name, Tab.STATE_LOST, 1] == ChangeCause.CHANGE_CAUSE_PERSON
    assert causes[kept_lost.name, Tab.STATE_READY, 2] == ChangeCause.CHANGE_CAUSE_RECOVERY
    targets = {tab.name: tab.target_id for tab in tabs}
    assert targets[kept_crashed.name] == kept_crashed.target_id
    assert set(await mortal.page_targets()) == {targets[name] for name in targets if name != lost.name}
