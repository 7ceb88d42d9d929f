"""Watches that have nothing to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tabmuxd.events import Log, LoopTimer, Start, tab_filter, watch
from tabmuxd.events.bell import Bell

from tests.events.recording import Reply
from tests.events.steps import Clock, know_browser
from tests.store.samples import tab

LIMIT = 20
WATCHES = 50
EVENTS = 10


class CountingTimer(LoopTimer):
    """The time of the loop, and how often a watch waited for it."""

    def __init__(self) -> None:
        super().__init__()
        self.wait_count = 0

    def wait(self, bell: Bell, until: float) -> asyncio.Future[bool]:
        self.wait_count += 1
        return super().wait(bell, until)


async def test_idle_watches_rest(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch wakes for news and bookmarks only, and sets one alarm however many events it sends (section 4.4)."""
    loop = asyncio.get_running_loop()
    alarms: list[object] = []
    call_at = loop.call_at

    def counted(when: float, callback: Callable[..., object], *arguments: object) -> asyncio.TimerHandle:
        if isinstance(owner := getattr(callback, "__self__", None), LoopTimer):
            alarms.append(owner)
        return call_at(when, callback, *arguments)

    monkeypatch.setattr(loop, "call_at", counted)
    async with Log(directory / "s", clock=Clock()) as log:
        await log.change(know_browser)
        timers = [CountingTimer() for _ in range(WATCHES)]
        watches = [watch(log, Start.NOW, tab_filter(), timer=timer) for timer in timers]
        await asyncio.gather(*(anext(each) for each in watches))
        for number in range(1, EVENTS + 1):
            reading = [asyncio.ensure_future(anext(each)) for each in watches]
            for _ in range(100):
                await asyncio.sleep(0)
            assert repr(log.bell) == f"<Bell waiting={WATCHES}>"
            opened = await log.change(lambda changes: changes.record(tab(number)))  # noqa: B023 - waited for
            async with asyncio.timeout(LIMIT):
                bodies = await asyncio.gather(*reading)
            assert {Reply.parsed(body).progress.revision for body in bodies} == {opened.revision}
        for each in watches:
            await each.aclose()
        assert [timer.wait_count for timer in timers] == [EVENTS] * WATCHES
        assert len(alarms) == len(set(alarms)) == WATCHES
        assert repr(log.bell) == "<Bell waiting=0>"
