"""Answers of the hostile page as tables: what the page does, and how the turn has to end.

The comments name the rows of the scenarios that a case is of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tabmux.v1.session_pb2 import Turn

from tests.hostile.descriptors import TomlValue
from tests.hostile.script import Answer, answer, grow, show

SHORT = "The answer is 42."
LONG = "\n\n".join(f"Paragraph {number} of an answer that is not short." for number in range(20))
HUGE = "\n\n".join(f"{number} " + "word " * 1999 + "end" for number in range(6))
END = show(0, stop=0, done=True)
UNMARKED: Mapping[str, TomlValue] = {"done_mark": [], "hint_mark": [".hint"]}


COPY: Mapping[str, TomlValue] = {"copy": ['button[data-testid="copy-turn-action-button"]']}


@dataclass(frozen=True)
class Ended:
    """How a turn ended: state, reason, text, warnings, and how often its prompt was sent."""

    text: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()
    state: Turn.State.ValueType = Turn.STATE_SUCCEEDED
    prompt_count: int = 1


def failed(reason: str, text: str = "") -> Ended:
    """A turn that failed."""
    return Ended(text, reason, state=Turn.STATE_FAILED)


@dataclass(frozen=True)
class Case:
    """One answer to the last of some prompts, on a page and with a descriptor of its own."""

    answer: Answer
    ended: Ended
    variant: str = "plain"
    earlier: Sequence[tuple[str, str]] = ()
    timeout: int = 60
    page: Mapping[str, TomlValue] = field(default_factory=dict)
    windows: Mapping[str, TomlValue] = field(default_factory=dict)


def whole(text: str, *phases: object, **case: object) -> Case:
    """A case whose answer is this text in the end."""
    return Case(answer(*phases), Ended(text), **case)  # type: ignore[arg-type]


_OLD = [(f"Old question {number}", f"Old answer {number}") for number in range(3)]

GROWING: Mapping[str, Case] = {
    # FIN-01
    "long-way": whole(
        LONG,
        show(0.2),
        grow("P", 0.1, pieces=1),
        show(1.3),
        grow(LONG[:100], 0.2),
        show(0.7, stop=0),
        show(1.0, stop=1),
        grow(LONG[:500], 0.5),
        show(1.5),
        grow(LONG, 0.5),
        END,
    ),
    # FIN-02
    "pauses": whole(LONG, grow(LONG[:300], 0.3), show(1.5), show(1.5, stop=0), grow(LONG, 0.3, stop=1), END),
    # FIN-03
    "older-answers": whole(SHORT, show(1.5), grow(SHORT, 0.2), END, earlier=_OLD),
    # FIN-09
    "mark-goes-again": whole(
        LONG, grow(LONG[:90], 0.2), show(0.15, stop=0, done=True), grow(LONG, 0.6, stop=1, done=False), END
    ),
    # FIN-10
    "stop-never-shown": whole(LONG, grow(LONG, 0.8, stop=0), END),
    # FIN-20
    "at-once": whole(SHORT, show(0, text=SHORT, stop=0, done=True)),
    # FIN-15
    "fallback": whole(
        SHORT,
        show(0.5),
        grow(SHORT, 0.2),
        END,
        variant="mixed",
        earlier=_OLD,
        page={
            "user_turn": '[data-author="user"]',
            "assistant_turn": ['[data-author="assistant"]', "article.turn"],
        },
    ),
    "keyless": whole(SHORT, show(0.3), grow(SHORT, 0.2), END, variant="keyless", earlier=_OLD),
    # FIN-16: words in the sidebar, in the title, in the answer.
    "words": whole(
        "Thinking of log in, ray id and Stop: unsupported capability.",
        show(0.1, do="document.title = 'Log in - just a moment, Stop'"),
        grow("Thinking of log in, ray id and Stop: unsupported capability.", 0.2),
        END,
    ),
}
BUILT: Mapping[str, Case] = {
    # FIN-13
    "nested": whole(LONG, grow(LONG, 0.5), END, variant="nested"),
    # FIN-14
    "few": whole(LONG, grow(LONG, 0.5), END, variant="few", earlier=_OLD),
    "hollow": whole(LONG, show(1.0), grow(LONG, 0.5), END, variant="hollow", earlier=_OLD),
    "late-turns": whole(SHORT, show(0.3), grow(SHORT, 0.2), END, variant="late-turns", earlier=_OLD),
    "rekeyed": whole(LONG, grow(LONG, 0.3), END, variant="rekeyed", earlier=_OLD),
    # FIN-19
    "frames": whole(LONG, grow(LONG, 0.5), END, variant="frames"),
    # FIN-18
    "reload": whole(LONG, grow(LONG[:300], 0.3), show(0.3, do="location.reload()"), grow(LONG, 0.8), END),
    "other-host": whole(
        LONG,
        grow(LONG[:300], 0.3),
        show(0.3, do="location.host = `127.0.0.1:${location.port}`"),
        grow(LONG, 0.8),
        END,
    ),
    # FIN-22
    "page-hangs": whole(
        LONG,
        grow(LONG[:300], 0.3),
        show(0.2, do="const end = performance.now() + 2000; while (performance.now() < end);"),
        grow(LONG, 0.3),
        END,
    ),
    # FIN-23
    "huge": whole(HUGE, grow(HUGE, 1.0), END, earlier=[(f"Old {number}", HUGE) for number in range(2)]),
}
UNUSUAL: Mapping[str, Case] = {
    # FIN-12
    "one-letter": whole("4", show(0.2), show(0, text="4", stop=0, done=True)),
    "empty": Case(answer(show(0.2), show(0, place=True, stop=0, done=True)), failed("ANSWER_EMPTY")),
    "image-only": Case(
        answer(show(0.2), show(0, html='<img class="made" src="data:,">', stop=0, done=True)),
        Ended(warnings=("answer-without-text",)),
    ),
    # FIN-11
    "placeholders": whole(
        "It is 42.",
        show(0.4, placeholder="Thinking"),
        show(0.4, placeholder="Pro thinking \N{BULLET} 3 s"),
        show(0.4, placeholder="Thought for 12s"),
        grow("Thought for 12s\n\nIt is 42.", 0.2, pieces=1),
        END,
    ),
    "stopped-thinking": Case(
        answer(show(0.4, placeholder="Thinking"), show(0, placeholder="Stopped thinking", stop=0)),
        failed("ANSWER_STOPPED"),
    ),
    # FIN-07
    "banner": Case(
        answer(grow(LONG[:95], 0.3), show(0, stop=0, banner="Something went wrong.")),
        failed("PROVIDER_FAILED", LONG[:95]),
    ),
    "old-banner": whole(LONG, grow(LONG, 0.5), END, variant="old-banner"),
    "limit": Case(
        answer(grow(LONG[:95], 0.3), show(0, stop=0, limit="You reached your limit.")),
        failed("PROVIDER_LIMITED", LONG[:95]),
        page={"limit": ["#transcript > .limit"]},
    ),
    # FIN-10, FIN-04
    "never-marked": Case(answer(grow(SHORT, 0.3), show(0, stop=0)), failed("ANSWER_STALLED", SHORT)),
    # O-137: windows by length, where there is no mark.
    "unmarked": whole(LONG, show(0.2), grow(LONG, 0.5), show(0, stop=0), page=UNMARKED),
    "unmarked-short": whole("4", show(0.2), show(0, text="4", stop=0), page=UNMARKED),
    "unmarked-phases": whole(
        LONG,
        grow(LONG[:200], 0.3),
        show(0.5, stop=0),
        show(1.0, stop=1),
        show(0.5, stop=0),
        grow(LONG, 0.5, stop=1),
        show(0, stop=0),
        page=UNMARKED,
    ),
}
_RICH = (
    "<h2>Plan</h2><p>Take <strong>two</strong> of <code>x_y</code>:</p>"
    "<ol><li>one<ul><li>deep</li></ul></li><li>two</li></ol>"
    '<div class="code"><pre><button>Copy</button><code class="hljs language-python">a = "*"\n</code></pre></div>'
    "<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>"
    '<p>See <a href="/about">this</a>.</p><p hidden>Not shown</p><script>never()</script>'
)
_RICH_MARKDOWN = """## Plan

Take **two** of `x_y`:

1. one
   - deep
2. two

```python
a = "*"
```

| A | B |
| --- | --- |
| 1 | 2 |

See [this](http://rich.localhost:PORT/about)."""


def _katex(tex: str, shown: str) -> str:
    """A formula as KaTeX shows it: twice."""
    return (
        f'<span class="katex"><span class="katex-mathml"><math><semantics><mrow><mi>{shown}</mi></mrow><annotation'
        f' encoding="application/x-tex">{tex}</annotation></semantics></math></span><span class="katex-html"'
        f' aria-hidden="true">{shown}</span></span>'
    )


_FORMULA = (
    f"<p>The square {_katex('x^2_a', 'x')} and:</p>"
    f'<span class="katex-display">{_katex(chr(92) + "int_0^1 x", "I")}</span>'
    "<p>That is the whole of the answer.</p>"
)
_COPIED = "The answer is **42**.\n"
# The control that copies, and is the mark, looks different for a while once it was pressed.
_FLICKER = """engine.copy = async (told) => {
  const button = document.querySelector(".actions button");
  button.dataset.testid = "copied";
  setTimeout(() => (button.dataset.testid = "copy-turn-action-button"), 1500);
  await navigator.clipboard.writeText(`*${told.view.text}*`);
};"""
READ: Mapping[str, Case] = {
    # FIN-26
    "rich": Case(answer(show(0.2), show(0, html=_RICH, stop=0, done=True)), Ended(_RICH_MARKDOWN)),
    "formula": Case(
        answer(show(0.2), show(0, html=_FORMULA, stop=0, done=True)),
        Ended("The square $x^2_a$ and:\n\n$$\n\\int_0^1 x\n$$\n\nThat is the whole of the answer."),
    ),
    "raised-start": Case(
        answer(show(0.2), show(0, html='<ol start="²"><li>One thing that is listed</li></ol>', stop=0, done=True)),
        Ended("1. One thing that is listed"),
    ),
    "copied": Case(answer(grow(SHORT, 0.3), show(0, copied=_COPIED, stop=0, done=True)), Ended(_COPIED), page=COPY),
    # FIN-21
    "copied-hover": Case(
        answer(grow(SHORT, 0.3), show(0, copied=_COPIED, stop=0, done=True)),
        Ended(_COPIED),
        variant="hover",
        page=COPY,
    ),
    "copied-too-short": whole(SHORT, grow(SHORT, 0.3), show(0, copied="42", stop=0, done=True), page=COPY),
    "copied-foreign": whole(
        SHORT, grow(SHORT, 0.3), show(0, copied="Another thing altogether.", stop=0, done=True), page=COPY
    ),
    "copied-without-end": whole(
        LONG, grow(LONG, 0.3), show(0, copied=LONG[: int(len(LONG) * 0.82)], stop=0, done=True), page=COPY
    ),
    "copied-flickers": Case(
        answer(grow(SHORT, 0.3), show(0, stop=0, done=True, do=_FLICKER)), Ended(f"*{SHORT}*"), timeout=20, page=COPY
    ),
    "copied-never": whole(SHORT, grow(SHORT, 0.3), END, variant="no-copy", page=COPY),
    "code-only": Case(
        answer(
            show(0.2),
            show(
                0,
                html="<pre><button data-testid='copy-turn-action-button'>Copy</button><code>x = 1</code></pre>",
                stop=0,
                done=True,
            ),
        ),
        Ended("```\nx = 1\n```"),
        variant="no-actions",
        page={**COPY, "done_mark": [".finished"]},
    ),
    "many-elements": Case(
        answer(show(0.2), show(0, html="<p>" + "<b>x</b> " * 2100 + "</p>", stop=0, done=True)),
        Ended(("x " * 2100).rstrip(), warnings=("markdown-failed",)),
    ),
}
SLOW: Mapping[str, Case] = {
    # FIN-02
    "long-pauses": whole(
        LONG,
        grow(LONG[:300], 0.3),
        show(20.0),
        grow(LONG[:400], 0.3),
        show(5.0, stop=0),
        grow(LONG, 0.3, stop=1),
        END,
        windows={"give_up_after": 30.0},
    ),
    "out-of-time": Case(
        answer(grow(SHORT, 0.3), show(60)),
        failed("ANSWER_TIMEOUT", SHORT),
        timeout=10,
        windows={"last_done_quiet": 0.5},
    ),
    # FIN-22
    "page-hangs-long": whole(
        LONG,
        grow(LONG[:300], 0.3),
        show(0.2, do="const end = performance.now() + 12000; while (performance.now() < end);"),
        grow(LONG, 0.3),
        END,
    ),
}
GROUPS = {"growing": GROWING, "built": BUILT, "unusual": UNUSUAL, "read": READ, "slow": SLOW}
