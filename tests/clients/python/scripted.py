"""A real server on a Unix socket whose replies the tests write."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tabmux.client import Client
from tabmux.v1 import tab_service_pb2, web_ai_service_pb2
from tabmux.v1.event_pb2 import WatchProgress
from tabmux.v1.tab_service_pb2 import GetServerInfoResponse

SERVICES = (
    tab_service_pb2.DESCRIPTOR.services_by_name["TabService"],
    web_ai_service_pb2.DESCRIPTOR.services_by_name["WebAiService"],
)


@dataclass(frozen=True)
class Refuse:
    """A step of a script that ends the call with a status; without `reason` one as a library makes it."""

    code: grpc.StatusCode
    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    retry_delay: timedelta | None = None
    message: str = "refused"
    domain: str = "tabmux"


Step = Message | Refuse | asyncio.Event
Script = Sequence[Step] | Callable[[Message], Sequence[Step]]
Connected = Callable[..., AbstractAsyncContextManager[Client]]


@dataclass(frozen=True)
class Call:
    """What the server saw of one call."""

    method: str
    request: Message
    metadata: dict[str, str]
    time_remaining: float | None


def duration(time: timedelta) -> Duration:
    """A duration of the contract."""
    message = Duration()
    message.FromTimedelta(time)
    return message


def sha(text: str) -> str:
    """Hash of a text as it stands on the wire."""
    return hashlib.sha256(text.encode()).hexdigest()


class ScriptedServer:
    """Serves both services; each call of a method takes the next script of that method, the last one for ever.

    A script is a list of replies, `Refuse`s and events to wait for, or a function that makes one from the request.
    """

    def __init__(self, directory: Path) -> None:
        self.socket = directory / "tabmuxd.sock"
        self.address = f"unix://{self.socket}"
        self.calls: list[Call] = []
        self._scripts: dict[str, list[Script]] = {}
        self._server: grpc.aio.Server | None = None
        self.script(
            "GetServerInfo",
            [
                GetServerInfoResponse(
                    version="0.1.0",
                    principal="local",
                    scopes=["read", "drive", "ai", "admin"],
                    progress=WatchProgress(history_id="h1", revision=7),
                ),
            ],
        )

    def script(self, method: str, *scripts: Script) -> None:
        self._scripts[method] = list(scripts)

    def requests(self, method: str) -> list:
        return [call.request for call in self.calls if call.method == method]

    async def start(self) -> None:
        self._server = grpc.aio.server()
        for service in SERVICES:
            handlers = {method.name: self._handler(method) for method in service.methods}
            self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service.full_name, handlers),))
        self._server.add_insecure_port(self.address)
        await self._server.start()

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop(None)
            self._server = None

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def _handler(self, method: MethodDescriptor) -> grpc.RpcMethodHandler:
        request_class = GetMessageClass(method.input_type)

        async def stream(request: Message, context: grpc.aio.ServicerContext) -> AsyncIterator[Message]:
            self._note(method.name, request, context)
            async for reply in self._answered(method, request, context):
                yield reply

        async def unary(request: Message, context: grpc.aio.ServicerContext) -> Message:
            return await anext(stream(request, context))

        async def upload(requests: AsyncIterator[Message], context: grpc.aio.ServicerContext) -> Message:
            request = request_class()
            async for request in requests:
                self._note(method.name, request, context)
            return await anext(self._answered(method, request, context))

        if method.client_streaming:
            return grpc.stream_unary_rpc_method_handler(upload, request_class.FromString, _to_bytes)
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(stream, request_class.FromString, _to_bytes)
        return grpc.unary_unary_rpc_method_handler(unary, request_class.FromString, _to_bytes)

    async def _answered(
        self, method: MethodDescriptor, request: Message, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[Message]:
        scripts = self._scripts.get(method.name) or []
        if not scripts:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"{method.name} is not built yet")
        script = scripts.pop(0) if len(scripts) > 1 else scripts[0]
        for step in script(request) if callable(script) else script:
            match step:
                case Refuse():
                    await _refuse(context, step)
                case asyncio.Event():
                    await step.wait()
                case _:
                    assert isinstance(step, GetMessageClass(method.output_type))
                    yield step

    def _note(self, method: str, request: Message, context: grpc.aio.ServicerContext) -> None:
        metadata = {key: str(value) for key, value in context.invocation_metadata() or ()}
        self.calls.append(Call(method, request, metadata, context.time_remaining()))


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()


async def _refuse(context: grpc.aio.ServicerContext, step: Refuse) -> None:
    if not step.reason:
        await context.abort(step.code, step.message)
    number: int = step.code.value[0]
    status = Status(code=number, message=step.message)
    details: list[Message] = [ErrorInfo(reason=step.reason, domain=step.domain, metadata=step.metadata)]
    if step.retry_delay is not None:
        details.append(RetryInfo(retry_delay=duration(step.retry_delay)))
    for detail in details:
        packed = AnyMessage()
        packed.Pack(detail)
        status.details.append(packed)
    await context.abort_with_status(rpc_status.to_status(status))
