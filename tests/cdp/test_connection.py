import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs
from tabmuxd.cdp import browser_socket
from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.errors import (
    CallTimeout,
    CdpError,
    ConnectionBusy,
    ConnectionLost,
    HandshakeRefused,
    ProtocolError,
)

from tests.cdp.browsers import http, listener
from tests.cdp.scripted import Peer, ScriptedEndpoint, scripted_endpoint

LONG = 20.0
# More than the socket buffers of both ends hold together.
MUCH = {"text": "x" * 16_000_000}


@pytest.fixture
async def endpoint() -> AsyncGenerator[ScriptedEndpoint, None]:
    """A scripted endpoint; afterwards no thread of a connection is left."""
    async with scripted_endpoint() as scripted:
        yield scripted
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("cdp-")] == []


@contextlib.asynccontextmanager
async def connected(endpoint: ScriptedEndpoint, **options: float) -> AsyncGenerator[tuple[Connection, Peer], None]:
    """A connection and its far end."""
    connection = await Connection.open(endpoint.uri, timeout=LONG, **options)
    try:
        yield connection, await endpoint.peer()
    finally:
        await connection.close()


def started(call: Coroutine[Any, Any, dict[str, Any]]) -> asyncio.Task[dict[str, Any]]:
    """The call, in flight."""
    return asyncio.create_task(call)


async def refusal(call: asyncio.Task[dict[str, Any]]) -> dict[str, object]:
    """How the call ended, as plain values."""
    with pytest.raises(CdpError) as caught:
        await asyncio.wait_for(call, LONG)
    return {"class": type(caught.value).__name__, **vars(caught.value)}


def lost(method: str, reason: str, *, handed_over: bool) -> dict[str, object]:
    """A call lost with its connection."""
    return {"class": "ConnectionLost", "method": method, "handed_over": handed_over, "reason": reason}


def gone(method: str, *, handed_over: bool = True, crashed: bool = False) -> dict[str, object]:
    """A call whose target is gone."""
    return {"class": "TargetGone", "method": method, "handed_over": handed_over, "crashed": crashed}


def timed_out(method: str, *, handed_over: bool) -> dict[str, object]:
    """A call without an answer in time."""
    return {"class": "CallTimeout", "method": method, "handed_over": handed_over}


async def synchronised(connection: Connection, peer: Peer) -> None:
    """Wait until all that the peer said before this has been taken in."""
    call = started(connection.call("Sync.now", timeout=LONG))
    message = await peer.call("Sync.now")
    peer.messages.remove(message)
    peer.reply(message)
    await call


async def test_call(endpoint: ScriptedEndpoint) -> None:
    """A call gets the result of its own id, in its own session."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        await synchronised(connection, peer)
        first = started(connection.call("A.one", {"x": 1}, timeout=LONG))
        second = started(connection.call("A.two", session_id="S", timeout=LONG))
        calls = await peer.calls(2)
        assert [{**call, "id": 0} for call in calls] == [
            {"id": 0, "method": "A.one", "params": {"x": 1}},
            {"id": 0, "method": "A.two", "params": {}, "sessionId": "S"},
        ]
        peer.reply(calls[1], {"answer": 2})
        peer.reply(calls[0], {"answer": 1})
        assert list(await asyncio.gather(first, second)) == [{"answer": 1}, {"answer": 2}]


async def test_refused(endpoint: ScriptedEndpoint) -> None:
    """What Chrome refuses is told with its code and words."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        message = await peer.call("A.one")
        peer.say({"id": message["id"], "error": {"code": -32000, "message": "no", "data": "more"}})
        with pytest.raises(ProtocolError, match="no") as caught:
            await call
        assert vars(caught.value) == {"method": "A.one", "code": -32000, "message": "no", "data": "more"}


async def test_handshake(endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Origin header is sent, and no proxy of the environment is used (CON-15)."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    async with connected(endpoint) as (_, peer):
        assert b"origin" not in peer.handshake.lower()


async def test_goodbye(endpoint: ScriptedEndpoint) -> None:
    """A close frame ends every call in flight at once, and each later one."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        await peer.call("A.one")
        peer.goodbye(1009)
        reason = "the browser said goodbye (1009)"
        assert await refusal(call) == lost("A.one", reason, handed_over=True)
        assert await connection.wait_closed() == reason
        assert connection.closed
        later = started(connection.call("A.two", timeout=LONG))
        assert await refusal(later) == lost("A.two", reason, handed_over=False)


async def test_reset(endpoint: ScriptedEndpoint) -> None:
    """A reset of the socket ends every call in flight at once (CON-02)."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        await peer.call("A.one")
        peer.reset()
        assert (await refusal(call))["class"] == "ConnectionLost"
        assert "the connection broke" in await connection.wait_closed()


async def test_end(endpoint: ScriptedEndpoint) -> None:
    """An end of the socket without a word ends every call in flight at once."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        await peer.call("A.one")
        peer.end()
        assert await refusal(call) == lost("A.one", "the browser closed the connection", handed_over=True)


async def test_replies_before_the_end(endpoint: ScriptedEndpoint) -> None:
    """What arrived before the socket ended still counts."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        peer.reply(await peer.call("A.one"), {"x": 1})
        peer.goodbye(1000)
        assert await call == {"x": 1}
        await connection.wait_closed()


async def test_silence(endpoint: ScriptedEndpoint) -> None:
    """A peer that answers no ping is given up; its calls were handed over (CON-02)."""
    async with connected(endpoint, ping_interval=0.05, ping_timeout=0.3) as (connection, peer):
        peer.silent = True
        call = started(connection.call("A.one", timeout=LONG))
        assert await refusal(call) == lost("A.one", "no sign of life for 0.3 s", handed_over=True)


async def test_pings(endpoint: ScriptedEndpoint) -> None:
    """A peer that answers pings is kept, however little it says."""
    async with connected(endpoint, ping_interval=0.01, ping_timeout=LONG) as (connection, peer):
        await peer.pinged(5)
        await synchronised(connection, peer)


async def test_pinged(endpoint: ScriptedEndpoint) -> None:
    """A ping of the peer is answered with what it held."""
    async with connected(endpoint) as (_, peer):
        peer.ping(b"tick")
        assert await peer.ponged() == [b"tick"]


@pytest.mark.parametrize("data", [b"garbage", b"", b"[1]", b"null", b"{}", b'{"id":[]}', b'{"result":{}}', b"\xff"])
async def test_bad_frame(endpoint: ScriptedEndpoint, data: bytes) -> None:
    """A frame that makes no sense is dropped and counted, and the connection survives it."""
    async with connected(endpoint) as (connection, peer):
        peer.frame(data)
        await synchronised(connection, peer)
        assert connection.statistics().bad_frames == 1


async def test_broken_framing(endpoint: ScriptedEndpoint) -> None:
    """Bytes that are no frame end the connection, with a reason."""
    async with connected(endpoint) as (connection, peer):
        peer.octets(b"\xf1\x02ab")
        assert "the connection broke" in await connection.wait_closed()


async def test_fragments(endpoint: ScriptedEndpoint) -> None:
    """A message in several frames is one message, with a ping between them too."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        message = await peer.call("A.one")
        peer.frame(b'{"id":%d,' % message["id"], last=False)
        peer.ping(b"between")
        peer.frame(b'"result":', 0, last=False)
        peer.frame(b'{"x":1}}', 0)
        assert await call == {"x": 1}


async def test_late_reply(endpoint: ScriptedEndpoint) -> None:
    """A reply after its call's deadline is dropped and counted; nothing is left of the call."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=2))
        message = await peer.call("A.one")
        assert await refusal(call) == timed_out("A.one", handed_over=True)
        peer.reply(message)
        await synchronised(connection, peer)
        statistics = connection.statistics()
        assert (statistics.late_replies, statistics.pending_calls, statistics.unsent_calls) == (1, 0, 0)


async def test_no_time(endpoint: ScriptedEndpoint) -> None:
    """A call whose time is over before it begins is not sent."""
    async with connected(endpoint) as (connection, peer):
        assert await refusal(started(connection.call("A.one", timeout=0))) == timed_out("A.one", handed_over=False)
        await synchronised(connection, peer)
        assert peer.messages == []


async def test_many_at_once(endpoint: ScriptedEndpoint) -> None:
    """200 calls in flight get their own results, in whatever order they are answered."""
    async with connected(endpoint) as (connection, peer):
        calls = [started(connection.call("A.one", {"n": n}, timeout=LONG)) for n in range(200)]
        for message in reversed(await peer.calls(200)):
            peer.reply(message, message["params"])
        assert await asyncio.gather(*calls) == [{"n": n} for n in range(200)]


async def test_nothing_left(endpoint: ScriptedEndpoint) -> None:
    """10,000 calls that are never answered leave nothing behind (CON-06)."""
    async with connected(endpoint) as (connection, peer):
        for _ in range(10):
            calls = [started(connection.call("A.one", timeout=0.01 if n % 2 else LONG)) for n in range(1000)]
            await asyncio.wait(calls[1::2])
            for call in calls[::2]:
                call.cancel()
            await asyncio.wait(calls)
        await synchronised(connection, peer)
        statistics = connection.statistics()
        assert (statistics.pending_calls, statistics.unsent_calls) == (0, 0)


async def test_peer_that_does_not_read(endpoint: ScriptedEndpoint) -> None:
    """While Chrome does not read, the loop goes on and deadlines hold; what was not sent then never is (CON-03)."""
    async with connected(endpoint) as (connection, peer):
        await peer.deaf()
        much = started(connection.call("A.much", MUCH, timeout=LONG))
        ends = await asyncio.gather(
            *(refusal(started(connection.call(f"A.late{n}", timeout=2))) for n in range(20)),
        )
        assert ends == [timed_out(f"A.late{n}", handed_over=False) for n in range(20)]
        assert connection.statistics().pending_calls == 1
        peer.hear()
        peer.reply(await peer.call("A.much"))
        await much
        await synchronised(connection, peer)
        assert [message["method"] for message in peer.messages] == ["A.much"]


async def test_partly_sent(endpoint: ScriptedEndpoint) -> None:
    """A call of which a part was sent counts as handed over, and is completed for the sake of those that follow."""
    async with connected(endpoint) as (connection, peer):
        await peer.deaf()
        call = started(connection.call("A.much", MUCH, timeout=3))
        assert await refusal(call) == timed_out("A.much", handed_over=True)
        peer.hear()
        await synchronised(connection, peer)
        assert [message["method"] for message in peer.messages] == ["A.much"]


async def test_silent_while_it_does_not_read(endpoint: ScriptedEndpoint) -> None:
    """A peer that reads nothing and says nothing is given up; each call tells whether it was handed over."""
    async with connected(endpoint, ping_timeout=2) as (connection, peer):
        await peer.deaf()
        much = started(connection.call("A.much", MUCH, timeout=LONG))
        small = started(connection.call("A.small", timeout=LONG))
        assert await refusal(much) == lost("A.much", "no sign of life for 2 s", handed_over=True)
        assert await refusal(small) == lost("A.small", "no sign of life for 2 s", handed_over=False)
        statistics = connection.statistics()
        assert (statistics.pending_calls, statistics.unsent_calls) == (0, 0)


async def test_cancelled_before_it_is_sent(endpoint: ScriptedEndpoint) -> None:
    """A call cancelled while it waits to be sent is not sent."""
    async with connected(endpoint) as (connection, peer):
        await peer.deaf()
        much = started(connection.call("A.much", MUCH, timeout=LONG))
        small = started(connection.call("A.small", timeout=LONG))
        await asyncio.sleep(0)
        assert connection.statistics().pending_calls == 2
        small.cancel()
        await asyncio.wait([small])
        assert connection.statistics().pending_calls == 1
        peer.hear()
        peer.reply(await peer.call("A.much"))
        await much
        await synchronised(connection, peer)
        assert [message["method"] for message in peer.messages] == ["A.much"]


async def test_busy(endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of unsent calls is bounded; beyond it a call is refused, and there is room again once some have gone."""
    monkeypatch.setattr(browser_socket, "MOST_UNSENT", 3)
    async with connected(endpoint) as (connection, peer):
        await peer.deaf()
        much = started(connection.call("A.much", MUCH, timeout=3))
        await asyncio.wait([much])
        waiting = [started(connection.call("A.small", timeout=LONG)) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(ConnectionBusy):
            await connection.call("A.more", timeout=LONG)
        waiting[0].cancel()
        await asyncio.wait([waiting[0]])
        again = started(connection.call("A.again", timeout=LONG))
        peer.hear()
        peer.reply(await peer.call("A.again"))
        await again
        assert [message["method"] for message in peer.messages] == ["A.much", "A.small", "A.small", "A.again"]
        for call in waiting:
            call.cancel()
        await asyncio.wait(waiting)


async def test_unsendable(endpoint: ScriptedEndpoint) -> None:
    """What JSON has no form for is the caller's error, and leaves nothing behind."""
    async with connected(endpoint) as (connection, _):
        with pytest.raises(TypeError):
            await connection.call("A.one", {"x": object()}, timeout=LONG)
        assert connection.statistics().pending_calls == 0


async def test_detached_in_flight(endpoint: ScriptedEndpoint) -> None:
    """When a session ends, its calls end at once, later ones too, and those of others go on (CON-06)."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        peer.attached("other", "T")
        await synchronised(connection, peer)
        call = started(connection.call("A.one", session_id="S", timeout=LONG))
        other = started(connection.call("A.other", session_id="other", timeout=LONG))
        await peer.calls(2)
        peer.detached("S")
        assert await refusal(call) == gone("A.one")
        assert (connection.attached("S"), connection.attached("other")) == (False, True)
        later = started(connection.call("A.later", session_id="S", timeout=LONG))
        assert await refusal(later) == gone("A.later", handed_over=False)
        peer.reply(await peer.call("A.other"))
        assert await other == {}


async def test_session_of_a_session(endpoint: ScriptedEndpoint) -> None:
    """A session ends with the one it was attached through, of which alone Chrome tells."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        peer.attached("child", "T2", "S")
        await synchronised(connection, peer)
        call = started(connection.call("A.one", session_id="child", timeout=LONG))
        await peer.call("A.one")
        peer.detached("S")
        assert await refusal(call) == gone("A.one")
        assert connection.statistics().sessions == 0


@pytest.mark.parametrize("told_by", ["session", "browser"])
async def test_crashed_in_flight(endpoint: ScriptedEndpoint, told_by: str) -> None:
    """When a renderer crashes, calls in its sessions end at once; the sessions stay, and a reload is answered."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        peer.attached("other", "T2")
        await synchronised(connection, peer)
        call = started(connection.call("A.one", session_id="S", timeout=LONG))
        other = started(connection.call("A.other", session_id="other", timeout=LONG))
        await peer.calls(2)
        if told_by == "session":
            peer.event("Inspector.targetCrashed", session_id="S")
        else:
            peer.event("Target.targetCrashed", {"targetId": "T", "status": "crashed", "errorCode": 5})
        assert await refusal(call) == gone("A.one", crashed=True)
        reload = started(connection.call("Page.reload", session_id="S", timeout=LONG))
        peer.reply(await peer.call("Page.reload"))
        peer.reply(await peer.call("A.other"))
        assert list(await asyncio.gather(reload, other)) == [{}, {}]


async def test_unknown_session(endpoint: ScriptedEndpoint) -> None:
    """A session of which Chrome knows nothing is a target that is gone, and nothing was done."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        await synchronised(connection, peer)
        call = started(connection.call("A.one", session_id="S", timeout=LONG))
        message = await peer.call("A.one")
        peer.say({"id": message["id"], "error": {"code": -32001, "message": "Session with given id not found."}})
        assert await refusal(call) == gone("A.one", handed_over=False)


async def test_abandoned_attach(endpoint: ScriptedEndpoint) -> None:
    """A session that was attached after its caller had left is detached again (CON-09)."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("Target.attachToTarget", {"targetId": "T"}, timeout=LONG))
        message = await peer.call("Target.attachToTarget")
        call.cancel()
        await asyncio.wait([call])
        peer.attached("S", "T")
        peer.reply(message, {"sessionId": "S"})
        assert (await peer.call("Target.detachFromTarget"))["params"] == {"sessionId": "S"}


async def test_events(endpoint: ScriptedEndpoint) -> None:
    """Events reach those who listen to their session and method, in order, until they stop; others are counted."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        await synchronised(connection, peer)
        seen: list[object] = []
        stop = connection.on("A.happened", lambda params: seen.append(("S", params)), session_id="S")
        connection.on("A.happened", lambda params: seen.append(("browser", params)))
        peer.event("A.happened", {"n": 1}, "S")
        peer.event("A.happened", {"n": 2})
        peer.event("A.unread", {"n": 3}, "S")
        peer.event("A.happened", {"n": 4}, "S")
        await synchronised(connection, peer)
        stop()
        stop()
        peer.event("A.happened", {"n": 5}, "S")
        await synchronised(connection, peer)
        assert seen == [("S", {"n": 1}), ("browser", {"n": 2}), ("S", {"n": 4})]
        statistics = connection.statistics()
        assert (statistics.received_events, statistics.unread_events) == (6, 3)


async def test_last_event(endpoint: ScriptedEndpoint) -> None:
    """The end of a session is the last that its handlers see."""
    async with connected(endpoint) as (connection, peer):
        peer.attached("S", "T")
        await synchronised(connection, peer)
        seen: list[object] = []
        connection.on("Target.detachedFromTarget", seen.append, session_id="S")
        connection.on("A.happened", seen.append, session_id="S")
        peer.detached("S")
        peer.event("A.happened", {}, "S")
        await synchronised(connection, peer)
        connection.on("A.happened", seen.append, session_id="S")
        peer.event("A.happened", {}, "S")
        await synchronised(connection, peer)
        assert seen == [{"sessionId": "S"}]


async def test_handler_that_raises(endpoint: ScriptedEndpoint) -> None:
    """A handler that raises is logged without what the event held, and hinders no other."""

    def failing(params: dict[str, Any]) -> None:
        raise KeyError(params["secret"])

    async with connected(endpoint) as (connection, peer):
        seen: list[object] = []
        connection.on("A.happened", failing)
        connection.on("A.happened", seen.append)
        with capture_logs() as logs:
            peer.event("A.happened", {"secret": "a prompt"})
            await synchronised(connection, peer)
        assert seen == [{"secret": "a prompt"}]
        assert [(log["event"], log["method"], log["error"]) for log in logs] == [
            ("cdp_handler_failed", "A.happened", "KeyError")
        ]
        assert "a prompt" not in str(logs)
        assert connection.statistics().handler_failures == 1


async def test_flood(endpoint: ScriptedEndpoint) -> None:
    """A flood of events arrives whole and in order, and calls are answered within it (CON-09)."""
    async with connected(endpoint) as (connection, peer):
        seen: list[int] = []
        connection.on("A.happened", lambda params: seen.append(params["n"]))
        for n in range(5000):
            peer.event("A.happened", {"n": n})
        await synchronised(connection, peer)
        assert seen == list(range(5000))


async def test_busy_loop(endpoint: ScriptedEndpoint) -> None:
    """While the loop is busy, no more is read than there is room for; nothing of it is lost afterwards."""
    async with connected(endpoint) as (connection, peer):
        seen: list[int] = []
        held: list[int] = []

        def first(_: dict[str, Any]) -> None:
            threading.Event().wait(1)  # the loop is busy: nothing else runs on it
            held.append(len(connection._received))

        connection.on("A.first", first)
        connection.on("A.happened", lambda params: seen.append(params["n"]))
        peer.event("A.first")
        for n in range(3000):
            peer.event("A.happened", {"n": n})
        await synchronised(connection, peer)
        assert seen == list(range(3000))
        assert held[0] <= 1000


async def test_close(endpoint: ScriptedEndpoint) -> None:
    """Closing ends the calls in flight and both threads, and may be repeated."""
    async with connected(endpoint) as (connection, peer):
        call = started(connection.call("A.one", timeout=LONG))
        await peer.call("A.one")
        await asyncio.gather(connection.close(), connection.close())
        assert await refusal(call) == lost("A.one", "closed on this side", handed_over=True)
        assert [thread.name for thread in threading.enumerate() if thread.name.startswith("cdp-")] == []
        assert connection.statistics().pending_calls == 0
        await connection.close()


async def test_close_while_blocked(endpoint: ScriptedEndpoint) -> None:
    """Closing needs nothing of a peer that does not read."""
    async with connected(endpoint) as (connection, peer):
        await peer.deaf()
        call = started(connection.call("A.much", MUCH, timeout=3))
        await asyncio.wait([call])
        await connection.close()
        assert connection.closed


async def test_nothing_listens() -> None:
    """Where nothing listens, connecting says so."""
    async with listener(None) as port:
        pass
    with pytest.raises(ConnectionLost, match="cannot connect"):
        await Connection.open(f"ws://127.0.0.1:{port}/devtools/browser/x")


async def test_wrong_address() -> None:
    """What is no address of a socket is refused."""
    with pytest.raises(ConnectionLost, match="not of the form"):
        await Connection.open("http://127.0.0.1/")


async def test_handshake_refused() -> None:
    """An answer of another HTTP status is told with it: this browser is not there any more (CON-01)."""
    async with listener(http("404 Not Found", "")) as port:
        with pytest.raises(HandshakeRefused) as caught:
            await Connection.open(f"ws://127.0.0.1:{port}/devtools/browser/x", timeout=LONG)
    assert caught.value.status == 404


async def test_no_handshake() -> None:
    """What accepts and never answers is given up in time (CON-14)."""
    async with listener(None) as port:
        with pytest.raises(ConnectionLost, match=r"no handshake|timed out"):
            await Connection.open(f"ws://127.0.0.1:{port}/devtools/browser/x", timeout=0.3)


async def test_open_cancelled() -> None:
    """A cancelled attempt to connect ends its thread."""
    async with listener(None) as port:
        opening = asyncio.create_task(Connection.open(f"ws://127.0.0.1:{port}/devtools/browser/x", timeout=0.5))
        await asyncio.sleep(0)
        opening.cancel()
        await asyncio.wait([opening])
        reading = [thread for thread in threading.enumerate() if thread.name == "cdp-read"]
        for thread in reading:
            await asyncio.get_running_loop().run_in_executor(None, thread.join)
    assert opening.cancelled()


async def test_unanswered_call(endpoint: ScriptedEndpoint) -> None:
    """A call without an answer hinders no other (CON-04)."""
    async with connected(endpoint) as (connection, peer):
        with pytest.raises(CallTimeout):
            await connection.call("A.one", timeout=0.1)
        await synchronised(connection, peer)
        assert not connection.closed
