"""The line at a provider: who is let in, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Reason, refuse
from tabmuxd.webai.line import LinePlace, ProviderLine, Standing, let_in

WAITING, ASIDE, AT_WORK = Standing.WAITING, Standing.ASIDE, Standing.AT_WORK
Move = tuple[Literal["join", "enter", "aside", "leave"], int]

MOVES = st.lists(
    st.tuples(st.sampled_from(["join", "enter", "enter", "aside", "leave"]), st.integers(0, 7)),
    max_size=60,
)


@given(st.lists(st.sampled_from(Standing)), st.integers(0, 6))
def test_let_in(line: Sequence[Standing], limit: int) -> None:
    """The first of those that wait go, as many as the limit leaves room for; nobody else moves (O-141, SUB-21)."""
    chosen = let_in(line, limit)

    waiting = [number for number, standing in enumerate(line) if standing is WAITING]
    assert chosen == waiting[: len(chosen)]
    assert len(chosen) == min(len(waiting), max(0, limit - list(line).count(AT_WORK)))


@given(MOVES, st.integers(0, 3), st.integers(0, 3))
def test_sequences(moves: Sequence[Move], limit: int, submitted_count: int) -> None:
    """At no time are more let in than may be, nor does anybody wait while there is room (O-141, SUB-21, LSE-11)."""
    line = ProviderLine("p", limit)
    places: list[LinePlace] = [line.join(at_work=True) for _ in range(submitted_count)]
    submitted = set(places)
    for move, number in moves:
        place = places[number % len(places)] if places else None
        match move:
            case "join":
                places.append(line.join(at_work=False))
            case "enter" if place:
                before = [each for each in places if each.standing is not AT_WORK]
                entered = place.enter()
                ahead = before[: before.index(place)] if place in before else []
                assert not (entered and any(each.standing is WAITING for each in ahead))
            case "aside" if place and place not in submitted:
                place.step_aside()
            case "leave" if place:
                place.leave()
                places.remove(place)
                submitted.discard(place)
            case _:
                continue
        standings = [each.standing for each in places]
        at_work = standings.count(AT_WORK)
        assert at_work <= max(limit, len(submitted))
        assert WAITING not in standings or at_work >= limit


async def test_first_come_first_served() -> None:
    """Each is let in when one ends, in the order in which they came, whoever asked first (O-141, LSE-11)."""
    line = ProviderLine("p", 2)
    places = [line.join(at_work=False) for _ in range(5)]
    waits = [asyncio.ensure_future(places[number].entered()) for number in (0, 1, 4, 3, 2)]
    await asyncio.sleep(0)

    at_work = [[place.standing is AT_WORK for place in places]]
    for place in places[:3]:
        place.leave()
        at_work.append([place.standing is AT_WORK for place in places])
    async with asyncio.timeout(10):
        await asyncio.gather(*waits)

    assert [sum(now) for now in at_work] == [2, 3, 4, 5]
    assert all(now == sorted(now, reverse=True) for now in at_work)
    assert repr(line) == "<ProviderLine p at_work=2 of 2 open=2>"


async def test_aside() -> None:
    """Who waits for something else lets those behind go, and goes before them once it can (O-141)."""
    line = ProviderLine("p", 1)
    first, second, third = (line.join(at_work=False) for _ in range(3))
    assert first.enter()
    assert not second.enter()
    assert not third.enter()

    first.step_aside()
    assert [place.standing for place in (first, second, third)] == [ASIDE, AT_WORK, WAITING]
    assert not first.enter()
    second.leave()
    assert [place.standing for place in (first, third)] == [AT_WORK, WAITING]
    first.leave()
    first.leave()
    assert third.standing is AT_WORK


async def test_after_a_restart() -> None:
    """What was submitted is at work whatever the limit, and what waits waits for it to end (O-141, O-143)."""
    line = ProviderLine("p", 1)
    submitted = [line.join(at_work=True) for _ in range(2)]
    waits = line.join(at_work=False)
    assert all(place.enter() for place in submitted)
    assert not waits.enter()
    submitted[0].leave()
    assert waits.standing is WAITING
    submitted[1].leave()
    assert waits.standing is AT_WORK


async def test_cool_down() -> None:
    """Once the provider has shown a limit none begins for a while, at most until it ends; what is at work goes on.

    Who was not let in till then is told of that limit, and that nothing was typed (SUB-21).
    """
    line = ProviderLine("p", 2, cool_down=0.05)
    limited, at_work, waits = (line.join(at_work=False) for _ in range(3))
    assert limited.enter()
    assert at_work.enter()
    assert waits.refused.reason is Reason.TURN_CAPACITY
    shown = refuse(Reason.PROVIDER_LIMITED, "m", provider="p", tab="browsers/main/tabs/t", reset_time="soon")

    limited.cool_down(shown)
    limited.leave()
    entered = waits.enter()
    told = waits.refused
    async with asyncio.timeout(10):
        await waits.entered()

    assert (entered, waits.standing, at_work.standing) == (False, AT_WORK, AT_WORK)
    assert (told.reason, told.metadata) == (
        Reason.PROVIDER_LIMITED,
        {"provider": "p", "tab": "", "reset_time": "soon"},
    )


@pytest.mark.parametrize(("cool_down", "retry_after"), [(0.0, None), (60.0, 0.0)])
async def test_no_cool_down(cool_down: float, retry_after: float | None) -> None:
    """Where none is wanted, or the limit has ended already, the next one begins at once (SUB-21)."""
    line = ProviderLine("p", 1, cool_down)
    line.join(at_work=False).cool_down(refuse(Reason.PROVIDER_LIMITED, "m", retry_after=retry_after, provider="p"))
    assert line.join(at_work=False).enter()


def test_zero_lets_nobody_in() -> None:
    """A limit of 0 is none at all; the refusal names provider and limit, and may be repeated (O-141)."""
    place = ProviderLine("chat", 0).join(at_work=False)
    assert not place.enter()
    refused = place.refused
    assert (refused.reason.value, refused.metadata, refused.retry_delay and refused.retry_delay.seconds) == (
        "TURN_CAPACITY",
        {"provider": "chat", "limit": "0"},
        5,
    )
