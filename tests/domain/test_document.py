from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.tab import LoadMilestone, Navigation, NavigationOutcome
from tabmuxd.tabs.document import Document, Documents, judge, judge_late

_NONE, _COMMITTED, _DOM, _LOADED = LoadMilestone
_REACHED, _SUPERSEDED = NavigationOutcome.REACHED, NavigationOutcome.SUPERSEDED
_URI = "https://example.com/"


def _after(*steps: tuple[str, str]) -> Documents:
    """Documents after steps: a loader, and `committed` or the name of a lifecycle event."""

    def step(documents: Documents, one: tuple[str, str]) -> Documents:
        loader, event = one
        return documents.committed(loader, _URI) if event == "committed" else documents.advanced(loader, event)

    return reduce(step, steps, Documents())


_FIRST = ("a", "committed")


@pytest.mark.parametrize(
    ("documents", "until", "outcome"),
    [
        (_after(), _COMMITTED, None),
        (_after(("b", "committed")), _COMMITTED, None),
        (_after(_FIRST), _COMMITTED, Navigation(_REACHED, _COMMITTED)),
        (_after(_FIRST), _NONE, Navigation(_REACHED, _COMMITTED)),
        (_after(_FIRST), _DOM, None),
        (_after(_FIRST, ("a", "DOMContentLoaded")), _DOM, Navigation(_REACHED, _DOM)),
        (_after(_FIRST, ("a", "DOMContentLoaded")), _LOADED, None),
        (_after(_FIRST, ("a", "load")), _DOM, Navigation(_REACHED, _LOADED)),
        (_after(_FIRST, ("a", "load"), ("a", "DOMContentLoaded")), _LOADED, Navigation(_REACHED, _LOADED)),
        (_after(_FIRST, ("a", "networkIdle")), _DOM, None),
        (_after(_FIRST, ("b", "load")), _LOADED, None),
        (_after(("a", "load"), _FIRST), _LOADED, None),
        (_after(_FIRST, ("b", "committed")), _LOADED, Navigation(_SUPERSEDED, _COMMITTED)),
        (_after(_FIRST, ("b", "committed"), ("b", "load")), _LOADED, Navigation(_SUPERSEDED, _COMMITTED)),
        (_after(_FIRST, ("a", "load"), ("b", "committed")), _LOADED, Navigation(_REACHED, _LOADED)),
        (_after(_FIRST, ("b", "committed"), _FIRST), _LOADED, None),
        (_after(_FIRST, ("a", "load"), ("b", "committed"), _FIRST), _LOADED, Navigation(_REACHED, _LOADED)),
    ],
)
def test_judge(documents: Documents, until: LoadMilestone, outcome: Navigation | None) -> None:
    """A navigation is judged by the events of its own loader; another document takes over, and may give back (O-80)."""
    assert judge(documents, "a", until) == outcome


@pytest.mark.parametrize(
    ("documents", "outcome"),
    [
        (_after(), Navigation(NavigationOutcome.UNCONFIRMED)),
        (_after(("b", "committed"), ("b", "load")), Navigation(NavigationOutcome.UNCONFIRMED)),
        (_after(_FIRST), Navigation(NavigationOutcome.LOADING, _COMMITTED)),
        (_after(_FIRST, ("a", "DOMContentLoaded")), Navigation(NavigationOutcome.LOADING, _DOM)),
    ],
)
def test_judge_late(documents: Documents, outcome: Navigation) -> None:
    """When the time is over it is told how far things came: loading, or no document seen (O-20, PAG-08)."""
    assert judge_late(documents, "a") == outcome


def test_same_document() -> None:
    """A commit under the same loader changes the address alone."""
    documents = _after(_FIRST, ("a", "load")).committed("a", "https://example.com/#x")

    assert documents == Documents((Document("a", "https://example.com/#x", _LOADED),))


def test_kept() -> None:
    """At most 16 documents are kept, the newest."""
    documents = _after(*((f"{number}", "committed") for number in range(40)))

    assert [document.loader_id for document in documents.seen] == [f"{number}" for number in range(24, 40)]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["committed", "DOMContentLoaded", "load"])), max_size=15
    ),
    st.sampled_from(LoadMilestone),
)
def test_never_back(steps: list[tuple[str, str]], until: LoadMilestone) -> None:
    """A milestone that was reached stays reached, whatever comes after it."""
    outcomes = [judge(_after(*steps[:length]), "a", until) for length in range(len(steps) + 1)]
    reached = [outcome.reached for outcome in outcomes if outcome and outcome.outcome is _REACHED]
    first = next((at for at, outcome in enumerate(outcomes) if outcome and outcome.outcome is _REACHED), len(outcomes))

    assert all(outcome and outcome.outcome is _REACHED for outcome in outcomes[first:])
    assert reached == sorted(reached)
