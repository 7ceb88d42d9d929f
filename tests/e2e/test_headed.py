"""Browsers with windows: how tabs close, which one is in front, and how the browser ends or stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    ActivateTabRequest,
    CloseTabsOutcome,
    CloseTabsRequest,
    WatchTabsRequest,
)

from tests.cdp.browsers import fresh_profile, group_members, running_chromium, until
from tests.e2e.displays import with_windows
from tests.e2e.driving import closed, opened
from tests.e2e.pages import Pages
from tests.e2e.person import person_at
from tests.e2e.refusals import reason
from tests.e2e.serving import LIMIT, Server, browser_leaders, serving
from tests.e2e.watching import watching

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.headed,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(display: str) -> AsyncIterator[Server]:
    """One server for this module, whose browser has windows."""
    with fresh_profile() as directory:
        async with serving(with_windows(directory), 0, display=display) as server:
            yield server


def profile_of(server: Server) -> Path:
    """Profile directory of the browser that the server launched."""
    return server.state_directory / "browsers" / "main"


async def activated(server: Server, tab: Tab) -> Tab:
    """The tab after ActivateTab."""
    return (await server.tabs.ActivateTab(ActivateTabRequest(name=tab.name), timeout=LIMIT)).tab


async def test_last_tab(server: Server) -> None:
    """The last page of a LAUNCHED browser closes, and the next one opens in the same process (O-40, TAB-17)."""
    before = await server.browser()
    assert (before.state, await server.page_targets()) == (Browser.STATE_ACTIVE, {})
    first = await closed(server, await opened(server))
    assert (first.state, first.close_cause) == (Tab.STATE_CLOSED, Tab.CLOSE_CAUSE_CLIENT)
    assert await server.page_targets() == {}

    again = await opened(server)
    after = await server.browser()
    assert (after.state, after.generation) == (Browser.STATE_ACTIVE, before.generation)
    assert await server.page_targets() == {again.target_id: "about:blank"}


async def test_page_that_asks(server: Server, pages: Pages) -> None:
    """A page that would ask before it is left does not stop CloseTab: CLOSED, and it is gone (O-36, O-107)."""
    tab = await opened(server, pages.at("/asks-before-it-is-left"), activate=True)
    async with person_at(profile_of(server)) as person:
        await person.touch(await person.attach(tab.target_id))  # Chrome asks only where a person has touched the page
    after = await closed(server, tab)
    assert (after.state, tab.target_id in await server.page_targets()) == (Tab.STATE_CLOSED, False)


async def test_ends_that_meet(server: Server) -> None:
    """Where two clients and a person close one tab at once, one end is recorded and both calls succeed (O-37)."""
    tab = await opened(server)
    async with watching(server.tabs.WatchTabs(WatchTabsRequest())) as watch, person_at(profile_of(server)) as person:
        _, *answers = await asyncio.gather(
            person.send("Target.closeTarget", targetId=tab.target_id), closed(server, tab), closed(server, tab)
        )
        last = await opened(server)
        await watch.passed(last.revision)
    ends = [event.tab for event in watch.events if event.tab.name == tab.name and event.tab.state == Tab.STATE_CLOSED]
    assert answers == [ends[0], ends[0]]
    assert len(ends) == 1


async def test_front(server: Server) -> None:
    """In one window the tab that was activated is in front; with two windows nothing is certain (O-27, TAB-19)."""
    first, second = await opened(server, activate=True), await opened(server)
    assert (first.front, second.front) == (True, False)
    assert (await activated(server, second)).front
    (listed,) = [tab for tab in await server.list_tabs() if tab.name == first.name]
    assert not listed.front

    async with person_at(profile_of(server)) as person:
        window = await person.call("Target.createTarget", url="about:blank", newWindow=True)
        assert not (await activated(server, first)).front
        await person.close(window["targetId"])
        await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 0)
    assert (await activated(server, first)).front


async def test_keep_front(server: Server) -> None:
    """CloseTabs spares the tab in front if asked; where that is not certain it is NO_FRONT_TAB, and all stay (O-39)."""
    front, other = await opened(server, activate=True), await opened(server)
    request = CloseTabsRequest(all=True, keep_front=True)
    async with person_at(profile_of(server)) as person:
        window = await person.call("Target.createTarget", url="about:blank", newWindow=True)
        assert await reason(server.tabs.CloseTabs(request, timeout=LIMIT)) == "NO_FRONT_TAB"
        assert {tab.name for tab in await server.list_tabs()} == {front.name, other.name}
        await person.close(window["targetId"])
        await server.browser_when(lambda browser: browser.tab_counts.foreign_count == 0)
    outcomes = (await server.tabs.CloseTabs(request, timeout=LIMIT)).outcomes
    assert {outcome.tab: (outcome.action, outcome.skip_reason) for outcome in outcomes} == {
        front.name: (CloseTabsOutcome.ACTION_SKIPPED, CloseTabsOutcome.SKIP_REASON_FRONT),
        other.name: (CloseTabsOutcome.ACTION_CLOSED, CloseTabsOutcome.SKIP_REASON_UNSPECIFIED),
    }
    assert set(await server.page_targets()) == {front.target_id}


async def test_launched_ends(display: str) -> None:
    """SIGTERM ends a LAUNCHED browser with its windows, foreign pages too, and leaves no process (O-32, O-40)."""
    with fresh_profile() as directory:
        async with serving(with_windows(directory), 0, display=display) as server:
            await opened(server)
            async with person_at(profile_of(server)) as person:
                await person.open("about:blank")
            leader = server.browser_pid
            assert await server.terminate() == 0
            until(lambda: not group_members(leader))
            assert browser_leaders(directory) == []


async def test_attached_stays(display: str, pages: Pages) -> None:
    """An ATTACHED browser keeps process and pages when ours close and the server ends (O-32, O-40, TAB-04, PRO-03)."""
    with (
        fresh_profile() as profile,
        running_chromium(profile, display=display) as chromium,
        fresh_profile() as directory,
    ):
        (directory / "tabmuxd.toml").write_text(f'[browsers.main]\naddress = "{chromium.uri}"\n')
        async with person_at(profile) as person:
            foreign = [await person.open_loaded(pages.at(f"/page?title={name}")) for name in ("one", "two")]
            looks = [await person.looks(target_id) for target_id in foreign]
            async with serving(directory, 0) as server:
                gone, kept = await opened(server), await opened(server, pages.at("/page?title=ours"))
                assert (await closed(server, gone)).state == Tab.STATE_CLOSED
                await person.close(kept.target_id)
                left = await opened(server)
                assert await server.terminate() == 0
            assert set(await person.pages()) == {*foreign, left.target_id}
            assert [await person.looks(target_id) for target_id in foreign] == looks
            assert chromium.pid in group_members(chromium.pid)
