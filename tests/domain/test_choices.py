"""What a descriptor says of models and modes, and what is told where that is wrong."""

from __future__ import annotations

from importlib import resources
from typing import Final

import pytest
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.choices import Choice, Choices, Menu, Mode
from tabmuxd.webai.providers.descriptor import DescriptorError
from tabmuxd.webai.providers.marks import Mark

_SHIPPED: Final = (
    resources.files("tabmuxd.webai.providers")
    .joinpath("playground-editor.toml")
    .read_text("utf-8")
    .replace("{port}", "1")
)
_BUTTON: Final = Mark('button[data-testid="model-button"]')
_HEAD: Final = _SHIPPED[: _SHIPPED.index("[models]")]
_MARKS: Final = (
    'a list of marks: each is a CSS selector, {selector = "…", text = "…", name = "…"} or {role = "…", name = "…"}'
)
_FIRST_LINE: Final = _HEAD.count("\n") + 1


def _told(tables: str) -> list[str]:
    with pytest.raises(DescriptorError) as caught:
        descriptor.parse(_HEAD + tables, "mine.toml")
    return [str(replaced) for replaced in (_relative(problem) for problem in str(caught.value).split("\n"))]


def _relative(problem: str) -> str:
    """A problem with its line counted from the tables on."""
    _file, line, rest = problem.split(":", 2)
    return f"{int(line) - _FIRST_LINE + 1}:{rest}"


def test_all() -> None:
    """Every field is read; what is left out has what is usual."""
    tables = """\
[models]
menu = ['[role="menu"]']
submenu = [{selector = "a", name = "More*"}]
slider = "i"
slider_item = ["b"]
slider_levels = ["low", "top"]
[models.labels]
top = ["Top", "* Top"]
low = ["Low"]
[modes.deep-think]
on = ["u"]
opener = ["s"]
option = ["button"]
option_name = ".label"
labels = ["Deep think"]
beside_model = "refuse"
[modes.agent]
on = ["q"]
"""
    menu = Menu(
        (_BUTTON,), (Mark('[role="menu"]'),), submenu=(Mark("a", "", "More*"),), slider="i", slider_item=(Mark("b"),)
    )
    deep = Menu((Mark("s"),), option=("button",), option_name=".label")
    found = descriptor.parse(_HEAD + tables, "mine.toml").choices
    assert found == Choices(
        {
            "top": Choice("top", ("Top", "* Top"), menu, level=1, levels=2),
            "low": Choice("low", ("Low",), menu, level=0, levels=2),
            "deep-think": Choice("deep-think", ("Deep think",), deep, on=(Mark("u"),)),
        },
        (Mode("deep-think", (Mark("u"),), "refuse"), Mode("agent", (Mark("q"),), "allow")),
    )
    assert list(found.offered) == ["top", "low", "deep-think"]


def test_none() -> None:
    """A descriptor without these tables offers nothing."""
    assert descriptor.parse(_HEAD, "mine.toml").choices == Choices()


@pytest.mark.parametrize(
    ("tables", "told"),
    [
        (
            "[models]\n",
            ["1: models.labels: is missing, and must be a table: write [models.labels] above its fields"],
        ),
        ("[models]\n[models.labels]\n", ["2: models.labels: must have one model at least"]),
        ("models = 3\n", None),
        (
            "[models.labels]\nfast = []\nPro = ['Pro']\nold = 'Old'\n",
            [
                "2: models.labels.fast: must have one text at least",
                "3: models.labels.Pro: must be an id of a-z, 0-9 and - within, at most 63 characters, and is 'Pro'",
                "4: models.labels.old: must be a list of texts, none of them empty, and is the text 'Old'",
            ],
        ),
        (
            "[models.labels]\nfast = ['Fast']\nquick = ['Quick', 'FAST']\n",
            ["3: models.labels.quick: has 'FAST', by which 'fast' is called too"],
        ),
        (
            "[models]\nopener = []\noption = [':hovr']\nslider_levels = ['top']\n[models.labels]\nfast = ['Fast']\n",
            [
                "3: models.option[0]: ':hovr' has ':hovr', which Chrome does not know; did you mean ':hover'?",
                "1: models.slider: goes together with 'slider_item' and 'slider_levels'",
                "4: models.slider_levels: has 'top', which is in no [models.labels]",
            ],
        ),
        (
            "[modes.Deep]\non = ['a']\n[modes.think]\nopener = ['a']\nlables = ['Think']\n[modes]\n",
            None,
        ),
        (
            "[modes.think]\nopener = ['a']\nlables = ['Think']\nbeside_model = 'no'\n",
            [
                '4: modes.think.beside_model: must be "allow" or "refuse", and is the text \'no\'',
                "1: modes.think.labels: is missing, and must be a list of texts, none of them empty",
                "3: modes.think.lables: is unknown; did you mean 'labels'?",
                f"1: modes.think.on: is missing, and must be {_MARKS}",
            ],
        ),
        (
            "[models.labels]\nfast = ['Fast']\n[modes.fast]\non = ['a']\n[modes]\nx = 1\n",
            None,
        ),
    ],
)
def test_problems(tables: str, told: list[str] | None) -> None:
    """All that is wrong is told, with its line and what was expected; nothing else goes wrong."""
    found = _told(tables)
    assert sorted(found) == sorted(told if told is not None else found)


def test_not_shown() -> None:
    """Models need what shows the one that is chosen."""
    text = _SHIPPED.replace("shown_model = ['button[data-testid=\"model-button\"]']\n", "")
    with pytest.raises(DescriptorError) as caught:
        descriptor.parse(text, "mine.toml")
    assert "models: needs [page] shown_model, for a model that is not seen to be chosen is none" in str(caught.value)
