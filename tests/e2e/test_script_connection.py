"""Scripts over a connection that is cut: each runs once or not at all, and its answer tells which, or cannot."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncGenerator, AsyncIterator

import grpc
import pytest
import pytest_asyncio
from google.protobuf.duration_pb2 import Duration
from tabmux.statuses import error_of_call
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import EvaluateScriptRequest

from tests.cdp.browsers import RunningChromium
from tests.e2e.driving import opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person, person_at
from tests.e2e.refusals import advice
from tests.e2e.relay import Relay
from tests.e2e.serving import LIMIT, Server

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(150),
    pytest.mark.usefixtures("cleared_afterwards"),
]

_ENOUGH = Duration(seconds=30)


@pytest.fixture(scope="module")
def server_settings(relay: Relay) -> str:
    """Attached to somebody's browser, through the relay."""
    return f'[browsers.main]\naddress = "{relay.uri}"\n'


@pytest_asyncio.fixture(loop_scope="module")
async def person(chromium: RunningChromium) -> AsyncIterator[Person]:
    """The one whose browser it is."""
    async with person_at(chromium.profile) as person:
        yield person


async def answer(server: Server, tab: Tab, key: str) -> tuple[str, str]:
    """Run a script that counts itself under a key: its value, or the reason of the refusal, and its cause."""
    script = f"var runs = window.runs ??= {{}}; runs.{key} = (runs.{key} ?? 0) + 1"
    request = EvaluateScriptRequest(name=tab.name, script=script, result_timeout=_ENOUGH)
    call = server.tabs.EvaluateScript(request, timeout=3 * LIMIT)
    try:
        return (await call).result_json, ""
    except grpc.aio.AioRpcError as error:
        info = error_of_call(error)
    assert advice(info) in {
        ("OUTCOME_UNKNOWN", "unknown", "after-verify"),
        ("BROWSER_UNREACHABLE", "no", "safe"),
    }
    return info.reason, info.metadata.get("cause", "")


@contextlib.asynccontextmanager
async def cut_once(server: Server, relay: Relay) -> AsyncGenerator[None]:
    """Inside, the connection is cut once; on the way out it is there again."""
    before = relay.connection_count
    yield
    async with asyncio.timeout(2 * LIMIT):
        await relay.connected(times=before + 1)
    await server.browser_when(lambda browser: browser.state == Browser.STATE_ACTIVE)


async def runs(person: Person, tab: Tab) -> dict[str, int]:
    """How often each script has run, by its key."""
    told = await person.evaluate(await person.attach(tab.target_id), "JSON.stringify(window.runs ?? {})")
    return dict(json.loads(told))


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.long)])
async def test_cut(count: int, server: Server, person: Person, pages: Pages, relay: Relay) -> None:
    """Cut before a script or behind it, it never runs twice, and OUTCOME_UNKNOWN is told (O-59, O-67)."""
    tab = await opened(server, pages.at("/page"))
    choice = random.Random(count)
    ways = ["whole", "before", "behind", "away", *choice.choices(["whole", "before", "behind", "away"], k=count - 4)]
    choice.shuffle(ways)
    expected: dict[str, int] = {}
    for number, way in enumerate(ways):
        key = f"k{number}"
        match way:
            case "whole":
                assert await answer(server, tab, key) == ("1", "")
                expected[key] = 1
            case "away":
                async with cut_once(server, relay):
                    await relay.cut()
                    # Whether the server has noticed yet is nobody's guess.
                    given = asyncio.ensure_future(answer(server, tab, key))
                    relay.mend()
                    assert await given in {("1", ""), ("BROWSER_UNREACHABLE", "")}
                expected |= {key: 1} if given.result()[0] == "1" else {}
            case _:
                relay.cut_at(f"runs.{key}", carried_out=way == "behind")
                async with cut_once(server, relay):
                    assert await answer(server, tab, key) == ("OUTCOME_UNKNOWN", "connection_lost")
                expected |= {key: 1} if way == "behind" else {}
    assert await runs(person, tab) == expected
