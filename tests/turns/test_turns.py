"""Randomised turns against the hostile pages: each has exactly the page's answer, or a true reason for having none.

`TABMUX_TURNS` makes it longer (`make turns` does), `TABMUX_TURNS_SEED` repeats a run.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import replace
from typing import Any, Final

import pytest

from tests.cdp.browsers import fresh_profile
from tests.chaos.browsers import nothing_left
from tests.chaos.verdict import judge_log
from tests.hostile.site import running_site
from tests.turns.plan import End, plan
from tests.turns.run import at_work
from tests.turns.verdict import Seen, fault

TURNS: Final = int(os.environ.get("TABMUX_TURNS") or "10")
SEED: Final = os.environ.get("TABMUX_TURNS_SEED", "")


@pytest.mark.chromium
@pytest.mark.slow
@pytest.mark.timeout(150 + 4 * TURNS)
async def test_turns() -> None:
    """Whatever pauses, reloads, is closed or killed: 0 answers truncated, foreign or doubled (O-136, O-137, O-139).

    Each prompt is received once at most, and each turn SUCCEEDED with exactly the page's text, or ended with a true
    reason and what there was.
    """
    seed = int(SEED) if SEED else secrets.randbits(32)
    print(f"SEED={seed}, {TURNS} turns")  # noqa: T201 - how to repeat a run that failed
    with fresh_profile() as directory, running_site() as site:
        async with at_work(plan(seed, TURNS), directory, site) as run:
            await run.play()
        log = run.server.log()
        nothing_left(directory)
    print(dict(run.ends))  # noqa: T201 - what the run was made of
    assert (run.faults, run.ends.total()) == ([], TURNS), "\n".join(run.faults)
    judge_log(log)


def test_plan() -> None:
    """A seed is one run, and another another."""
    assert plan(1, 20) == plan(1, 20)
    assert plan(1, 20) != plan(2, 20)
    assert sum(len(talk.turns) for talk in plan(1, 23).talks) == 23


_RIGHT: Final = Seen(
    succeeded=True, reason="", text="ab", page_text="ab", received_count=1, end=End.DONE, befallen=False
)


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        ({}, ""),
        ({"text": "a"}, "truncated"),
        ({"text": "abab"}, "doubled"),
        ({"text": "xy"}, "foreign text"),
        ({"received_count": 2}, "sent 2 times"),
        ({"received_count": 0}, "succeeded without having been sent"),
        ({"end": End.BANNER}, "succeeded in place of PROVIDER_FAILED"),
        ({"succeeded": False, "reason": "PROVIDER_FAILED", "end": End.BANNER}, ""),
        ({"succeeded": False, "reason": "PROVIDER_FAILED", "end": End.BANNER, "text": "a"}, "text lost"),
        ({"succeeded": False, "reason": "PROVIDER_FAILED", "end": End.BANNER, "text": "x"}, "foreign text"),
        ({"succeeded": False, "reason": "ANSWER_STALLED"}, "ANSWER_STALLED without a cause"),
        ({"succeeded": False, "reason": "SUBMIT_UNCONFIRMED", "text": "", "befallen": True}, ""),
        ({"succeeded": False, "reason": "TAB_BUSY", "befallen": True}, "TAB_BUSY is no reason here"),
        (
            {"succeeded": False, "reason": "PROVIDER_NOT_SHOWN", "befallen": True, "text": ""},
            "PROVIDER_NOT_SHOWN, but it was sent",
        ),
    ],
)
def test_verdict(seen: dict[str, Any], wrong: str) -> None:
    """What is truncated, foreign, doubled, sent twice or failed without a cause is found."""
    assert fault(replace(_RIGHT, **seen)) == wrong
