from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources import names

_CROCKFORD = set("0123456789abcdefghjkmnpqrstvwxyz")
_LONG = "a" * 63


@given(st.binary(min_size=10, max_size=10))
def test_new_id(chance: bytes) -> None:
    """An id has ten characters of Crockford's base 32, whatever chance gives, and makes names of the right form."""
    made = names.new_id(lambda count: chance[:count])

    assert len(made) == 10
    assert set(made) <= _CROCKFORD
    assert names.is_tab_name(names.tab_name("browsers/main", made))
    assert names.is_turn_name(names.turn_name(names.session_name("s"), made))


def _fixed(chance: bytes, _count: int) -> bytes:
    return chance


def test_every_character() -> None:
    """An id can have every character of the alphabet."""
    chances = [bytes(range(start, start + 10)) for start in range(0, 240, 10)]
    ids = "".join(names.new_id(partial(_fixed, chance)) for chance in chances)

    assert set(ids) == _CROCKFORD


def test_parts() -> None:
    """Names are made and taken apart without being cut by hand."""
    tab = names.tab_name(names.browser_name("main"), "0123456789")
    turn = names.turn_name(names.session_name("s-1"), "0123456789")

    assert (tab, turn, names.lease_name("x")) == (
        "browsers/main/tabs/0123456789",
        "sessions/s-1/turns/0123456789",
        "leases/x",
    )
    assert (names.browser_of(tab), names.session_of(turn)) == ("browsers/main", "sessions/s-1")
    assert (names.id_of(tab), names.id_of("sessions/s-1")) == ("0123456789", "s-1")


_FORMS: dict[Callable[[str], bool], tuple[list[str], list[str]]] = {
    names.is_browser_id: (
        ["a", "main", "a-b", "0", _LONG],
        ["", "-a", "a-", "A", "a_b", "ä", "a/b", "a" * 64, "a\n", "-"],
    ),
    names.is_browser_name: (
        ["browsers/main"],
        ["browsers/", "main", "browsers/main/tabs/x", "browsers/main\n", "x/browsers/a"],
    ),
    names.is_tab_name: (
        ["browsers/main/tabs/0123456789", "browsers/-/tabs/zyxwvtsrqp"],
        [
            "",
            "3",
            "browsers/main/tabs/0123456789\n",
            "browsers/main/tabs/012345678",
            "browsers/main/tabs/01234567890",
            "browsers/main/tabs/012345678i",
            "browsers/main/tabs/012345678l",
            "browsers/main/tabs/012345678o",
            "browsers/main/tabs/012345678u",
            "browsers/main/tabs/012345678A",
            "browsers//tabs/0123456789",
            "tabs/0123456789",
            "5C4F1F0E4B7A2D6C8E9F0A1B2C3D4E5F",
        ],
    ),
    names.is_session_name: (
        ["sessions/a", f"sessions/{_LONG}"],
        ["sessions/", "sessions/A", "sessions/a/turns/b", "a"],
    ),
    names.is_turn_name: (
        ["sessions/a/turns/0123456789"],
        ["sessions/a/turns/", "sessions/a/turns/012345678u", "turns/0123456789", "sessions//turns/0123456789"],
    ),
    names.is_session_id: (["a", "-", "0-", _LONG], ["", "A", "a_b", "a.b", "a" * 64, "a\n"]),
    names.is_group: (["", "a.b_c-d", _LONG], ["A", "a b", "a" * 64, "a\n"]),
    names.is_request_key: (["a", "A-z_0.9:x", "a" * 64], ["", "a" * 65, "a b", "ä", "a\n", "a/b"]),
    names.is_uuid: (
        ["00000000-0000-0000-0000-000000000000", "ABCDEFAB-abcd-1234-5678-0123456789ab"],
        ["", "00000000000000000000000000000000", "{00000000-0000-0000-0000-000000000000}", "g" * 36],
    ),
    names.is_principal: (
        ["local", "local/a", "Night.report_2", "x/y-1"],
        ["", "/a", "local/", "local/A", "a/b/c", "a b", "a" * 64],
    ),
    names.is_local_name: (["a", "night-report", _LONG], ["", "A", "a_b", "a/b", "a" * 64, "a\n"]),
}


@pytest.mark.parametrize("form", _FORMS, ids=lambda form: form.__name__)
def test_forms(form: Callable[[str], bool]) -> None:
    """Names and ids have their forms to the letter: a position or a target id is none (O-9)."""
    right, wrong = _FORMS[form]

    assert {text: form(text) for text in [*right, *wrong]} == {
        **dict.fromkeys(right, True),
        **dict.fromkeys(wrong, False),
    }
