"""The HTTP edge: pages by host name, and a small JSON interface for them and for tests."""

import contextlib
import weakref
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, WSMsgType, web

from tabmuxd.playground.answers import first_words
from tabmuxd.playground.conversations import LARGEST_PROMPT_BYTES, Conversations, Turn
from tabmuxd.playground.documents import answer_document, conversation_document, turn_with_text_document
from tabmuxd.playground.edge import HEADERS, json_object, refusals_as_json
from tabmuxd.playground.kinds import Kind, kind_of_host
from tabmuxd.playground.pages import StaticFile, page_of, static_files
from tabmuxd.playground.refusals import RefusalReason, RefusedError

TICK_SECONDS = 0.05  # how often a growing answer is looked at
TITLES = 12
# Each byte of a prompt may be six in JSON (\u0001).
LARGEST_BODY_BYTES = 6 * LARGEST_PROMPT_BYTES + 4096
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost"})


class Handlers:
    """One method for each address."""

    def __init__(self, conversations: Conversations, now: Callable[[], datetime]) -> None:
        """Serve these conversations by this clock."""
        self._conversations = conversations
        self._now = now
        self._pages = {kind: page_of(kind) for kind in Kind}
        self._files = static_files()
        self._watches = weakref.WeakSet[web.WebSocketResponse]()

    def application(self) -> web.Application:
        """The routes, ready to run."""
        application = web.Application(middlewares=[refusals_as_json], client_max_size=LARGEST_BODY_BYTES)
        application.add_routes(
            [
                web.get("/", self.page),
                web.get("/c/{conversation}", self.conversation_page),
                web.get("/static/{name}", self.file),
                web.get("/api/conversations", self.list_conversations),
                web.get("/api/conversations/{conversation}", self.get_conversation),
                web.post("/api/conversations/{conversation}/turns", self.submit),
                web.get("/api/titles", self.titles),
                web.post("/api/turns/{turn}/stop", self.stop),
                web.get("/api/turns/{turn}/watch", self.watch),
            ],
        )
        application.on_response_prepare.append(_add_headers)
        application.on_shutdown.append(self._close_watches)
        return application

    async def page(self, request: web.Request) -> web.Response:
        """The page of a new conversation."""
        return _file(self._pages[_kind(request)])

    async def conversation_page(self, request: web.Request) -> web.Response:
        """The page of a conversation; one that is not there leads to a new one, as on the real pages."""
        kind = _kind(request)
        if not self._conversations.holds(request.match_info["conversation"], kind):
            raise web.HTTPFound("/")
        return _file(self._pages[kind])

    async def file(self, request: web.Request) -> web.Response:
        """Style or script."""
        _kind(request)
        name = request.match_info["name"]
        if name not in self._files:
            raise RefusedError(RefusalReason.NOT_FOUND, "file")
        return _file(self._files[name])

    async def list_conversations(self, request: web.Request) -> web.Response:
        """All conversations of the host's kind, or of all kinds on a loopback name, oldest first."""
        kind = None if request.host.partition(":")[0] in LOOPBACK_NAMES else _kind(request)
        now = self._now()
        return web.json_response(
            [
                conversation_document(self._conversations.turns(name), now, with_text=False)
                for name in self._conversations.ids(kind)
            ],
        )

    async def get_conversation(self, request: web.Request) -> web.Response:
        """One conversation, with the answers as far as they are."""
        name = request.match_info["conversation"]
        if not self._conversations.holds(name, _kind(request)):
            raise RefusedError(RefusalReason.NOT_FOUND, "conversation")
        turns = self._conversations.turns(name)
        return web.json_response(conversation_document(turns, self._now(), with_text=True))

    async def titles(self, request: web.Request) -> web.Response:
        """The latest conversations of the host's kind, newest first."""
        latest = self._conversations.ids(_kind(request))[-TITLES:]
        first_turns = [self._conversations.turns(name)[0] for name in reversed(latest)]
        return web.json_response([{"id": turn.conversation, "title": first_words(turn.prompt)} for turn in first_turns])

    async def submit(self, request: web.Request) -> web.Response:
        """Take a prompt: `{"key": …, "prompt": …}`; the conversation `new` makes one."""
        kind = _kind(request)
        body = await json_object(request)
        key, prompt = body.get("key"), body.get("prompt")
        if not isinstance(key, str) or not isinstance(prompt, str):
            raise RefusedError(RefusalReason.MALFORMED, "key and prompt: two strings")
        name = request.match_info["conversation"]
        turn = self._conversations.submit(kind, None if name == "new" else name, key, prompt)
        return web.json_response(turn_with_text_document(turn, self._now()), status=201)

    async def stop(self, request: web.Request) -> web.Response:
        """End the answer of a turn: `{}`; it may be repeated."""
        await json_object(request)
        turn = self._conversations.stop(self._own_turn(request).id)
        return web.json_response(turn_with_text_document(turn, self._now()))

    async def watch(self, request: web.Request) -> web.WebSocketResponse:
        """Tell the progress of a turn until its end: messages of `{"answer": …, "more": text to append}`.

        A WebSocket, because a browser holds six ordinary connections to a host at most, and more tabs than that may
        be waiting for their answers.
        """
        turn = self._own_turn(request)
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc != request.host:
            raise RefusedError(RefusalReason.NOT_FOUND, "turn")
        socket = web.WebSocketResponse(heartbeat=20.0)
        await socket.prepare(request)
        self._watches.add(socket)
        with contextlib.suppress(ConnectionError):  # the page went away in the middle of a message
            await self._tell_progress(socket, turn)
        await socket.close()
        return socket

    async def _tell_progress(self, socket: web.WebSocketResponse, turn: Turn) -> None:
        told = ""
        last = None
        while not socket.closed:
            turn = self._conversations.turn(turn.id)
            progress = turn.progress(self._now())
            if progress != last:
                text = turn.text(progress)
                await socket.send_json({"answer": answer_document(progress), "more": text[len(told) :]})
                told, last = text, progress
            if progress.ended or await _closes_within(socket, TICK_SECONDS):
                break

    async def _close_watches(self, _application: web.Application) -> None:
        for socket in tuple(self._watches):
            await socket.close(code=WSCloseCode.GOING_AWAY)

    def _own_turn(self, request: web.Request) -> Turn:
        turn = self._conversations.turn(request.match_info["turn"])
        if turn.kind is not _kind(request):
            raise RefusedError(RefusalReason.NOT_FOUND, "turn")
        return turn


async def _closes_within(socket: web.WebSocketResponse, seconds: float) -> bool:
    try:
        message = await socket.receive(timeout=seconds)
    except TimeoutError:
        return False
    return message.type in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR)


def _kind(request: web.Request) -> Kind:
    kind = kind_of_host(request.host)
    if kind is None:
        raise RefusedError(RefusalReason.NOT_FOUND, "host")
    return kind


def _file(file: StaticFile) -> web.Response:
    return web.Response(body=file.content, content_type=file.content_type, charset="utf-8")


async def _add_headers(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
