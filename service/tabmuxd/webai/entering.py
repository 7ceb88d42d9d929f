"""Entering: the prompt goes into the composer of the session's page, and is read back."""

from __future__ import annotations

import asyncio

from tabmuxd.resources.errors import Refused
from tabmuxd.webai import submission
from tabmuxd.webai.chat_page import ChatPage, PageNotAnswering
from tabmuxd.webai.conversation import RETRY, Conversation
from tabmuxd.webai.samples import Sample, keys


async def make_room(conversation: Conversation, chat: ChatPage, prompt: str) -> Sample:
    """A look at the composer, ready and empty; own leftovers are cleared, others' text is refused."""
    sample = await _composer(conversation, chat)
    if sample.composer_text.strip():
        if not submission.is_own_leftover(sample, prompt):
            raise submission.occupied(conversation.descriptor, chat.page.tab)
        await chat.clear()
        sample = await _composer(conversation, chat)
        if sample.composer_text.strip():
            raise submission.occupied(conversation.descriptor, chat.page.tab)
    return sample


async def enter(conversation: Conversation, chat: ChatPage, sample: Sample, prompt: str) -> tuple[tuple[str, ...], int]:
    """Put the prompt into the composer; gives the baseline and the length that send has to find there."""
    descriptor, tab = conversation.descriptor, chat.page.tab
    if not await chat.type(prompt):
        raise submission.unusable(descriptor, sample, tab)
    deadline = asyncio.get_running_loop().time() + descriptor.windows.composer_wait
    while True:
        sample = await conversation.look_here(chat, keys(sample))
        if submission.holds(sample, prompt) and sample.send_count > 0:
            return keys(sample), submission.utf16_length(sample.composer_text)
        if asyncio.get_running_loop().time() > deadline:
            why = "disabled" if submission.holds(sample, prompt) else "changed"
            raise submission.not_pressed(descriptor, tab, why)
        await chat.changed(RETRY)


async def _composer(conversation: Conversation, chat: ChatPage) -> Sample:
    """A look at a page whose composer takes a prompt; waits for it up to its window."""
    descriptor, tab = conversation.descriptor, chat.page.tab
    deadline = asyncio.get_running_loop().time() + descriptor.windows.composer_wait
    sample: Sample | None = None
    while asyncio.get_running_loop().time() < deadline:
        try:
            sample = await conversation.look_here(chat, ())
        except PageNotAnswering:
            await chat.changed(RETRY)
            continue
        match submission.may_type(descriptor, sample, tab):
            case None:
                return sample
            case "wait":
                await chat.changed(RETRY)
            case Refused() as refused:
                raise refused
    raise submission.unusable(descriptor, sample, tab)
