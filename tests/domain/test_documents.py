"""What the documents say of descriptors is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import DescriptorError

_DOCS = Path(__file__).parents[2] / "docs"
_EXAMPLE = (_DOCS / "example/echo.toml").read_text("utf-8")


def test_example() -> None:
    """The example in the text is the file beside it, and is good; so is the other file that is shown."""
    shown = re.findall(r"```toml\n(.*?)```", (_DOCS / "providers.md").read_text("utf-8"), re.DOTALL)
    assert shown[0] == _EXAMPLE
    assert [descriptor.parse(text, "shown.toml").id for text in shown] == ["echo", "my-model"]


def test_every_field() -> None:
    """Each field of the schema is told of in the documents."""
    tables = ("limits", "policy", "windows", "models", "modes.zzzz")
    text = _EXAMPLE.replace("[page]", "zzzz = 1\n[page]\nzzzz = 1") + "".join(
        f"[{each}]\nzzzz = 1\n" for each in tables
    )
    with pytest.raises(DescriptorError) as caught:
        descriptor.parse(text, "echo.toml")
    unknown = [str(problem) for problem in caught.value.problems if "is unknown" in str(problem)]
    known = [re.split(": is unknown; known here are |, ", problem)[1:] for problem in unknown]
    told = "".join((_DOCS / name).read_text("utf-8") for name in ("providers.md", "operating.md"))
    words = set(re.findall(r"[a-z_]+", told))
    assert (len(known), sorted({name for names in known for name in names} - words)) == (7, [])
