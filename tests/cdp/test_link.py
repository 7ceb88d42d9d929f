import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.endpoint import EndpointError, Located, locate
from tabmuxd.cdp.errors import ConnectionLost
from tabmuxd.cdp.launcher import EndRefused, LaunchOptions
from tabmuxd.cdp.link import AttachedSource, Backoff, BrowserIdentity, BrowserLink, BrowserSource, LaunchedSource
from tabmuxd.cdp.processes import read_facts

from tests.cdp.browsers import (
    EXECUTABLE,
    Proxy,
    RunningChromium,
    fresh_profile,
    group_members,
    running_chromium,
    until,
)
from tests.cdp.scripted import Peer, ScriptedEndpoint, scripted_endpoint

Told = tuple[str, BrowserIdentity | str]


class Listener:
    """What a link tells, in order; `up` raises what was put in `failures` first."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[Told] = asyncio.Queue()
        self.failures: list[Exception] = []

    async def up(self, connection: Connection, identity: BrowserIdentity) -> None:
        assert connection.closed is False
        if self.failures:
            raise self.failures.pop(0)
        self.told.put_nowait(("up", identity))

    async def down(self, reason: str) -> None:
        self.told.put_nowait(("down", reason))

    async def identity(self) -> BrowserIdentity:
        """The browser that is told of next, which must be told of now."""
        what, identity = await asyncio.wait_for(self.told.get(), 20)
        assert what == "up"
        assert isinstance(identity, BrowserIdentity)
        return identity

    async def reason(self) -> str:
        """Why the connection ended, which must be told now."""
        what, reason = await asyncio.wait_for(self.told.get(), 20)
        assert what == "down"
        assert isinstance(reason, str)
        return reason


@contextlib.asynccontextmanager
async def linked(source: BrowserSource, listener: Listener) -> AsyncGenerator[BrowserLink, None]:
    """A link that runs; what was launched is ended with it."""
    link = BrowserLink(source, up=listener.up, down=listener.down)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(link.run())
        try:
            yield link
        finally:
            await link.stop(end_browser=True)


def launched_source(profile: Path) -> LaunchedSource:
    """A source that launches the Chromium of these tests."""
    return LaunchedSource(LaunchOptions(profile, Path(EXECUTABLE or "chromium")))


def identity_of(chromium: RunningChromium) -> BrowserIdentity:
    """What a link tells of a browser, but for its version."""
    return BrowserIdentity(chromium.process_key, "", chromium.host_port, headless=True)


@pytest.mark.chromium
async def test_socket_reset(chromium: RunningChromium) -> None:
    """CON-02, O-115: after the socket was cut while Chrome lives, the same process is told of again."""
    listener, proxy = Listener(), Proxy(chromium.port)
    async with proxy.running(), linked(AttachedSource(f"http://127.0.0.1:{proxy.port}"), listener) as link:
        first = await listener.identity()
        assert first.product.startswith("Chrome/")
        assert replace(first, product="") == replace(identity_of(chromium), host_port=f"127.0.0.1:{proxy.port}")
        proxy.cut()
        await listener.reason()
        assert await listener.identity() == first
        assert link.connection is not None


@pytest.mark.chromium
async def test_launched_browser_killed(profile: Path) -> None:
    """CON-01, O-116, O-117: a launched browser that was killed is launched anew and told of as another process."""
    listener, source = Listener(), launched_source(profile)
    async with linked(source, listener):
        first = await listener.identity()
        killed = source.process
        assert killed is not None
        os.kill(killed.pid, signal.SIGKILL)
        await listener.reason()
        second = await listener.identity()
        assert first.process_key != second.process_key
        assert group_members(killed.process_group) == []
        last = source.process
    assert last is not None
    assert group_members(last.process_group) == []


@pytest.mark.chromium
async def test_attached_browser_killed(profile: Path) -> None:
    """CON-01, O-117: an attached browser that was killed is waited for, not launched, and told of when it is back."""
    listener = Listener()
    async with linked(AttachedSource(str(profile)), listener):
        with running_chromium(profile) as first:
            assert replace(await listener.identity(), product="") == identity_of(first)
        await listener.reason()
        with running_chromium(profile) as second:
            assert replace(await listener.identity(), product="") == identity_of(second)
    assert first.process_key != second.process_key


@pytest.mark.chromium
async def test_attached_browser_lives_on(chromium: RunningChromium) -> None:
    """PRO-03: an attached browser is not ended, whatever is asked, and no thread of ours stays."""
    listener, threads = Listener(), set(threading.enumerate())
    async with linked(AttachedSource(chromium.uri), listener):
        identity = await listener.identity()
    assert replace(identity, product="") == replace(
        identity_of(chromium), process_key=f"{chromium.process_key}/{chromium.pid}"
    )
    assert await locate(f"http://{chromium.host_port}", timeout=10) == Located(
        chromium.uri, chromium.host_port, chromium.process_key
    )
    assert listener.told.empty()
    assert set(threading.enumerate()) == threads


@pytest.mark.chromium
async def test_launched_browser_left_running(profile: Path) -> None:
    """PRO-01, PRO-02: a launched browser lives on if it is not to be ended, and the next link takes it back."""
    listener = Listener()
    first = BrowserLink(launched_source(profile), up=listener.up, down=listener.down)
    running = asyncio.create_task(first.run())
    before = await listener.identity()
    await first.stop(end_browser=False)
    assert (running.done(), first.connection) == (True, None)
    source = launched_source(profile)
    async with linked(source, listener):
        assert await listener.identity() == before
        process = source.process
    assert process is not None
    assert group_members(process.process_group) == []


@pytest.mark.chromium
async def test_refused_end_is_told(profile: Path) -> None:
    """PRO-04: that a process was not ended, since it is not surely ours, is told and not reported as done."""
    listener, source = Listener(), launched_source(profile)
    async with linked(source, listener) as link:
        await listener.identity()
        process = source.process
        assert process is not None
        # So that Browser.close does not end it first.
        os.kill(process.pid, signal.SIGSTOP)
        source.process = replace(process, start_time=process.start_time + 1)
        with pytest.raises(EndRefused) as caught:
            await link.stop(end_browser=True)
        assert caught.value.doubt == "reused_pid"
        assert read_facts(process.pid) is not None
        source.process = process
    assert group_members(process.process_group) == []


async def test_stop_while_launching(profile: Path) -> None:
    """A link that is stopped while its browser starts leaves no process."""
    program = profile / "stub"
    program.write_text(
        f'#!/bin/sh\necho $$ > "{profile}/pid.new"; mv "{profile}/pid.new" "{profile}/pid"\nexec sleep 60\n'
    )
    program.chmod(0o700)
    async with linked(LaunchedSource(LaunchOptions(profile, program)), Listener()):
        await asyncio.to_thread(until, (profile / "pid").exists)
    assert group_members(int((profile / "pid").read_text())) == []


class ScriptedSource:
    """Fails with these errors first; then leads to the scripted endpoint."""

    owned = False

    def __init__(self, uri: str, *failures: Exception, key_proven: bool = True) -> None:
        self.failures = list(failures)
        self._located = Located(uri, "127.0.0.1:1", "scripted", key_proven=key_proven)

    def hold(self) -> None:
        pass

    async def locate(self) -> Located:
        if self.failures:
            raise self.failures.pop(0)
        return self._located

    async def end(self) -> None:
        raise AssertionError("not owned")

    def release(self) -> None:
        pass


async def answered(endpoint: ScriptedEndpoint) -> Peer:
    """The next connection, which was told its version."""
    peer = await asyncio.wait_for(endpoint.peer(), 20)
    peer.reply(await peer.call("Browser.getVersion"), {"product": "Stub/1", "userAgent": "stub"})
    return peer


class Clock:
    """Sleeps no time at all and keeps how long it should have been; ends the link after `naps`."""

    def __init__(self, naps: int) -> None:
        self.slept: list[float] = []
        self._naps = naps

    async def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 3))
        if len(self.slept) == self._naps:
            raise asyncio.CancelledError
        await asyncio.sleep(0)


async def test_backoff() -> None:
    """O-115: attempts get rarer up to a limit, each cause is logged once, and a connection that worked resets both."""
    listener, clock = Listener(), Clock(14)
    refused, wrong = EndpointError("nothing_listens", "x"), EndpointError("not_chrome", "x")
    async with scripted_endpoint() as endpoint:
        source = ScriptedSource(endpoint.uri, *[refused] * 5, wrong, *[refused] * 5)
        link = BrowserLink(
            source, up=listener.up, down=listener.down, backoff=Backoff(chance=lambda: 1.0), sleep=clock.sleep
        )
        with capture_logs() as logs:
            running = asyncio.create_task(link.run())
            peer = await answered(endpoint)
            assert await listener.identity() == BrowserIdentity("scripted", "Stub/1", "127.0.0.1:1", headless=False)
            source.failures.extend([refused] * 3)
            peer.end()
            await listener.reason()
            with pytest.raises(asyncio.CancelledError):
                await running
    grown = [0.1, 0.16, 0.256, 0.41, 0.655, 1.049, 1.678, 2.684, 4.295, 5.0, 5.0]
    assert clock.slept == [*grown, *grown[:3]]
    assert [(entry["event"], entry.get("cause")) for entry in logs if entry["event"].startswith("browser")] == [
        ("browser_unreachable", "nothing_listens"),
        ("browser_unreachable", "not_chrome"),
        ("browser_connected", None),
        ("browser_disconnected", None),
        ("browser_unreachable", "nothing_listens"),
    ]


def test_backoff_is_bounded() -> None:
    """However often it failed, the wait is a random part of at most the limit."""
    waits = [Backoff(chance=lambda: 0.5).delay(failures) for failures in (0, 10**6)]
    assert waits == [0.05, 2.5]


async def test_up_fails() -> None:
    """An `up` that fails with a DevTools error is a failed attempt: that connection ends, and no `down` is told."""
    listener = Listener()
    listener.failures = [ConnectionLost("Target.getTargets", handed_over=True)]
    async with scripted_endpoint() as endpoint, linked(ScriptedSource(endpoint.uri), listener) as link:
        await answered(endpoint)
        await answered(endpoint)
        identity = await listener.identity()
        assert (identity.process_key, listener.told.empty(), link.connection is None) == ("scripted", True, False)


async def test_up_is_broken() -> None:
    """Any other error of `up` is logged as a fault, and the next connection is made."""
    listener = Listener()
    listener.failures = [ValueError("broken")]
    async with scripted_endpoint() as endpoint:
        with capture_logs() as logs:
            async with linked(ScriptedSource(endpoint.uri), listener):
                await answered(endpoint)
                await answered(endpoint)
                assert (await listener.identity()).product == "Stub/1"
    assert [entry["error"] for entry in logs if entry["event"] == "browser link failed"] == ["ValueError"]


async def test_cancelled() -> None:
    """A link that is cancelled closes its connection and tells nothing; it can still be stopped."""
    listener, threads = Listener(), set(threading.enumerate())
    async with scripted_endpoint() as endpoint:
        link = BrowserLink(ScriptedSource(endpoint.uri), up=listener.up, down=listener.down)
        running = asyncio.create_task(link.run())
        await answered(endpoint)
        await listener.identity()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await link.stop(end_browser=True)
    assert (link.connection, listener.told.empty(), set(threading.enumerate()) == threads) == (None, True, True)


async def test_process_not_told() -> None:
    """A browser at a ws:// address that does not tell its process id is known by its address alone."""
    listener = Listener()
    async with scripted_endpoint() as endpoint, linked(ScriptedSource(endpoint.uri, key_proven=False), listener):
        peer = await answered(endpoint)
        asked = await peer.call("SystemInfo.getProcessInfo")
        peer.say({"id": asked["id"], "error": {"code": -32601, "message": "not found"}})
        assert (await listener.identity()).process_key == "scripted"


def test_sources() -> None:
    """What ends a browser is there only for one that was launched."""
    with fresh_profile() as profile:
        sources: list[BrowserSource] = [AttachedSource("http://127.0.0.1:1"), launched_source(profile)]
    assert [source.owned for source in sources] == [False, True]
