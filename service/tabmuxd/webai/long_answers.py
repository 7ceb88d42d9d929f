"""Answers that are too long for a turn: the whole of one is kept as a file of the turn."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import structlog

from tabmuxd.resources.artifacts import KeptArtifact, UploadOrder
from tabmuxd.resources.names import session_of
from tabmuxd.store import StoreError
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.records import MAX_ANSWER_BYTES

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_NAME: Final = "answer.md"
_MEDIA_TYPE: Final = "text/markdown"


@asynccontextmanager
async def whole_of(conversation: Conversation, answer: bytes) -> AsyncGenerator[KeptArtifact | None]:
    """A file on disk of an answer that is longer than a turn holds, for a row that is written inside; else None.

    None too where it cannot be written: an answer is not lost for that.
    """
    session = conversation.around.log.live.sessions.get(session_of(conversation.name))
    if len(answer) <= MAX_ANSWER_BYTES or session is None:
        yield None
        return
    order = UploadOrder(_NAME, _MEDIA_TYPE, len(answer), hashlib.sha256(answer).hexdigest())
    async with AsyncExitStack() as stack:
        kept: KeptArtifact | None = None
        placing = conversation.around.artifacts.placed(session.owner, conversation.name, order, answer)
        try:
            kept = await stack.enter_async_context(placing)
        except (OSError, StoreError) as error:
            _log.warning("answer not kept whole", turn=conversation.name, error=type(error).__name__)
        yield kept
