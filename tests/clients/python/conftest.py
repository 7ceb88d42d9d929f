"""A scripted server, and a client connected to it."""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from tabmux.client import Client, connect

from tests.clients.python.scripted import Connected, ScriptedServer


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory whose paths are short enough for sockets."""
    path = Path(tempfile.mkdtemp(prefix="tm"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
async def server(directory: Path) -> AsyncIterator[ScriptedServer]:
    """A server that answers GetServerInfo, and what the test scripts."""
    scripted = ScriptedServer(directory)
    await scripted.start()
    yield scripted
    await scripted.stop()


@pytest.fixture
async def client(server: ScriptedServer) -> AsyncIterator[Client]:
    """A client of that server."""
    async with connect(server.address, environment={}) as connected:
        yield connected


@pytest.fixture
def connected(server: ScriptedServer) -> Connected:
    """Connect to that server with further arguments."""
    return partial(connect, server.address, environment={})
