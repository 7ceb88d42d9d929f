"""The watchers of benchmarks say why no time can be taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TypeAlias, cast

import grpc
import grpc.aio
import pytest

from benchmarks.watchers import Watchers

Told: TypeAlias = tuple[list[bytes], grpc.StatusCode | None]
"""The messages of a stream, and how it ends; None: not."""

ONE: Told = ([b"a"], None)


async def stream(*messages: bytes, end: grpc.StatusCode | None = None) -> AsyncGenerator[bytes]:
    """A stream that gives these, and then ends with that, or waits for more."""
    for message in messages:
        yield message
    if end is grpc.StatusCode.OK:
        return
    if end is not None:
        raise grpc.aio.AioRpcError(end, grpc.aio.Metadata(), grpc.aio.Metadata(), "gone")
    await asyncio.Event().wait()


async def arrivals(*streams: Told, sent: float = 0.0) -> int:
    """How many arrivals were counted in streams that tell this."""
    watching = Watchers(len(streams))
    calls = [cast("grpc.aio.UnaryStreamCall[bytes, bytes]", stream(*messages, end=end)) for messages, end in streams]
    reading = [asyncio.ensure_future(watching.read(call)) for call in calls]
    try:
        return len(await watching.arrivals(sent))
    finally:
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)


async def test_one_message_each() -> None:
    """One message to each stream is as many arrivals."""
    assert await arrivals(ONE, ONE) == 2


@pytest.mark.parametrize(
    ("streams", "sent", "reason"),
    [
        ([ONE, ([], grpc.StatusCode.UNAVAILABLE)], 0.0, "a stream ended: UNAVAILABLE: gone"),
        ([ONE, ([], grpc.StatusCode.OK)], 0.0, "a stream ended: OK"),
        ([ONE, ([b"a", b"b"], None)], 0.0, "something else was told"),
        ([ONE, ONE], float("inf"), "something else was told"),
    ],
    ids=["lost", "ended", "more", "before"],
)
async def test_reasons(streams: list[Told], sent: float, reason: str) -> None:
    """A stream that ends, or is told something else, is an error with its reason, and at once."""
    with pytest.raises(RuntimeError, match=reason):
        await arrivals(*streams, sent=sent)
