from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.webai.copies import is_copy, is_whole
from tabmuxd.webai.markdown import from_html

_MANY = " ".join(f"word{number}" for number in range(1000))
_SHOWN = "The quick brown fox jumps over the lazy dog, again and again."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (_SHOWN, _SHOWN),
        ("**The** quick _brown_ fox `jumps` over [the lazy](https://dog.example/a_(b)) dog, again and again.", _SHOWN),
        ("日本語**太字**です", "日本語太字です"),
        ("詳細は[公式サイト](https://x.example/)を参照", "詳細は公式サイトを参照"),
        ("un**believ**able `a`b", "unbelievable ab"),
        ("snake\\_case and 2\\*3 and \\<i>", "snake_case and 2*3 and <i>"),
        ("1. one\n   - deep\n2. two\n\n> 3. three", "one\ndeep\ntwo\nthree"),
        ("```python\nx = 1\n```\n\n- ~~~ruby\n  y\n  ~~~", "x = 1\ny"),
        ("```python\nx = 1\n```", "python\n\nx = 1"),
        ("Let $a_b*c$ be\n\n$$\n\\int_0^1 x\n$$\n\nand \\(y^2\\) or \\[\\frac{1}{z}\\] so", "Let be and or so"),
        ("It costs $5 or $6 now", "It costs $5 or $6 now"),
        ('See ![a cat](https://x.example/cat.png "Cat") and <https://y.example/>&nbsp;here', "See and here"),
        ("See [this][1] now\n\n[1]: https://x.example/ 'Title'", "See this now"),
        ("| A | B |\n| --- | --- |\n| 1<br>2 | 3 |", "A\tB\n1\n2\t3"),
        ("hello", "HELLO"),
        (_MANY.replace("word500 ", ""), _MANY),
        (_MANY.replace("word500 ", "word500 1 2 3 "), _MANY),
    ],
)
def test_copy(text: str, shown: str) -> None:
    """A copy has marks, addresses, formulas and languages that the page does not show (FIN-21)."""
    assert is_copy(text, shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", _SHOWN),
        (_SHOWN[:30], _SHOWN),
        ("Something else entirely, which is as long as the text above is.", _SHOWN),
        ("```\nprint(1)\n```", _SHOWN),
        (_MANY[: int(len(_MANY) * 0.82)], _MANY),
        (_MANY, f"{_MANY}\n\nIn short: do not do it."),
        (_MANY, f"{_MANY} No."),
        (_MANY, f"No. {_MANY}"),
        (f"{_MANY} word1", _MANY),
        (f"You said: why? {_MANY}", _MANY),
        (f"You said: why? Older answer: {_MANY}", "word1 word2 word3 word4"),
        (" ".join(reversed(_MANY.split())), _MANY),
        (_MANY.replace("word500", f"word500 {_SHOWN * 10}"), _MANY),
        ("Nobody has ever noticed anything.", "No"),
        ("The answer is not 42.", "The answer is 42."),
        ("The answer to another question.", "👍"),
        ("$" + "x " * 100_000 + "$ word", "word"),
    ],
    ids=range(17),
)
def test_no_copy(text: str, shown: str) -> None:
    """What lacks a part, or says more, or tells it in another order, is not the answer (FIN-21, O-136).

    Nor is anything known to be a copy of what shows no word.
    """
    assert not is_copy(text, shown)


_SENTENCES = st.lists(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), min_size=1, max_size=9), min_size=1, max_size=60
)


@given(words=_SENTENCES, bold=st.integers(0, 60))
def test_own_markdown(words: list[str], bold: int) -> None:
    """The Markdown that is made from a text of words is a copy of it, whatever signs are in it (FIN-21)."""
    shown = " ".join(words)
    if not any(one.isalnum() for one in shown):
        return
    told = [word.replace("&", "&amp;").replace("<", "&lt;") for word in words]
    html = f"<p>{' '.join(told[:bold])} <b>{' '.join(told[bold:])}</b></p>"

    assert is_copy(from_html(html), shown)


@pytest.mark.parametrize(
    "piece",
    ["[a ", "](", "](a ", '](x "', "$", "$$ ", "\\(", "\\[a", "<a", "&a", "![", "x ", "1. ", "`", "[a]:", "\n "],
)
def test_any_length(piece: str) -> None:
    """A copy of any signs is compared in a moment: nothing in it takes the square of its length (FIN-22)."""
    text = piece * 100_000

    assert not is_copy(text, f"{text} word")


@pytest.mark.parametrize(
    ("text", "shown", "whole"),
    [
        (_MANY, _MANY, True),
        (_MANY[: int(len(_MANY) * 0.82)], _MANY, False),
        ("\n".join(_MANY.split()[:975]), _MANY, False),
        (f"{_MANY} word1", _MANY, False),
        ("😀", "😀", True),
        (" ", "😀", False),
        ("", _MANY, False),
    ],
)
def test_whole(text: str, shown: str, *, whole: bool) -> None:
    """What is made from a page is judged as its copy is; signs alone have no words to tell by (FIN-21, FIN-26)."""
    assert is_whole(text, shown) is whole
