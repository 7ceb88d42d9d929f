"""Which target is the one behind which tab: what is in no such list is foreign."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events.log import Log
from tabmuxd.resources.tab import Tab
from tabmuxd.tabs import popups, rules
from tabmuxd.tabs.addresses import marker_address

# Targets that were ours and are gone, remembered for a popup of theirs that is told of late.
_FORMER_COUNT: Final = 256


class Owners:
    """The targets of one connection that are ours, and those that were until a moment ago. All runs on the loop."""

    def __init__(self, log: Log) -> None:
        """None yet."""
        self._log = log
        self._tabs: dict[str, str] = {}
        self._former: dict[str, str] = {}

    def __repr__(self) -> str:
        """How many are ours, and how many were."""
        return f"<Owners targets={len(self._tabs)} former={len(self._former)}>"

    def __contains__(self, target_id: str) -> bool:
        """Whether the target is one of ours."""
        return target_id in self._tabs

    def reset(self, tabs: Iterable[Tab]) -> None:
        """A connection has begun, and these tabs have their targets still."""
        self._tabs = {
            target_id: tab.name for tab in tabs for target_id in (tab.target_id, tab.next_target_id) if target_id
        }
        self._former.clear()

    def tab_of(self, target_id: str) -> str | None:
        """Name of the tab that this target is behind."""
        return self._tabs.get(target_id)

    def missing(self, pages: Iterable[str]) -> list[str]:
        """Targets of ours that are none of these pages."""
        return sorted(self._tabs.keys() - set(pages))

    def own(self, target_id: str, tab: str) -> None:
        """From now on this target is the one behind the tab."""
        self._tabs[target_id] = tab

    def disown(self, target_id: str, tab: str) -> None:
        """It was not the one behind the tab after all."""
        if self._tabs.get(target_id) == tab:
            del self._tabs[target_id]

    def abandon(self, target_id: str, tab: str) -> None:
        """It is ours, but not the one behind the tab any more: what it has opened is the tab's all the same."""
        if self._tabs.get(target_id) == tab:
            self.gone(target_id)

    def gone(self, target_id: str) -> None:
        """The target was destroyed."""
        tab = self._tabs.pop(target_id, "")
        if tab and self._may_open(tab):
            self._former[target_id] = tab
            if len(self._former) > _FORMER_COUNT:
                del self._former[next(iter(self._former))]

    def opener_of(self, info: TargetInfo) -> str:
        """Name of the tab of ours that opened this page; empty where none did, or the page has its tab already."""
        if info.target_id in self._tabs or info.target_id in self._former:
            return ""
        opener = self._tabs.get(info.opener_id) or self._former.get(info.opener_id, "")
        return opener if opener and self._may_open(opener) else ""

    def foreign(self, pages: Iterable[TargetInfo]) -> list[str]:
        """Target ids of those pages that are not ours, sorted."""
        markers = self._markers()
        return sorted(info.target_id for info in pages if info.target_id not in self._tabs and info.uri not in markers)

    def tab_behind(self, info: TargetInfo) -> str:
        """Name of the tab of ours that this page is behind, also by its marker address; empty for a foreign one."""
        return self._tabs.get(info.target_id) or ("" if info.opener_id else self._markers().get(info.uri, ""))

    def _markers(self) -> dict[str, str]:
        """Name by marker address of the tabs whose targets may not be known yet."""
        tabs = (tab for tab in self._log.live.tabs.values() if rules.is_unfinished(tab) and tab.marker)
        return {marker_address(tab.name, tab.marker): tab.name for tab in tabs}

    def _may_open(self, tab: str) -> bool:
        """Whether what the tab's page opens is ours; one that has no row yet, or none any more, is not adopted."""
        row = self._log.live.tab(tab)
        return row is None or popups.may_open(row)
