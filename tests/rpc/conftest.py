"""A server over fakes, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.rpc.fakes import Served, serving


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    """A server and a client."""
    async with serving() as served:
        yield served
