"""Shows a text that grows on a terminal that cannot take back what it printed. No I/O."""

from tabmux.cli.text import harmless


class GrowingText:
    """What was printed so far, and so what has to be printed next."""

    def __init__(self) -> None:
        self._shown = ""

    def update(self, text: str) -> str:
        """What to print so that `text` stands there: what was appended, or the lines from the first that changed."""
        wanted, shown = harmless(text), self._shown
        self._shown = wanted
        if wanted.startswith(shown):
            return wanted[len(shown) :]
        same = _same_length(wanted, shown)
        line_start = wanted.rfind("\n", 0, same) + 1
        number = wanted.count("\n", 0, line_start) + 1
        gap = "" if shown.endswith("\n") else "\n"
        return f"{gap}--- the page changed its answer, from line {number} on it is: ---\n{wanted[line_start:]}"

    def end(self) -> str:
        """What to print after the last text, so that the next line begins at the left."""
        return "" if not self._shown or self._shown.endswith("\n") else "\n"


def _same_length(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
