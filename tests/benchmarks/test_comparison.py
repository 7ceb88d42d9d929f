import json

import pytest

from benchmarks.comparison import Comparison, alternate, percentile, report


def quiet(_text: str) -> None:
    """Progress that nobody reads."""


async def test_order() -> None:
    """Both are measured in every round, the first place changes hands, and the warm-up round does not count."""
    order: list[str] = []

    async def ours(number: int) -> list[float]:
        order.append(f"ours {number}")
        return [3.0 * number]

    async def theirs(number: int) -> list[float]:
        order.append(f"theirs {number}")
        return [2.0 * number]

    # A time of zero in the warm-up round shows that no ratio is made of it.
    comparison = await alternate(ours, theirs, rounds=2, progress=quiet)

    assert order == ["theirs 0", "ours 0", "ours 1", "theirs 1", "theirs 2", "ours 2"]
    assert comparison == Comparison(measured=((3.0,), (6.0,)), against=((2.0,), (4.0,)))


def test_ratio() -> None:
    """The ratio is that of the two medians over all rounds, which a single slow call does not move."""
    comparison = Comparison(measured=((1.5, 1.5, 90.0), (1.5, 1.5, 1.5)), against=((1.0, 1.0, 1.0), (1.0, 1.0, 70.0)))

    assert comparison.ratio == pytest.approx(1.5)


def test_summary() -> None:
    """The summary has both medians and 95th percentiles in ms, and the quartiles of the ratios of single rounds."""
    comparison = Comparison(
        measured=((0.001,), (0.002,), (0.003,), (0.004,)), against=((0.001,), (0.001,), (0.001,), (0.001,))
    )

    assert comparison.summary("ours", "bare") == {
        "ours_p50_ms": 2.5,
        "ours_p95_ms": 4.0,
        "bare_p50_ms": 1.0,
        "bare_p95_ms": 1.0,
        "count": 4,
        "rounds": 4,
        "round_ratio_quartiles": [1.0, 3.0],
    }


@pytest.mark.parametrize(
    ("times", "percent", "expected"),
    [([5.0], 95, 5.0), ([3.0, 1.0, 2.0, 4.0], 25, 1.0), ([3.0, 1.0, 2.0, 4.0], 75, 3.0), ([1.0, 2.0], 0, 1.0)],
)
def test_percentile(times: list[float], percent: float, expected: float) -> None:
    """A percentile is a time that was measured, by nearest rank."""
    assert percentile(times, percent) == expected


def test_report() -> None:
    """A benchmark ends with one line of JSON that names it, its ratio, its goal, and whatever else is useful."""
    line = report("some_bench", 1.23456, 1.5, {"count": 3})

    fields = json.loads(line)
    assert "\n" not in line
    assert fields.pop("cores") >= 1
    assert fields == {
        "bench": "some_bench",
        "value": 1.235,
        "unit": "ratio",
        "goal": 1.5,
        "better": "lower",
        "count": 3,
    }
