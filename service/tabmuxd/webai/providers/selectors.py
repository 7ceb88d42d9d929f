"""Whether a browser can read a CSS selector, told without one."""

from __future__ import annotations

import re
import warnings
from difflib import get_close_matches
from typing import Final

import soupsieve
from soupsieve.css_parser import PSEUDO_SUPPORTED

# Compared with Chromium 156 by tests/e2e/test_reload.py; soupsieve 4.1.3.
_BROWSER_ONLY: Final = frozenset(
    {
        *("active-view-transition", "-webkit-any-link", "-webkit-autofill", "-webkit-full-screen", "interest-source"),
        *("invalid", "modal", "target-current", "user-valid", "valid", "window-inactive", "xr-overlay"),
    }
)
_SOUPSIEVE_ONLY: Final = frozenset(
    {
        *("-soup-contains", "-soup-contains-own", "buffering", "contains", "local-link", "matches", "muted", "paused"),
        *("playing", "seeking", "stalled", "target-within", "volume-locked"),
    }
)
_OF_TEXT: Final = frozenset({"-soup-contains", "-soup-contains-own", "contains", "has-text", "text"})
_PARTS: Final = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<escaped>\\.)
    |(?P<element>::[-\w]+)
    |:(?P<name>-?[a-zA-Z][-\w]*)(?P<open>\(?)
    |(?P<unequal>!=)
    |(?P<sensitive>(?<=["'])\s*[sS]\s*\])
    |(?P<prefix>[-\w]+)\|(?![=|])""",
    re.VERBOSE | re.DOTALL,
)
_FAULTS: Final = {
    "unequal": "has '!=', which CSS does not have; write :not([name=value])",
    "sensitive": "has the flag 's', which Chrome does not know; leave it out",
}
_OLD_ELEMENTS: Final = frozenset({"before", "after", "first-line", "first-letter"})
_STATE: Final = re.compile(r":state\(\s*[-\w]+\s*\)", re.IGNORECASE)


def selector_fault(selector: str) -> str:
    """What is wrong with a selector, as half a sentence; empty where nothing is."""
    readable = _STATE.sub(":root", selector)
    for found in reversed(list(_PARTS.finditer(readable))):
        if fault := _fault_of(found):
            return fault
        if (found["name"] or "").lower() in _BROWSER_ONLY and not found["open"]:
            readable = f"{readable[: found.start()]}:root{readable[found.end() :]}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # names that CSS gave up, which browsers still read
            soupsieve.compile(readable)
    except (soupsieve.SelectorSyntaxError, ValueError, RecursionError) as error:
        return f"is no CSS selector: {_first_sentence(str(error))}"
    return ""


def _fault_of(found: re.Match[str]) -> str:
    """What is wrong with one part of a selector that looks as if it were right."""
    if found["prefix"]:
        return f"has the prefix {found['prefix']!r}; a page's selectors have none"
    for kind, fault in _FAULTS.items():
        if found[kind]:
            return fault
    name = (found["name"] or "").lower()
    if found["element"] or name in _OLD_ELEMENTS:
        return f"has {found[0]!r}, which selects no element"
    if name in _OF_TEXT:
        return f"has ':{name}', which CSS does not have: text cannot be selected by"
    if name in _SOUPSIEVE_ONLY or (name and name not in _BROWSER_ONLY and f":{name}" not in PSEUDO_SUPPORTED):
        near = get_close_matches(name, _known(), 1)
        hint = f"; did you mean ':{near[0]}'?" if near else ""
        return f"has ':{name}', which Chrome does not know{hint}"
    return ""


def _known() -> list[str]:
    return sorted({*_BROWSER_ONLY, *(name.removeprefix(":") for name in PSEUDO_SUPPORTED)} - _SOUPSIEVE_ONLY)


def _first_sentence(text: str) -> str:
    return " ".join(text.partition("\n")[0].split())
