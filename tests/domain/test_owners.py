"""Which page has opened which: also where it is told of late."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tabmuxd.cdp.targets import TargetInfo
from tabmuxd.events import Log
from tabmuxd.resources.event import ChangeCause
from tabmuxd.resources.tab import TabOrigin
from tabmuxd.tabs.owners import Owners

from tests.domain.values import NOW, ready_tab

TAB = replace(ready_tab(), revision=0)


def opened_by(target_id: str) -> TargetInfo:
    """A page that this one has opened."""
    return TargetInfo("POPUP", "page", "", "", target_id, attached=False)


@pytest.mark.parametrize("origin", [TabOrigin.MANAGED, TabOrigin.ADOPTED])
@pytest.mark.parametrize(
    "end", [Owners.gone, lambda owners, target_id: owners.abandon(target_id, TAB.name)], ids=["gone", "abandoned"]
)
async def test_told_late(tmp_path: Path, origin: TabOrigin, end: Callable[[Owners, str], None]) -> None:
    """What a target of ours has opened is ours, though it is told of once that target is not (O-100, O-101)."""
    async with Log(tmp_path / "t.sqlite3", clock=lambda: NOW) as log:
        await log.change(lambda changes: changes.record(replace(TAB, origin=origin), ChangeCause.CLIENT))
        owners = Owners(log)
        owners.own("TARGET", TAB.name)
        end(owners, "TARGET")
        assert owners.opener_of(opened_by("TARGET")) == (TAB.name if origin is TabOrigin.MANAGED else "")
        assert owners.opener_of(opened_by("ANOTHER")) == ""
