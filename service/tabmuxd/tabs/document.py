"""What is seen of the documents of one main frame, and how far a navigation came: pure values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tabmuxd.resources.tab import LoadMilestone, Navigation, NavigationOutcome

_KEPT: Final = 16
_MILESTONES: Final = {
    "commit": LoadMilestone.COMMITTED,
    "DOMContentLoaded": LoadMilestone.DOM_CONTENT_LOADED,
    "load": LoadMilestone.LOADED,
}


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the main frame: its loader id, its address, and the last milestone seen of it."""

    loader_id: str
    uri: str
    reached: LoadMilestone = LoadMilestone.COMMITTED


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents that one main frame has shown, the newest last; at most 16 are kept."""

    seen: tuple[Document, ...] = ()

    @property
    def current(self) -> Document | None:
        """The one that is there now; None before the first commit was seen."""
        return self.seen[-1] if self.seen else None

    def find(self, loader_id: str) -> Document | None:
        """The document of this loader, if it was committed."""
        return next((document for document in reversed(self.seen) if document.loader_id == loader_id), None)

    def committed(self, loader_id: str, uri: str) -> Documents:
        """After the main frame committed a document."""
        if self.current is not None and self.current.loader_id == loader_id:
            return Documents((*self.seen[:-1], replace(self.current, uri=uri)))
        before = self.find(loader_id)  # one that comes back from the back/forward cache has loaded already
        reached = before.reached if before else LoadMilestone.COMMITTED
        return Documents((*self.seen, Document(loader_id, uri, reached))[-_KEPT:])

    def moved(self, uri: str) -> Documents:
        """After the address changed within the document that is there."""
        return self if self.current is None else Documents((*self.seen[:-1], replace(self.current, uri=uri)))

    def advanced(self, loader_id: str, event: str) -> Documents:
        """After `Page.lifecycleEvent` with this name; one of an unknown loader or name changes nothing."""
        milestone = _MILESTONES.get(event)
        if milestone is None:
            return self
        return Documents(
            tuple(
                replace(document, reached=max(document.reached, milestone))
                if document.loader_id == loader_id
                else document
                for document in self.seen
            )
        )


def judge(documents: Documents, loader_id: str, until: LoadMilestone) -> Navigation | None:
    """What has become of the navigation that made this loader; None while it may still reach `until`."""
    document = documents.find(loader_id)
    if document is None:
        return None
    if document.reached >= until:
        return Navigation(NavigationOutcome.REACHED, document.reached)
    if documents.current is not document:
        return Navigation(NavigationOutcome.SUPERSEDED, document.reached)
    return None


def judge_late(documents: Documents, loader_id: str) -> Navigation:
    """What is known of the navigation when its time is over, or a dialog holds the page up."""
    document = documents.find(loader_id)
    if document is None:
        return Navigation(NavigationOutcome.UNCONFIRMED)
    return Navigation(NavigationOutcome.LOADING, document.reached)
