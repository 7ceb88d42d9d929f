"""Providers: which there are, what a tab shows of one, and what its descriptor finds there."""

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from tabmux.calls import Calls
from tabmux.v1.provider_pb2 import Provider, ProviderStatus
from tabmux.v1.web_ai_service_pb2 import (
    GetProviderStatusRequest,
    ListProvidersRequest,
    ProbeProviderRequest,
    ProbeProviderResponse,
)

if TYPE_CHECKING:
    from tabmux.v1.web_ai_service_pb2_grpc import WebAiServiceAsyncStub  # exists for type checkers only


async def list_providers(service: "WebAiServiceAsyncStub", calls: Calls) -> AsyncGenerator[Provider, None]:
    """Yield the providers that the server has descriptors for, by id, over all pages."""
    request = ListProvidersRequest()
    async for reply in calls.pages(service.ListProviders, request):
        for provider in reply.providers:
            yield provider


async def provider_status(service: "WebAiServiceAsyncStub", calls: Calls, tab: str) -> ProviderStatus:
    """What the tab of this name shows of the provider it is at."""
    return (await calls.unary(service.GetProviderStatus, GetProviderStatusRequest(tab=tab))).status


async def probe_provider(
    service: "WebAiServiceAsyncStub", calls: Calls, provider: str, tab: str
) -> ProbeProviderResponse:
    """What each selector of the provider's descriptor finds in the tab of this name."""
    return await calls.unary(service.ProbeProvider, ProbeProviderRequest(provider=provider, tab=tab))
