"""Dataclasses as rows, and back."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tabmuxd.resources.browser import Browser
from tabmuxd.resources.event import Resource
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.session import Session, Turn
from tabmuxd.resources.tab import Tab
from tabmuxd.store.codec import Codec

from tests.store.samples import full, tab

PLAIN = {
    str: st.text(st.characters(exclude_categories=["Cs"])),
    int: st.integers(0, 2**62),
    bool: st.booleans(),
    datetime: st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    timedelta: st.timedeltas(timedelta(0), timedelta(days=1000)),
}


def of_type(hint: typing.Any) -> st.SearchStrategy[typing.Any]:  # noqa: ANN401 - a type as written
    """Any value of this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return st.none() | of_type(arguments[0])
    if origin is tuple:
        return st.lists(of_type(arguments[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(of_type(str), of_type(arguments[1]), max_size=3)
    if hint in PLAIN:
        return PLAIN[hint]
    if issubclass(hint, IntEnum):
        return st.sampled_from(hint)
    hints = typing.get_type_hints(hint)
    return st.builds(hint, **{field.name: of_type(hints[field.name]) for field in dataclasses.fields(hint)})


@given(st.one_of(*(of_type(kind) for kind in (Browser, Tab, Lease, Session, Turn))))
def test_any_value_comes_back(value: Resource) -> None:
    """What is read is what was written, to the microsecond."""
    codec = Codec(type(value))
    assert codec.decode(codec.encode(value)) == value


@pytest.mark.parametrize("value", full(), ids=lambda value: type(value).__name__)
def test_samples_set_every_field(value: Resource) -> None:
    """The samples that other tests use leave no field at its default."""
    unset = [
        field.name
        for field in dataclasses.fields(value)
        if field.default is not dataclasses.MISSING and getattr(value, field.name) == field.default
    ]
    assert unset == []


def test_cells_are_plain() -> None:
    """Enums are numbers, times and lengths microseconds, and what has parts is JSON."""
    codec = Codec(Tab)
    cells = dict(zip([column.name for column in codec.columns], codec.encode(tab(1)), strict=True))
    assert (cells["state"], cells["create_time"], cells["pinned"], cells["labels"], cells["health"]) == (
        1,
        1_772_600_767_891_011,
        0,
        "{}",
        None,
    )


def test_parts_of_other_versions() -> None:
    """A part that an older version did not write has its default, one of a newer version is passed over."""
    codec = Codec(Browser)
    cells = codec.encode(typing.cast("Browser", full()[0]))
    at = [column.name for column in codec.columns].index("limits")
    cells[at] = '{"max_tab_count":3,"later":1}'
    assert codec.decode(cells).limits == type(codec.decode(cells).limits)(max_tab_count=3)
