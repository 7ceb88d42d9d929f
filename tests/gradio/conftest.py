"""One server for all tests of a module, as in the end-to-end tests, and one Gradio."""

from collections.abc import Iterator

import pytest

from tests.cdp.browsers import fresh_profile
from tests.e2e.conftest import closed_afterwards, person, playground, server, server_settings
from tests.gradio.chats import Chats, running_chats

__all__ = ["chats", "closed_afterwards", "person", "playground", "server", "server_settings"]


@pytest.fixture(scope="module")
def chats() -> Iterator[Chats]:
    """Real chats, made with Gradio."""
    with fresh_profile() as directory, running_chats(directory) as chats:
        yield chats
