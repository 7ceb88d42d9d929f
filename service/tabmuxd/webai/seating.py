"""Seating: the session of an open turn gets its tab, under a lease of the service, when it is the turn's turn."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tabmuxd.resources.names import lease_name, new_id
from tabmuxd.tabs.page import Page
from tabmuxd.webai import records, whereabouts
from tabmuxd.webai.conversation import FALLBACK, Conversation
from tabmuxd.webai.line import LinePlace

# Whoever waited for room until then is told so, not that time ran out.
_ROOM_MARGIN: Final = timedelta(seconds=1)


async def seat(conversation: Conversation, place: LinePlace) -> Page:
    """The session's page, at its conversation; opened if it has none, once the provider's line lets the turn in.

    While there is no page to be had, the turn stands aside in that line.
    """
    lease = lease_name(new_id(conversation.around.random))
    try:
        await _take(conversation, lease)
        if not conversation.session().tab:
            # Or there is nothing to wait for.
            whereabouts.home_or_refusal(conversation.descriptor, conversation.session())
        if not place.enter():
            conversation.last_refusal = place.refused
            await place.entered()
            conversation.last_refusal = None
        return await _page(conversation, place, lease)
    except Exception:
        place.step_aside()
        raise


async def _take(conversation: Conversation, lease: str) -> None:
    """Have the tab that the session has held for the turn, so that nobody drives it while the turn waits."""
    around, tab = conversation.around, conversation.session().tab
    if tab and around.log.live.tab(tab) is not None:
        # Whoever closes tabs by itself holds the line while it does: nobody takes one that is about to close.
        async with around.tabs.turn(tab):
            await conversation.change(lambda changes: records.take_tab(changes, conversation.name, lease))


async def _page(conversation: Conversation, place: LinePlace, lease: str) -> Page:
    around, session = conversation.around, conversation.session()
    tab = around.log.live.tab(session.tab) if session.tab else None
    if tab is None:
        left = conversation.turn().expire_time - around.clock() - _ROOM_MARGIN
        order = whereabouts.order_of_tab(conversation.descriptor, session, room_timeout=max(timedelta(0), left))
        opened = await around.tabs.open_for(
            session.owner, order, lambda changes, tab: records.bind(changes, conversation.name, tab, lease), place
        )
        tab = opened.tab
    return await around.tabs.wait_for_page(tab.name, timeout=FALLBACK)
