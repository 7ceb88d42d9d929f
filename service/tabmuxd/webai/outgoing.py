"""What a page sends out while a prompt stands in its composer, or stood there a moment ago.

A composer that is empty again may have forgotten the prompt, or the page has sent it by itself and shows nothing of it
yet. Only where nothing went out that could hold it, it may be typed again. Not seen is what workers, WebTransport and
WebRTC send.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import unquote_plus

from tabmuxd.tabs.page import Page
from tabmuxd.webai.submission import letters_of

_WITHOUT_BODY: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_LETTERS: Final = 16
# How a page ends that may live on where nobody hears it.
_MAY_LIVE: Final = frozenset({"", "connection_lost"})


class Outgoing:
    """Whether a page may have sent a prompt: heard from before it is typed until it is pressed, without a gap."""

    def __init__(self, prompt: str) -> None:
        """Nothing was sent yet. Entered with `async with`, which ends the hearing."""
        self._sent = False
        self._heard = False
        self._missed = False
        self._page: Page | None = None
        self._hearing = AsyncExitStack()
        self._letters = letters_of(prompt)[:_LETTERS]

    async def __aenter__(self) -> Self:
        """Hear nothing yet."""
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Hear no more."""
        await self._hearing.aclose()

    @property
    def may_hold_prompt(self) -> bool:
        """Whether something went out that may hold the prompt, or nobody knows."""
        return self._sent or self._missed or not self._heard

    async def listen(self, page: Page, *, typed: bool) -> None:
        """Judge what this page sends, from the next command to it on, until another one is listened to.

        `typed`: the prompt was put into a page before, which may live on unheard; nobody knows of one from before the
        first that is listened to.
        """
        if page is self._page:
            return
        if typed and (self._page is None or self._page.end_cause in _MAY_LIVE):
            self._missed = True
        await self._hearing.aclose()
        self._page, self._heard = page, False
        self._hearing.callback(page.session.on("Network.requestWillBeSent", self._requested))
        self._hearing.callback(page.session.on("Network.webSocketCreated", self._opened))
        self._hearing.callback(page.session.on("Network.webSocketFrameSent", self._sent_frame))
        heard = await self._hearing.enter_async_context(page.network_heard())
        heard.add_done_callback(self._told)

    def not_typed_yet(self) -> None:
        """What went out up to now cannot hold the prompt, for it is in no page yet."""
        self._sent = False

    def _told(self, heard: asyncio.Future[None]) -> None:
        self._heard = not heard.cancelled() and heard.exception() is None

    def _requested(self, params: Mapping[str, Any]) -> None:
        request: Mapping[str, Any] = params.get("request", {})
        if request.get("method") not in _WITHOUT_BODY or self._is_in(request.get("url")):
            self._sent = True

    def _opened(self, params: Mapping[str, Any]) -> None:
        if self._is_in(params.get("url")):
            self._sent = True

    def _sent_frame(self, _params: Mapping[str, Any]) -> None:
        self._sent = True

    def _is_in(self, address: object) -> bool:
        return self._letters in letters_of(unquote_plus(str(address)))
