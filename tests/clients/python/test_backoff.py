"""Tries come apart: longer each time, up to a bound, by chance."""

from datetime import timedelta
from itertools import islice

import pytest
from tabmux.backoff import pause_after, pauses


def test_growth() -> None:
    """Pauses grow from 0.1 s by 1.6 and never exceed 10 s."""
    grown = list(islice(pauses(lambda: 1.0), 14))
    assert grown[:4] == pytest.approx([0.1, 0.16, 0.256, 0.4096])
    assert grown[10:] == [10.0] * 4


def test_full_jitter() -> None:
    """Chance takes the pause anywhere between nothing and its bound."""
    assert list(islice(pauses(lambda: 0.0), 3)) == [0.0] * 3


def test_asked_delay() -> None:
    """A delay that the server asks for is a minimum."""
    assert (pause_after(0.1, None), pause_after(0.1, timedelta(seconds=2)), pause_after(3, timedelta(seconds=2))) == (
        0.1,
        2.0,
        3,
    )
