from __future__ import annotations

from dataclasses import replace

import pytest
from tabmuxd.resources.lease import Lease
from tabmuxd.resources.tab import CloseCause, DialogPolicy, Tab, TabOrigin, TabState
from tabmuxd.tabs import popups, rules

from tests.domain.values import LEASE, NOW, SESSION, TAB, held, ready_tab

_NAME = "browsers/main/tabs/9876543210"


@pytest.mark.parametrize(
    ("origin", "ours"), [(TabOrigin.MANAGED, True), (TabOrigin.POPUP, True), (TabOrigin.ADOPTED, False)]
)
def test_may_open(origin: TabOrigin, *, ours: bool) -> None:
    """What a managed tab or a popup opens is ours, what an adopted one opens is foreign (O-99, O-101)."""
    assert popups.may_open(replace(ready_tab(), origin=origin)) == ours


@pytest.mark.parametrize(
    ("lease", "named"),
    [
        (None, ""),
        (held(), LEASE),
        (held(seconds=0), ""),
        (replace(held(), end_time=NOW), ""),
        (held(session=SESSION), ""),
    ],
)
def test_popup_of(lease: Lease | None, named: str) -> None:
    """A popup has owner, sharing, group and dialog policy of its opener, and its client's live lease (O-16, O-99).

    It has neither pin, labels nor session of it, nor the lease that the service holds for a turn.
    """
    opener = replace(
        ready_tab(), group="g", pinned=True, labels={"a": "b"}, session=SESSION, dialog_policy=DialogPolicy.ACCEPT
    )
    popup = popups.popup_of(opener, lease, name=_NAME, target_id="T", browser_generation=2, now=NOW)
    assert popup == Tab(
        _NAME,
        TabState.OPENING,
        TabOrigin.POPUP,
        "local/a",
        NOW,
        NOW,
        opener=TAB,
        target_id="T",
        group="g",
        dialog_policy=DialogPolicy.ACCEPT,
        lease=named,
        shared_with=("local/b",),
        browser_generation=2,
    )


def test_popup_of_closed() -> None:
    """A popup whose opener has closed still names it, and is free (O-100)."""
    opener = rules.closed(ready_tab(), CloseCause.CLIENT, NOW)
    popup = popups.popup_of(opener, None, name=_NAME, target_id="T", browser_generation=2, now=NOW)
    assert (popup.opener, popup.owner, popup.lease) == (TAB, "local/a", "")


@pytest.mark.parametrize("pooled", [True, False])
def test_popup_of_pooled(*, pooled: bool) -> None:
    """What a pooled tab opens is nobody's, also while it is handed over and shows the earlier page still (O-45)."""
    opener = replace(ready_tab(), owner="" if pooled else "local/a", pooled=pooled, shared_with=(), left_at="a:")
    popup = popups.popup_of(opener, None, name=_NAME, target_id="T", browser_generation=2, now=NOW)
    assert (popup.owner, popup.shared_with) == ("", ())
