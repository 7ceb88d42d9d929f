"""The one place that every call of both services passes: caller, scope, drain, errors and the log line.

Servicers know nothing of gRPC: a method takes a request and the caller, and gives a response, or a generator of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Never, Protocol, Self, TypeAlias

import grpc
import structlog
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc import status_pb2

from tabmuxd.incidents import new_incident, trace_of
from tabmuxd.resources.errors import NotBuilt, Refused
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.rpc import statuses
from tabmuxd.rpc.deadlines import begin_call
from tabmuxd.rpc.drain import Drain
from tabmuxd.rpc.principals import check_scope, principal_of
from tabmuxd.rpc.watches import Unread, stalled

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
Context: TypeAlias = "grpc.aio.ServicerContext[Message, Message]"
StreamContext: TypeAlias = "grpc.aio.ServicerContext[Message, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Message, Any]"


class Parts(Protocol):
    """The answer of a streaming method; an async generator is one."""

    def __aiter__(self) -> AsyncIterator[Part]:
        """The parts, in order."""
        ...

    async def aclose(self) -> None:
        """Nothing more is wanted."""
        ...


Stream: TypeAlias = Callable[[Message, Principal], Parts]


class Gate:
    """Makes gRPC handlers of servicer methods.

    `write_timeout` is how long a watcher may leave a reply unread before its watch ends with WATCH_STALLED.
    """

    def __init__(self, drain: Drain, *, write_timeout: timedelta = WRITE_TIMEOUT) -> None:
        self._drain = drain
        self._unread = Unread(write_timeout)

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
                return grpc.unary_unary_rpc_method_handler(self._unary(name, behaviour), request_from, _serialize)
            case False, True:
                return grpc.unary_stream_rpc_method_handler(self._stream(name, behaviour), request_from)
            case True, False:
                return grpc.stream_unary_rpc_method_handler(self._unary(name, behaviour), request_from, _serialize)
            case _:
                raise NotImplementedError("the contract has no method that streams both ways")

    def _unary(self, name: str, behaviour: Unary) -> Callable[[Message, Context], Awaitable[Message]]:
        async def handle(request: Message, context: Context) -> Message:
            with self._drain.at_work():
                with _Call(name) as call:
                    self._drain.admit()
                    return await behaviour(request, call.caller(context))
                return await context.abort_with_status(call.status())

        return handle

    def _stream(self, name: str, behaviour: Stream) -> Callable[[Message, StreamContext], Awaitable[None]]:
        async def handle(request: Message, context: StreamContext) -> None:
            with self._drain.at_work():
                with _Call(name) as call:
                    self._drain.admit()
                    caller = call.caller(context)
                    # grpcio 1.85 sends it with the first reply else, and a call whose first write was cut short by
                    # draining cannot be ended with a status any more.
                    await context.send_initial_metadata(())
                    async with self._drain.ended_by_drain(), aclosing(behaviour(request, caller)) as parts:
                        await self._write_all(parts, context)
                    return
                await context.abort_with_status(call.status())

        return handle

    async def _write_all(self, parts: Parts, context: StreamContext) -> None:
        last_reply = b""
        now = asyncio.get_running_loop().time
        scope = asyncio.timeout(None)
        writing = self._unread.open(scope)
        try:
            async with scope:
                async for part in parts:
                    if isinstance(part, bytes):
                        writing.since = now()
                        await context.write(part)
                        writing.since = 0.0
                        last_reply = part
                    else:
                        await context.write(part.SerializeToString())
        except TimeoutError:
            if scope.expired():
                raise stalled(last_reply) from None
            raise
        finally:
            self._unread.close(writing)


class _Call:
    """One call as it passes: whose it is, the status that says why it did not end well, and its one log line.

    `with` keeps what is raised inside, but for a cancellation; the call then has to end with `status()`. No function
    around the work, since each frame between gRPC and a watch costs every event of every watcher.
    """

    __slots__ = ("_begin", "_name", "_principal", "_status")

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin = time.monotonic()
        self._principal = ""
        self._status: status_pb2.Status | None = None

    def caller(self, context: Context | StreamContext) -> Principal:
        """Who calls; raises where they may not."""
        caller = principal_of(context.invocation_metadata() or (), unix_socket=_is_unix(context))
        self._principal = caller.name
        check_scope(caller, self._name)
        begin_call(context.time_remaining())
        return caller

    def status(self) -> grpc.Status:
        """How the call has to end."""
        if self._status is None:
            raise RuntimeError(f"{self._name} has ended well")
        return statuses.grpc_status(self._status)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        match error:
            case None:
                self._log("OK")
            case asyncio.CancelledError():
                self._log("CANCELLED")
            case grpc.aio.InternalError():
                # grpcio 1.85: the client went away while something was sent, and the call is about to be cancelled.
                self._log("CANCELLED")
                raise asyncio.CancelledError from error
            case Refused():
                self._end(statuses.status_of(_with_outcome(self._name, error)), reason=error.reason.value)
            case NotBuilt():
                self._end(statuses.not_built_status(error), what=error.what)
            case Exception():  # any fault is logged and told by its id
                incident = new_incident()
                self._end(statuses.incident_status(incident), incident=incident)
                _log.error("incident", incident=incident, method=self._name, trace=trace_of(error))
            case _:
                pass
        return self._status is not None

    def _end(self, status: status_pb2.Status, **more: object) -> None:
        self._status = status
        self._log(statuses.code_name(status), **more)

    def _log(self, code: str, **more: object) -> None:
        seconds = round(time.monotonic() - self._begin, 6)
        _log.info("call", method=self._name, principal=self._principal, code=code, seconds=seconds, **more)


def _with_outcome(name: str, refused: Refused) -> Refused:
    """What is refused before the domain is asked left the page untouched; the domain itself says more."""
    if name not in _ON_PAGE or "page_touched" in refused.metadata:
        return refused
    return with_outcome(refused, "no")


def _not_built(name: str) -> Callable[[Message, Principal], Never]:
    def refuse(_request: Message, _caller: Principal) -> Never:
        raise NotBuilt(name)

    return refuse


def _serialize(message: Message) -> bytes:
    return message.SerializeToString()


def _is_unix(context: Context | StreamContext) -> bool:
    return context.peer().startswith(_UNIX_PEER)
