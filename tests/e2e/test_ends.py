"""How tabs end, and what becomes of closes that fail, in a browser behind a relay that fails when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.event_pb2 import EventKind
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    AdoptTabRequest,
    CloseTabsRequest,
    NavigateTabRequest,
    Navigation,
    WatchTabsRequest,
)

from tests.cdp.browsers import RunningChromium
from tests.e2e.driving import closed, got, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.refusals import reason, refusal
from tests.e2e.relay import Relay
from tests.e2e.serving import LIMIT, Server
from tests.e2e.watching import watching

Fields: TypeAlias = Any
"""Fields of a request, by name."""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("cleared_afterwards"),
]


@pytest.fixture(scope="module")
def server_settings(relay: Relay) -> str:
    """Attached to somebody's browser, through the relay."""
    return f'[browsers.main]\naddress = "{relay.uri}"\n'


@pytest_asyncio.fixture(loop_scope="module")
async def person(chromium: RunningChromium) -> AsyncIterator[Person]:
    """The one whose browser it is."""
    async with person_at(chromium.profile) as person:
        yield person


def spoil(server: Server, tab: Tab, **columns: str) -> None:
    """Write SQL in place of values of a tab, in the store of a server that does not run."""
    changes = ", ".join(f"{column} = {value}" for column, value in columns.items())
    with contextlib.closing(sqlite3.connect(server.state_directory / "tabmuxd.sqlite3")) as connection:
        connection.execute(f"UPDATE tabs SET {changes} WHERE name = ?", [tab.name])  # noqa: S608 - of tests below
        connection.commit()


# Closing


async def test_closes_that_alone(server: Server, person: Person, pages: Pages, relay: Relay) -> None:
    """When one tab closes, exactly its target goes; popup, foreign page and a call at work elsewhere go on (O-35)."""
    foreign = await person.open_loaded(pages.at("/page?title=foreign"))
    one, two = await opened(server, pages.at("/page")), await opened(server, pages.at("/page"))
    session = await person.attach(one.target_id)
    await person.call("Runtime.evaluate", session, expression="window.open('/page?title=pop')", userGesture=True)
    (popup,) = [tab for tab in await server.tabs_when(lambda tabs: len(tabs) == 3) if tab.opener == one.name]
    request = NavigateTabRequest(name=two.name, uri=pages.at("/never"), milestone_timeout=Duration(seconds=2))
    at_work = asyncio.ensure_future(server.tabs.NavigateTab(request, timeout=LIMIT))
    assert (await closed(server, one)).close_cause == Tab.CLOSE_CAUSE_CLIENT
    assert (await at_work).navigation.outcome == Navigation.OUTCOME_UNCONFIRMED
    assert set(await person.pages()) == {foreign, two.target_id, popup.target_id}
    assert relay.count("Target.closeTarget") >= 1
    assert {c.target_id for c in relay.commands if c.method == "Target.closeTarget"} == {one.target_id}


async def test_asks_before_it_is_left(server: Server, person: Person, pages: Pages) -> None:
    """A page that asks before it is left is closed regardless (O-36, O-107, PAG-09)."""
    tab = await opened(server, pages.at("/asks-before-it-is-left"))
    await person.touch(await person.attach(tab.target_id))
    assert (await closed(server, tab)).state == Tab.STATE_CLOSED
    assert await person.pages() == {}


async def test_closes_meet(server: Server, person: Person) -> None:
    """Closes of several kinds and a person's meet on one tab: one end is recorded, and each call succeeds (O-37)."""
    tab = await opened(server)
    quick = Duration(seconds=1)
    async with watching(server.tabs.WatchTabs(WatchTabsRequest(tabs=[tab.name], bookmark_interval=quick))) as watch:
        answers = await asyncio.gather(
            closed(server, tab),
            closed(server, tab, force=True),
            server.tabs.CloseTabs(CloseTabsRequest(all=True), timeout=LIMIT),
            person.send("Target.closeTarget", targetId=tab.target_id),
            closed(server, tab),
        )
        ended = await got(server, tab)
        assert {answers[0].close_cause, answers[1].close_cause, answers[4].close_cause} == {ended.close_cause}
        await watch.passed(ended.revision)
        assert [event.kind for event in watch.events][-1:] == [EventKind.EVENT_KIND_ENDED]
        assert [event.kind for event in watch.events].count(EventKind.EVENT_KIND_ENDED) == 1


async def test_last_page(server: Server, person: Person, relay: Relay) -> None:
    """The last page of somebody's browser closes when asked, its browser hears nothing, and another opens (O-40)."""
    await closed(server, await opened(server))
    assert await person.pages() == {}
    assert (await opened(server)).state == Tab.STATE_READY
    assert relay.count("Browser.close") == 0


# Closes that fail


async def test_close_fails(server: Server, person: Person, relay: Relay) -> None:
    """A close that is not seen is BROWSER_UNREACHABLE, the tab stays READY, and it closes soon after (O-36, O-127)."""
    tab, other = await opened(server), await opened(server)
    relay.refused.add("Target.closeTarget")
    try:
        refused = await refusal(closed(server, tab))
        assert (refused.reason, (await got(server, tab)).state) == ("BROWSER_UNREACHABLE", Tab.STATE_READY)
    finally:
        relay.refused.clear()
    (left,) = await server.tabs_when(lambda tabs: len(tabs) == 1)
    ended = await got(server, tab)
    assert (ended.state, ended.close_cause) == (Tab.STATE_CLOSED, Tab.CLOSE_CAUSE_CLIENT)
    assert (left.name, set(await person.pages())) == (other.name, {other.target_id})


async def test_came_back(server: Server, pages: Pages, relay: Relay) -> None:
    """If somebody goes on with the tab after a close that failed, it is not closed behind their back (O-126)."""
    tab = await opened(server)
    relay.refused.add("Target.closeTarget")
    try:
        assert await reason(closed(server, tab)) == "BROWSER_UNREACHABLE"
        request = NavigateTabRequest(name=tab.name, uri=pages.at("/page"))
        await server.tabs.NavigateTab(request, timeout=LIMIT)
    finally:
        relay.refused.clear()
    relay.commands.clear()
    # Longer than until the second attempt: a navigation that ends by its own time.
    request = NavigateTabRequest(name=tab.name, uri=pages.at("/never"), milestone_timeout=Duration(seconds=4))
    await server.tabs.NavigateTab(request, timeout=LIMIT)
    assert (await got(server, tab)).state == Tab.STATE_READY
    assert relay.count("Target.closeTarget") == 0


async def test_close_while_away(server: Server, person: Person, relay: Relay) -> None:
    """A close that is asked for while the browser is away is owed, and done after the reconnect (O-36, O-127)."""
    tab, other = await opened(server), await opened(server)
    await relay.cut()
    await server.browser_when(lambda browser: browser.state == Browser.STATE_UNREACHABLE)
    assert await reason(closed(server, tab)) == "BROWSER_UNREACHABLE"
    assert (await got(server, tab)).state == Tab.STATE_READY
    relay.mend()
    assert [each.name for each in await server.tabs_when(lambda tabs: len(tabs) == 1)] == [other.name]
    assert (await got(server, tab)).close_cause == Tab.CLOSE_CAUSE_CLIENT
    assert set(await person.pages()) == {other.target_id}


# What outlived its tab, and rows that cannot be read


async def test_orphans(server: Server, person: Person, pages: Pages) -> None:
    """At its start the server closes what is proven to have outlived its tab, and nothing else (O-123, O-124, O-128).

    Not what was in an older process, what a person gave away, nor what is only at the address of a tab of ours.
    """
    one, older, live = [await opened(server, pages.at("/page?title=ours")) for _ in range(3)]
    adoption = AdoptTabRequest(target_id=await person.open_loaded(pages.at("/page?title=given")))
    given = (await server.tabs.AdoptTab(adoption, timeout=LIMIT)).tab
    foreign = await person.open_loaded(pages.at("/page?title=ours"))
    await server.kill()
    for tab in (one, older, given):
        spoil(server, tab, state="6", ended="1", close_cause="1", close_time="update_time")
    spoil(server, older, browser_generation="0")
    await server.start()
    await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 3)
    assert set(await person.pages()) == {older.target_id, live.target_id, given.target_id, foreign}
    assert (await got(server, live)).state == Tab.STATE_READY
    assert '"orphans closed"' in server.log()


async def test_unreadable(server: Server, person: Person, pages: Pages) -> None:
    """Rows of which a column was spoilt are kept and flagged; nothing is closed or taken for them, all else works.

    (O-125.)
    """
    spoilt = {
        "target_id": "x'00'",
        "generation": "'garbage'",
        "owner": "''",
        "state": "99",
        "browser_generation": "'1'",
        "origin": "0",
    }
    tabs = {column: await opened(server, pages.at(f"/page?title={column}")) for column in spoilt}
    live = await opened(server, pages.at("/page?title=live"))
    await server.kill()
    for column, value in spoilt.items():
        spoil(server, tabs[column], **{column: value})
    await server.start()
    # `'1'` is a number to SQLite, and so to us.
    readable = [tabs["browser_generation"].name, live.name]
    assert [tab.name for tab in await server.list_tabs()] == readable
    targets = {tab.target_id for tab in (*tabs.values(), live)}
    assert set(await person.pages()) == targets
    assert (await server.browser()).tab_counts.foreign_count == len(targets) - 2
    assert server.log().count('"row cannot be read"') == len(spoilt) - 1
    request = NavigateTabRequest(name=live.name, uri=pages.at("/page?title=driven"))
    assert (await server.tabs.NavigateTab(request, timeout=LIMIT)).tab.target_id == live.target_id
    assert (await opened(server)).state == Tab.STATE_READY
    assert targets <= set(await person.pages())
    with contextlib.closing(sqlite3.connect(server.state_directory / "tabmuxd.sqlite3")) as connection:
        kept = {name for (name,) in connection.execute("SELECT name FROM tabs WHERE ended = 0")}
    assert {tab.name for tab in tabs.values()} <= kept
