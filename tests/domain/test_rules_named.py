"""Each rule of docs/rules.md has a test that names it."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

_ROOT: Final = Path(__file__).parents[2]
_ROW: Final = re.compile(r"^\| (O-\d+) \|", re.MULTILINE)
_NAMED: Final = re.compile(r"\bO-\d+\b")

RULES: Final = _ROW.findall((_ROOT / "docs" / "rules.md").read_text("utf-8"))


def _docstrings() -> Iterator[str]:
    """Docstring of every test, and of every class that makes tests."""
    for path in sorted((_ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef) or (
                isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
            ):
                yield ast.get_docstring(node) or ""


@pytest.fixture(scope="module")
def named() -> Counter[str]:
    """How many tests name each rule."""
    return Counter(rule for docstring in _docstrings() for rule in set(_NAMED.findall(docstring)))


def test_list() -> None:
    """The list has each rule once, in order."""
    numbers = [int(rule.removeprefix("O-")) for rule in RULES]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 76


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_named(rule: str, named: Counter[str]) -> None:
    """A test proves this rule, and its docstring says so."""
    assert named[rule] > 0
