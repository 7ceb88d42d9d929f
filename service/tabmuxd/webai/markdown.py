"""An answer in Markdown, from the HTML that a page shows. Pure."""

from __future__ import annotations

import re
from typing import Final, cast

from bs4 import Tag
from bs4.element import NavigableString
from markdownify import ATX, BACKSLASH, MarkdownConverter

_MAX_PIECE_TAGS: Final = 2_000
_MAX_PIECE_CHARACTERS: Final = 500_000
# How many characters may be made in all: those of an element are made anew by each one that it is in.
_MAX_MADE_CHARACTERS: Final = 5_000_000
_TICKS: Final = re.compile("`+")
# What Markdown would take for markup in the middle of a text, and at the beginning of a line.
_MARKUP: Final = re.compile(r"[\\`*\[]|(?<!\w)_|_(?!\w)|<(?=[A-Za-z/!?])")
_LEADING: Final = re.compile(r"^([^\S\n]*)([-+>](?=\s|$)|#{1,6}(?=\s|$)|~{3})", re.MULTILINE)
_LEADING_NUMBER: Final = re.compile(r"^([^\S\n]*\d{1,9})([.)](?=\s|$))", re.MULTILINE)
_BLANKS: Final = re.compile(r"[\t ]{2,}")
_PIPE: Final = re.compile(r"(?<!\\)\|")


class NotConvertedError(Exception):
    """A piece of an answer has no Markdown."""


class TooLargeError(NotConvertedError):
    """A piece of an answer is so large, or so deep, that its conversion would hold up everything else."""


class _Converter(MarkdownConverter):
    """With formulas as TeX, code blocks that name their language, and no more escapes than a text needs."""

    def __init__(self) -> None:
        super().__init__(heading_style=ATX, bullets="-", newline_style=BACKSLASH, table_infer_header=True)
        self._made = 0

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        """Markdown of an element; raises TooLargeError where all of them are too much work."""
        text = cast("str", super().process_tag(node, parent_tags))  # type: ignore[misc] # its stub lacks it
        self._made += len(text)
        if self._made > _MAX_MADE_CHARACTERS:
            raise TooLargeError
        return text

    def process_text(self, el: NavigableString, parent_tags: set[str] | None = None) -> str:
        """Markdown of a text."""
        # markdownify 1.2.3 looks for a line end from each of many blanks: that takes the square of time.
        if "pre" not in (parent_tags or ()) and _BLANKS.search(el):
            shorter = NavigableString(_BLANKS.sub(" ", el))
            el.replace_with(shorter)
            el = shorter
        return cast("str", super().process_text(el, parent_tags))  # type: ignore[misc] # its stub lacks it

    def escape(self, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - named by the library
        """Text that stays text."""
        # Brackets are a link's where `](` comes behind them. To look for it from each of them takes the square of time.
        last_link = text.rfind("](")
        return _MARKUP.sub(
            lambda found: found[0] if found[0] == "[" and found.start() > last_link else f"\\{found[0]}", text
        )

    def convert_span(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - named by the library
        """A formula, where it is one."""
        tex = el.get("data-tex")
        if not isinstance(tex, str):
            return text
        return f"\n\n$$\n{tex}\n$$\n\n" if el.has_attr("data-display") else f"${tex}$"

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - named by the library
        """A paragraph, which is no list and no heading, whatever it begins with."""
        if "_inline" in parent_tags:
            return f" {text.strip()} "
        escaped = _LEADING_NUMBER.sub(r"\1\\\2", _LEADING.sub(r"\1\\\2", text.strip(" \t\r\n")))
        return f"\n\n{escaped}\n\n" if escaped else ""

    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - named by the library
        """A block of code, with a fence that is longer than all in it."""
        code = text.removeprefix("\n").removesuffix("\n")
        fence = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(code)), 0)
        return f"\n\n{fence}{_language(el)}\n{code}\n{fence}\n\n"

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002 - named by the library
        """One cell of a table, in one line."""
        cell = _PIPE.sub(r"\|", text.strip().replace("\\\n", " ").replace("\n", " "))
        span = el.get("colspan")
        count = int(span) if isinstance(span, str) and span.isdecimal() and len(span) < 3 else 1  # noqa: PLR2004
        return f" {cell} " + "|" * max(1, count)

    convert_th = convert_td


def _language(block: Tag) -> str:
    """Language of a code block, named at it or at the code in it; empty if none is."""
    for element in (block, block.find("code")):
        if isinstance(element, Tag) and isinstance(named := element.get("data-language"), str):
            return named
    return ""


def from_html(piece: str) -> str:
    """Markdown of one piece of an answer, which stands on its own; raises NotConvertedError.

    A blank that is kept beside another one comes as U+FDD0, which is no character of any text.
    """
    if len(piece) > _MAX_PIECE_CHARACTERS or piece.count("<") > 2 * _MAX_PIECE_TAGS:
        raise TooLargeError
    try:
        return str(_Converter().convert(piece)).strip("\n").replace("\ufdd0", " ")
    except TooLargeError:
        raise
    except RecursionError as error:
        raise TooLargeError from error
    except Exception as error:  # markdownify 1.2.3: a ValueError for a `colspan` of "²"; any page writes any HTML
        raise NotConvertedError from error
