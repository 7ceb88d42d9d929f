"""Seating: the session of an open turn gets its tab, under a lease of the service."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from tabmuxd.resources.names import lease_name, new_id
from tabmuxd.resources.orders import TabOrder
from tabmuxd.resources.tab import LoadMilestone
from tabmuxd.tabs.page import Page
from tabmuxd.webai import records
from tabmuxd.webai.conversation import FALLBACK, Conversation

# Whoever waited for room until then is told so, not that time ran out.
_ROOM_MARGIN: Final = timedelta(seconds=1)


async def seat(conversation: Conversation) -> Page:
    """The session's page, at its conversation; opened if it has none."""
    around, session = conversation.around, conversation.session()
    lease = lease_name(new_id(around.random))
    record = around.log.live.tab(session.tab) if session.tab else None
    if record is None:
        order = TabOrder(
            browser=session.browser,
            uri=session.conversation_uri or conversation.descriptor.start_uri,
            group=session.new_tab_group or session.provider,
            activate=session.new_tab_activate,
            until=LoadMilestone.DOM_CONTENT_LOADED,
            room_timeout=max(timedelta(0), conversation.turn().expire_time - around.clock() - _ROOM_MARGIN),
        )
        opened = await around.tabs.open_for(
            session.owner, order, lambda changes, tab: records.bind(changes, conversation.name, tab, lease)
        )
        return await around.tabs.wait_for_page(opened.tab.name, timeout=FALLBACK)

    # Whoever closes tabs by itself holds the line while it does: nobody takes one that is about to close.
    async with around.tabs.turn(record.name):
        await conversation.change(lambda changes: records.take_tab(changes, conversation.name, lease))
    return await around.tabs.wait_for_page(record.name, timeout=FALLBACK)
