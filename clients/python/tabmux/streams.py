"""Reads a stream of replies that goes on, over new connections, until the server ends it or refuses it."""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import timedelta
from typing import TypeVar, cast

import grpc
from google.protobuf.message import Message

from tabmux.backoff import pause_after, pauses
from tabmux.errors import TabmuxError
from tabmux.statuses import error_of_call

Request = TypeVar("Request", bound=Message)
Reply = TypeVar("Reply", bound=Message)


def resumable(error: TabmuxError) -> bool:
    """Whether a reader goes on by itself after its stream ended with `error`.

    So it is when the connection or the server went away, and when the reader was too slow.
    """
    if error.reason:
        return error.reason in {"DRAINING", "WATCH_STALLED"}
    return error.code == "UNAVAILABLE"


async def resumed(
    open_stream: Callable[[], grpc.aio.UnaryStreamCall[Request, Reply]],
    silence_limit: timedelta,
    *,
    chance: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[Reply, None]:
    """Yield the replies of `open_stream()`, which is called again, to go on, whenever the connection was lost.

    The stream is also opened again after `silence_limit` without a reply. Ends when the server ends the stream with
    OK. Raises `TabmuxError` for a status that says not to go on.
    """
    tries = pauses(chance)
    while True:
        call = open_stream()
        wait = 0.0
        try:
            while (reply := await _read(call, silence_limit)) is not None:
                tries = pauses(chance)
                yield reply
            return  # noqa: TRY300 - an `else` of the `try` would hide that this ends the loop above it
        except TimeoutError:
            wait = next(tries)
        except grpc.aio.AioRpcError as error:
            failure = error_of_call(error)
            if not resumable(failure):
                raise failure from error
            wait = pause_after(next(tries), failure.retry_delay)
        finally:
            call.cancel()
        await sleep(wait)


async def _read(call: grpc.aio.UnaryStreamCall[Request, Reply], limit: timedelta) -> Reply | None:
    """Next reply, `None` at the end; raises `TimeoutError` after `limit`, and then the call is cancelled."""
    async with asyncio.timeout(limit.total_seconds()):
        reply = await call.read()
    # The stubs of grpcio have no way to tell the end mark from a reply.
    return None if reply is grpc.aio.EOF else cast("Reply", reply)
