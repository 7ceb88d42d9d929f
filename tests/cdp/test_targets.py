import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.errors import CallTimeout, CdpError, ConnectionLost, ProtocolError, TargetGone
from tabmuxd.cdp.targets import TargetInfo, Targets, TargetSession, counts, only_active, paired, target_info

from tests.cdp.browsers import RunningChromium
from tests.cdp.scripted import Peer, scripted_endpoint

LONG = 20.0


class Heard:
    """What the callbacks of `Targets` told, in order, and waiting for it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self._more = asyncio.Event()

    def tell(self, what: str, target_id: str) -> None:
        self.told.append((what, target_id))
        self._more.set()

    async def until(self, what: str, target_id: str) -> None:
        async with asyncio.timeout(LONG):
            while (what, target_id) not in self.told:
                self._more.clear()
                await self._more.wait()


def listening(connection: Connection) -> tuple[Targets, Heard]:
    """The targets of a connection, and what they tell."""
    heard = Heard()
    targets = Targets(
        connection,
        created=lambda info: heard.tell("created", info.target_id),
        changed=lambda info: heard.tell("changed", info.uri),
        destroyed=lambda target_id: heard.tell("destroyed", target_id),
        crashed=lambda target_id: heard.tell("crashed", target_id),
        replaced=lambda target_id, info: heard.tell(f"replaced by {info.target_id}", target_id),
    )
    return targets, heard


def raw(target_id: str, uri: str = "http://a/", kind: str = "page", **more: object) -> dict[str, Any]:
    """A target as Chrome describes it."""
    return {"targetId": target_id, "type": kind, "title": "t", "url": uri, "attached": False, **more}


def info(target_id: str, uri: str = "http://a/", kind: str = "page") -> TargetInfo:
    """The same in our words."""
    return TargetInfo(target_id=target_id, type=kind, title="t", uri=uri, opener_id="", attached=False)


@contextlib.asynccontextmanager
async def scripted_targets() -> AsyncGenerator[tuple[Targets, Heard, Peer], None]:
    """The targets of a scripted endpoint, what they tell, and its far end."""
    async with scripted_endpoint() as endpoint:
        connection = await Connection.open(endpoint.uri, timeout=LONG)
        try:
            peer = await endpoint.peer()
            targets, heard = listening(connection)
            yield targets, heard, peer
        finally:
            await connection.close()


async def answered(peer: Peer, method: str, result: dict[str, Any] | None = None) -> dict[str, object]:
    """Answer the next call of this method; gives its parameters."""
    message = await peer.call(method)
    peer.messages.remove(message)
    peer.reply(message, result)
    parameters: dict[str, object] = message["params"]
    return parameters


@pytest.mark.parametrize(
    ("described", "known", "counted"),
    [
        (info("T"), False, True),
        (info("T", "chrome://newtab/"), False, True),
        (info("T", "devtools://devtools/bundled/inspector.html"), False, False),
        (info("T", "devtools://devtools/bundled/inspector.html"), True, False),
        (info("T", "chrome-extension://x/popup.html"), False, False),
        (info("T", "chrome-extension://x/suspended.html"), True, True),
        (info("T", kind="iframe"), False, False),
        (info("T", kind="browser_ui"), True, False),
    ],
)
def test_counts(described: TargetInfo, *, known: bool, counted: bool) -> None:
    """Only pages count, and neither DevTools' windows nor what an extension opened (CON-10)."""
    assert counts(described, known=known) == counted


def test_target_info() -> None:
    """Titles are as the page has them, and what Chrome leaves out is empty (CON-10)."""
    described = {
        "targetId": "T",
        "type": "page",
        "title": "<b>&",
        "url": "about:blank",
        "openerId": "O",
        "attached": True,
    }
    assert target_info(described) == TargetInfo("T", "page", "<b>&", "about:blank", "O", attached=True)
    assert target_info({"targetId": "T", "type": "page"}) == TargetInfo("T", "page", "", "", "", attached=False)


@pytest.mark.parametrize(
    ("active", "front"),
    [([], None), ([True], "0"), ([False, True], "1"), ([True, True], None), ([False], None), ([None, True], "1")],
)
def test_only_active(active: list[bool | None], front: str | None) -> None:
    """The front is certain where exactly one tab is active."""
    tabs = [
        {"targetId": str(n)} | ({} if value is None else {"embedderData": {"tabActive": value}})
        for n, value in enumerate(active)
    ]
    assert only_active(tabs) == front


def _tab(tab_id: str, title: str) -> dict[str, Any]:
    return {"targetId": tab_id, "type": "tab", "title": title, "url": "http://a/"}


@pytest.mark.parametrize(
    ("tabs", "pages", "known", "pairs"),
    [
        ({"t1": "A", "t2": "B"}, {"p1": "A", "p2": "B"}, {}, {"t1": "p1", "t2": "p2"}),
        ({"t1": "A", "t2": "A"}, {"p1": "A", "p2": "A"}, {}, {}),
        ({"t1": "A", "t2": "A"}, {"p1": "A", "p2": "A"}, {"t1": "p2"}, {"t1": "p2", "t2": "p1"}),
        ({"t1": "A"}, {"p1": "B"}, {"t1": "p1", "t9": "p9"}, {"t1": "p1"}),
        ({"t1": "A"}, {"p2": "A"}, {"t1": "p1"}, {"t1": "p2"}),
    ],
)
def test_paired(tabs: dict[str, str], pages: dict[str, str], known: dict[str, str], pairs: dict[str, str]) -> None:
    """A tab shows the page that alone has its title and address, or that was found to be its before (O-31, O-33)."""
    raw_tabs = [_tab(tab_id, title) for tab_id, title in tabs.items()]
    raw_pages = [raw(page_id) | {"title": title} for page_id, title in pages.items()]
    assert paired(raw_tabs, raw_pages, known) == pairs


async def test_events() -> None:
    """Pages are told of as they come, change, crash and go; what is no page is not (CON-10)."""
    async with scripted_targets() as (targets, heard, peer):
        discovering = asyncio.create_task(targets.discover(timeout=LONG))
        message = await peer.call("Target.setDiscoverTargets")
        for target in (raw("T"), raw("W", kind="worker"), raw("D", "devtools://x"), raw("E", "chrome-extension://x/")):
            peer.event("Target.targetCreated", {"targetInfo": target})
        peer.reply(message)
        await discovering
        assert message["params"] == {"discover": True, "filter": [{"type": "page"}]}
        assert dict(targets.pages) == {"T": info("T")}
        peer.event("Target.targetInfoChanged", {"targetInfo": raw("T")})
        peer.event("Target.targetInfoChanged", {"targetInfo": raw("T", "http://b/")})
        peer.event("Target.targetInfoChanged", {"targetInfo": raw("E", "http://e/")})
        for target_id in ("T", "W", "D"):
            peer.event("Target.targetCrashed", {"targetId": target_id, "status": "crashed", "errorCode": 5})
        for target_id in ("T", "W", "D"):
            peer.event("Target.targetDestroyed", {"targetId": target_id})
        peer.event("Target.targetInfoChanged", {"targetInfo": raw("E", "devtools://x")})
        await heard.until("destroyed", "E")
        assert heard.told == [
            ("created", "T"),
            ("changed", "http://b/"),
            ("created", "E"),
            ("crashed", "T"),
            ("destroyed", "T"),
            ("destroyed", "E"),
        ]
        assert dict(targets.pages) == {}


async def test_close_by_list() -> None:
    """A page that is missing from a fresh list is closed, though no event came; while it is there it is asked again."""
    async with scripted_targets() as (targets, _, peer):
        closing = asyncio.create_task(targets.close("T", timeout=LONG))
        await answered(peer, "Target.closeTarget", {"success": True})
        await answered(peer, "Target.getTargets", {"targetInfos": [raw("T")]})
        await answered(peer, "Target.closeTarget", {"success": True})
        # Then it is left alone for a while: one that hangs would never close if it was asked at each look.
        await answered(peer, "Target.getTargets", {"targetInfos": [raw("T")]})
        await answered(peer, "Target.getTargets", {"targetInfos": []})
        await closing


async def test_close_by_event() -> None:
    """A page that was seen destroyed is closed; nothing more is asked (O-36)."""
    async with scripted_targets() as (targets, _, peer):
        closing = asyncio.create_task(targets.close("T", timeout=LONG))
        await answered(peer, "Target.closeTarget", {"success": True})
        peer.event("Target.targetDestroyed", {"targetId": "T"})
        await closing
        assert peer.messages == []


async def test_close_that_does_not_happen() -> None:
    """A page that stays is not called closed: that ends by its time, as a call that was handed over."""
    async with scripted_targets() as (targets, _, peer):
        closing = asyncio.create_task(targets.close("T", timeout=0.3))
        await answered(peer, "Target.closeTarget", {"success": True})
        with pytest.raises(CallTimeout) as caught:
            await closing
        assert vars(caught.value) == {"method": "Target.closeTarget", "handed_over": True}


async def test_close_cut_off() -> None:
    """When the connection ends before the page is seen closed, it may be closed or not."""
    async with scripted_targets() as (targets, _, peer):
        closing = asyncio.create_task(targets.close("T", timeout=LONG))
        await answered(peer, "Target.closeTarget", {"success": True})
        peer.goodbye(1001)
        with pytest.raises(ConnectionLost) as caught:
            await closing
        assert (caught.value.method, caught.value.handed_over) == ("Target.closeTarget", True)


async def test_close_cut_off_when_asked_again() -> None:
    """A connection that ends while a close is asked for again leaves it open whether the first one was carried out."""
    async with scripted_targets() as (targets, _, peer):
        closing = asyncio.create_task(targets.close("T", timeout=LONG))
        await answered(peer, "Target.closeTarget", {"success": True})
        await answered(peer, "Target.getTargets", {"targetInfos": [raw("T")]})
        await peer.call("Target.closeTarget")
        peer.goodbye(1001)
        with pytest.raises(ConnectionLost) as caught:
            await closing
        assert (caught.value.method, caught.value.handed_over) == ("Target.closeTarget", True)


async def test_close_refused() -> None:
    """A page that Chrome will not close, and that is still there, is told with Chrome's words."""
    async with scripted_targets() as (targets, _, peer):
        closing = asyncio.create_task(targets.close("T", timeout=LONG))
        message = await peer.call("Target.closeTarget")
        peer.say({"id": message["id"], "error": {"code": -32000, "message": "Not allowed"}})
        await answered(peer, "Target.getTargets", {"targetInfos": [raw("T")]})
        with pytest.raises(ProtocolError, match="Not allowed"):
            await closing


# Against Chromium.


@pytest.fixture
async def browser(chromium_uri: str) -> AsyncGenerator[tuple[Connection, Targets, Heard], None]:
    """A fresh Chromium without pages, discovered."""
    connection = await Connection.open(chromium_uri, timeout=LONG)
    targets, heard = listening(connection)
    await targets.discover(timeout=LONG)
    yield connection, targets, heard
    await connection.close()


Browser = tuple[Connection, Targets, Heard]


async def opened(targets: Targets, uri: str = "about:blank") -> tuple[str, TargetSession]:
    """A new page and a session on it."""
    target_id = await targets.create(uri, timeout=LONG)
    return target_id, await targets.attach(target_id, timeout=LONG)


async def value(session: TargetSession, expression: str) -> object:
    """What an expression gives in the page."""
    params = {"expression": expression, "returnByValue": True, "awaitPromise": True}
    result = await session.call("Runtime.evaluate", params, timeout=LONG)
    found: object = result["result"]["value"]
    return found


async def refused(task: asyncio.Task[Any]) -> dict[str, object]:
    """How a call ended, as plain values."""
    with pytest.raises(CdpError) as caught:
        await asyncio.wait_for(task, LONG)
    return {"class": type(caught.value).__name__, **vars(caught.value)}


@pytest.mark.chromium
async def test_zero_pages(browser: Browser) -> None:
    """A browser without pages is a valid one (TAB-17), and a page can be opened in it."""
    _, targets, heard = browser
    assert (dict(targets.pages), await targets.fresh(timeout=LONG)) == ({}, {})
    assert await targets.front(may_attach=targets.pages.__contains__, timeout=LONG) is None
    target_id, session = await opened(targets)
    assert await value(session, "1 + 1") == 2
    assert heard.told[0] == ("created", target_id)
    assert list(targets.pages) == list(await targets.fresh(timeout=LONG)) == [target_id]


@pytest.mark.chromium
async def test_crash(browser: Browser) -> None:
    """A crash ends the calls in flight, is told of, and a reload on the same session revives the page (CON-05)."""
    _, targets, heard = browser
    target_id, session = await opened(targets)
    pending = asyncio.create_task(value(session, "new Promise(() => {})"))
    await value(session, "1")
    crash = asyncio.create_task(session.call("Page.crash", timeout=LONG))
    gone = {"class": "TargetGone", "handed_over": True, "crashed": True}
    assert await refused(pending) == gone | {"method": "Runtime.evaluate"}
    assert await refused(crash) == gone | {"method": "Page.crash"}
    await heard.until("crashed", target_id)
    assert (session.detached, target_id in await targets.fresh(timeout=LONG)) == (False, True)
    await session.call("Page.reload", timeout=LONG)
    assert await value(session, "2") == 2


@pytest.mark.chromium
async def test_close_under_a_promise(browser: Browser) -> None:
    """A script that waits for ever ends when its page is closed; the close is seen (CON-06, O-36)."""
    connection, targets, heard = browser
    target_id, session = await opened(targets)
    pending = asyncio.create_task(value(session, "new Promise(() => {})"))
    await value(session, "1")
    await targets.close(target_id, timeout=LONG)
    assert await refused(pending) == {
        "class": "TargetGone",
        "method": "Runtime.evaluate",
        "handed_over": True,
        "crashed": False,
    }
    assert heard.told[-1] == ("destroyed", target_id)
    assert (session.detached, dict(targets.pages), await targets.fresh(timeout=LONG)) == (True, {}, {})
    assert (connection.statistics().pending_calls, connection.statistics().sessions) == (0, 0)


@pytest.mark.chromium
async def test_no_such_target(browser: Browser) -> None:
    """What is not there is closed already, and can be neither attached nor activated."""
    _, targets, _ = browser
    await targets.close("nothing", timeout=LONG)
    with pytest.raises(TargetGone):
        await targets.attach("nothing", timeout=LONG)
    with pytest.raises(TargetGone):
        await targets.activate("nothing", timeout=LONG)


@pytest.mark.chromium
async def test_detach(browser: Browser) -> None:
    """A session can be ended, also twice and after its page, and another of the same page goes on."""
    connection, targets, _ = browser
    target_id, session = await opened(targets)
    other = await targets.attach(target_id, timeout=LONG)
    await session.detach()
    await session.detach()
    assert (session.detached, other.detached) == (True, False)
    with pytest.raises(TargetGone):
        await session.call("Runtime.evaluate", {"expression": "1"}, timeout=LONG)
    assert await value(other, "3") == 3
    await targets.close(target_id, timeout=LONG)
    await other.detach()
    assert connection.statistics().sessions == 0


@pytest.mark.chromium
async def test_large_reply(browser: Browser) -> None:
    """A reply of 4 MiB comes whole, and a call of 4 MiB is taken (CON-08)."""
    _, targets, _ = browser
    _, session = await opened(targets)
    size = 4 * 1024 * 1024
    assert await value(session, f"'x'.repeat({size})") == "x" * size
    assert await value(session, f"'{'é' * size}'.length") == size


@pytest.mark.chromium
async def test_busy_page(browser: Browser) -> None:
    """A page that is busy for ever hinders nothing that is asked of the browser (CON-04)."""
    _, targets, _ = browser
    busy_id, busy = await opened(targets)
    loop = asyncio.create_task(busy.call("Runtime.evaluate", {"expression": "while (true) {}"}, timeout=1))
    await targets.fresh(timeout=LONG)
    _, session = await opened(targets)
    assert await value(session, "4") == 4
    again = await targets.attach(busy_id, timeout=LONG)
    await again.detach()
    assert await refused(loop) == {"class": "CallTimeout", "method": "Runtime.evaluate", "handed_over": True}
    await targets.close(busy_id, timeout=LONG)


@pytest.mark.chromium
async def test_front(browser: Browser) -> None:
    """The page in front is the one that was activated; with two windows none is certain."""
    connection, targets, _ = browser
    first = await targets.create("about:blank", timeout=LONG)
    second = await targets.create("about:blank", timeout=LONG)
    fronts = [await targets.front(may_attach=targets.pages.__contains__, timeout=LONG)]
    for target_id in (second, first, second):
        await targets.activate(target_id, timeout=LONG)
        fronts.append(await targets.front(may_attach=targets.pages.__contains__, timeout=LONG))
    assert fronts == [first, second, first, second]
    uncertain = await targets.front(may_attach=lambda _: False, timeout=LONG)
    assert uncertain == second  # both are known by now
    third = await targets.create("about:blank", timeout=LONG)
    await targets.activate(third, timeout=LONG)
    assert await targets.front(may_attach=lambda _: False, timeout=LONG) == third  # the only one left
    await targets.close(third, timeout=LONG)
    await targets.close(second, timeout=LONG)
    assert await targets.front(may_attach=targets.pages.__contains__, timeout=LONG) == first
    await targets.create("about:blank", new_window=True, timeout=LONG)
    assert await targets.front(may_attach=targets.pages.__contains__, timeout=LONG) is None
    assert connection.statistics().sessions == 0


@pytest.mark.chromium
async def test_popup(browser: Browser) -> None:
    """A page opened by a page names its opener."""
    _, targets, heard = browser
    opener_id, session = await opened(targets)
    params = {"expression": "void window.open('about:blank#popup')", "userGesture": True}
    await session.call("Runtime.evaluate", params, timeout=LONG)
    popups = [page for page in (await targets.fresh(timeout=LONG)).values() if page.target_id != opener_id]
    assert [page.opener_id for page in popups] == [opener_id]
    await heard.until("created", popups[0].target_id)


@pytest.mark.chromium
async def test_devtools_window(browser: Browser) -> None:
    """DevTools' own windows are pages to Chrome, but not to us (CON-10)."""
    connection, targets, heard = browser
    params = {"url": "devtools://devtools/bundled/inspector.html", "background": True}
    await connection.call("Target.createTarget", params, timeout=LONG)
    assert (await targets.fresh(timeout=LONG), dict(targets.pages), heard.told) == ({}, {}, [])


@pytest.mark.chromium
@pytest.mark.slow
async def test_stopped_browser(chromium: RunningChromium) -> None:
    """A browser that stands still for 6 s keeps its connection, and answers what was asked meanwhile (CON-03)."""
    connection = await Connection.open(chromium.uri, timeout=LONG, ping_interval=1)
    targets, heard = listening(connection)
    await targets.discover(timeout=LONG)
    target_id, session = await opened(targets)
    os.kill(chromium.pid, signal.SIGSTOP)
    try:
        with pytest.raises(CallTimeout):
            await connection.call("Browser.getVersion", timeout=6)
        version = asyncio.create_task(connection.call("Browser.getVersion", timeout=LONG))
    finally:
        os.kill(chromium.pid, signal.SIGCONT)
    assert "product" in await version
    assert await value(session, "5") == 5
    assert (connection.closed, heard.told[0], connection.statistics().late_replies) == (
        False,
        ("created", target_id),
        1,
    )
    await connection.close()


@pytest.mark.chromium
async def test_browser_ends(browser: Browser) -> None:
    """When the browser ends, the connection does, with all its calls and sessions."""
    connection, targets, _ = browser
    _, session = await opened(targets)
    pending = asyncio.create_task(value(session, "new Promise(() => {})"))
    await value(session, "1")
    with contextlib.suppress(ConnectionLost):
        await connection.call("Browser.close", timeout=LONG)
    outcome = await refused(pending)
    assert outcome["class"] in {"ConnectionLost", "TargetGone"}
    await asyncio.wait_for(connection.wait_closed(), LONG)
    assert (session.detached, connection.closed) == (True, True)


async def discovered(targets: Targets, peer: Peer, *described: dict[str, Any]) -> None:
    """Have these pages listed as being there already."""
    discovering = asyncio.create_task(targets.discover(timeout=LONG))
    message = await peer.call("Target.setDiscoverTargets")
    for each in described:
        peer.event("Target.targetCreated", {"targetInfo": each})
    peer.reply(message)
    await discovering


_OLD = raw("old", attached=True)


@pytest.mark.parametrize(
    ("burst", "told"),
    [
        ([raw("new")], "replaced by new"),
        ([raw("new"), raw("other", "http://b/")], "replaced by new"),
        ([], "destroyed"),
        ([raw("new"), raw("twin")], "destroyed"),
        ([raw("new", title="")], "destroyed"),
        ([raw("new", title="another")], "destroyed"),
        ([raw("new", "http://b/")], "destroyed"),
        ([raw("new", openerId="old")], "destroyed"),
        ([raw("new", attached=True)], "destroyed"),
    ],
)
async def test_discarded(burst: list[dict[str, Any]], told: str) -> None:
    """A page that is gone was replaced only where one that showed the same at once was created with it (O-114)."""
    async with scripted_targets() as (targets, heard, peer):
        await discovered(targets, peer, _OLD)
        for described in burst:
            peer.event("Target.targetCreated", {"targetInfo": described})
        peer.event("Target.targetDestroyed", {"targetId": "old"})
        await heard.until(told, "old")
        assert [each for each in heard.told if each[1] == "old"] == [("created", "old"), (told, "old")]
        assert set(targets.pages) == {described["targetId"] for described in burst}


async def test_no_discard() -> None:
    """A page that was there at the connect, or that is gone itself, took the place of none (O-114)."""
    async with scripted_targets() as (targets, heard, peer):
        await discovered(targets, peer, raw("old"), raw("foreign"))
        peer.event("Target.targetDestroyed", {"targetId": "old"})
        peer.event("Target.targetCreated", {"targetInfo": raw("new", "http://b/")})
        peer.event("Target.targetDestroyed", {"targetId": "new"})
        await heard.until("destroyed", "new")
        assert heard.told[2:] == [("destroyed", "old"), ("created", "new"), ("destroyed", "new")]
        assert set(targets.pages) == {"foreign"}
