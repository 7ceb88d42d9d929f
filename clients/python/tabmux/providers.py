"""Providers: which there are, and what can be done with them."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from tabmux.calls import Calls
from tabmux.v1.provider_pb2 import Provider
from tabmux.v1.web_ai_service_pb2 import ListProvidersRequest

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only


async def list_providers(service: "WebAiServiceAsyncStub", calls: Calls) -> AsyncGenerator[Provider, None]:
    """Yield the providers that the server has descriptors for, by id, over all pages."""
    request = ListProvidersRequest()
    while True:
        response = await calls.unary(service.ListProviders, request)
        for provider in response.providers:
            yield provider
        if not response.next_page_token:
            return
        request.page_token = response.next_page_token
