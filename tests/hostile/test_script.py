from __future__ import annotations

from dataclasses import replace

from tests.hostile.script import View, answer, grow, plain, show


def test_phases() -> None:
    """Phases change a view in turn, hold for their time, and the last one holds for ever."""
    told = answer(show(1.0, place=True), grow("abcd", 2.0, pieces=2), show(0, stop=0, done=True, do="x()"))

    assert [told.at(elapsed) for elapsed in (0.0, 0.9, 1.0, 2.5, 3.0, 99.0)] == [
        (0, View(place=True), 1.0),
        (0, View(place=True), 1.0),
        (1, View("ab", place=True), 2.0),
        (2, View("abcd", place=True), 3.0),
        (3, View("abcd", place=True, stop=0, done=True, do="x()"), None),
        (3, View("abcd", place=True, stop=0, done=True, do="x()"), None),
    ]
    assert (told.seconds, told.last.text) == (3.0, "abcd")


def test_do_once() -> None:
    """What a phase runs belongs to its first piece, and to no later phase."""
    told = answer(grow("ab", 2.0, pieces=2, do="x()"), show(0))

    assert [told.at(elapsed)[1].do for elapsed in (0.0, 1.0, 2.0)] == ["x()", "", ""]


def test_stopped() -> None:
    """After Stop it goes on for as long as it says, then keeps its text; a stop after the end changes nothing."""
    told = answer(grow("abcd", 2.0, pieces=2), show(0, stop=0, done=True), stop_seconds=0.5)

    assert told.at(0.2, stopped=0.1) == (0, View("ab"), 0.6)
    assert told.at(0.6, stopped=0.1) == (3, View("ab", stop=0, done=True), None)
    assert told.at(9.0, stopped=3.0) == (3, View("abcd", stop=0, done=True), None)


def test_plain() -> None:
    """An answer without tricks ends with the mark."""
    assert plain("ab").last == replace(View("ab"), stop=0, done=True)
