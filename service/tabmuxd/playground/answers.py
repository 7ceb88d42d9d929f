"""The text of an answer, made from the prompt alone."""

import hashlib
import re
from functools import lru_cache
from itertools import count

from tabmuxd.playground.directives import Directives, directives_in, without_directives

FIRST_WORDS = 12
LONGEST_QUOTE = 80

_MARKUP = re.compile(r"[*_`~#<>\[\]()|\\]")

_FILLER = (
    "A long answer is made of short sentences, and this is one of them.",
    "Each paragraph stands on its own, so that a reader can stop anywhere.",
    "The text grows from the top, and nothing above the last line changes any more.",
    "Numbers help to see where a text was cut.",
    "Nobody has to remember this, it only has to arrive whole.",
)


# Every look at a growing answer needs its length; a bounded cache, as answers can be long.
@lru_cache(maxsize=32)
def answer_to(prompt: str) -> str:
    """The whole answer that the page gives to a prompt, in Markdown.

    It depends on nothing but the prompt: its first words (without directives and markup) stand at the beginning, and
    a fingerprint of the whole prompt in the second paragraph. With `characters` it has exactly that many code points,
    all of them plain paragraphs; with `plain` it has no markup; otherwise it has bold, code and a list.
    """
    directives = directives_in(prompt)
    if directives.characters is not None:
        return _exactly(directives.characters, first_words(prompt))
    return _written(prompt, directives)


def _written(prompt: str, directives: Directives) -> str:
    bold, code, item = ("", "", "") if directives.plain else ("**", "`", "- ")
    fingerprint = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    lines = prompt.count("\n") + 1
    points = [
        f"{item}It streams its answers in small pieces, as the large chat pages do. 😉",
        f"{item}A press on Stop ends the answer and keeps what has been written.",
        f"{item}Its address changes as soon as the first message has been taken. 😎",
    ]
    paragraphs = [
        f"You wrote “{first_words(prompt)}”. Thank you, that is a good place to start. 😀",
        (
            f"Your message has {bold}{len(prompt)} characters{bold} in {lines} {'line' if lines == 1 else 'lines'},"
            f" and its fingerprint is {code}{fingerprint}{code}. Equal messages get equal answers here, so that a test"
            " can compare every character."
        ),
        "Three things are worth knowing about this page:",
        ("\n\n" if directives.plain else "\n").join(points),
    ]
    if directives.code:
        paragraphs.append('```python\nfor word in ("one", "two"):\n    print(word)\n```')
    paragraphs.append(
        "Ask again whenever you like: a conversation keeps all of its messages, and a page that is loaded again goes"
        " on where it was. ✔",
    )
    return "\n\n".join(paragraphs)


def first_words(prompt: str) -> str:
    """The beginning of a prompt in one line, without directives and markup."""
    # A limited piece of the prompt is enough, and saves splitting megabytes.
    beginning = without_directives(prompt)[: 20 * LONGEST_QUOTE]
    words = _MARKUP.sub("", beginning).encode("utf-8", "replace").decode().split()
    quote = " ".join(words[:FIRST_WORDS])[:LONGEST_QUOTE].rstrip()
    return quote or "no words"


def _exactly(characters: int, quote: str) -> str:
    text = f"You wrote “{quote}”."
    paragraphs = [text]
    length = len(text)
    for number in count(1):
        if length >= characters:
            break
        paragraph = f"Paragraph {number}. " + " ".join(_FILLER)
        paragraphs.append(paragraph)
        length += len(paragraph) + 2
    cut = "\n\n".join(paragraphs)[:characters]
    # White space at the end would be lost on the page.
    return cut.rstrip() + "." * (len(cut) - len(cut.rstrip()))
