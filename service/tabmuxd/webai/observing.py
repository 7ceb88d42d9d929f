"""Observing: the answer of a turn that was submitted is followed to its end, or stopped."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final, assert_never

from tabmuxd.cdp.errors import CdpError
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.session import CompletionEvidence
from tabmuxd.webai import completion, failures, records
from tabmuxd.webai.answers import Feed
from tabmuxd.webai.chat_page import PageNotAnswering
from tabmuxd.webai.conversation import FALLBACK, Conversation
from tabmuxd.webai.records import TurnEnded
from tabmuxd.webai.samples import Sample, own_turn

_STOP_WAIT: Final = 3.0
_LOOK_AGAIN: Final = 0.2


async def follow(conversation: Conversation, feed: Feed) -> CompletionEvidence:
    """Show the answer in `feed` as it grows; gives why it is whole. Raises what else it ended with."""
    turn, loop = conversation.turn(), asyncio.get_running_loop()
    windows, placeholders = conversation.descriptor.windows, conversation.descriptor.placeholders
    seen = completion.Observation(quiet_since=loop.time())
    while True:
        sample, own = await conversation.see(turn)
        await _note(conversation, sample)
        if conversation.page_since > seen.quiet_since:
            # Another page shows the answer: how long it has been quiet is counted from here.
            seen = completion.Observation(quiet_since=conversation.page_since, text=seen.text)
        seen = completion.observe(seen, sample, own, placeholders, loop.time())
        feed.set(seen.text)
        verdict = completion.judge(seen, sample, windows, loop.time())
        match verdict:
            case completion.Running(stalled, look_within):
                if stalled != conversation.turn().stalled:
                    await _record_stalled(conversation, stalled=stalled)
                await conversation.pause(look_within or FALLBACK)
            case completion.Complete(quiet):
                return CompletionEvidence(done_mark=True, stable_duration=timedelta(seconds=quiet))
            case completion.Empty():
                raise failures.empty(turn.name)
            case completion.Broken():
                raise failures.broken(turn.name, conversation.descriptor.id)
            case completion.GivenUp():
                raise failures.stalled(turn.name)
            case _:
                assert_never(verdict)


async def stop(conversation: Conversation, feed: Feed) -> bool:
    """Press Stop and see it go; True if the page writes no more."""
    pressed = False
    try:
        turn = conversation.turn()
        async with asyncio.timeout(_STOP_WAIT):
            chat = await conversation.present()
            while True:
                sample = await chat.look(turn.baseline)
                if own := own_turn(sample, turn.lookup_sha256):
                    feed.set(own.answer)
                if not sample.stop and (pressed or own is not None):
                    return True
                if sample.stop and not pressed:
                    pressed = await chat.press_stop()
                await chat.changed(_LOOK_AGAIN)
    except (TimeoutError, CdpError, PageNotAnswering, Refused, TurnEnded):
        return False


async def _note(conversation: Conversation, sample: Sample) -> None:
    uri = conversation.descriptor.conversation_of(sample.uri)
    session = conversation.session()
    if session.title != sample.title or (uri and not session.conversation_uri):
        await conversation.change(
            lambda changes: records.note_conversation(changes, conversation.name, uri, sample.title)
        )


async def _record_stalled(conversation: Conversation, *, stalled: bool) -> None:
    await conversation.change(lambda changes: records.stall(changes, conversation.name, stalled=stalled))
