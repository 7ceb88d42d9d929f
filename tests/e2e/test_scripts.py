"""EvaluateScript over a real server and a real browser: values, errors, and scripts whose answer is lost."""

from __future__ import annotations

import asyncio
import json
from typing import Any, TypeAlias

import pytest
from google.protobuf.duration_pb2 import Duration
from tabmux.v1.lease_pb2 import LeaseTerms
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import (
    AcquireLeaseRequest,
    EvaluateScriptRequest,
    EvaluateScriptResponse,
    NavigateTabRequest,
    ReleaseLeaseRequest,
)

from tests.e2e.driving import got, opened
from tests.e2e.pages import Pages
from tests.e2e.person import Person
from tests.e2e.refusals import advice, reason, refusal
from tests.e2e.serving import LIMIT, Server

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]

Fields: TypeAlias = Any
"""Fields of a request, by name."""

HALF = Duration(nanos=500_000_000)
DEEP = "var nest = {}; for (let n = 0; n < %d; n++) nest = {x: nest}; nest"


async def ran(server: Server, tab: Tab, script: str, **fields: Fields) -> EvaluateScriptResponse:
    """What EvaluateScript answers."""
    request = EvaluateScriptRequest(name=tab.name, script=script, **fields)
    return await server.tabs.EvaluateScript(request, timeout=3 * LIMIT)


async def value(server: Server, tab: Tab, script: str, **fields: Fields) -> str:
    """JSON of what a script gives."""
    return (await ran(server, tab, script, **fields)).result_json


async def refused(server: Server, tab: Tab, script: str, **fields: Fields) -> tuple[str, dict[str, str]]:
    """Reason and metadata of the refusal."""
    info = await refusal(ran(server, tab, script, **fields))
    return info.reason, dict(info.metadata)


async def lost(server: Server, tab: Tab, script: str, **fields: Fields) -> str:
    """Cause of OUTCOME_UNKNOWN."""
    info = await refusal(ran(server, tab, script, **fields))
    assert advice(info) == ("OUTCOME_UNKNOWN", "unknown", "after-verify")
    return info.metadata["cause"]


# Values


async def test_values(server: Server) -> None:
    """Each value comes as JSON that is exact (O-66)."""
    tab = await opened(server)
    cases = {
        "1 + 1": "2",
        "-0": "-0",
        "1e21": "1e+21",
        "2 ** 53": "9007199254740992",
        "null": "null",
        "undefined": "",
        "let kept = 1": "",
        "'é\\u2028 😀 \\n'": json.dumps("é\u2028 😀 \n", ensure_ascii=False),
        "'\\ud800'": '"\\ud800"',
        "new Date(0)": '"1970-01-01T00:00:00.000Z"',
        "({a: undefined, b: [null, -0, 'x'], 'c d': {}, __proto__: null})": '{"b":[null,-0,"x"],"c d":{}}',
        "var twice = {n: 1}; [twice, twice, {twice}]": '[{"n":1},{"n":1},{"twice":{"n":1}}]',
        "({get counted() { return 1 }})": '{"counted":1}',
        "[]": "[]",
        "new (class Point { x = 1 })": '{"x":1}',
        "document.title": '""',
        "new Proxy({a: 1}, {})": '{"a":1}',
        DEEP % 500: '{"x":' * 500 + "{}" + "}" * 500,
    }
    assert {script: await value(server, tab, script) for script in cases} == cases


@pytest.mark.parametrize(
    ("script", "kind", "path"),
    [
        ("NaN", "NaN", "$"),
        ("[1, Infinity]", "Infinity", "$[1]"),
        ("10n", "bigint", "$"),
        ("({a: {b: 10n}})", "bigint", "$.a.b"),
        ("[undefined]", "undefined", "$[0]"),
        ("[, 1]", "undefined", "$[0]"),
        ("({'a b': /x/})", "regexp", '$["a b"]'),
        ("new Map([[1, 2]])", "map", "$"),
        ("[new Set]", "set", "$[0]"),
        ("() => 1", "function", "$"),
        ("({f() {}})", "function", "$.f"),
        ("Symbol('s')", "symbol", "$"),
        ("var ring = {}; ring.ring = [ring]; ring", "cycle", "$.ring[0]"),
        ("document.body", "node", "$"),
        ("[window]", "window", "$[0]"),
        ("document.querySelectorAll('*')", "nodelist", "$"),
        ("Promise.resolve(1)", "promise", "$"),
        ("new Date(NaN)", "date", "$"),
        ("new Error('x')", "error", "$"),
        ("new Uint8Array(2)", "uint8array", "$"),
        ("({get bad() { throw 1 }})", "accessor", "$.bad"),
        ("new Array(1e9)", "undefined", "$[0]"),
        ("[new Map(Array.from({length: 2e6}, (_, n) => [n, n]))]", "map", "$[0]"),
        (DEEP % 100_000, "depth", "$"),
        ("new Number(4)", "number", "$"),
        ("performance.getEntries()[0]", "performancenavigationtiming", "$"),
    ],
)
async def test_not_serializable(server: Server, script: str, kind: str, path: str) -> None:
    """What has no exact JSON form is refused with its part, and the script has run once (O-64, O-65, O-66)."""
    tab = await opened(server)
    counted = f"window.count = (window.count ?? 0) + 1; {script}"
    name, metadata = await refused(server, tab, counted)
    assert (name, metadata) == (
        "RESULT_NOT_SERIALIZABLE",
        {"tab": tab.name, "type": kind, "path": path, "page_touched": "yes", "retry": "never"},
    )
    assert await value(server, tab, "window.count") == "1"


@pytest.mark.parametrize(
    "script",
    [
        "'x'.repeat(1024 * 1024)",
        "'é'.repeat(600 * 1024)",
        "new Array(1e9).fill(0, 0, 2e6)",
        "new Array(300000).fill(1.25)",
        "({a: 'x'.repeat(100 * 1024 * 1024)})",
        "var big = {}; for (let n = 0; n < 100000; n++) big['key number ' + n] = n; big",
        "let bomb = ['x'.repeat(60)]; for (let n = 0; n < 40; n++) bomb = [bomb, bomb]; bomb",
    ],
)
async def test_too_large(server: Server, script: str) -> None:
    """A value above 1 MiB is refused alone; the script has run, and the connection stays (O-152, CON-08)."""
    tab = await opened(server)
    name, metadata = await refused(server, tab, script)
    assert (name, metadata["limit_bytes"], metadata["page_touched"], metadata["retry"]) == (
        "RESULT_TOO_LARGE", "1048576", "yes", "never",
    )  # fmt: skip
    assert int(metadata["size_bytes"]) > 1024 * 1024
    assert await value(server, tab, "1") == "1"


async def test_just_fits(server: Server) -> None:
    """A value of exactly 1 MiB comes."""
    tab = await opened(server)
    assert len(await value(server, tab, "'x'.repeat(1024 * 1024 - 2)")) == 1024 * 1024


# Scripts that fail


@pytest.mark.parametrize(
    ("script", "cause", "exception"),
    [
        ("throw new Error('Target closed')", "threw", "Error: Target closed\n    at <anonymous>:1:7"),
        ("throw 'words'", "threw", "words"),
        ("throw {}", "threw", "Object"),
        ("throw undefined", "threw", "Uncaught"),
        ("}", "threw", "SyntaxError: Unexpected token '}'"),
        ("Promise.reject('no')", "rejected", "no"),
        ("(async () => { throw 7 })()", "rejected", "7"),
    ],
)
async def test_failed(server: Server, script: str, cause: str, exception: str) -> None:
    """What a script throws is told as its own error, whatever its words are (O-65, B-2)."""
    tab = await opened(server)
    name, metadata = await refused(server, tab, script, await_promise=True)
    assert (name, metadata) == (
        "SCRIPT_FAILED",
        {"tab": tab.name, "exception": exception, "cause": cause, "page_touched": "yes", "retry": "never"},
    )


# Answers that are lost


async def test_loops(server: Server) -> None:
    """A loop is ended in time, also one in a promise, and the next script answers; a promise is left alone (O-69)."""
    tab = await opened(server)
    for script in ("for (;;);", "(async () => { await null; for (;;); })()"):
        assert await lost(server, tab, script, await_promise=True, result_timeout=HALF) == "timeout"
        assert await value(server, tab, "1") == "1"
    assert await lost(server, tab, "({get bad() { for (;;); }})") == "timeout"
    assert await value(server, tab, "2") == "2"
    later = "new Promise((done) => { window.finish = () => { window.finished = 1; done() } })"
    assert await lost(server, tab, later, await_promise=True, result_timeout=HALF) == "timeout"
    assert await value(server, tab, "finish(); finished") == "1"


async def test_page_lost(server: Server, person: Person, pages: Pages) -> None:
    """A promise that is waited for ends with its page, and the answer tells how it went (O-68, CON-06)."""
    left = await opened(server, pages.at("/page"))
    script = "setTimeout(() => location.assign('/page?title=next'), 50); new Promise(() => {})"
    assert await lost(server, left, script, await_promise=True) == "navigated"
    closed, crashed = await opened(server), await opened(server)
    for tab, cause in ((closed, "tab_gone"), (crashed, "tab_crashed")):
        session = await person.attach(tab.target_id)
        await person.call("Runtime.enable", session)
        await person.call("Runtime.addBinding", session, name="begun")
        begun = person.event("Runtime.bindingCalled", session)
        at_once = asyncio.ensure_future(lost(server, tab, "begun(''); new Promise(() => {})", await_promise=True))
        async with asyncio.timeout(LIMIT):
            await begun
        if tab is closed:
            await person.close(tab.target_id)
        else:
            await person.send("Page.crash", session)
        assert await at_once == cause


async def test_dialog(server: Server, pages: Pages) -> None:
    """A script that opens a dialog does not hold its caller; the next is refused while that is open (O-95, O-104)."""
    tab = await opened(server, pages.at("/page"))
    assert await lost(server, tab, "alert('x'); 1") == "dialog"
    name, metadata = await refused(server, tab, "1")
    assert (name, metadata) == (
        "DIALOG_OPEN", {"tab": tab.name, "kind": "ALERT", "page_touched": "no", "retry": "after-verify"},
    )  # fmt: skip


# Rights and order


async def test_address_told(server: Server, pages: Pages) -> None:
    """The answer has the address as it stands after the script."""
    tab = await opened(server, pages.at("/page"))
    answer = await ran(server, tab, "history.pushState(null, '', '#there'); 1")
    assert (answer.tab.name, answer.tab.generation) == (tab.name, tab.generation)
    assert (await got(server, tab)).uri == pages.at("/page#there")


async def test_refused_untouched(server: Server, pages: Pages) -> None:
    """A wrong generation, a lease of somebody and a bad field leave the page alone (O-85, O-72)."""
    tab = await opened(server, pages.at("/page"))
    name, metadata = await refused(server, tab, "touched = 1", expected_generation=7)
    assert (name, metadata["page_touched"], metadata["retry"]) == ("TAB_REPLACED", "no", "after-verify")
    held = AcquireLeaseRequest(tab=tab.name, terms=LeaseTerms(ttl=Duration(seconds=60), holder="h"))
    lease = (await server.tabs.AcquireLease(held, timeout=LIMIT)).lease
    name, metadata = await refused(server, tab, "touched = 1")
    assert (name, metadata["page_touched"]) == ("LEASE_REQUIRED", "no")
    assert await value(server, tab, "typeof touched", lease=lease.name) == '"undefined"'
    await server.tabs.ReleaseLease(ReleaseLeaseRequest(name=lease.name), timeout=LIMIT)
    for script in ("", "x" * (256 * 1024 + 1)):
        assert await reason(ran(server, tab, script)) == "INVALID_FIELD"


async def test_in_order(server: Server, pages: Pages) -> None:
    """Scripts of one tab run one after another, those of another do not wait (O-53, O-54)."""
    slow, other = await opened(server, pages.at("/page")), await opened(server, pages.at("/page"))
    held = "new Promise((done) => { window.let_go = done })"
    first = asyncio.ensure_future(ran(server, slow, held, await_promise=True))
    assert await value(server, other, "1") == "1"
    assert not first.done()
    info = await refusal(ran(server, slow, "1", result_timeout=HALF))
    assert (advice(info), info.metadata["cause"]) == (("CALL_CAPACITY", "no", "safe"), "line_slow")
    first.cancel()
    await asyncio.wait({first})
    assert await value(server, slow, "let_go(); 2") == "2"


async def test_own_answers(server: Server, pages: Pages) -> None:
    """No answer comes from a page that was not named (TAB-02)."""
    tabs = [await opened(server, pages.at(f"/page?title={number}")) for number in range(2)]
    for number in range(20):
        at_once = [value(server, tab, f"document.title + ':{number}'") for tab in tabs]
        assert await asyncio.gather(*at_once) == [f'"0:{number}"', f'"1:{number}"']
    await server.tabs.NavigateTab(
        NavigateTabRequest(name=tabs[0].name, uri=pages.at("/page?title=x")), timeout=2 * LIMIT
    )
    assert await value(server, tabs[0], "document.title") == '"x"'
