"""What a mirror knows, and how replies of a watch change it. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.event_pb2 import Event, EventKind, WatchProgress
from tabmux.v1.lease_pb2 import Lease
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab

Resource: TypeAlias = Browser | Tab | Lease | Session | Turn

_STANDING: Final = frozenset(
    {EventKind.EVENT_KIND_EXISTING, EventKind.EVENT_KIND_CREATED, EventKind.EVENT_KIND_UPDATED}
)


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one resource.

    `before` is None where it is new. `after` is as it stands now; where it has ended, as it stood at its end, or None
    if that was missed. `event` tells why and when; it is None where the change was found by comparing what is there
    with what was, since the history between is gone.
    """

    name: str
    before: Resource | None
    after: Resource | None
    ended: bool
    event: Event | None


class View:
    """The resources that have not ended, by name, as of one place in the history.

    `progress` is that place; it is None until the first snapshot is whole.
    """

    def __init__(self) -> None:
        self.progress: WatchProgress | None = None
        self._resources: dict[str, Resource] = {}
        self._arriving: dict[str, Resource] | None = {}

    @property
    def resources(self) -> Mapping[str, Resource]:
        """All of every kind, by name."""
        return MappingProxyType(self._resources)

    def begin_snapshot(self) -> None:
        """A snapshot begins, perhaps anew: what there was stays until it is whole."""
        self._arriving = {}

    def take(self, events: Sequence[Event], progress: WatchProgress) -> list[Change]:
        """Take in one reply of a watch, and tell what has changed by it."""
        if self._arriving is None:
            changes = [change for event in events if (change := self._take_event(event)) is not None]
            self.progress = progress
            return changes
        self._arriving.update(
            (resource.name, resource)
            for event in events
            if event.kind in _STANDING and (resource := resource_of(event)) is not None
        )
        if progress.revision == 0:
            return []
        arrived, self._arriving = self._arriving, None
        changes = list(_differences(self._resources, arrived))
        self._resources = arrived
        self.progress = progress
        return changes

    def _take_event(self, event: Event) -> Change | None:
        resource = resource_of(event)
        ended = event.kind == EventKind.EVENT_KIND_ENDED
        if resource is None or not (ended or event.kind in _STANDING):
            return None  # of a later version of the contract (rule W12)
        before = self._resources.get(resource.name)
        if ended:
            self._resources.pop(resource.name, None)
        else:
            self._resources[resource.name] = resource
        return Change(resource.name, before, resource, ended, event)


def resource_of(event: Event) -> Resource | None:
    """The resource that an event tells of; None where this client does not know its kind."""
    match event.WhichOneof("resource"):
        case "browser":
            return event.browser
        case "tab":
            return event.tab
        case "lease":
            return event.lease
        case "session":
            return event.session
        case "turn":
            return event.turn
        case None:
            return None


def _differences(before: Mapping[str, Resource], after: Mapping[str, Resource]) -> Iterable[Change]:
    for name in before.keys() - after.keys():
        yield Change(name, before[name], None, ended=True, event=None)
    for name, resource in after.items():
        known = before.get(name)
        if known != resource:
            yield Change(name, known, resource, ended=False, event=None)
