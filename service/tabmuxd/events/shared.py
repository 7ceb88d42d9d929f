"""Finished bytes that several watches want alike."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

from tabmuxd.resources.event import Resource

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a watch: the reply to send, None if nothing matched, and the revision it comes to."""

    reply: bytes | None
    revision: int


class Recent(OrderedDict[K, V]):
    """A mapping of the `count` newest entries; older ones are dropped."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        if len(self) > self._count:
            self.popitem(last=False)


class Shared:
    """Steps by what they depend on, and events of snapshots by resource; at most `count` of each."""

    def __init__(self, count: int) -> None:
        self.steps: Recent[Hashable, Step] = Recent(count)
        self.existing: Recent[str, tuple[Resource, bytes]] = Recent(count)
