"""What a page sends out while a prompt stands in its composer, or stood there a moment ago.

A composer that is empty again may have forgotten the prompt, or the page has sent it by itself and shows nothing of it
yet. Only where nothing went out that could hold it, it may be typed again. Not seen is what workers, WebTransport and
WebRTC send.
"""

from __future__ import annotations

import asyncio
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
        self._sent = False
        self._heard = False
        self._letters = letters_of(prompt)[:_LETTERS]

    @property
    def may_hold_prompt(self) -> bool:
        """Whether something went out that may hold the prompt, or nobody knows."""
        return self._sent or not self._heard

    @asynccontextmanager
    async def heard(self, page: Page) -> AsyncGenerator[None]:
        """While inside, what this page sends is judged, from the next command to it on."""
        stops = (
            page.session.on("Network.requestWillBeSent", self._requested),
            page.session.on("Network.webSocketFrameSent", self._sent_frame),
        )
        try:
            async with page.network_heard() as heard:
                heard.add_done_callback(self._told)
                yield
        finally:
            for stop in stops:
                stop()

    def _told(self, heard: asyncio.Future[None]) -> None:
        self._heard = not heard.cancelled() and heard.exception() is None

    def _requested(self, params: Mapping[str, Any]) -> None:
        request: Mapping[str, Any] = params.get("request", {})
        address = letters_of(unquote_plus(str(request.get("url", ""))))
        if request.get("method") not in _WITHOUT_BODY or self._letters in address:
            self._sent = True

    def _sent_frame(self, _params: Mapping[str, Any]) -> None:
        self._sent = True
