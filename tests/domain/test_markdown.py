from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.markdown import NotConvertedError, TooLargeError, from_html


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>The answer is 42.</p>", "The answer is 42."),
        ("inline <b>alone</b>", "inline **alone**"),
        ("<p>a<br>b</p>", "a\\\nb"),
        ("<h2>Title</h2>", "## Title"),
        ("<hr>", "---"),
        ("<blockquote><p>q</p><p>r</p></blockquote>", "> q\n>\n> r"),
        ('<p><a href="https://x.example/">link</a></p>', "[link](https://x.example/)"),
        (
            '<ul><li>a<ul><li>b<ol start="3"><li>c</li><li>d</li></ol></li></ul></li><li>e</li></ul>',
            "- a\n  - b\n    3. c\n    4. d\n- e",
        ),
        (
            '<ol><li><p>one</p><pre><code data-language="js">x</code></pre></li><li><p>two</p></li></ol>',
            "1. one\n\n   ```js\n   x\n   ```\n2. two",
        ),
        (
            "<table><tr><th>A</th><th>B|C</th></tr><tr><td>1<br>2</td><td><code>x|y</code></td></tr></table>",
            "| A | B\\|C |\n| --- | --- |\n| 1 2 | `x\\|y` |",
        ),
        (
            '<pre><code data-language="python">for x in y:\n    print("*_")\n</code></pre>',
            '```python\nfor x in y:\n    print("*_")\n```',
        ),
        ('<pre data-language="c++">a</pre>', "```c++\na\n```"),
        ("<pre><code>a\n```\nb</code></pre>", "````\na\n```\nb\n````"),
        ('<p>Let <span data-tex="a_b*c"></span> be</p>', "Let $a_b*c$ be"),
        ('<span data-tex="\\int_0^1" data-display="1"></span>', "$$\n\\int_0^1\n$$"),
        ("<p>2 * 3 `x` \\ _so_ but snake_case</p>", "2 \\* 3 \\`x\\` \\\\ \\_so\\_ but snake_case"),
        ("<p>&lt;i&gt; but a &lt; b, [x](y) but [z]</p>", "\\<i> but a < b, \\[x](y) but [z]"),
        ("<p>[a [b] c](d) and [e\nf](g)</p>", "\\[a \\[b] c](d) and \\[e\nf](g)"),
        ("<p>a\n - no list</p>", "a\n\\- no list"),
        ("<p>- no list</p>", "\\- no list"),
        ("<p>1. no list</p>", "1\\. no list"),
        ("<p># no title</p>", "\\# no title"),
        ("<p>-1 and #1 and 1.5</p>", "-1 and #1 and 1.5"),
        ("<p>日本語<b>太字</b>です 😉</p>", "日本語**太字**です 😉"),
        ("<p>a \ufdd0\ufdd0b  c</p>", "a   b c"),
        ("", ""),
    ],
)
def test_from_html(html: str, markdown: str) -> None:
    """What a page shows becomes the Markdown that shows the same (FIN-26)."""
    assert from_html(html) == markdown


@pytest.mark.parametrize(
    "html",
    [
        "<p>" + "<b>x</b> " * 2001,
        "<div>" * 1500 + "x",
        "x" * 500_001,
        "<blockquote>" * 100 + "<pre>" + "a\n" * 40_000,
    ],
    ids=["elements", "depth", "length", "both"],
)
def test_too_large(html: str) -> None:
    """What would hold up all others is refused."""
    with pytest.raises(TooLargeError):
        from_html(html)


@pytest.mark.parametrize(
    ("piece", "markdown"),
    [("[", "["), ("[a ", "[a "), ("](", "]("), (" ", " "), ("\t", " "), ("\n\u00a0", "\n\u00a0"), ("\n\x0b", "\n\x0b")],
)
def test_any_length(piece: str, markdown: str) -> None:
    """A long text of any signs is converted in a moment: nothing in it takes the square of its length (FIN-22)."""
    made = from_html(f"<p>a{piece * 100_000}b</p>")

    assert made == f"a{markdown * (100_000 if markdown.strip(' ') else 1)}b"


@pytest.mark.parametrize(
    "html",
    [
        '<ol start="²"><li>a</li></ol>',
        f'<ol start="{"1" * 5000}"><li>a</li></ol>',
        '<table><tr><td colspan="²">a</td></tr></table>',
        f"<h{'1' * 5000}>a</h{'1' * 5000}>",
    ],
    ids=["raised start", "long start", "raised span", "long heading"],
)
def test_not_converted(html: str) -> None:
    """What the library trips over is refused as what has no Markdown, and is no other error (FIN-26)."""
    with pytest.raises(NotConvertedError):
        from_html(html)


@given(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "Zs"], include_characters=".,;:?!'\"()"), max_size=80)
)
def test_plain_text(text: str) -> None:
    """Text without markup stays as it is, but for white space and the point behind a number at its beginning."""
    shown = " ".join(text.split())
    found = from_html(f"<p>{shown}</p>")

    assert found.replace("\\", "").split() == shown.split()
