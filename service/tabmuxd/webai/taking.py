"""Taking: an answer that is whole is read once more, in Markdown: as the page copies it, else from what it shows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from tabmuxd.cdp.errors import CdpError
from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word
from tabmuxd.webai import copies, markdown
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.markdown import NotConvertedError
from tabmuxd.webai.readings import reading

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

WAIT: Final = 5.0
_NO_MARKDOWN: Final = Warning("markdown-failed", "The answer could not be read as Markdown; this is its text alone.")


@dataclass(frozen=True, slots=True)
class Taken:
    """An answer in Markdown, and what is to be told besides.

    `pressed`: the page's copy control may have been pressed for it, and look different since.
    """

    text: str
    warnings: tuple[Warning, ...] = ()
    pressed: bool = False


async def take(conversation: Conversation, shown: str) -> Taken:
    """The whole answer in Markdown, of which the page shows this text; the text itself, with a warning, if that fails.

    An answer without text is nothing to read. Takes at most `WAIT` seconds.
    """
    own, chat = conversation.own, conversation.chat
    if not shown.strip() or own is None or chat is None:
        return Taken(shown)
    keys = tuple(key for key, _text in own.parts)
    pressed = bool(conversation.descriptor.marks.copy)
    try:
        async with asyncio.timeout(WAIT):
            words = reading(await chat.answer_words(keys), conversation.descriptor).text
            found = await _copied(chat, keys, words)
            if found is None:
                found = await _converted(conversation, chat, keys, words)
    except (TimeoutError, CdpError, PageNotAnswering, NotConvertedError) as error:
        _log.info("answer not read as Markdown", turn=conversation.name, error=type(error).__name__)
        found = None
    return Taken(shown, (_NO_MARKDOWN,), pressed) if found is None else Taken(found, (), pressed)


async def _copied(chat: ChatPage, keys: tuple[str, ...], words: str) -> str | None:
    try:
        text = await chat.copied_answer(keys)
    except (CdpError, PageNotAnswering):
        return None
    return text if text is not None and copies.is_copy(text, words) else None


async def _converted(conversation: Conversation, chat: ChatPage, keys: tuple[str, ...], words: str) -> str | None:
    text = reading(await _markdown(await chat.answer_html(keys)), conversation.descriptor).text
    return text if copies.is_whole(text, words) else None


async def _markdown(pieces: Sequence[str]) -> str:
    found: list[str] = []
    for piece in pieces:
        found.append(markdown.from_html(piece))
        await asyncio.sleep(0)  # others have their turn: an answer can be long
    return "\n\n".join(part for part in found if part.strip())
