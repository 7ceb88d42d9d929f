"""Selectors that a browser reads, and such that it does not; compared with Chromium itself in tests/e2e."""

from __future__ import annotations

from typing import Final

GOOD: Final = (
    *("*", "a", ".a", "#a", "é", "--x", "*|a", "[|a]", "[*|a]", "#\\31 ", "\n a \n", "a /*c*/ b"),
    *('[data-turn="1"]', "[data-turn='1']", 'a[b="c" i]', '[aria-label*="Stop"i]', '[a^=""]', "[a|=en]"),
    *('button[data-testid*="composer-send"]', 'div[role="textbox"][contenteditable="true"]', "[a='x\\'y']"),
    *("a > b", "a + b ~ c", ":is(a, b)", ":is()", ":where(a)", ":not(a,b)", "form:has(> #prompt)"),
    *("a:nth-child(2n+1)", ":nth-child(1 of a)", ":Nth-Child(ODD)", ":first-of-type", "a:hover:focus-visible"),
    *(":modal", ":popover-open", ":user-valid", ":state(open)", ":-webkit-autofill", "dialog:modal > a:invalid"),
    *(":disabled", ":read-only", ":placeholder-shown", ":host", ":host(a)", ":scope > a", ":root", ":open"),
    *('[title="a::b"]', '[title=":contains(x)"]', '[title="a!=b"]', "[title='a|b']", ".md\\:flex", "svg a"),
)
BAD: Final = (
    *(
        "",
        "> a",
        "a/*c*/b",
        "a >",
        "a,,b",
        "a,",
        "#1",
        "@",
        "$a",
        "%",
        "a!",
        "(a)",
        "a}",
        "{",
        "a || b",
        "svg|a",
        "a|b",
        "[a!=b]",
        "[b='c' s]",
    ),
    *("a:not(", "a[b=c d]", '[x="a\nb"]', "a:nth-child(foo)", "a:nth-child()", ":nosuch", "a:hovr", ".", "..a"),
    *(':contains("x")', ':-soup-contains("x")', ':has-text("x")', ":matches(a)", ":muted", "a:text(x)", ":state()"),
)
STRICTER: Final = ("[b", '[data-turn="1"', "::before", "a:before", "a::part(x)", "a /* c")
"""A browser reads them, but they select nothing, or end by accident."""
