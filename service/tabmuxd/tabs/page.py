"""The live page behind one tab: its DevTools session, its documents and its dialogs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from tabmuxd.cdp.errors import CallTimeout, CdpError, ProtocolError
from tabmuxd.cdp.targets import TargetSession
from tabmuxd.resources.errors import Reason, Refused, cut, refuse
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.tab import DialogKind, LoadMilestone, Navigation, NavigationOutcome
from tabmuxd.tabs import enabling, faults
from tabmuxd.tabs.addresses import BLANK, MAX_ADDRESS_BYTES, is_marker
from tabmuxd.tabs.document import Document, Documents, judge, judge_late

COMMAND_TIMEOUT: Final = 5.0
# A new page waits for a process of its own, which may take long on a machine that is busy.
_START_TIMEOUT: Final = 15.0
_STATUS_TIMEOUT: Final = 1.0
_MOVE_TIMEOUT: Final = 1.0
_WORLD: Final = "tabmux"

# The title of a document is known to the browser a moment after it was parsed; scripts often set it while it loads.
_TITLE_EVENTS: Final = frozenset({"DOMContentLoaded", "load", "networkAlmostIdle", "networkIdle"})
_DIALOG_KINDS: Final = {
    "alert": DialogKind.ALERT,
    "confirm": DialogKind.CONFIRM,
    "prompt": DialogKind.PROMPT,
    "beforeunload": DialogKind.BEFORE_UNLOAD,
}


@dataclass(frozen=True, slots=True)
class OpenedDialog:
    """A JavaScript dialog as the page opened it; texts are cut to 1 KiB."""

    kind: DialogKind
    message: str
    default_prompt_text: str


class PageListener(Protocol):
    """Who is told what happens in a page; called on the loop, must not block."""

    def document_changed(self, page: Page) -> None:
        """The main frame has committed another document, or moved within its own."""

    def title_settled(self, page: Page) -> None:
        """The document that is there may have another title."""

    def dialog_changed(self, page: Page, dialog: OpenedDialog | None) -> bool:
        """A dialog opened, or closed (None); gives whether it is answered at once, so that nothing waits for it."""
        ...


class Page:
    """The page that stands behind a tab at present, over the session attached to exactly its target."""

    def __init__(self, tab: str, browser: str, session: TargetSession, listener: PageListener) -> None:
        """Listen at once; `prepare` makes the page tell."""
        self.tab = tab
        self.browser = browser
        self.session = session
        self.documents = Documents()
        self.dialog: OpenedDialog | None = None
        self.frame_id = session.target_id
        self.end_cause = ""
        self._listener = listener
        self._status = ("", 0)
        self._at_marker = False
        self._network_heard = 0
        self._world: tuple[str, int] | None = None
        self._moved: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._moves_within = 0
        self._told: list[Callable[[], None]] = []
        session.on("Target.detachedFromTarget", lambda _params: self.end("tab_gone"))
        session.on("Inspector.targetCrashed", lambda _params: self.end("tab_crashed"))
        session.on("Page.frameNavigated", self._frame_navigated)
        session.on("Page.navigatedWithinDocument", self._moved_within)
        session.on("Page.lifecycleEvent", self._lifecycle)
        session.on("Network.responseReceived", self._response_received)
        session.on("Page.javascriptDialogOpening", self._dialog_opening)
        session.on("Page.javascriptDialogClosed", self._dialog_closed)

    def __repr__(self) -> str:
        """Tab, target, and whether it is still attached."""
        attached = "detached" if self.session.detached else "attached"
        return f"<Page of {self.tab} target {self.session.target_id} {attached}>"

    @property
    def shown_uri(self) -> str:
        """Address of the document that is there, empty before one was seen; the marker address is `about:blank`."""
        document = self.documents.current
        if document is None:
            return ""
        return BLANK if is_marker(document.uri) else document.uri

    @property
    def usable(self) -> bool:
        """Whether the session is still attached and the renderer lives."""
        return not self.end_cause and not self.session.detached

    def end(self, cause: str) -> None:
        """Tell that the page is gone: `tab_gone`, `tab_crashed` or `connection_lost`; what waits for it goes on."""
        self.end_cause = self.end_cause or cause
        self._move()

    async def call(
        self, method: str, params: Mapping[str, object] | None = None, *, timeout: float = COMMAND_TIMEOUT
    ) -> dict[str, Any]:
        """One DevTools command to this page; raises CdpError. `timeout` in seconds."""
        return await self.session.call(method, params, timeout=timeout)

    async def prepare(self) -> None:
        """Make the page tell of documents, dialogs and crashes, and run at full speed though it is hidden.

        All is confirmed when this returns: a dialog that nobody saw cannot be answered (`ownership.md` B-5). May be
        repeated. Raises CdpError.
        """
        await enabling.enable(self.session, timeout=COMMAND_TIMEOUT)

    async def look(self, *, timeout: float = COMMAND_TIMEOUT, again: bool = False) -> bool:
        """See which document is there, in a page that was not watched from its beginning; raises CdpError.

        One that events have told of is left, unless `again`: for a page that tells of none yet. False if it is only
        what the browser shows in place of one that could not be loaded.
        """
        reply = await self.call("Page.getFrameTree", timeout=timeout)
        frame = reply["frameTree"]["frame"]
        if again or self.documents.current is None:
            self._show(frame)
        return not frame.get("unreachableUrl")

    async def prepare_first(self) -> None:
        """As `prepare`, at the marker address of a tab that opens, but for `paint`; hears of the network, until `tidy`.

        To paint while it loads nothing yet would cost a page 4 percent of its time to open.
        """
        self._at_marker = True
        await enabling.enable_first(self.session, timeout=_START_TIMEOUT)

    async def paint(self) -> None:
        """Make the page paint though it is hidden, as soon as it answers; for the moment its first address is ordered.

        Raises CdpError if the page goes away.
        """
        await enabling.paint(self.session, timeout=COMMAND_TIMEOUT)

    async def tidy(self) -> None:
        """Take the marker address out of the history, and hear no more of what is loaded; quietly, if it cannot be."""
        await enabling.tidy(self.session, timeout=COMMAND_TIMEOUT)
        if not self._network_heard:
            await enabling.ignore_network(self.session, timeout=COMMAND_TIMEOUT)

    @contextlib.asynccontextmanager
    async def network_heard(self) -> AsyncGenerator[asyncio.Future[None]]:
        """While inside, the session tells of what the page sends, by the events of Network.

        It does so from the next command on; the future tells whether the page has confirmed that, or why it did not.
        """
        self._network_heard += 1
        heard = asyncio.ensure_future(enabling.hear_network(self.session, timeout=COMMAND_TIMEOUT))
        try:
            yield heard
        finally:
            await asyncio.wait({heard})
            self._network_heard -= 1
            if not self._network_heard and self.usable:
                await enabling.ignore_network(self.session, timeout=COMMAND_TIMEOUT)

    def on_change(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call `told` after each commit, milestone, dialog, and at the end; gives "stop telling"."""
        self._told.append(told)
        return lambda: self._told.remove(told)

    async def navigate(self, uri: str, *, until: LoadMilestone, timeout: float) -> Navigation:
        """Order one navigation, never repeated, and tell how far it came within `timeout` seconds.

        Raises NAVIGATION_FAILED if it surely failed, DIALOG_OPEN if the page asks before it is left, OUTCOME_UNKNOWN if
        the page went away meanwhile.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        moves = self._moves_within
        ordered = asyncio.ensure_future(self.call("Page.navigate", {"url": uri}, timeout=timeout))
        try:
            await self.until(ordered.done, deadline, also=ordered, stop_at_dialog=True)
            if not ordered.done():
                if self.dialog is not None and self.dialog.kind is DialogKind.BEFORE_UNLOAD:
                    raise with_outcome(self._dialog_refusal(), "no")
                if not self.usable:
                    raise faults.lost_result(self.tab, self.end_cause or "tab_gone")
                return Navigation(NavigationOutcome.UNCONFIRMED)
            try:
                reply = ordered.result()
            except CallTimeout as error:
                if error.handed_over:
                    return Navigation(NavigationOutcome.UNCONFIRMED)
                raise
            except ProtocolError as error:
                raise self._failed(uri, error.message) from error
            return await self._with_address(await self._follow(uri, reply, until, deadline), moves, deadline)
        except CdpError as error:
            raise faults.of_step(error, self.tab, self.browser) from error
        finally:
            ordered.cancel()

    async def _follow(self, uri: str, reply: Mapping[str, Any], until: LoadMilestone, deadline: float) -> Navigation:
        loader_id = str(reply.get("loaderId", ""))
        if error_text := str(reply.get("errorText", "")):
            # net::ERR_ABORTED: a download, an answer without a document, or a refused `beforeunload` (B-7).
            if error_text == "net::ERR_ABORTED":
                return Navigation(NavigationOutcome.NO_DOCUMENT)
            raise self._failed(uri, error_text)
        if not loader_id:
            return Navigation(NavigationOutcome.SAME_DOCUMENT)
        return await self._reach(loader_id, until, deadline)

    async def reach(self, document: Document, until: LoadMilestone, *, timeout: float) -> Navigation:
        """How far a document that is there has come within `timeout` seconds; OUTCOME_UNKNOWN if the page went away."""
        return await self._reach(document.loader_id, until, asyncio.get_running_loop().time() + timeout)

    async def _reach(self, loader_id: str, until: LoadMilestone, deadline: float) -> Navigation:
        await self.until(lambda: judge(self.documents, loader_id, until) is not None, deadline, stop_at_dialog=True)
        navigation = judge(self.documents, loader_id, until)
        if navigation is None and not self.usable:
            raise faults.lost_result(self.tab, self.end_cause or "tab_gone")
        return navigation or judge_late(self.documents, loader_id)

    async def _with_address(self, navigation: Navigation, moves: int, deadline: float) -> Navigation:
        """Wait for the event with the new address where nothing else has changed: it comes after the reply."""
        if navigation.outcome is NavigationOutcome.SAME_DOCUMENT:
            limit = min(deadline, asyncio.get_running_loop().time() + _MOVE_TIMEOUT)
            await self.until(lambda: self._moves_within > moves, limit)
        return navigation

    async def with_status(self, navigation: Navigation) -> Navigation:
        """The navigation with the status of its HTTP answer, where the document that is there is the one it made."""
        if navigation.outcome not in (NavigationOutcome.REACHED, NavigationOutcome.LOADING):
            return navigation
        return replace(navigation, http_status=await self.http_status())

    async def http_status(self) -> int:
        """Status of the HTTP answer that made the document; 0 where there is none or the page does not tell in time."""
        document = self.documents.current
        if document is None or not document.uri.startswith("http"):
            return 0
        loader_id, status = self._status
        if loader_id == document.loader_id:
            return status
        if self.dialog is not None:
            return 0
        try:
            value = await self.value_apart(
                "performance.getEntriesByType('navigation')[0]?.responseStatus ?? 0", timeout=_STATUS_TIMEOUT
            )
        except CdpError:
            return 0
        return value if isinstance(value, int) else 0

    async def value_apart(self, expression: str, *, timeout: float) -> object:
        """Value of an expression in the service's own world, whatever scripts of the page have done; raises CdpError.

        In the page's world the same took 3 ms more for 50 pages, since V8 has to be told there to refuse whatever would
        change something.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        world = await self.own_world(timeout=timeout)
        try:
            return await self._value_in(world, expression, timeout=deadline - loop.time())
        except ProtocolError:
            self.forget_world()  # the document was replaced, and its world with it
        world = await self.own_world(timeout=deadline - loop.time())
        return await self._value_in(world, expression, timeout=deadline - loop.time())

    async def _value_in(self, world: int, expression: str, *, timeout: float) -> object:
        params = {"expression": expression, "contextId": world, "returnByValue": True}
        reply = await self.call("Runtime.evaluate", params, timeout=timeout)
        value: object = reply.get("result", {}).get("value")
        return value

    async def own_world(self, *, timeout: float) -> int:
        """Context id of the service's own world in the present main document, asked for once a document.

        Its scripts share the document with those of the page, and nothing else. Raises CdpError.
        """
        document = self.documents.current
        loader_id = document.loader_id if document else ""
        if loader_id and self._world is not None and self._world[0] == loader_id:
            return self._world[1]
        params = {"frameId": self.frame_id, "worldName": _WORLD}
        reply = await self.call("Page.createIsolatedWorld", params, timeout=timeout)
        self._world = (loader_id, int(reply["executionContextId"]))
        return self._world[1]

    def forget_world(self) -> None:
        """Ask for that world anew: a command to it said that it is gone."""
        self._world = None

    async def answer_dialog(self, dialog: OpenedDialog, *, accept: bool) -> None:
        """Answer the open dialog, a prompt with its default text; one that somebody else answered first is no error."""
        answer: dict[str, object] = {"accept": accept}
        if accept and dialog.kind is DialogKind.PROMPT:
            answer["promptText"] = dialog.default_prompt_text
        try:
            await self.call("Page.handleJavaScriptDialog", answer)
        except ProtocolError:
            return

    def hold_up(self, dialog: OpenedDialog) -> None:
        """This dialog stays open after all: what waits for the page goes on without it."""
        self.dialog = dialog
        self._move()

    def _dialog_refusal(self) -> Refused:
        kind = self.dialog.kind.name if self.dialog else ""
        return refuse(
            Reason.DIALOG_OPEN,
            f"The page of {self.tab} asks before it is left; it stays until that is answered.",
            tab=self.tab,
            kind=kind,
        )

    def _failed(self, uri: str, net_error: str) -> Refused:
        refused = refuse(
            Reason.NAVIGATION_FAILED,
            f"The page did not load ({net_error}). Correct the address, or see to the network.",
            uri=uri,
            net_error=net_error,
        )
        return with_outcome(refused, "yes")

    async def until(
        self,
        reached: Callable[[], bool],
        deadline: float,
        *,
        also: asyncio.Future[Any] | None = None,
        stop_at_dialog: bool = False,
    ) -> None:
        """Wait until `reached`, the session ends, or the deadline (loop time) passes; if asked, until a dialog opens.

        `reached` is asked after each commit, milestone and dialog, and when `also` is done.
        """
        loop = asyncio.get_running_loop()
        while not reached() and self.usable and not (stop_at_dialog and self.dialog is not None):
            left = deadline - loop.time()
            if left <= 0:
                return
            waited: set[asyncio.Future[Any]] = {self._moved} if also is None else {self._moved, also}
            await asyncio.wait(waited, timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def _move(self) -> None:
        if not self._moved.done():
            self._moved.set_result(None)
        self._moved = asyncio.get_running_loop().create_future()
        for told in tuple(self._told):
            told()

    def _frame_navigated(self, params: dict[str, Any]) -> None:
        frame = params.get("frame", {})
        if not frame.get("parentId"):
            self._show(frame)
            self._listener.document_changed(self)
            self._move()

    def _show(self, frame: Mapping[str, Any]) -> None:
        """This main frame, as Chrome describes it, is what the page shows now."""
        self.frame_id = str(frame.get("id", self.frame_id))
        self._at_marker = False
        # Of a page that could not be loaded, the address that it stands in for, as the browser shows it.
        shown = frame.get("unreachableUrl") or f"{frame.get('url', '')}{frame.get('urlFragment', '')}"
        uri = cut(str(shown), MAX_ADDRESS_BYTES)
        self.documents = self.documents.committed(str(frame.get("loaderId", "")), uri)

    def _response_received(self, params: dict[str, Any]) -> None:
        if params.get("type") == "Document" and params.get("frameId") == self.frame_id:
            self._status = (str(params.get("loaderId", "")), int(params.get("response", {}).get("status", 0)))

    def _moved_within(self, params: dict[str, Any]) -> None:
        if params.get("frameId") != self.frame_id:
            return
        self.documents = self.documents.moved(cut(str(params.get("url", "")), MAX_ADDRESS_BYTES))
        self._moves_within += 1
        self._listener.document_changed(self)
        self._move()

    def _lifecycle(self, params: dict[str, Any]) -> None:
        if params.get("frameId") != self.frame_id:
            return
        if params.get("name") in _TITLE_EVENTS and not self._at_marker:
            self._listener.title_settled(self)
        self.documents = self.documents.advanced(str(params.get("loaderId", "")), str(params.get("name", "")))
        self._move()

    def _dialog_opening(self, params: dict[str, Any]) -> None:
        dialog = OpenedDialog(
            _DIALOG_KINDS.get(str(params.get("type", "")), DialogKind.ALERT),
            cut(str(params.get("message", ""))),
            cut(str(params.get("defaultPrompt", ""))),
        )
        self.dialog = None if self._listener.dialog_changed(self, dialog) else dialog
        self._move()

    def _dialog_closed(self, _params: dict[str, Any]) -> None:
        self.dialog = None
        self._listener.dialog_changed(self, None)
        self._move()
