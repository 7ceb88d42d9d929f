"""Choosing a model, decided look by look."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.errors import Reason, Refused
from tabmuxd.resources.session import Warning as TurnWarning
from tabmuxd.webai import choice_rules
from tabmuxd.webai.choice_rules import ChoiceLook, Option, Progress, Shown, Step, next_step
from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.choices import Choice, Choices, Menu
from tabmuxd.webai.providers.marks import Mark

_WAIT: Final = 8.0
_MENU: Final = Menu((Mark("button"),))
_CHOICE: Final = Choice("high", ("High",), _MENU)
_ON_SLIDER: Final = replace(_CHOICE, level=2, levels=5)
_OTHER: Final = ChoiceLook("other")
_SHOWN: Final = ChoiceLook("shown")
_OPEN: Final = ChoiceLook("other", open=True)
_ABSENT: Final = ChoiceLook("none", openers=0)


def _step(look: ChoiceLook, progress: Progress, now: float, choice: Choice = _CHOICE, *, whole: bool = False) -> Step:
    return next_step(choice, look, progress.after_look(look, now), now, _WAIT, whole=whole)


@pytest.mark.parametrize(
    ("look", "progress", "now", "step"),
    [
        # What is shown already is not touched, once it is certain.
        (_SHOWN, Progress(0.0), 0.0, "wait"),
        (_SHOWN, Progress(0.0, shown_since=0.0), 0.5, "chosen"),
        (replace(_SHOWN, open=True), Progress(0.0, shown_since=0.0), 0.5, "chosen"),
        (replace(_SHOWN, conflict="deep-think"), Progress(0.0, shown_since=0.0), 1.0, ("refuse", "mode-on")),
        # The menu.
        (_OTHER, Progress(0.0), 0.1, "open"),
        (ChoiceLook("none"), Progress(0.0), 0.1, "open"),
        (_OTHER, Progress(0.0, opened_at=0.1, open_count=1), 1.0, "wait"),
        (_OTHER, Progress(0.0, opened_at=0.1, open_count=1), 2.5, "open"),
        (_OTHER, Progress(0.0, opened_at=3.0, open_count=2), 6.0, ("refuse", "not-offered")),
        (_ABSENT, Progress(0.0), 7.9, "wait"),
        (_ABSENT, Progress(0.0), 8.1, ("refuse", "no-menu")),
        (replace(_OTHER, openers=2), Progress(0.0), 8.1, ("refuse", "ambiguous")),
        # Its options.
        (_OPEN, Progress(0.0, opened_at=0.1, open_count=1), 0.2, "wait"),
        (replace(_OPEN, option="usable"), Progress(0.0, opened_at=0.1, open_count=1), 0.2, "pick"),
        (_OPEN, Progress(0.0, open_since=0.2, open_count=1), 4.3, ("refuse", "not-offered")),
        (replace(_OPEN, option="disabled"), Progress(0.0, open_since=0.2), 1.0, "wait"),
        (replace(_OPEN, option="disabled"), Progress(0.0, open_since=0.2), 2.3, ("refuse", "disabled")),
        (replace(_OPEN, option="ambiguous"), Progress(0.0, open_since=0.2), 2.3, ("refuse", "ambiguous")),
        (replace(_OPEN, submenu=True), Progress(0.0, open_since=0.2), 0.3, "enter"),
        (replace(_OPEN, submenu=True), Progress(0.0, open_since=0.2, entered=True), 0.3, "wait"),
        # After the press it has to be shown, and to stay so; nothing is pressed again.
        (_OTHER, Progress(0.0, open_count=1, chosen_at=1.0), 2.0, "wait"),
        (replace(_OPEN, option="usable"), Progress(0.0, open_count=1, chosen_at=1.0), 1.3, "wait"),
        (replace(_OPEN, option="usable"), Progress(0.0, open_count=1, chosen_at=1.0), 1.6, "close"),
        (_OTHER, Progress(0.0, open_count=1, chosen_at=1.0), 9.1, ("refuse", "unverified")),
        (ChoiceLook("unclear"), Progress(0.0, open_count=1, chosen_at=1.0), 9.1, ("refuse", "unverified")),
        (_SHOWN, Progress(0.0, open_count=1, chosen_at=1.0, shown_since=1.5), 2.0, "wait"),
        (_SHOWN, Progress(0.0, open_count=1, chosen_at=1.0, shown_since=1.5), 2.4, "chosen"),
        # A menu that stays is closed in two ways, and then left.
        (replace(_SHOWN, open=True), Progress(0.0, open_count=1, chosen_at=1.0), 2.0, "close"),
        (replace(_SHOWN, open=True), Progress(0.0, chosen_at=1.0, close_count=1, closed_at=2.0), 2.5, "wait"),
        (replace(_SHOWN, open=True), Progress(0.0, chosen_at=1.0, close_count=1, closed_at=2.0), 3.0, "toggle"),
        (
            replace(_SHOWN, open=True),
            Progress(0.0, chosen_at=1.0, shown_since=1.0, close_count=2, closed_at=3.0),
            4.0,
            "chosen",
        ),
        # However it goes, it ends.
        (replace(_OTHER, openers=2), Progress(0.0), 24.1, ("refuse", "unverified")),
    ],
)
def test_step(look: ChoiceLook, progress: Progress, now: float, step: Step) -> None:
    """Each thing is waited for in its turn, and an option is pressed once (SUB-17)."""
    assert _step(look, progress, now) == step


def test_whole() -> None:
    """In a page that took a prompt before what is shown is so at once."""
    assert _step(_SHOWN, Progress(0.0), 0.0, whole=True) == "chosen"


@pytest.mark.parametrize(
    ("level", "progress", "now", "step"),
    [
        (0, Progress(0.0), 1.0, "raise"),
        (4, Progress(0.0), 1.0, "lower"),
        (2, Progress(0.0), 1.0, "settle"),
        (0, Progress(0.0, moved_at=1.0, moved_from=0, move_count=1), 1.5, "wait"),
        (1, Progress(0.0, moved_at=1.0, moved_from=0, move_count=1), 1.5, "raise"),
        (0, Progress(0.0, moved_at=1.0, moved_from=0, move_count=11), 2.5, ("refuse", "disabled")),
        (None, Progress(0.0, open_since=0.0), 4.5, ("refuse", "not-offered")),
    ],
)
def test_slider(level: int | None, progress: Progress, now: float, step: Step) -> None:
    """A slider goes one level at a time, and waits until it stands there."""
    assert _step(replace(_OPEN, level=level), progress, now, _ON_SLIDER) == step


_LOOKS: Final = st.builds(
    ChoiceLook,
    shown=st.sampled_from(["shown", "other", "unclear", "none"]),
    openers=st.integers(0, 2),
    open=st.booleans(),
    option=st.sampled_from(["absent", "disabled", "ambiguous", "usable"]),
    submenu=st.booleans(),
    level=st.one_of(st.none(), st.integers(0, 4)),
)


@given(st.lists(st.tuples(_LOOKS, st.booleans()), min_size=1, max_size=20), st.booleans())
def test_any_page(looks: list[tuple[ChoiceLook, bool]], whole: bool) -> None:  # noqa: FBT001 - hypothesis gives it so
    """Whatever a page shows, it comes to an end: an option pressed once at most, and chosen only where it is shown."""
    progress, now, ended = Progress(0.0), 0.0, False
    counts: dict[str, int] = {}
    for look, done in looks * 100:
        now += 0.25
        progress = progress.after_look(look, now)
        match next_step(_ON_SLIDER, look, progress, now, _WAIT, whole=whole):
            case "chosen":
                assert look.shown == "shown"
                ended = True
            case ("refuse", _):
                ended = True
            case "wait":
                continue
            case act:
                counts[act] = counts.get(act, 0) + done
                progress = progress.after_act(act, look, now, done=done)
        if ended:
            break
    most = {"open": 2, "pick": 1, "enter": 1, "close": 1, "toggle": 1}
    assert (ended, [act for act in most if counts.get(act, 0) > most[act]]) == (True, [])


@pytest.mark.parametrize(
    ("value", "look"),
    [
        (
            {
                "shown": "other", "conflict": "", "openers": 1, "open": True, "option": "usable", "submenu": False,
                "level": 2, "model": " A\n B" + "c" * 999,
            },
            ChoiceLook("other", open=True, option="usable", level=2, model="A B" + "c" * 253),
        ),
        ({"shown": "yes"}, None),
        ({"shown": "other", "conflict": 1, "level": None}, None),
        ([], None),
        (None, None),
    ],
)  # fmt: skip
def test_look(value: object, look: ChoiceLook | None) -> None:
    """What a page's script gives is a look, or an error."""
    if look is None:
        with pytest.raises(ValueError, match="no look"):
            choice_rules.choice_look_of(value)
    else:
        assert choice_rules.choice_look_of(value) == look


@pytest.mark.parametrize(
    ("provider", "model", "refused"),
    [
        ("chatgpt", "", None),
        ("chatgpt", "extra-high", None),
        ("gemini", "deep-think", None),
        ("chatgpt", "deep-research", (Reason.PROVIDER_MODEL_UNAVAILABLE, "not-offered")),
        ("grok", "extra-high", (Reason.PROVIDER_MODEL_UNAVAILABLE, "not-offered")),
    ],
)
def test_may_ask(provider: str, model: str, refused: tuple[Reason, str] | None) -> None:
    """Only what the descriptor offers may be asked for."""
    found = choice_rules.may_ask(descriptor.load(provider), model)
    assert (None if found is None else (found.reason, found.metadata["cause"])) == refused


def test_unsupported() -> None:
    """Where no model can be chosen at all, that is what is told."""
    without = replace(descriptor.load("chatgpt"), choices=Choices())
    refused = choice_rules.may_ask(without, "high")
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.metadata) == (
        Reason.PROVIDER_UNSUPPORTED,
        {"provider": "chatgpt", "capability": "MODEL_CHOICE"},
    )


def test_unasked() -> None:
    """A mode that is on and was not asked for is a warning."""
    message = "search was switched on in the page, which the prompt did not ask for."
    assert choice_rules.unasked(("search", "deep-think"), "deep-think") == (TurnWarning("mode-on", message),)


def test_shown_and_options_named() -> None:
    """The words of the page's script are those that are read here."""
    words: tuple[Shown | Option, ...] = (
        "shown",
        "other",
        "unclear",
        "none",
        "absent",
        "disabled",
        "ambiguous",
        "usable",
    )
    script = (resources.files("tabmuxd.webai.providers") / "choosing.js").read_text("utf-8")
    assert [word for word in words if f'"{word}"' not in script] == []
