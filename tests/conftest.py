"""What holds for all tests: properties are judged, never their speed."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("tabmux", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tabmux")


# A shell has what it starts in the background ignore this signal, and commands that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--long` also run what is marked `long`; `-m` stays free for other marks."""
    parser.addoption("--long", action="store_true", help="run the tests marked long too, as make chaos does")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `long`, unless it is asked for."""
    if config.getoption("--long"):
        return
    left_out = [item for item in items if item.get_closest_marker("long") is not None]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.get_closest_marker("long") is None]
