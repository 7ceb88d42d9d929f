"""Enabling: a session is made to tell what happens in its page, and the page to run at full speed though it is hidden.

Over a session that is attached; `timeout` is how long each command may go unanswered, or be refused, in seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Final

from tabmuxd.cdp.errors import CallTimeout, CdpError, ProtocolError
from tabmuxd.cdp.targets import TargetSession

_ATTEMPT: Final = 1.0
_ACTIVE_PAUSE: Final = 0.005

_ENABLES: Final[tuple[tuple[str, Mapping[str, object]], ...]] = (
    ("Page.enable", {}),
    ("Inspector.enable", {}),
    ("Page.setLifecycleEventsEnabled", {"enabled": True}),
    # Chromium 156: a background tab gets 1 timer tick a second and no animation frames without these two; both belong
    # to the session that set them (design.md section 3).
    ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
)
_SCREENCAST: Final[tuple[str, Mapping[str, object]]] = (
    "Page.startScreencast",
    {"format": "jpeg", "quality": 1, "maxWidth": 16, "maxHeight": 16, "everyNthFrame": 1_000_000},
)
# Tells the status of the first document before it is committed: asking the page itself takes two replies of a renderer
# that is busy loading. Nothing that was received is kept.
_NETWORK: Final[tuple[str, Mapping[str, object]]] = (
    "Network.enable",
    {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0},
)


async def enable(session: TargetSession, *, timeout: float) -> None:
    """All but the network; may be repeated. Raises CdpError."""
    enables = (_enable(session, method, params, timeout) for method, params in _ENABLES)
    await asyncio.gather(*enables, _enable_active(session, *_SCREENCAST, timeout))


async def enable_first(session: TargetSession, *, timeout: float) -> None:
    """The network too, but not to paint; raises CdpError."""
    await asyncio.gather(*(_enable(session, method, params, timeout) for method, params in (*_ENABLES, _NETWORK)))


async def paint(session: TargetSession, *, timeout: float) -> None:
    """Make the page paint as soon as it answers; raises CdpError if it goes away."""
    await _once_active(session, *_SCREENCAST, timeout)


async def tidy(session: TargetSession, *, timeout: float) -> None:
    """Empty the history but for the document that is there; quietly, if it fails."""
    with contextlib.suppress(CdpError):
        await _once_active(session, "Page.resetNavigationHistory", {}, timeout)


async def hear_network(session: TargetSession, *, timeout: float) -> None:
    """Be told of what the page sends and receives from here on; raises CdpError."""
    await session.call(*_NETWORK, timeout=timeout)


async def ignore_network(session: TargetSession, *, timeout: float) -> None:
    """Be told of it no more; quietly, if it fails."""
    with contextlib.suppress(CdpError):
        await session.call("Network.disable", timeout=timeout)


async def _once_active(session: TargetSession, method: str, params: Mapping[str, object], timeout: float) -> None:
    # Chromium 156 tells of a commit before its browser process has made it, and refuses this until then ("Not
    # attached to an active page").
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        try:
            await _enable_once(session, method, params)
        except CallTimeout:
            deadline = loop.time() + timeout  # a page that is busy may be free later
        except ProtocolError:
            if loop.time() > deadline:
                raise
        else:
            return
        await asyncio.sleep(_ACTIVE_PAUSE)


async def _enable(session: TargetSession, method: str, params: Mapping[str, object], timeout: float) -> None:
    # Chromium 156 left some of these unanswered when a page was busy with its first document; they may be repeated.
    for _ in range(int(timeout / _ATTEMPT) - 1):
        with contextlib.suppress(CallTimeout):
            await _enable_once(session, method, params)
            return
    await _enable_once(session, method, params)


async def _enable_active(session: TargetSession, method: str, params: Mapping[str, object], timeout: float) -> None:
    # As in `_once_active`, but in its time: a page may be prepared right after it was loaded anew.
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while True:
        try:
            return await _enable(session, method, params, timeout)
        except ProtocolError:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(_ACTIVE_PAUSE)


async def _enable_once(session: TargetSession, method: str, params: Mapping[str, object]) -> None:
    try:
        await session.call(method, params, timeout=_ATTEMPT)
    except ProtocolError as error:
        # Chromium 156: the one command here that tells of an earlier one that was carried out, if late.
        if "already active" not in error.message:
            raise
