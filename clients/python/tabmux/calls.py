"""Makes calls: with a deadline, with the caller's name, and again where that is safe."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

import grpc
from google.protobuf.message import Message

from tabmux.backoff import pause_after, pauses
from tabmux.errors import TabmuxError
from tabmux.methods import may_repeat, rule_of
from tabmux.statuses import error_of_call

if TYPE_CHECKING:
    from tabmux.v1.tab_service_pb2 import ListTabsRequest, ListTabsResponse
    from tabmux.v1.web_ai_service_pb2 import (
        ListProvidersRequest,
        ListProvidersResponse,
        ListSessionsRequest,
        ListSessionsResponse,
        ListTurnsRequest,
        ListTurnsResponse,
    )

Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)
ListRequest = TypeVar(
    "ListRequest", "ListTabsRequest", "ListSessionsRequest", "ListTurnsRequest", "ListProvidersRequest"
)
ListReply = TypeVar(
    "ListReply", "ListTabsResponse", "ListSessionsResponse", "ListTurnsResponse", "ListProvidersResponse"
)

CLIENT_KEY = "x-tabmux-client"


class Calls:
    """Makes unary calls and opens streams for one caller.

    `authorization` is the value of that header, `client` names the program library. `timeout` replaces the deadlines
    of `methods.py` for all unary calls.
    """

    def __init__(
        self,
        authorization: str | None,
        client: str,
        *,
        timeout: timedelta | None = None,
        chance: Callable[[], float] = random.random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        named = (("authorization", authorization),) if authorization else ()
        # By hand, not as call credentials: grpcio refuses those on a channel without TLS.
        self.metadata: Sequence[tuple[str, str]] = (*named, (CLIENT_KEY, client))
        self._timeout = timeout
        self._chance = chance
        self._sleep = sleep

    async def unary(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Reply],
        request: Request,
        *,
        timeout: timedelta | None = None,
    ) -> Reply:
        """Reply to `request`, within `timeout` or else the deadline of the method.

        A call that is safe to repeat is repeated on UNAVAILABLE as long as that time lasts; if it ends during a repeat,
        the refusal before is raised, which tells more. Raises `TabmuxError`.
        """
        now = asyncio.get_running_loop().time
        allowed = timeout or self._timeout or rule_of(request).deadline(request)
        end = now() + allowed.total_seconds() if allowed else float("inf")
        refusal: TabmuxError | None = None
        for pause in pauses(self._chance):
            left = end - now()
            try:
                return await method(request, timeout=left if allowed else None, metadata=self.metadata)
            except grpc.aio.AioRpcError as error:
                failure = error_of_call(error)
                if refusal is not None and failure.code == "DEADLINE_EXCEEDED":
                    raise refusal from error
                wait = pause_after(pause, failure.retry_delay)
                if not may_repeat(request, failure) or now() + wait >= end:
                    raise failure from error
                refusal = failure
            await self._sleep(wait)
        raise AssertionError("pauses() has no end")

    async def pages(
        self, method: grpc.aio.UnaryUnaryMultiCallable[ListRequest, ListReply], request: ListRequest
    ) -> AsyncGenerator[ListReply, None]:
        """Yield the replies of a method that lists, page by page. Raises `TabmuxError`."""
        while True:
            reply = await self.unary(method, request)
            yield reply
            if not reply.next_page_token:
                return
            request.page_token = reply.next_page_token

    async def upload(
        self,
        method: grpc.aio.StreamUnaryMultiCallable[Request, Reply],
        requests: AsyncIterator[Request],
        kind: Request,
        *,
        timeout: timedelta | None = None,
    ) -> Reply:
        """Reply to a stream of requests, all of the class of `kind`; made once. Raises `TabmuxError`."""
        allowed = timeout or self._timeout or rule_of(kind).deadline(kind)
        try:
            return await method(requests, timeout=allowed.total_seconds() if allowed else None, metadata=self.metadata)
        except grpc.aio.AioRpcError as error:
            raise error_of_call(error) from error

    def stream(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Request, Reply],
        request: Request,
    ) -> grpc.aio.UnaryStreamCall[Request, Reply]:
        """Open a stream of replies; it has no deadline."""
        return method(request, metadata=self.metadata)
