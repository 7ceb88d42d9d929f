"""Taking an answer that is whole: its Markdown, or its text where that fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tabmuxd.webai import taking
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.samples import OwnTurn

from tests.domain.values import playground


class _Chat:
    """A page that shows "a", and has this HTML for it."""

    def __init__(self, html: str) -> None:
        self._html = html

    async def answer_words(self, keys: tuple[str, ...]) -> str:
        return "a"

    async def copied_answer(self, keys: tuple[str, ...]) -> str | None:
        return None

    async def answer_html(self, keys: tuple[str, ...]) -> list[str]:
        return [self._html]


def _conversation(html: str) -> Conversation:
    own = OwnTurn("a", done=True, answered=True, parts=(("k", "a"),))
    return cast(
        "Conversation", SimpleNamespace(own=own, chat=_Chat(html), descriptor=playground(), name="sessions/s/turns/t")
    )


async def test_not_converted() -> None:
    """An answer whose HTML has no Markdown is taken as its text, and a warning names the failed step (FIN-26)."""
    taken = await taking.take(_conversation('<table><tr><td colspan="²">a</td></tr></table>'), "a")

    assert (taken.text, [one.code for one in taken.warnings]) == ("a", ["markdown-failed"])
