"""One server for all tests of a module, as in the end-to-end tests."""

from tests.e2e.conftest import closed_afterwards, playground, server, server_settings, site

__all__ = ["closed_afterwards", "playground", "server", "server_settings", "site"]
