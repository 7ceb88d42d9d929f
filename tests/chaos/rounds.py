"""One round of chaos from its plan to its verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    CloseTabRequest,
    CloseTabsOutcome,
    CloseTabsRequest,
    ListLeasesRequest,
    ListTabsRequest,
    ReleaseLeaseRequest,
)
from tabmux.v1.web_ai_service_pb2 import CancelTurnRequest, WaitTurnRequest
from tabmuxd.events import Log

from tests.chaos import verdict
from tests.chaos.browsers import Chrome, chrome
from tests.chaos.chronicle import chronicle
from tests.chaos.clients import Client
from tests.chaos.operations import work
from tests.chaos.plan import Plan
from tests.chaos.saboteur import Saboteur
from tests.chaos.world import Popup, Turns, World
from tests.e2e.pages import Pages
from tests.e2e.serving import LIMIT, PlaygroundProcess, Server, ended
from tests.events.recording import read_all

_NAMES: Final = ("", *"abcdefg")
_SETTLE_SECONDS: Final = 90
"""The sweep that finds what leaked on an error path comes every 60 s."""


async def play(
    drawn: Plan, directory: Path, attached: Path | None, pages: Pages, playground: PlaygroundProcess
) -> World:
    """Play the round and judge it; all of it is gone afterwards, but for processes that somebody forgot."""
    server = Server(directory, playground.port)
    world = World(drawn, server, pages, playground, Turns(drawn.operations))
    async with chrome(server, pages, attached) as browser:
        async with chronicle(world) as watch:
            clients = [Client(world, number, name) for number, name in enumerate(_NAMES[: drawn.clients])]
            async with asyncio.TaskGroup() as group:
                for client in clients:
                    group.create_task(work(client))
                group.create_task(Saboteur(world, browser, watch).work())
            await _settle(world, browser)
            await _untouched(browser)
            await _clear(world, browser, clients[0])
            tabs = await _all_tabs(server)
            await watch.passed((await server.watch_since(None))[1].revision)
        assert await server.terminate() == 0
        if attached is not None:
            await _untouched(browser)
        async with Log(directory / "tabmuxd.sqlite3", clock=lambda: datetime.now(UTC)) as log:
            truth = await read_all(log, 0)
    verdict.judge_history(watch.calls, truth)
    verdict.judge_leases(truth)
    verdict.judge_tabs(tabs, truth)
    verdict.judge_prompts(world.prompts, playground.prompts())
    verdict.judge_log(server.log())
    return world


async def _settle(world: World, browser: Chrome) -> None:
    """Wait until the store and Chrome agree on what there is."""

    async def look() -> list[str]:
        state = (await world.server.browser()).state
        tabs = await _all_tabs(world.server)
        pages = await browser.person.pages()
        foreign = {*browser.foreign.target_ids, *_strays(world, pages)}
        told = {target_id: f"{info['url']} {info.get('openerId', '')}" for target_id, info in pages.items()}
        away = [] if state == Browser.STATE_ACTIVE else [f"browser: {Browser.State.Name(state)}"]
        return [*away, *verdict.discord(tabs, told, foreign)]

    await world.server.when(look, lambda found: not found, seconds=_SETTLE_SECONDS)


def _strays(world: World, pages: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """Pages that may be foreign though they are not the person's three: those that were given away, and popups.

    A popup is foreign if a foreign or adopted page opened it, or another such popup. Chrome 156 names no opener that is
    closed: if it was so before the server was back, nothing proves the popup ours.
    """
    strays = set(world.spares) & set(pages)
    for target_id, info in pages.items():
        popup = world.popups.get(info["url"])
        if popup is not None and (
            _of_foreign(world, popup) or (not info.get("openerId") and world.outages.met(popup.outages))
        ):
            strays.add(target_id)
    # A popup that shows nothing yet is known by its opener only.
    openers = {target_id: str(info.get("openerId", "")) for target_id, info in pages.items()}
    while found := {each for each, opener in openers.items() if opener in strays | set(world.spares)} - strays:
        strays |= found
    return strays


def _of_foreign(world: World, popup: Popup) -> bool:
    """Whether the popup was opened by a page of the person, or by a popup that may itself be foreign."""
    if popup.opener in world.spares:
        return True
    opener = world.popups.get(popup.opener_address)
    return opener is not None and (_of_foreign(world, opener) or world.outages.met(opener.outages))


async def _untouched(browser: Chrome) -> None:
    """The person's pages are as they were left, and nobody was attached to them."""
    attached = browser.person.attached & browser.foreign.target_ids
    assert attached == set()
    assert await browser.foreign.look_again(browser.person) == browser.foreign
    await browser.person.pages()
    browser.person.attached.clear()


async def _clear(world: World, browser: Chrome, person: Client) -> None:
    """Every turn ends, every lease is given back, every tab closed on request; only the person's pages are left."""
    for name in sorted(world.turn_names):
        await person.ask("CancelTurn", CancelTurnRequest(name=name))
        request = WaitTurnRequest(name=name)
        request.max_wait_duration.FromSeconds(int(LIMIT))
        answer = await person.ask("WaitTurn", request)
        assert ended(answer.turn), answer
        assert answer.turn.state != Turn.STATE_UNSPECIFIED
    for lease in (await person.ask("ListLeases", ListLeasesRequest(page_size=500))).leases:
        assert (await person.ask("ReleaseLease", ReleaseLeaseRequest(name=lease.name))).lease.HasField("end_time")
    for tab in await world.server.list_tabs():
        if not tab.pooled:
            answer = await person.ask("CloseTab", CloseTabRequest(name=tab.name, force=True))
            assert answer.tab.state == Tab.STATE_CLOSED, answer
    answer = await person.ask("CloseTabs", CloseTabsRequest(all=True, any_owner=True))  # what is in the pool
    assert {outcome.action for outcome in answer.outcomes} <= {CloseTabsOutcome.ACTION_CLOSED}, answer
    assert list(await world.server.list_tabs()) == []
    for stray in _strays(world, await browser.person.pages()):
        await browser.person.close(stray)
    await _settle(world, browser)
    assert set(await browser.person.pages()) == browser.foreign.target_ids


async def _all_tabs(server: Server) -> list[Tab]:
    """Every tab there is or was."""
    tabs: list[Tab] = []
    request = ListTabsRequest(page_size=500, states=[state for state in Tab.State.values() if state])
    while True:
        answer = await server.tabs.ListTabs(request, timeout=LIMIT)
        tabs += answer.tabs
        if not answer.next_page_token:
            return tabs
        request.page_token = answer.next_page_token
