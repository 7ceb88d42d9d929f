"""The pages of a browser, and the sessions attached to them."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.errors import CallTimeout, CdpError, ConnectionLost, ProtocolError, TargetGone

_ONLY_PAGES: Final = [{"type": "page"}]
_ONLY_TABS: Final = [{"type": "tab"}]
# How long the event of a closed target is waited for before the list is looked at, and looked at again.
_LOOK_AGAIN_SECONDS: Final = 0.5
# Chrome 156 closes a page that hangs half a second after the last order: if each look brought another, it would stay.
_LOOKS_PER_ORDER: Final = 4
# Ending a session is answered by the browser process alone, so it is quick or nobody is there.
_DETACH_SECONDS: Final = 2.0
# How long before a discarded page is gone the one in its place may have been created: here less than a millisecond.
_BURST_SECONDS: Final = 0.25
# Chrome 156: the code of "No target with given id found", where nothing but the id can be wrong.
_INVALID_PARAMS: Final = -32602


@dataclass(frozen=True, slots=True)
class TargetInfo:
    """A page as Chrome describes it; `opener_id` is empty where no page opened it."""

    target_id: str
    type: str
    title: str
    uri: str
    opener_id: str
    attached: bool


class TargetSession:
    """One DevTools session, attached to exactly one target."""

    __slots__ = ("_connection", "session_id", "target_id")

    def __init__(self, connection: Connection, target_id: str, session_id: str) -> None:
        self._connection = connection
        self.target_id = target_id
        self.session_id = session_id

    def __repr__(self) -> str:
        return f"<TargetSession {self.session_id} of {self.target_id}{' detached' if self.detached else ''}>"

    @property
    def detached(self) -> bool:
        """Chrome or its connection ended the session; it does not come back."""
        return not self._connection.attached(self.session_id)

    async def call(self, method: str, params: Mapping[str, object] | None = None, *, timeout: float) -> dict[str, Any]:
        """Call a DevTools method on the target; raises as `Connection.call`."""
        return await self._connection.call(method, params, session_id=self.session_id, timeout=timeout)

    def on(self, method: str, handler: Callable[[dict[str, Any]], None]) -> Callable[[], None]:
        """Have `handler` called with the parameters of each such event of this session; gives what stops it."""
        return self._connection.on(method, handler, session_id=self.session_id)

    async def detach(self) -> None:
        """End the session; quietly, also where it has ended already."""
        if not self.detached:
            with contextlib.suppress(CdpError):
                await self._connection.call(
                    "Target.detachFromTarget", {"sessionId": self.session_id}, timeout=_DETACH_SECONDS
                )


class Targets:
    """What a connection knows of the pages of its browser.

    Only targets of type `page` count, and of these neither DevTools' own windows nor pages that an extension opened.
    Nothing here needs an answer of a renderer, so hung, crashed and discarded pages hinder nothing. The callbacks run
    on the loop, in order, after `pages` has changed; `replaced` in place of `destroyed`, for a page that the browser
    has discarded, with the one that certainly took its place.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        created: Callable[[TargetInfo], None],
        changed: Callable[[TargetInfo], None],
        destroyed: Callable[[str], None],
        crashed: Callable[[str], None],
        replaced: Callable[[str, TargetInfo], None] | None = None,
    ) -> None:
        self._connection = connection
        self._replaced = replaced
        self._newest: dict[str, tuple[float, TargetInfo]] = {}
        self._created = created
        self._changed = changed
        self._destroyed = destroyed
        self._crashed = crashed
        self._pages: dict[str, TargetInfo] = {}
        self._closing: dict[str, asyncio.Event] = {}
        self._page_of_tab: dict[str, str] = {}
        connection.on("Target.targetCreated", self._on_info)
        connection.on("Target.targetInfoChanged", self._on_info)
        connection.on("Target.targetDestroyed", self._on_destroyed)
        connection.on("Target.targetCrashed", self._on_crashed)

    def __repr__(self) -> str:
        return f"<Targets {len(self._pages)} pages, {len(self._closing)} closing>"

    async def discover(self, *, timeout: float) -> None:
        """Have Chrome tell of its pages; on return `pages` holds those there are."""
        await self._connection.call(
            "Target.setDiscoverTargets", {"discover": True, "filter": _ONLY_PAGES}, timeout=timeout
        )
        # Those that were there at the connect took the place of none.
        self._newest.clear()

    @property
    def closed(self) -> bool:
        """The connection has ended: what is known of the pages is of then."""
        return self._connection.closed

    @property
    def pages(self) -> Mapping[str, TargetInfo]:
        """The pages by target id, as the events told of them."""
        return MappingProxyType(self._pages)

    async def fresh(self, *, timeout: float) -> dict[str, TargetInfo]:
        """The pages by target id, as Chrome lists them now."""
        infos = [target_info(raw) for raw in await self._list(_ONLY_PAGES, timeout)]
        return {info.target_id: info for info in infos if counts(info, known=info.target_id in self._pages)}

    async def look(self, target_id: str, *, timeout: float) -> None:
        """Ask for one page anew; what has changed is told as if by an event.

        Chrome 156 tells of a title only together with the next navigation.

        Raises:
            TargetGone: there is no such target.
        """
        told = await self._call_target("Target.getTargetInfo", {"targetId": target_id}, timeout)
        if target_id in self._pages:
            self._on_info(told)

    async def look_at_all(self, *, timeout: float) -> None:
        """As `look`, for all pages that are known."""
        for raw in await self._list(_ONLY_PAGES, timeout):
            if raw.get("targetId") in self._pages:
                self._on_info({"targetInfo": raw})

    async def create(self, uri: str, *, background: bool = True, new_window: bool = False, timeout: float) -> str:
        """Open a page and give its target id; answered before the page has loaded."""
        params: dict[str, object] = {"url": uri, "background": background}
        if new_window:
            # Chrome 156: an explicit false is refused ("no browser is open") while there is no window at all.
            params["newWindow"] = True
        result = await self._connection.call("Target.createTarget", params, timeout=timeout)
        return str(result["targetId"])

    async def attach(self, target_id: str, *, timeout: float) -> TargetSession:
        """Attach a session of our own to a target.

        Raises:
            TargetGone: there is no such target.
        """
        params = {"targetId": target_id, "flatten": True}
        result = await self._call_target("Target.attachToTarget", params, timeout)
        return TargetSession(self._connection, target_id, str(result["sessionId"]))

    async def activate(self, target_id: str, *, timeout: float) -> None:
        """Bring a page to the front of its window.

        Raises:
            TargetGone: there is no such target.
        """
        await self._call_target("Target.activateTarget", {"targetId": target_id}, timeout)

    async def close(self, target_id: str, *, timeout: float) -> None:
        """Close a page; returns once it was seen destroyed, or is missing from a fresh list.

        Raises:
            CallTimeout: it was not gone within `timeout` seconds.
            ProtocolError: Chrome refused, and the page is still there.
        """
        method = "Target.closeTarget"
        deadline = asyncio.get_running_loop().time() + timeout
        gone = self._closing.setdefault(target_id, asyncio.Event())
        try:
            try:
                await self._connection.call(method, {"targetId": target_id}, timeout=timeout)
            except ProtocolError:
                if await self._listed(target_id, deadline):
                    raise
                return
            looks = 0
            while not gone.is_set():
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(_LOOK_AGAIN_SECONDS, deadline - asyncio.get_running_loop().time())):
                        await gone.wait()
                if not gone.is_set():
                    if not await self._listed(target_id, deadline):
                        return
                    looks += 1
                    if looks % _LOOKS_PER_ORDER == 1:
                        await self._close_again(target_id, deadline)
        finally:
            if self._closing.get(target_id) is gone:
                del self._closing[target_id]

    async def front(self, *, may_attach: Callable[[str], bool] | None, timeout: float) -> str | None:
        """Target id of the page that is certainly in front; None where that is not certain.

        It is not with several windows, nor where this build of Chrome does not say which tab is active. Chrome tells
        which page a tab shows only to a session of the tab, which attaches to that page for a moment: so it is told by
        title and address where no other page has both, and else asked for only if all pages that it may be pass
        `may_attach` (None: any may be attached to).
        """
        deadline = asyncio.get_running_loop().time() + timeout
        listed = await self._list([*_ONLY_TABS, *_ONLY_PAGES], timeout)
        tabs = [raw for raw in listed if raw.get("type") == "tab"]
        pages = [raw for raw in listed if raw.get("type") == "page" and not raw.get("subtype")]
        self._page_of_tab = paired(tabs, pages, self._page_of_tab)
        tab_id = only_active(tabs)
        if tab_id is None:
            return None
        page_id = self._page_of_tab.get(tab_id)
        if page_id is None:
            candidates = unpaired_like(tab_id, tabs, pages, self._page_of_tab)
            if not candidates or not (may_attach is None or all(map(may_attach, candidates))):
                return None
            page_id = await self._find_page(tab_id, deadline)
            self._page_of_tab[tab_id] = page_id
        return page_id if page_id in self._pages else None

    async def _find_page(self, tab_id: str, deadline: float) -> str:
        """Target id of the page shown in a tab, empty where there is none; Chrome tells it only to a session."""
        pages: list[str] = []

        def collect(params: dict[str, Any]) -> None:
            raw = params.get("targetInfo", {})
            if not raw.get("subtype"):  # not a page that is only being prepared
                pages.append(str(raw.get("targetId", "")))

        loop = asyncio.get_running_loop()
        try:
            session = await self.attach(tab_id, timeout=deadline - loop.time())
        except TargetGone:
            return ""
        try:
            session.on("Target.attachedToTarget", collect)
            params = {"autoAttach": True, "waitForDebuggerOnStart": False, "flatten": True, "filter": _ONLY_PAGES}
            await session.call("Target.setAutoAttach", params, timeout=deadline - loop.time())
        finally:
            await session.detach()
        return pages[0] if len(pages) == 1 else ""

    async def _call_target(self, method: str, params: Mapping[str, object], timeout: float) -> dict[str, Any]:
        try:
            return await self._connection.call(method, params, timeout=timeout)
        except ProtocolError as error:
            if error.code == _INVALID_PARAMS:
                raise TargetGone(method, handed_over=False, crashed=False) from error
            raise

    async def _list(self, only: list[dict[str, str]], timeout: float) -> list[dict[str, Any]]:
        result = await self._connection.call("Target.getTargets", {"filter": only}, timeout=timeout)
        return list(result.get("targetInfos", []))

    async def _close_again(self, target_id: str, deadline: float) -> None:
        # Chrome 156 says that it closes a page whose document was committed a moment ago, and often does not.
        timeout = deadline - asyncio.get_running_loop().time()
        try:
            with contextlib.suppress(ProtocolError):  # it is gone meanwhile, as the next look tells
                await self._connection.call("Target.closeTarget", {"targetId": target_id}, timeout=timeout)
        except CallTimeout as error:
            raise CallTimeout(error.method, handed_over=True) from error
        except ConnectionLost as error:
            raise ConnectionLost(error.method, handed_over=True, reason=error.reason) from error

    async def _listed(self, target_id: str, deadline: float) -> bool:
        """The target that is being closed is still there."""
        try:
            raws = await self._list(_ONLY_PAGES, deadline - asyncio.get_running_loop().time())
        except CallTimeout as error:
            raise CallTimeout("Target.closeTarget", handed_over=True) from error
        except ConnectionLost as error:
            raise ConnectionLost("Target.closeTarget", handed_over=True, reason=error.reason) from error
        return any(raw.get("targetId") == target_id for raw in raws)

    def _on_info(self, params: dict[str, Any]) -> None:
        info = target_info(params["targetInfo"])
        before = self._pages.get(info.target_id)
        if not counts(info, known=before is not None):
            if before is not None:
                self._forget(info.target_id)
        elif info != before:
            self._pages[info.target_id] = info
            if before is None:
                self._note_new(info)
                self._created(info)
            else:
                self._changed(info)

    def _on_destroyed(self, params: dict[str, Any]) -> None:
        target_id = str(params["targetId"])
        gone = self._pages.get(target_id)
        if target_id in self._closing:
            self._closing[target_id].set()
        elif gone is not None and self._replaced is not None and (successor := self._successor(gone)) is not None:
            del self._pages[target_id], self._newest[successor.target_id]
            self._replaced(target_id, successor)
            return
        self._forget(target_id)

    def _on_crashed(self, params: dict[str, Any]) -> None:
        if (target_id := str(params["targetId"])) in self._pages:
            self._crashed(target_id)

    def _note_new(self, info: TargetInfo) -> None:
        now = asyncio.get_running_loop().time()
        self._newest = {known: each for known, each in self._newest.items() if now - each[0] < _BURST_SECONDS}
        self._newest[info.target_id] = (now, info)

    def _successor(self, gone: TargetInfo) -> TargetInfo | None:
        """The page that certainly took the place of one that is gone, because the browser discarded that.

        Chrome 156 creates, in the same burst, a page that has address and title from its first moment, which one that
        loads has not. Where two could be meant, none is.
        """
        since = asyncio.get_running_loop().time() - _BURST_SECONDS
        twins = [
            info
            for time, info in self._newest.values()
            if time >= since and info.target_id != gone.target_id and _is_twin(info, gone)
        ]
        return self._pages.get(twins[0].target_id) if len(twins) == 1 else None

    def _forget(self, target_id: str) -> None:
        if self._pages.pop(target_id, None) is not None:
            self._destroyed(target_id)


def _is_twin(page: TargetInfo, other: TargetInfo) -> bool:
    """Whether a new page shows what another one showed, was opened by none, and is attached to by nobody."""
    return page.title != "" and (page.uri, page.title, page.opener_id, page.attached) == (
        other.uri,
        other.title,
        "",
        False,
    )


def target_info(raw: Mapping[str, Any]) -> TargetInfo:
    """A target in our words, from Chrome's description of it."""
    return TargetInfo(
        target_id=str(raw["targetId"]),
        type=str(raw["type"]),
        title=str(raw.get("title", "")),
        uri=str(raw.get("url", "")),
        opener_id=str(raw.get("openerId", "")),
        attached=bool(raw.get("attached", False)),
    )


def counts(info: TargetInfo, *, known: bool) -> bool:
    """The target is a page for us; a `known` one stays so when an extension shows a page of its own in it."""
    if info.type != "page" or info.uri.startswith("devtools://"):
        return False
    return known or not info.uri.startswith("chrome-extension://")


def only_active(tabs: list[dict[str, Any]]) -> str | None:
    """Id of the one tab that is active in its window; None where none is, or several are."""
    active = [str(tab["targetId"]) for tab in tabs if tab.get("embedderData", {}).get("tabActive") is True]
    return active[0] if len(active) == 1 else None


def paired(tabs: list[dict[str, Any]], pages: list[dict[str, Any]], known: Mapping[str, str]) -> dict[str, str]:
    """Page id by tab id: the pairs that were known and are there still, and those that alone have title and address."""
    page_ids = {str(page["targetId"]) for page in pages}
    tab_ids = {str(tab["targetId"]) for tab in tabs}
    pairs = {tab_id: page_id for tab_id, page_id in known.items() if tab_id in tab_ids and page_id in page_ids}
    for tab_id in tab_ids - pairs.keys():
        like = unpaired_like(tab_id, tabs, pages, pairs)
        if len(like) == 1:
            pairs[tab_id] = like[0]
    return pairs


def unpaired_like(
    tab_id: str, tabs: list[dict[str, Any]], pages: list[dict[str, Any]], pairs: Mapping[str, str]
) -> list[str]:
    """Ids of the pages that this tab may show: with its title and address, and shown by no other tab that is known."""
    looks = {(tab.get("title"), tab.get("url")) for tab in tabs if tab["targetId"] == tab_id}
    taken = set(pairs.values())
    return [
        str(page["targetId"])
        for page in pages
        if (page.get("title"), page.get("url")) in looks and page["targetId"] not in taken
    ]
