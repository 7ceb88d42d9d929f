"""Shells: a page that was loaded and never showed its application is loaded once more, before anything is typed."""

from __future__ import annotations

from typing import Final
from urllib.parse import urldefrag

from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.tab import LoadMilestone
from tabmuxd.webai.chat_page import ChatPage
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.samples import Sample

_CHARACTERS: Final = 500
_LOOK_TIMEOUT: Final = 5.0
_LOAD_TIMEOUT: Final = 10.0
_COUNT: Final = "(document.body?.innerText ?? '').trim().length"


def may_be_shell(refused: Refused) -> bool:
    """Whether a prompt was refused because no composer came."""
    return refused.reason is Reason.PROVIDER_COMPOSER_UNUSABLE and refused.metadata.get("cause") == "absent"


def is_shell(sample: Sample, character_count: object) -> bool:
    """Whether a page shows neither composer, turns, nor what stands in the way, and hardly a text."""
    bare = sample.composer == "absent" and not (sample.turns or sample.stop or sample.barrier or sample.failure)
    return bare and isinstance(character_count, int) and character_count < _CHARACTERS


async def reload(chat: ChatPage, descriptor: Descriptor) -> bool:
    """Load the page again at its address if it is a shell; whether that was ordered. Raises CdpError, PageNotAnswering.

    Raises Refused where it cannot be loaded.
    """
    page = chat.page
    if not descriptor.is_at(page.shown_uri):
        return False
    sample = await chat.look(None)
    if not is_shell(sample, await page.value_apart(_COUNT, timeout=_LOOK_TIMEOUT)):
        return False
    await page.navigate(urldefrag(page.shown_uri).url, until=LoadMilestone.DOM_CONTENT_LOADED, timeout=_LOAD_TIMEOUT)
    return True
