"""The one place that every call of both services passes: caller, scope, drain, errors and the log line.

Servicers know nothing of gRPC: a method takes a request and the caller, and gives a response, or a generator of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from typing import Final, Never, TypeAlias, TypeVar

import grpc
import structlog
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from tabmuxd.resources.errors import NotBuilt, Refused
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.rpc import statuses
from tabmuxd.rpc.deadlines import begin_call
from tabmuxd.rpc.drain import Drain
from tabmuxd.rpc.incidents import new_incident, trace_of
from tabmuxd.rpc.principals import check_scope, principal_of
from tabmuxd.rpc.watches import stalled

WRITE_TIMEOUT: Final = timedelta(seconds=60)
_UNIX_PEER: Final = "unix:"
# Every error of these has the keys `page_touched` and `retry`.
_ON_PAGE: Final = frozenset(
    f"/tabmux.v1.TabService/{method}" for method in ("NavigateTab", "PerformAction", "EvaluateScript")
)

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# The replies of watches come as finished bytes, all others as messages.
Part: TypeAlias = Message | bytes
Unary: TypeAlias = Callable[[Message, Principal], Awaitable[Message]]
Stream: TypeAlias = Callable[[Message, Principal], AsyncGenerator[Part, None]]
Context: TypeAlias = "grpc.aio.ServicerContext[Message, Part]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Message, Part]"

Result = TypeVar("Result")


class Gate:
    """Makes gRPC handlers of servicer methods.

    `write_timeout` is how long a watcher may leave a reply unread before its watch ends with WATCH_STALLED.
    """

    def __init__(self, drain: Drain, *, write_timeout: timedelta = WRITE_TIMEOUT) -> None:
        self._drain = drain
        self._write_timeout = write_timeout

    def handlers(self, service: ServiceDescriptor, servicer: object) -> grpc.GenericRpcHandler:
        """Handlers for every method of `service`, made of the methods of `servicer` with the same names."""
        return grpc.method_handlers_generic_handler(
            service.full_name, {method.name: self._handler(method, servicer) for method in service.methods}
        )

    def _handler(self, method: MethodDescriptor, servicer: object) -> Handler:
        name = f"/{method.containing_service.full_name}/{method.name}"
        behaviour = getattr(servicer, method.name, None) or _not_built(method.name)
        request_from = GetMessageClass(method.input_type).FromString
        match method.client_streaming, method.server_streaming:
            case False, False:
                return grpc.unary_unary_rpc_method_handler(self._unary(name, behaviour), request_from, _bytes)
            case False, True:
                return grpc.unary_stream_rpc_method_handler(self._stream(name, behaviour), request_from, _bytes)
            case True, False:
                return grpc.stream_unary_rpc_method_handler(self._unary(name, behaviour), request_from, _bytes)
            case _:
                raise NotImplementedError("the contract has no method that streams both ways")

    def _unary(self, name: str, behaviour: Unary) -> Callable[[Message, Context], Awaitable[Part]]:
        async def handle(request: Message, context: Context) -> Part:
            async def work(caller: Principal) -> Message:
                return await behaviour(request, caller)

            return await self._passed(name, context, work)

        return handle

    def _stream(self, name: str, behaviour: Stream) -> Callable[[Message, Context], Awaitable[None]]:
        async def handle(request: Message, context: Context) -> None:
            async def work(caller: Principal) -> None:
                # grpcio 1.85 sends it with the first reply else, and a call whose first write was cut short by draining
                # cannot be ended with a status any more.
                await _sent(context.send_initial_metadata(()))
                async with self._drain.ended_by_drain(), aclosing(behaviour(request, caller)) as parts:
                    await self._write_all(parts, context)

            await self._passed(name, context, work)

        return handle

    async def _write_all(self, parts: AsyncGenerator[Part, None], context: Context) -> None:
        last_reply = b""
        async for part in parts:
            if not isinstance(part, bytes):
                await _sent(context.write(part))
                continue
            limit = asyncio.timeout(self._write_timeout.total_seconds())
            try:
                async with limit:
                    await _sent(context.write(part))
            except TimeoutError:
                if limit.expired():
                    raise stalled(last_reply) from None
                raise
            last_reply = part

    async def _passed(self, name: str, context: Context, work: Callable[[Principal], Awaitable[Result]]) -> Result:
        """Do `work` for the caller, or end the call with the status that says why not; one log line either way."""
        with self._drain.at_work():
            return await self._answered(name, context, work)

    async def _answered(self, name: str, context: Context, work: Callable[[Principal], Awaitable[Result]]) -> Result:
        begin = time.monotonic()
        principal = ""

        def log(code: str, **more: object) -> None:
            _log.info("call", method=name, principal=principal, code=code, seconds=_since(begin), **more)

        try:
            self._drain.admit()
            caller = principal_of(context.invocation_metadata() or (), unix_socket=_is_unix(context))
            principal = caller.name
            check_scope(caller, name)
            begin_call(context.time_remaining())
            result = await work(caller)
        except Refused as refused:
            status = statuses.status_of(_with_outcome(name, refused))
            log(statuses.code_name(status), reason=refused.reason.value)
        except NotBuilt as error:
            status = statuses.not_built_status(error)
            log(statuses.code_name(status), what=error.what)
        except asyncio.CancelledError:
            log("CANCELLED")
            raise
        except Exception as error:  # noqa: BLE001 - the top of an RPC: any fault is logged and told by its id
            incident = new_incident()
            status = statuses.incident_status(incident)
            log(statuses.code_name(status), incident=incident)
            _log.error("incident", incident=incident, method=name, trace=trace_of(error))
        else:
            log("OK")
            return result
        return await context.abort_with_status(statuses.grpc_status(status))


async def _sent(sending: Awaitable[None]) -> None:
    try:
        await sending
    except grpc.aio.InternalError as error:
        # grpcio 1.85: the client went away meanwhile, and the call is about to be cancelled.
        raise asyncio.CancelledError from error


def _with_outcome(name: str, refused: Refused) -> Refused:
    """What is refused before the domain is asked left the page untouched; the domain itself says more."""
    if name not in _ON_PAGE or "page_touched" in refused.metadata:
        return refused
    return with_outcome(refused, "no")


def _not_built(name: str) -> Callable[[Message, Principal], Never]:
    def refuse(_request: Message, _caller: Principal) -> Never:
        raise NotBuilt(name)

    return refuse


def _bytes(part: Part) -> bytes:
    return part if isinstance(part, bytes) else part.SerializeToString()


def _is_unix(context: Context) -> bool:
    return context.peer().startswith(_UNIX_PEER)


def _since(begin: float) -> float:
    return round(time.monotonic() - begin, 6)
