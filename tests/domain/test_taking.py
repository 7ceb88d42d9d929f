"""Taking an answer that is whole: its Markdown, or its text where that fails."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tabmuxd.webai import taking
from tabmuxd.webai.conversation import Conversation
from tabmuxd.webai.samples import OwnTurn

from tests.domain.values import playground


class _Chat:
    """A page that shows these words, and has this HTML for them."""

    def __init__(self, html: str, words: str) -> None:
        self._html = html
        self._words = words

    async def answer_words(self, keys: tuple[str, ...]) -> str:
        return self._words

    async def copied_answer(self, keys: tuple[str, ...]) -> str | None:
        return None

    async def answer_html(self, keys: tuple[str, ...]) -> list[str]:
        return [self._html]


def _conversation(html: str, words: str = "a") -> Conversation:
    own = OwnTurn("a", done=True, answered=True, parts=(("k", "a"),))
    return cast(
        "Conversation",
        SimpleNamespace(own=own, chat=_Chat(html, words), descriptor=playground(), name="sessions/s/turns/t"),
    )


async def test_not_converted() -> None:
    """An answer whose HTML has no Markdown is taken as its text, and a warning names the failed step (FIN-26)."""
    taken = await taking.take(_conversation('<table><tr><td colspan="²">a</td></tr></table>'), "a")

    assert (taken.text, [one.code for one in taken.warnings]) == ("a", ["markdown-failed"])


async def test_not_all_of_it() -> None:
    """Markdown in which a part of what is shown is missing is not taken, but the whole text (FIN-21, FIN-26)."""
    shown = " ".join(f"word{number}" for number in range(100))

    taken = await taking.take(_conversation(f"<p><b>{shown[:-40]}</b></p>", shown), shown)

    assert (taken.text, [one.code for one in taken.warnings]) == (shown, ["markdown-failed"])
