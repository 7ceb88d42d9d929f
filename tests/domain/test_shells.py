"""What is taken for a page that never showed its application."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest
from tabmuxd.webai.samples import SeenTurn
from tabmuxd.webai.shells import is_shell

from tests.domain.values import sample

_BARE: Final = replace(sample(), composer="absent", send_count=0)


@pytest.mark.parametrize(
    ("seen", "count", "shell"),
    [
        ({}, 0, True),
        ({"ready": False}, 499, True),
        ({}, 500, False),
        ({}, None, False),
        ({}, "0", False),
        ({"composer": "blocked"}, 0, False),
        ({"turns": (SeenTurn("u1", "user"),)}, 0, False),
        ({"barrier": "sign_in"}, 0, False),
        ({"failure": "Something went wrong"}, 20, False),
        ({"stop": True}, 0, False),
    ],
)
def test_shell(seen: dict[str, Any], count: object, *, shell: bool) -> None:
    """Neither composer, turns, nor what stands in the way, and fewer than 500 characters (SUB-09)."""
    assert is_shell(replace(_BARE, **seen), count) is shell
