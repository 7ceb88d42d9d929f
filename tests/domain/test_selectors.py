"""CSS selectors, judged without a browser."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.providers.selectors import selector_fault

from tests.domain.selector_cases import BAD, GOOD, STRICTER


@pytest.mark.parametrize("selector", GOOD)
def test_good(selector: str) -> None:
    """What a browser reads is not refused."""
    assert selector_fault(selector) == ""


@pytest.mark.parametrize("selector", [*BAD, *STRICTER])
def test_bad(selector: str) -> None:
    """What a browser cannot read, or reads and never finds, is refused."""
    assert selector_fault(selector)


@pytest.mark.parametrize(
    ("selector", "told"),
    [
        ("a:hovr", "has ':hovr', which Chrome does not know; did you mean ':hover'?"),
        ("a:contains('x')", "has ':contains', which CSS does not have: text cannot be selected by"),
        ("[a!=b]", "has '!=', which CSS does not have; write :not([name=value])"),
        ("a::before", "has '::before', which selects no element"),
        ("svg|a", "has the prefix 'svg'; a page's selectors have none"),
    ],
)
def test_told(selector: str, told: str) -> None:
    """What is wrong is told in words that say what to write instead."""
    assert selector_fault(selector) == told


@given(st.one_of(st.text(max_size=20), st.text("ab.#:[]()=\"'\\>~+|*,^$! -", max_size=20)))
def test_any(text: str) -> None:
    """Any text is judged: nothing is raised."""
    assert isinstance(selector_fault(text), str)
