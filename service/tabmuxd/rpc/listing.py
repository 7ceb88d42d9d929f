"""One page of each list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tabmux.v1 import tab_service_pb2 as pb
from tabmux.v1 import web_ai_service_pb2 as ai_pb

from tabmuxd.resources.browser import Browser, TabCounts
from tabmuxd.resources.orders import SessionFilter, TabFilter
from tabmuxd.resources.provider import Provider
from tabmuxd.resources.tab import TabOrigin
from tabmuxd.rpc.domain import Leases, Sessions, Tabs
from tabmuxd.rpc.pages import MAX_REVISION, Page, fitting, not_ours
from tabmuxd.wire import (
    browser_message,
    foreign_tab_message,
    lease_message,
    progress_message,
    provider_message,
    session_message,
    tab_message,
    turn_message,
)

_ONLY_FOREIGN: Final = frozenset({TabOrigin.FOREIGN})
_FOREIGN_KEY_LENGTH: Final = (
    2  # a browser's name and a target id; our own tabs have one part, their revision of creation
)


async def tabs_page(tabs: Tabs, wanted: TabFilter, page: Page) -> pb.ListTabsResponse:
    """Our tabs, oldest first; after the last of them the foreign ones, if `wanted` asks for them."""
    response = pb.ListTabsResponse(progress=progress_message(page.place.progress))
    key = page.place.key
    behind_foreign = key if len(key) == _FOREIGN_KEY_LENGTH else ()
    if not behind_foreign and wanted.origins != _ONLY_FOREIGN:
        listed = await tabs.list(wanted, after=_revision(key), count=page.size + 1)
        response.tabs.extend(fitting((tab_message(tab) for _, tab in listed), page.size))
        if len(response.tabs) < len(listed):
            response.next_page_token = page.token_behind(str(listed[len(response.tabs) - 1][0]))
            return response
    if _foreign_wanted(wanted):
        await _add_foreign(response, tabs, wanted, page, behind_foreign)
    return response


def browsers_page(browsers: Sequence[tuple[Browser, TabCounts]], page: Page) -> pb.ListBrowsersResponse:
    """Browsers, by name."""
    behind = page.place.key[0] if page.place.key else ""
    rest = [(browser, counts) for browser, counts in browsers if browser.name > behind]
    taken = fitting((browser_message(browser, counts) for browser, counts in rest), page.size)
    return pb.ListBrowsersResponse(
        browsers=taken,
        next_page_token=page.token_behind(taken[-1].name) if len(taken) < len(rest) else "",
        progress=progress_message(page.place.progress),
    )


def providers_page(providers: Sequence[Provider], page: Page) -> ai_pb.ListProvidersResponse:
    """Providers, by id."""
    behind = page.place.key[0] if page.place.key else ""
    rest = [provider for provider in providers if provider.id > behind]
    taken = fitting((provider_message(provider) for provider in rest), page.size)
    return ai_pb.ListProvidersResponse(
        providers=taken, next_page_token=page.token_behind(taken[-1].id) if len(taken) < len(rest) else ""
    )


async def leases_page(leases: Leases, tab: str, page: Page) -> pb.ListLeasesResponse:
    """Live leases, oldest first; with `tab` only the one that holds it."""
    listed = await leases.list(tab, after=_revision(page.place.key), count=page.size + 1)
    taken = fitting((lease_message(lease) for _, lease in listed), page.size)
    return pb.ListLeasesResponse(
        leases=taken,
        next_page_token=_token(page, listed, len(taken)),
        progress=progress_message(page.place.progress),
    )


async def sessions_page(sessions: Sessions, wanted: SessionFilter, page: Page) -> ai_pb.ListSessionsResponse:
    """Sessions that match, oldest first."""
    listed = await sessions.list(wanted, after=_revision(page.place.key), count=page.size + 1)
    taken = fitting((session_message(session) for _, session in listed), page.size)
    return ai_pb.ListSessionsResponse(
        sessions=taken,
        next_page_token=_token(page, listed, len(taken)),
        progress=progress_message(page.place.progress),
    )


async def turns_page(sessions: Sessions, session: str, page: Page) -> ai_pb.ListTurnsResponse:
    """Turns of one session, oldest first."""
    listed = await sessions.list_turns(session, after=_revision(page.place.key), count=page.size + 1)
    taken = fitting((turn_message(turn, with_answer=False) for _, turn in listed), page.size)
    return ai_pb.ListTurnsResponse(
        turns=taken,
        next_page_token=_token(page, listed, len(taken)),
        progress=progress_message(page.place.progress),
    )


def _token(page: Page, listed: Sequence[tuple[int, object]], taken: int) -> str:
    """Token of the page behind the first `taken` of what was listed; empty where that is all."""
    return page.token_behind(str(listed[taken - 1][0])) if taken < len(listed) else ""


async def _add_foreign(
    response: pb.ListTabsResponse, tabs: Tabs, wanted: TabFilter, page: Page, behind: tuple[str, ...]
) -> None:
    rest = [target for target in await tabs.foreign_targets(wanted.browser) if target > behind]
    free = page.size - len(response.tabs)
    if rest and not free:
        # The page is full of our own; the next one begins with the first foreign tab.
        response.next_page_token = page.token_behind("", "")
        return
    response.tabs.extend(foreign_tab_message(target_id) for _, target_id in rest[:free])
    if len(rest) > free:
        response.next_page_token = page.token_behind(*rest[free - 1])


def _foreign_wanted(wanted: TabFilter) -> bool:
    """Whether foreign tabs match: they have no group and no labels, and states do not concern them."""
    return TabOrigin.FOREIGN in wanted.origins and not wanted.labels and (not wanted.groups or "" in wanted.groups)


def _revision(key: tuple[str, ...]) -> int:
    match key:
        case ():
            return 0
        case (digits,) if digits.isdecimal() and int(digits) <= MAX_REVISION:
            return int(digits)
        case _:
            raise not_ours()
