"""Builds every part of the server, connects them, starts and stops them in order."""

from __future__ import annotations

import asyncio
import gc
import secrets
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import metadata
from typing import Final

import structlog

from tabmuxd.cdp.launcher import LaunchOptions
from tabmuxd.cdp.link import AttachedSource, BrowserSource, LaunchedSource
from tabmuxd.clock import steady_clock
from tabmuxd.events.log import Log
from tabmuxd.jobs.schedule import Job, Schedule
from tabmuxd.page.scripts import Scripts
from tabmuxd.playground import Playground
from tabmuxd.resources.browser import BrowserLimits, BrowserOptions, Ownership
from tabmuxd.resources.names import browser_name
from tabmuxd.rpc.domain import LogEvents, ServerInfo
from tabmuxd.rpc.server import RpcServer
from tabmuxd.settings import BrowserSettings, Settings
from tabmuxd.state_directory import StateDirectory
from tabmuxd.tabs.endings import ServedHook
from tabmuxd.tabs.host import BrowserHost
from tabmuxd.tabs.hosts import Hosts
from tabmuxd.tabs.service import Tabs
from tabmuxd.tasks import Tasks
from tabmuxd.webai.answers import Feeds
from tabmuxd.webai.preambles import load_safety_preamble
from tabmuxd.webai.providers.loading import load_providers
from tabmuxd.webai.service import WebAi, lost_tab_hook

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_COMPACTION_PERIOD: Final = timedelta(minutes=5)
_COMPACTION_DEADLINE: Final = timedelta(minutes=4)
_LOOK_PERIOD: Final = timedelta(seconds=30)
_LOOK_DEADLINE: Final = timedelta(seconds=29)
_TIDY_PERIOD: Final = timedelta(seconds=20)
_EXPIRY_PERIOD: Final = timedelta(seconds=1)
_EXPIRY_DEADLINE: Final = timedelta(milliseconds=900)
_RETIRE_PERIOD: Final = timedelta(seconds=10)
_RETIRE_DEADLINE: Final = timedelta(seconds=9)
_SWEEP_PERIOD: Final = timedelta(seconds=60)
_SWEEP_DEADLINE: Final = timedelta(seconds=50)
_ARTIFACT_PERIOD: Final = timedelta(minutes=5)
_ARTIFACT_DEADLINE: Final = timedelta(minutes=4)
_RELOAD_PERIOD: Final = timedelta(seconds=1)
_RELOAD_DEADLINE: Final = timedelta(milliseconds=900)
_YOUNG_OBJECTS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Running:
    """A server that serves."""

    settings: Settings
    server: RpcServer
    tabs: Tabs
    playground_port: int


@asynccontextmanager
async def running(settings: Settings) -> AsyncGenerator[Running]:
    """Serve while entered. Leaving drains: calls end, turns and tabs stay as records, a LAUNCHED browser is ended.

    Raises StateDirectoryError, SettingsError, DescriptorError, LaunchError for a profile directory that another server
    holds or that cannot be written, the store's errors and OSError, before anything is served.
    """
    async with AsyncExitStack() as stack:
        now = steady_clock()
        directory = stack.enter_context(StateDirectory(settings.state_directory))
        sources = {browser.id: _source(browser, settings) for browser in settings.browsers}
        for source in sources.values():
            stack.callback(source.release)
            source.hold()
        log = await stack.enter_async_context(Log(directory.database, clock=now))
        port = settings.playground_port
        if settings.playground:
            store = settings.state_directory / "playground.jsonl"
            port = (await stack.enter_async_context(Playground(port=port, store=store))).port
        tasks = await stack.enter_async_context(Tasks())
        feeds = Feeds()
        served = lost_tab_hook(feeds)
        hosts = Hosts(_host(browser, sources[browser.id], log, tasks, served) for browser in settings.browsers)
        tabs = Tabs(hosts, log, tasks, secrets.token_bytes, now)
        providers = load_providers(settings.providers_directory, port)
        web_ai = WebAi(
            providers,
            tabs,
            log,
            tasks,
            random=secrets.token_bytes,
            clock=now,
            feeds=feeds,
            max_turn_count=settings.max_turn_count,
            safety_preamble=load_safety_preamble(settings.safety_preamble_file),
        )
        await web_ai.artifacts.repair()
        await tabs.leases.prolong()
        for host in hosts:
            await host.introduce()
            tasks.spawn(host.run(), f"host {host.name}")
            stack.push_async_callback(_let_go, host)
        server = await stack.enter_async_context(
            RpcServer(
                settings.socket,
                ServerInfo(metadata.version("tabmuxd"), () if settings.scripts else ("EvaluateScript",)),
                tabs,
                Scripts(tabs.driving, tasks),
                web_ai,
                events=LogEvents(log),
                max_watch_count=settings.max_watch_count,
                max_principal_watch_count=settings.max_principal_watch_count,
            )
        )
        stack.push_async_callback(server.drain)
        web_ai.resume()
        tidy_period = period_of_tidying(settings)
        await stack.enter_async_context(
            Schedule(
                Job("compact", log.compact, _COMPACTION_PERIOD, _COMPACTION_DEADLINE),
                Job("look", tabs.recovery.sweep, _LOOK_PERIOD, _LOOK_DEADLINE),
                Job("sweep", tabs.orphans.sweep, _SWEEP_PERIOD, _SWEEP_DEADLINE),
                Job("tidy", tabs.clearing.tidy, tidy_period, tidy_period * 0.9),
                Job("expire-leases", tabs.leases.expire, _EXPIRY_PERIOD, _EXPIRY_DEADLINE),
                Job("reload-providers", web_ai.reload_providers, _RELOAD_PERIOD, _RELOAD_DEADLINE),
                Job("tidy-artifacts", web_ai.artifacts.tidy, _ARTIFACT_PERIOD, _ARTIFACT_DEADLINE),
                Job("expire-sessions", web_ai.sessions.expire, _RETIRE_PERIOD, _RETIRE_DEADLINE),
            )
        )
        yield Running(settings, server, tabs, port)


async def _let_go(host: BrowserHost) -> None:
    try:
        await host.stop()
    except Exception as error:  # noqa: BLE001 - the end of the server goes on
        _log.warning("browser not ended", browser=host.name, error=str(error))


def period_of_tidying(settings: Settings) -> timedelta:
    """How often to look for tabs that have to close: four times in the shortest time they may stay, 1 to 20 s."""
    times = [time for each in settings.browsers for time in (each.idle_timeout, each.pool_timeout) if time is not None]
    return max(timedelta(seconds=1), min([_TIDY_PERIOD, *(time / 4 for time in times)]))


def _host(browser: BrowserSettings, source: BrowserSource, log: Log, tasks: Tasks, served: ServedHook) -> BrowserHost:
    options = BrowserOptions(
        name=browser_name(browser.id),
        ownership=Ownership.ATTACHED if browser.address else Ownership.LAUNCHED,
        limits=BrowserLimits(
            max_tab_count=browser.max_tab_count,
            max_pooled_tab_count=browser.max_pooled_tab_count,
            max_group_pooled_tab_count=browser.max_group_pooled_tab_count,
            idle_timeout=browser.idle_timeout,
            pool_timeout=browser.pool_timeout,
            reclaim_after=browser.reclaim_after,
        ),
    )
    return BrowserHost(options, source, log, tasks, served, random=secrets.token_bytes)


def _source(browser: BrowserSettings, settings: Settings) -> BrowserSource:
    if browser.address:
        return AttachedSource(browser.address)
    return LaunchedSource(launch_options(browser, settings))


def launch_options(browser: BrowserSettings, settings: Settings) -> LaunchOptions:
    """How a LAUNCHED browser is started."""
    return LaunchOptions(
        profile_directory=browser.profile or settings.state_directory / "browsers" / browser.id,
        executable=browser.executable,
        headless=browser.headless,
        extra_arguments=browser.extra_arguments,
    )


def _tune_collector() -> None:
    """Keep Python's collector of cycles from the modules that are loaded, and let it look less often at the rest.

    With a thousand watchers it took a sixth of the time that an event needs: each makes and drops a dozen objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS, 10, 10)


async def serve(settings: Settings, stop: asyncio.Event) -> None:
    """Serve until `stop` is set, then drain."""
    async with running(settings) as server:
        _tune_collector()
        _log.info("serving", socket=str(settings.socket), playground_port=server.playground_port)
        await stop.wait()
        _log.info("draining")
