"""Choosing a model or a mode, decided: what to do next in the page, and when it is chosen, or cannot be.

Pure functions of looks and clocks; all times are in seconds of one clock. Nothing is typed before the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final, Literal, TypeAlias, cast

from tabmuxd.resources.errors import Reason, Refused, cut, refuse
from tabmuxd.resources.provider import ProviderCapability
from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word
from tabmuxd.webai.providers.choices import Choice, Choices
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.providers.marks import Mark
from tabmuxd.webai.samples import normalised, one_of, text_of

Shown = Literal["shown", "other", "unclear", "none"]
Option = Literal["absent", "disabled", "ambiguous", "usable"]
Act = Literal["open", "pick", "enter", "lower", "raise", "settle", "close", "toggle"]
"""What is done in the page, but for `settle`: there the slider stands where it has to, and nothing is to be done."""
Cause = Literal["mode-on", "no-menu", "ambiguous", "not-offered", "disabled", "unverified"]
Step: TypeAlias = Act | Literal["chosen", "wait"] | tuple[Literal["refuse"], Cause]

_SHOWN: Final[tuple[Shown, ...]] = ("shown", "other", "unclear", "none")
_OPTION: Final[tuple[Option, ...]] = ("absent", "disabled", "ambiguous", "usable")
_LABEL_BYTES: Final = 256
# How long what is shown has to stay: pages show one thing first, and another one a moment later.
_KEPT: Final = 0.5
_KEPT_AFTER_CHOICE: Final = 0.8
# How long a menu, once it is there, may take to be filled, or to let an option be pressed.
_FILLED: Final = 2.0
_CLOSED: Final = 1.0
_OPENS: Final = 2
_WAITS: Final = 3


@dataclass(frozen=True, slots=True)
class ChoiceLook:
    """What the page shows of a choice; fields as in `choosing.js`.

    `shown`: whether what is wanted is what the page shows as chosen; `conflict` is a mode that is on and keeps it from
    being what is asked; `openers` counts the controls that could be pressed; `level` is where the slider stands;
    `model` is what the page shows as chosen, in its own words.
    """

    shown: Shown
    conflict: str = ""
    model: str = ""
    openers: int = 1
    open: bool = False
    option: Option = "absent"
    submenu: bool = False
    level: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far choosing has come; times are None before what they are of."""

    began: float
    shown_since: float | None = None
    opened_at: float | None = None
    open_since: float | None = None
    chosen_at: float | None = None
    moved_at: float | None = None
    moved_from: int | None = None
    entered: bool = False
    open_count: int = 0
    move_count: int = 0
    close_count: int = 0
    closed_at: float | None = None

    @property
    def is_touched(self) -> bool:
        """Whether anything was pressed in the page."""
        return self.open_count > 0 or self.chosen_at is not None

    def after_look(self, look: ChoiceLook, now: float) -> Progress:
        """What is known after one more look."""
        shown_since = (self.shown_since if self.shown_since is not None else now) if look.shown == "shown" else None
        open_since = (self.open_since if self.open_since is not None else now) if look.open else None
        return replace(self, shown_since=shown_since, open_since=open_since)

    def after_act(self, act: Act, look: ChoiceLook, now: float, *, done: bool) -> Progress:
        """What is known after one more act upon this look, which the page has or has not `done`."""
        match act:
            case "open":
                return replace(self, opened_at=now, open_count=self.open_count + done)
            case "pick" | "settle":
                return replace(self, chosen_at=now) if done else self
            case "enter":
                return replace(self, entered=self.entered or done)
            case "lower" | "raise":
                return replace(self, moved_at=now, moved_from=look.level, move_count=self.move_count + 1)
            case "close" | "toggle":
                return replace(self, closed_at=now, close_count=self.close_count + 1)


def choice_look_of(value: object) -> ChoiceLook:
    """The look that the page's script gave; raises ValueError for another shape."""
    try:
        found = cast("Mapping[str, object]", value)
        level = found["level"]
        return ChoiceLook(
            shown=one_of(found["shown"], _SHOWN),
            conflict=text_of(found["conflict"]),
            model=shown_model(text_of(found["model"])),
            openers=int(cast("int", found["openers"])),
            open=found["open"] is True,
            option=one_of(found["option"], _OPTION),
            submenu=found["submenu"] is True,
            level=None if level is None else int(cast("int", level)),
        )
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"no look at a choice: {error}") from error


@dataclass(frozen=True, slots=True)
class Told:
    """What a page shows as chosen: in its own words, by modes that are on, and whether it is what is wanted."""

    model: str
    modes: tuple[str, ...] = ()
    shown: Shown = "none"
    conflict: str = ""


def told_of(value: object) -> Told:
    """The same as the page's script gave it; raises ValueError for another shape."""
    try:
        found = cast("Mapping[str, object]", value)
        return Told(
            model=shown_model(text_of(found["model"])),
            modes=tuple(text_of(mode) for mode in cast("list[object]", found["modes"])),
            shown=one_of(found["shown"], _SHOWN),
            conflict=text_of(found["conflict"]),
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"nothing told of a choice: {error}") from error


def next_step(choice: Choice, look: ChoiceLook, progress: Progress, now: float, wait: float, *, whole: bool) -> Step:
    """What to do after this look, which `progress` knows of.

    An option is pressed once at most, and only where it is needed. `wait`: how long each thing may take to show.
    `whole`: the page took a prompt before, so that what it shows is what it is.
    """
    if look.conflict:
        step: Step = ("refuse", "mode-on")
    elif now - progress.began > _WAITS * wait:
        step = ("refuse", "unverified")
    elif look.shown == "shown":
        step = _once_shown(look, progress, now, whole=whole)
    elif progress.chosen_at is not None:
        step = _once_chosen(look, progress, now, wait)
    elif look.open:
        step = _in_menu(choice, look, progress, now, wait)
    else:
        step = _without_menu(look, progress, now, wait)
    return step


def _without_menu(look: ChoiceLook, progress: Progress, now: float, wait: float) -> Step:
    if progress.opened_at is not None and now - progress.opened_at < _FILLED:
        return "wait"
    if progress.open_count == _OPENS:
        return "refuse", "not-offered"
    if look.openers == 1:
        return "open"
    if now - progress.began > wait:
        return "refuse", "ambiguous" if look.openers > 1 else "no-menu"
    return "wait"


def _once_shown(look: ChoiceLook, progress: Progress, now: float, *, whole: bool) -> Step:
    touched = progress.is_touched
    if touched and look.open and (act := _closing(progress, now)) is not None:
        return act
    kept = _KEPT_AFTER_CHOICE if touched else 0.0 if whole else _KEPT
    since = progress.shown_since if progress.shown_since is not None else now
    return "chosen" if now - since >= kept else "wait"


def _once_chosen(look: ChoiceLook, progress: Progress, now: float, wait: float) -> Step:
    waited = now - (progress.chosen_at or now)
    if waited > wait:
        return "refuse", "unverified"
    if look.open and waited > _KEPT and (act := _closing(progress, now)) is not None:
        return act
    return "wait"


def _in_menu(choice: Choice, look: ChoiceLook, progress: Progress, now: float, wait: float) -> Step:
    open_for = now - (progress.open_since if progress.open_since is not None else now)
    match look.option:
        case "usable":
            return "pick" if open_for <= wait else ("refuse", "disabled")
        case "disabled" | "ambiguous":
            return ("refuse", look.option) if open_for > _FILLED else "wait"
        case "absent":
            pass
    if look.level is not None and choice.level is not None:
        return _on_slider(choice, look.level, progress, now)
    if look.submenu and not progress.entered:
        return "enter"
    return ("refuse", "not-offered") if open_for > 2 * _FILLED else "wait"


def _on_slider(choice: Choice, level: int, progress: Progress, now: float) -> Step:
    if level == choice.level:
        return "settle"
    if level == progress.moved_from and now - (progress.moved_at or now) < _CLOSED:
        return "wait"
    if progress.move_count > 2 * choice.levels:
        return "refuse", "disabled"
    return "raise" if level < (choice.level or 0) else "lower"


def _closing(progress: Progress, now: float) -> Act | Literal["wait"] | None:
    """How to close the menu that is still open; None once that was tried in vain: the composer will tell."""
    if progress.closed_at is not None and now - progress.closed_at < _CLOSED:
        return "wait"
    if progress.close_count == 0:
        return "close"
    return "toggle" if progress.close_count == 1 else None


def may_ask(descriptor: Descriptor, model: str) -> Refused | None:
    """Whether a prompt may ask for this model or mode; empty asks for none."""
    if not model or model in descriptor.choices.offered:
        return None
    if not descriptor.choices.offered:
        return refuse(
            Reason.PROVIDER_UNSUPPORTED,
            f"No model can be chosen at {descriptor.id}; nothing was done. Ask for none.",
            provider=descriptor.id,
            capability=ProviderCapability.MODEL_CHOICE.name,
        )
    return unavailable(descriptor, model, "not-offered")


def unavailable(descriptor: Descriptor, model: str, cause: Cause, told: str = "") -> Refused:
    """PROVIDER_MODEL_UNAVAILABLE; `told` is what the page shows instead, or the mode that is on."""
    why = {
        "mode-on": f"{told} is switched on in the page, and would answer in its place",
        "no-menu": "the page shows no control to choose it by",
        "ambiguous": "the page shows more than one control or option that it could be",
        "not-offered": "it is not offered",
        "disabled": "it is offered, but cannot be chosen",
        "unverified": f"the page was not seen to show it as chosen{f', but {told!r}' if told else ''}",
    }[cause]
    return refuse(
        Reason.PROVIDER_MODEL_UNAVAILABLE,
        f"{model} could not be had at {descriptor.id}: {why}; nothing was sent.",
        provider=descriptor.id,
        model=model,
        cause=cause,
    )


def asked_for(choice: Choice, choices: Choices, turn: str) -> dict[str, object]:
    """A choice of a turn as the page's script gets it, with what it must not be taken for."""
    others = [label for other in choices.offered.values() if other.id != choice.id for label in other.labels]
    conflicts = [mode for mode in choices.modes if mode.beside_model == "refuse" and mode.id != choice.id]
    menu = choice.menu
    marks = {"opener": menu.opener, "menu": menu.menu, "submenu": menu.submenu, "slider_item": menu.slider_item}
    return {
        "turn": turn,
        **{name: _marks(found) for name, found in marks.items()},
        "option": menu.option,
        "option_name": menu.option_name,
        "slider": menu.slider,
        "labels": choice.labels,
        "other_labels": others,
        "on": _marks(choice.on),
        "level": choice.level,
        "levels": choice.levels,
        "conflicts": [{"id": mode.id, "on": _marks(mode.on)} for mode in conflicts],
    }


def modes_of(choices: Choices) -> list[dict[str, object]]:
    """The modes that are known as the page's script gets them."""
    return [{"id": mode.id, "on": _marks(mode.on)} for mode in choices.modes]


def shown_model(text: str) -> str:
    """What a page shows as chosen, on one line, cut to 256 bytes."""
    return cut(normalised(text), _LABEL_BYTES)


def unasked(modes: tuple[str, ...], model: str) -> tuple[Warning, ...]:
    """A warning for each mode that was on and not asked for."""
    return tuple(
        Warning("mode-on", f"{mode} was switched on in the page, which the prompt did not ask for.")
        for mode in modes
        if mode != model
    )


def _marks(marks: tuple[Mark, ...]) -> list[dict[str, object]]:
    return [asdict(mark) for mark in marks]
