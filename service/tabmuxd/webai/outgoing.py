"""What a page sends out while a prompt stands in its composer, or stood there a moment ago.

A composer that is empty again may have forgotten the prompt, or the page has sent it by itself and shows nothing of it
yet. Only where nothing went out that could hold it, it may be typed again. Not seen is what workers, WebTransport and
WebRTC send.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote_plus

from tabmuxd.tabs.page import Page
from tabmuxd.webai.submission import letters_of

_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LETTERS: Final = 16


class Outgoing:
    """Whether a page may have sent a prompt since it was `heard` first."""

    def __init__(self, prompt: str) -> None:
        """Nothing was sent yet."""
        self.may_hold_prompt = False
        self._letters = letters_of(prompt)[:_LETTERS]

    @asynccontextmanager
    async def heard(self, page: Page) -> AsyncGenerator[None]:
        """While inside, what this page sends is judged; raises CdpError."""
        stops = (
            page.session.on("Network.requestWillBeSent", self._requested),
            page.session.on("Network.webSocketFrameSent", self._sent_frame),
        )
        try:
            async with page.network_heard():
                yield
        finally:
            for stop in stops:
                stop()

    def _requested(self, params: Mapping[str, Any]) -> None:
        request: Mapping[str, Any] = params.get("request", {})
        address = letters_of(unquote_plus(str(request.get("url", ""))))
        if request.get("method") not in _WITHOUT_BODY or self._letters in address:
            self.may_hold_prompt = True

    def _sent_frame(self, _params: Mapping[str, Any]) -> None:
        self.may_hold_prompt = True
