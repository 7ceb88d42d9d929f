"""Pages that the pages of our tabs open, over a real server and a real browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tabmux.v1.event_pb2 import ChangeCause, EventKind
from tabmux.v1.tab_pb2 import Dialog, Tab
from tabmux.v1.tab_service_pb2 import (
    CreateTabRequest,
    ListTabsRequest,
    NavigateTabRequest,
    UpdateTabRequest,
)

from tests.e2e.driving import closed, got, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person
from tests.e2e.refusals import reason
from tests.e2e.serving import LIMIT, Server
from tests.e2e.watching import Watching

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


@pytest.fixture(scope="module")
def server_settings() -> str:
    """Two tabs are the limit."""
    return "[browsers.main]\nmax_tab_count = 2\n"


async def run(person: Person, target_id: str, script: str) -> None:
    """Run a script in a page as if somebody had clicked there; nobody waits for its end."""
    session = await person.attach(target_id)
    await person.send("Runtime.evaluate", session, expression=script, userGesture=True)


async def shown(watch: Watching, opener: Tab, *, title: str = "") -> Tab:
    """The popup of this tab once it is READY, with this title if it is given."""
    event = await watch.until(
        lambda event: (
            event.tab.opener == opener.name
            and event.tab.state == Tab.STATE_READY
            and event.tab.uri
            and title in event.tab.title
        )
    )
    return event.tab


def all_ready(count: int) -> Callable[[Sequence[Tab]], bool]:
    """Whether there are so many tabs, all of them READY."""
    return lambda tabs: [tab.state for tab in tabs] == [Tab.STATE_READY] * count


def link(address: str) -> str:
    """A script that follows a link into a new window."""
    return (
        f"(() => {{ const a = document.createElement('a'); a.href = '{address}'; a.target = '_blank'; a.click(); }})()"
    )


async def test_clicked(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """A click that opens a window makes a POPUP with what its opener has, and it drives like any tab (O-99, TAB-16).

    It is recorded as OPENING by the page, is READY after a look, and is never foreign.
    """
    opener = await opened(server, pages.at("/opens-popup"), group="g", labels={"a": "b"}, pinned=True)
    sharing = UpdateTabRequest(name=opener.name, share_with=["local/b"])
    await server.tabs.UpdateTab(sharing, timeout=LIMIT)
    await person.touch(await person.attach(opener.target_id))
    popup = await shown(watch, opener, title="popup")
    events = [event for event in watch.events if event.tab.name == popup.name]
    assert (events[0].kind, events[0].cause) == (EventKind.EVENT_KIND_CREATED, ChangeCause.CHANGE_CAUSE_PAGE)
    assert (events[0].tab.state, events[0].tab.target_id) == (Tab.STATE_OPENING, popup.target_id)
    assert (popup.origin, popup.owner, popup.group) == (Tab.ORIGIN_POPUP, "local", "g")
    assert (list(popup.shared_with), popup.pinned, dict(popup.labels)) == (["local/b"], False, {})
    assert popup.uri == pages.at("/page?title=popup")
    counts = (await server.browser()).tab_counts
    assert (counts.managed_count, counts.popup_count, counts.foreign_count) == (1, 1, 0)
    request = NavigateTabRequest(name=popup.name, uri=pages.at("/page?title=driven"))
    answer = await server.tabs.NavigateTab(request, timeout=LIMIT)
    assert (answer.tab.uri, answer.tab.opener) == (pages.at("/page?title=driven"), opener.name)


@pytest.mark.parametrize(
    "how", ["window.open('/page?title=popup', '', 'noopener')", link("/page?title=popup"), "window.open()"]
)
async def test_ways(server: Server, person: Person, pages: Pages, watch: Watching, how: str) -> None:
    """Windows that are told nothing of their opener, those of links, and blank ones are popups too (O-99, B-8)."""
    opener = await opened(server, pages.at("/page"))
    await run(person, opener.target_id, how)
    popup = await shown(watch, opener)
    assert (popup.origin, popup.opener) == (Tab.ORIGIN_POPUP, opener.name)


async def test_nested_at_limit(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """What a popup opens is a popup of it; all are kept at the limit, and the next CreateTab meets it (O-44, O-99)."""
    opener = await opened(server, pages.at("/page"))
    await run(person, opener.target_id, "window.open('/page?title=one')")
    one = await shown(watch, opener, title="one")
    await run(person, one.target_id, "window.open('/page?title=two')")
    two = await shown(watch, one, title="two")
    assert two.owner == opener.owner
    counts = (await server.browser()).tab_counts
    assert (counts.managed_count, counts.popup_count, counts.foreign_count) == (1, 2, 0)
    assert await reason(server.tabs.CreateTab(CreateTabRequest(), timeout=LIMIT)) == "TAB_CAPACITY"


async def test_opener_closed(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """A popup outlives its opener, and names it (O-35, O-100)."""
    opener = await opened(server, pages.at("/page"))
    await run(person, opener.target_id, "window.open('/page?title=popup')")
    popup = await shown(watch, opener, title="popup")
    await closed(server, opener)
    assert await server.page_targets() == {popup.target_id: popup.uri}
    assert (await got(server, popup)).opener == opener.name
    assert (await closed(server, popup)).close_cause == Tab.CLOSE_CAUSE_CLIENT


async def test_opener_closes_itself(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """An opener that is gone in the same moment leaves no page without a row (O-100)."""
    opener = await opened(server, pages.at("/page"))
    script = "window.open('/page?title=popup', '', 'noopener'); setTimeout(() => window.close(), 0)"
    await run(person, opener.target_id, script)
    # What it shows is not said: Chromium may drop the first address of a page whose opener is gone.
    created = await watch.until(lambda event: event.tab.opener == opener.name)
    await watch.until(lambda event: event.tab.name == opener.name and event.tab.state == Tab.STATE_LOST)
    assert created.tab.origin == Tab.ORIGIN_POPUP
    assert (await server.browser()).tab_counts.foreign_count == 0


async def test_foreign_opener(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """What a foreign page opens is foreign, as is a page that nobody opened (O-101)."""
    foreign = await person.open_loaded(pages.at("/page?title=foreign"))
    await run(person, foreign, "window.open('/page?title=theirs')")
    ours = await opened(server, pages.at("/page"))
    await watch.until(lambda event: event.tab.name == ours.name and event.tab.state == Tab.STATE_READY)
    theirs = [target_id for target_id in await person.pages() if target_id not in {foreign, ours.target_id}]
    listed = await server.tabs.ListTabs(ListTabsRequest(origins=[Tab.ORIGIN_FOREIGN]), timeout=LIMIT)
    assert {tab.target_id for tab in listed.tabs} == {foreign, *theirs}
    assert len(theirs) == 1
    for target_id in (foreign, *theirs):
        await person.close(target_id)


async def test_dialog(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """A dialog that a popup opens is reported; its opener and other tabs go on, and it can be closed (O-102)."""
    opener = await opened(server, pages.at("/page"))
    await run(person, opener.target_id, "window.open('/page?title=popup', '', 'noopener')")
    popup = await shown(watch, opener, title="popup")
    await run(person, popup.target_id, "confirm('?')")
    told = await watch.until(lambda event: event.tab.name == popup.name and event.tab.HasField("dialog"))
    assert told.tab.dialog.kind == Dialog.KIND_CONFIRM
    await server.tabs.NavigateTab(NavigateTabRequest(name=opener.name, uri="about:blank"), timeout=LIMIT)
    assert (await closed(server, told.tab)).state == Tab.STATE_CLOSED


async def test_dialog_policy(server: Server, person: Person, pages: Pages, watch: Watching) -> None:
    """A dialog that a popup opens is answered by the policy that it has from its opener (O-102, O-105)."""
    opener = await opened(server, pages.at("/page"), dialog_policy=Tab.DIALOG_POLICY_ACCEPT)
    await run(person, opener.target_id, "window.open('/page?title=popup', '', 'noopener')")
    popup = await shown(watch, opener, title="popup")
    assert popup.dialog_policy == Tab.DIALOG_POLICY_ACCEPT
    assert await person.evaluate(await person.attach(popup.target_id), "confirm('?')") is True
    assert not (await got(server, popup)).HasField("dialog")


async def test_server_was_away(server: Server, person: Person, pages: Pages) -> None:
    """A popup that opened while no server ran is recorded at the next start, an older one bound (O-100, O-129).

    Nothing is opened or closed for either.
    """
    opener = await opened(server, pages.at("/page"))
    await run(person, opener.target_id, "window.open('/page?title=before')")
    (_, before) = await server.tabs_when(all_ready(2))
    await server.kill()
    await run(person, before.target_id, "window.open('/page?title=away', '', 'noopener')")
    await server.start()
    _, again, away = await server.tabs_when(all_ready(3))
    assert (again.name, again.target_id) == (before.name, before.target_id)
    assert (away.origin, away.opener, away.owner) == (Tab.ORIGIN_POPUP, before.name, opener.owner)
    assert set(await server.page_targets()) == {opener.target_id, before.target_id, away.target_id}
    for tab in (again, away):
        request = NavigateTabRequest(name=tab.name, uri=pages.at("/page?title=driven"))
        assert (await server.tabs.NavigateTab(request, timeout=LIMIT)).tab.target_id == tab.target_id
