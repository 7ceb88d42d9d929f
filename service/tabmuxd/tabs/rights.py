"""Who may act on a tab now: looked at before a call waits for its turn, and again when it has it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.principal import Principal
from tabmuxd.resources.tab import Tab
from tabmuxd.tabs import lease_rules, rules
from tabmuxd.tabs.lease_rules import Claim, Right


class Rights:
    """Judges by what is published; `lease_records.fence` judges once more in the transaction that records a result."""

    def __init__(self, log: Log, clock: Callable[[], datetime]) -> None:
        """`clock` is that of the log."""
        self._log = log
        self._clock = clock

    async def tab(self, name: str) -> Tab:
        """A tab, closed ones too; TAB_NOT_FOUND."""
        tab = self._log.live.tab(name) or await self._log.get_tab(name)
        if tab is None:
            raise rules.unknown_tab(name)
        return tab

    async def judged(
        self,
        caller: Principal,
        name: str,
        lease: str,
        *,
        usable: Callable[[Tab], Refused | None] = rules.is_there,
        beside_turn: bool = False,
    ) -> Right:
        """What the caller may act with on the tab now, under the lease it names, which may be empty.

        `usable` says what else the tab must be; `beside_turn` is for what may be done while the service itself holds it
        for an open turn. Raises, in this order: TAB_NOT_FOUND, NOT_OWNER, what `usable` gives, LEASE_LOST, LEASE_HELD,
        LEASE_REQUIRED, LEASE_NOT_FOUND.
        """
        claim = Claim(caller, lease, await self._log.get_lease(lease) if lease else None)
        tab = await self.tab(name)
        now = self._clock()
        held = lease_rules.holding(self._log.live.holder(tab), now)
        if beside_turn and held is not None and held.session:
            held = None
        refused = (
            rules.may_drive(caller, tab)
            or lease_rules.may_claim(claim)
            or usable(tab)
            or lease_rules.may_act_under(tab, held, claim, now)
        )
        if refused:
            raise refused
        return Right(tab, held)
