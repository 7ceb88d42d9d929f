"""A descriptor that says only what is other than in a shipped one: at another address, or with a mark more."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Final, cast

_SHIPPED: Final = resources.files("tabmuxd.webai.providers")
_PLAYGROUND: Final = "playground-"


@lru_cache(maxsize=1)
def extensible() -> Sequence[str]:
    """The shipped descriptors that can be extended; those of the playground have no address of their own."""
    names = (entry.name for entry in _SHIPPED.iterdir() if entry.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in names if not name.startswith(_PLAYGROUND))


def is_extensible(name: object) -> bool:
    """Whether `extends` may say this."""
    return isinstance(name, str) and name in extensible()


def extended(values: Mapping[str, object]) -> Mapping[str, object]:
    """The values of a file, over those of the shipped descriptor that it `extends`, field by field also in tables.

    A list takes the place of the whole list; `schema` is always the file's own. What extends nothing, or nothing that
    is known, is given unchanged.
    """
    name = values.get("extends")
    if not is_extensible(name):
        return values
    shipped = tomllib.loads(_SHIPPED.joinpath(f"{name}.toml").read_text("utf-8"))
    del shipped["schema"]
    merged = {**shipped, **values}
    for table in shipped.keys() & values.keys():
        below, above = shipped[table], values[table]
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            merged[table] = {**cast("Mapping[str, object]", below), **cast("Mapping[str, object]", above)}
    return merged
