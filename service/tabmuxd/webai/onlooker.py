"""Looking on: what a tab shows of a provider, read without touching it, beside whatever is at work there."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, cast

from tabmuxd.cdp.errors import ProtocolError
from tabmuxd.events.log import Log
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.provider_status import ProviderProbe, ProviderStatus
from tabmuxd.resources.session import Session
from tabmuxd.tabs.page import Page
from tabmuxd.tabs.service import Tabs
from tabmuxd.webai import looking, whereabouts
from tabmuxd.webai.looking import Fault, Seen, Serving
from tabmuxd.webai.page_script import marks_of, page_script
from tabmuxd.webai.providers.descriptor import Descriptor

_STATUS: Final = page_script("status")
_PROBE: Final = page_script("probe")
_LOOK_TIMEOUT: Final = 4.0
# Less than that: a page in which a look takes so long goes on before the caller gives up.
_SCRIPT_MILLISECONDS: Final = 3000
_TRIES: Final = 3


class Onlooker:
    """Looks at what tabs show; leaves no trace in a page, and none in the store."""

    def __init__(
        self,
        providers: Mapping[str, Descriptor],
        descriptor_for: Callable[[Session], Awaitable[Descriptor]],
        tabs: Tabs,
        log: Log,
        clock: Callable[[], datetime],
    ) -> None:
        """`providers` by id, in use for new sessions; `descriptor_for` gives what a session goes by."""
        self._providers = providers
        self._descriptor_for = descriptor_for
        self._tabs = tabs
        self._log = log
        self._clock = clock

    async def status(self, name: str) -> ProviderStatus:
        """What the tab shows of the provider it is at.

        Raises PROVIDER_NOT_SHOWN at nobody's page, and as `Looks.at`.
        """
        async with self._tabs.looks.at(name) as (tab, page):
            session = self._log.live.sessions.get(tab.session) if tab.session else None
            serving = self._serving(session)
            known = await self._known(session)
            for tries_left in reversed(range(_TRIES)):
                place = looking.whose(known, page.shown_uri, serving)
                if place is None:
                    break
                descriptor, barrier = place
                if barrier is not None:
                    return looking.barred_status(descriptor, barrier, tab, self._clock())
                found = await _read(page, _STATUS, descriptor)
                seen = looking.seen_of(found) if isinstance(found, dict) else found
                if isinstance(seen, Seen):
                    return looking.status_of(descriptor, seen, tab, serving, self._clock())
                if not tries_left and seen != "elsewhere":
                    return looking.unseen_status(descriptor, seen, tab, self._clock())
        raise _nowhere(name)

    async def probe(self, provider: str, name: str) -> ProviderProbe:
        """What each selector of the provider's descriptor finds in a tab that is at one of its hosts.

        Raises PROVIDER_NOT_FOUND, PROVIDER_NOT_SHOWN, PROVIDER_PAGE_CHANGED where its rules fail there, and as
        `Looks.at`.
        """
        descriptor = self._providers.get(provider)
        if descriptor is None:
            raise whereabouts.unknown_provider(provider)
        async with self._tabs.looks.at(name) as (tab, page):
            found: dict[str, object] | Fault = "elsewhere"
            for _ in range(_TRIES):
                if descriptor.is_at(page.shown_uri):
                    found = await _read(page, _PROBE, descriptor)
                    findings = looking.findings_of(found) if isinstance(found, dict) else found
                    if isinstance(findings, tuple):
                        return ProviderProbe(findings, tab.generation, descriptor.version, self._clock())
        raise whereabouts.not_shown(descriptor, name) if found == "elsewhere" else _changed(descriptor, name)

    def _serving(self, session: Session | None) -> Serving:
        if session is None:
            return Serving()
        turn = self._log.live.turns.get(session.open_turn) if session.open_turn else None
        return Serving(session.provider, None if turn is None else turn.prompt)

    async def _known(self, session: Session | None) -> Sequence[Descriptor]:
        """The descriptors in use, but for a session's own, which may be of an earlier version."""
        known = dict(self._providers)
        if session is not None and session.provider in known:
            known[session.provider] = await self._descriptor_for(session)
        return tuple(known.values())


async def _read(page: Page, script: str, descriptor: Descriptor) -> dict[str, object] | Fault:
    """What the script gives at one of the provider's hosts, and there alone: the page may have gone on to another.

    Raises CdpError where the page does not answer.
    """
    marks = json.dumps({**marks_of(descriptor.marks), "copy": descriptor.marks.copy})
    hosts = json.dumps(descriptor.hosts)
    expression = f"{hosts}.includes(location.hostname) ? ({script})({marks}) : null"
    try:
        world = await page.own_world(timeout=_LOOK_TIMEOUT)
        reply = await page.call(
            "Runtime.evaluate",
            {
                "expression": expression,
                "contextId": world,
                "returnByValue": True,
                "timeout": _SCRIPT_MILLISECONDS,
            },
            timeout=_LOOK_TIMEOUT,
        )
    except ProtocolError:
        page.forget_world()
        return "replaced"
    if "exceptionDetails" in reply:
        return "unreadable"
    value = cast("dict[str, Any]", reply.get("result", {})).get("value")
    if not isinstance(value, dict):
        return "elsewhere"
    found = cast("dict[str, object]", value)
    return found if descriptor.is_at(str(found.get("uri", ""))) else "elsewhere"


def _nowhere(tab: str) -> Refused:
    message = f"{tab} is not at a page of a provider. Take it there, or use another tab."
    return refuse(Reason.PROVIDER_NOT_SHOWN, message, provider="", tab=tab)


def _changed(descriptor: Descriptor, tab: str) -> Refused:
    return refuse(
        Reason.PROVIDER_PAGE_CHANGED,
        f"The descriptor of {descriptor.id} could not be tried on the page of {tab}: its rules fail there, or another"
        " page takes its place again and again.",
        provider=descriptor.id,
        tab=tab,
        expected="page",
        descriptor_version=descriptor.version,
    )
