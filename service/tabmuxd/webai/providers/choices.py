"""What of a descriptor tells how a model or a mode is chosen: menus, the names of what stands in them, and marks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from tabmuxd.webai.providers.fields import Fields
from tabmuxd.webai.providers.marks import Mark

_ID: Final = re.compile(r"(?=.{1,63}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_AN_ID: Final = "must be an id of a-z, 0-9 and - within, at most 63 characters"
_OPTIONS: Final = ('[role="menuitemradio"]', '[role="menuitem"]', '[role="option"]')

BesideModel = Literal["allow", "refuse"]


@dataclass(frozen=True, slots=True)
class Menu:
    """Where something is chosen.

    `opener` is what opens it, of models by default what shows the one that is chosen; `menu` is what shows that it is
    open: options are sought in there, or without it among what came with the press of `opener`. `option`: selectors,
    the first that has a fitting one wins. `option_name` selects what of an option is its name; empty: what it is
    called, or its first line. `submenu` is what opens another menu within, for options that are not in the first.
    `slider` selects a control in the menu that keys move while `slider_item` has the focus.
    """

    opener: tuple[Mark, ...]
    menu: tuple[Mark, ...] = ()
    option: tuple[str, ...] = _OPTIONS
    option_name: str = ""
    submenu: tuple[Mark, ...] = ()
    slider: str = ""
    slider_item: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that a prompt may ask for, by `id`.

    `labels` are what it is called on the page, in all languages, as whole names where `*` stands for anything. `on`
    shows that a mode is switched on; a model is chosen where `[page] shown_model` shows one of the labels. `level` is
    its place on the slider, of so many `levels`; None where it has none.
    """

    id: str
    labels: tuple[str, ...]
    menu: Menu
    on: tuple[Mark, ...] = ()
    level: int | None = None
    levels: int = 0


@dataclass(frozen=True, slots=True)
class Mode:
    """Something that can be switched on besides a model, as `on` shows.

    `beside_model` says whether a prompt that asks for something else goes out while it is on.
    """

    id: str
    on: tuple[Mark, ...]
    beside_model: BesideModel = "allow"


@dataclass(frozen=True, slots=True)
class Choices:
    """All that can be asked for, in the order of the file, by id, and the modes that are known."""

    offered: Mapping[str, Choice] = field(default_factory=dict[str, Choice])
    modes: tuple[Mode, ...] = ()


def choices_in(top: Fields, shown_model: tuple[Mark, ...]) -> Choices:
    """The tables `[models]` and `[modes.…]`; `shown_model`: the marks of the model that is chosen."""
    offered: dict[str, Choice] = {}
    if top.has("models"):
        if not shown_model:
            top.wrong("models", "needs [page] shown_model, for a model that is not seen to be chosen is none")
        offered |= _models(top.table("models"), shown_model)
    modes: list[Mode] = []
    tables = top.table("modes", {})
    for name in tables.names():
        table = tables.table(name)
        _check_id(tables, name)
        if name in offered:
            tables.wrong(name, f"has the id of a model, {name!r}")
        mode, choice = _mode(name, table)
        modes.append(mode)
        if choice is not None:
            offered[name] = choice
    return Choices(offered, tuple(modes))


def _models(table: Fields, shown_model: tuple[Mark, ...]) -> Mapping[str, Choice]:
    menu = _menu(table, shown_model)
    levels = table.texts("slider_levels", ())
    labels = table.table("labels")
    found: dict[str, Choice] = {}
    owners: dict[str, str] = {}
    for name in labels.names():
        _check_id(labels, name)
        level = levels.index(name) if name in levels else None
        called = labels.texts(name)
        for each in called:
            if (owner := owners.setdefault(each.casefold(), name)) != name:
                labels.wrong(name, f"has {each!r}, by which {owner!r} is called too")
        found[name] = Choice(name, called, menu, level=level, levels=len(levels))
    if not found and table.is_sound("labels"):
        table.wrong("labels", "must have one model at least")
    if unknown := [name for name in levels if name not in found]:
        table.wrong("slider_levels", f"has {unknown[0]!r}, which is in no [models.labels]")
    if bool(menu.slider) != bool(levels) or bool(menu.slider) != bool(menu.slider_item):
        table.wrong("slider", "goes together with 'slider_item' and 'slider_levels'")
    return found


def _mode(name: str, table: Fields) -> tuple[Mode, Choice | None]:
    on = _marks(table, "on", needed=True)
    beside: BesideModel = "refuse" if table.choice("beside_model", ("allow", "refuse")) == "refuse" else "allow"
    choice = None
    if table.has("opener"):
        choice = Choice(name, table.texts("labels"), _menu(table, ()), on)
    return Mode(name, on, beside), choice


def _menu(table: Fields, opener: tuple[Mark, ...]) -> Menu:
    """A menu; where no `opener` is given, it is opened by these."""
    return Menu(
        opener=_marks(table, "opener", needed=not opener) or opener,
        menu=_marks(table, "menu"),
        option=table.selectors("option", _OPTIONS),
        option_name=table.selector("option_name", ""),
        submenu=_marks(table, "submenu"),
        slider=table.selector("slider", ""),
        slider_item=_marks(table, "slider_item"),
    )


def _marks(table: Fields, name: str, *, needed: bool = False) -> tuple[Mark, ...]:
    return tuple(Mark(*mark) for mark in table.marks(name, needed=needed))


def _check_id(table: Fields, name: str) -> None:
    if _ID.fullmatch(name) is None:
        table.wrong(name, f"{_AN_ID}, and is {name!r}")
