"""What a call was refused with."""

from __future__ import annotations

from collections.abc import Awaitable

import grpc.aio
from tabmux.errors import TabmuxError
from tabmux.statuses import error_of_call


async def refusal(call: Awaitable[object]) -> TabmuxError:
    """The refusal that a call ends with; it must not succeed."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return error_of_call(error)
    raise AssertionError(f"it succeeded: {type(answer).__name__}")


async def reason(call: Awaitable[object]) -> str:
    """The reason that a call is refused with."""
    return (await refusal(call)).reason


def advice(refused: TabmuxError) -> tuple[str, str, str]:
    """Reason, `page_touched` and `retry`."""
    return refused.reason, refused.metadata.get("page_touched", ""), refused.metadata.get("retry", "")
