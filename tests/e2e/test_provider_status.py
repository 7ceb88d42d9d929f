"""What a tab shows of its provider is told, and looking leaves no trace."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.provider_pb2 import ProviderLimit, ProviderStatus, SelectorFinding
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import NavigateTabRequest
from tabmux.v1.web_ai_service_pb2 import (
    GetProviderStatusRequest,
    GetTurnRequest,
    ProbeProviderRequest,
    ProbeProviderResponse,
)

from tests.e2e.driving import closed, got, opened
from tests.e2e.person import Person
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import BROWSER, LIMIT, Server
from tests.e2e.test_conversations import talk
from tests.hostile.descriptors import describe
from tests.hostile.script import answer, grow, show
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.long,
    pytest.mark.timeout(90),
    pytest.mark.usefixtures("closed_afterwards"),
]

PROVIDER: Final = "hostile-barred"


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider for all pages of the site, and where it sends its users to sign in."""

    def write(directory: Path) -> None:
        for variant, hosts in (("barred", ["localhost"]), ("barred,sign-in", ["accounts.example"])):
            describe(
                directory,
                site,
                variant,
                top={
                    "hosts": ["127.0.0.1"],
                    "sign_in_hosts": hosts,
                    "limit_reset": [r"resets in (?P<hours>\d+) hours?"],
                },
                page={
                    "sign_in": ["#bar.sign-in"],
                    "challenge": [{"selector": "#bar", "text": "JUST A MOMENT"}],
                    "consent": ["#bar.consent"],
                    "limit": [{"selector": '[role="dialog"]', "text": "reached your limit"}],
                    "signed_in": ["nav > a:first-child"],
                    "signed_out": ["a.sign-in"],
                    "shown_model": ["nav > a"],
                },
            )

    return write


def unique() -> str:
    """A prompt that no other test sends."""
    return f"What is {uuid4().hex}?"


async def looked(server: Server, tab: Tab) -> ProviderStatus:
    """What the tab shows once it has loaded."""
    request = GetProviderStatusRequest(tab=tab.name)
    async with asyncio.timeout(LIMIT):
        while True:
            status = (await server.ai.GetProviderStatus(request, timeout=LIMIT)).status
            if status.interstitial != ProviderStatus.INTERSTITIAL_LOADING:
                return status
            await asyncio.sleep(0.02)  # that a page has become ready is told by nobody


async def probed(server: Server, tab: Tab, provider: str = PROVIDER) -> ProbeProviderResponse:
    """What the selectors of the descriptor find in the tab."""
    return await server.ai.ProbeProvider(ProbeProviderRequest(provider=provider, tab=tab.name), timeout=LIMIT)


def told(status: ProviderStatus) -> tuple[str, str, str, bool, list[str]]:
    """Sign-in, composer, interstitial, whether it is ready, and the codes of its warnings."""
    return (
        ProviderStatus.SignIn.Name(status.sign_in).removeprefix("SIGN_IN_"),
        ProviderStatus.Composer.Name(status.composer).removeprefix("COMPOSER_"),
        ProviderStatus.Interstitial.Name(status.interstitial).removeprefix("INTERSTITIAL_"),
        status.ready,
        [warning.code for warning in status.warnings],
    )


async def test_ready(server: Server, site: Site) -> None:
    """The whole status of a page that is ready, in a conversation whose text talks of signing in (FIN-16).

    The mark of the model fits a link of the sidebar alone, which names none.
    """
    conversation = site.begin(
        [("How do I sign in?", "Log in, and verify that you are human. You've reached your limit.")]
    )
    tab = await opened(server, site.at("plain", conversation))
    status = await looked(server, tab)
    assert status.HasField("check_time")
    status.ClearField("check_time")
    assert status == ProviderStatus(
        provider=PROVIDER,
        tab=tab.name,
        generation=1,
        ready=True,
        sign_in=ProviderStatus.SIGN_IN_SIGNED_IN,
        composer=ProviderStatus.COMPOSER_USABLE,
        interstitial=ProviderStatus.INTERSTITIAL_NONE,
        conversation_uri=site.at("plain", conversation),
        descriptor_version="1",
    )


@pytest.mark.parametrize(
    ("variant", "status"),
    [
        pytest.param("barred,sign-in", ("REQUIRED", "BLOCKED", "SIGN_IN", False, [])),
        ("barred,challenge", ("SIGNED_IN", "BLOCKED", "CHALLENGE", False, [])),
        pytest.param("barred,consent", ("SIGNED_IN", "BLOCKED", "CONSENT", False, [])),
        pytest.param("covered", ("SIGNED_IN", "BLOCKED", "OVERLAY", False, [])),
        pytest.param("draft", ("SIGNED_IN", "OCCUPIED", "NONE", False, [])),
        ("words", ("UNSPECIFIED", "USABLE", "NONE", True, ["sign-in-unclear"])),
        pytest.param("no-composer", ("SIGNED_IN", "ABSENT", "EMPTY_SHELL", False, [])),
    ],
)
async def test_states(variant: str, status: tuple[str, str, str, bool, list[str]], server: Server, site: Site) -> None:
    """Each state of a page is told apart (SUB-12, FIN-16)."""
    assert told(await looked(server, await opened(server, site.at(variant)))) == status


async def test_limit(server: Server, site: Site) -> None:
    """A limit is told in the page's words, with its end (SUB-12, SUB-21)."""
    status = await looked(server, await opened(server, site.at("barred,limit")))
    left = status.limit.reset_time.ToSeconds() - status.check_time.ToSeconds()
    status.limit.ClearField("reset_time")
    assert told(status) == ("SIGNED_IN", "BLOCKED", "OVERLAY", False, [])
    assert (status.limit, left) == (
        ProviderLimit(evidence="You've reached your limit. Your limit resets in 2 hours."),
        7200,
    )


async def test_sign_in_host(server: Server, site: Site) -> None:
    """A host for signing in is told by its address, and its page is not read, nor probed (SUB-12)."""
    tab = await opened(server, site.at("plain", host="localhost"))
    assert told(await looked(server, tab)) == ("REQUIRED", "UNSPECIFIED", "SIGN_IN", False, [])
    assert await reason(probed(server, tab)) == "PROVIDER_NOT_SHOWN"


async def test_traceless(server: Server, site: Site, person: Person) -> None:
    """Neither a look nor a probe changes anything: no element, focus, event, record, or time of activity (O-119)."""
    tab = await opened(server, site.at("plain"))
    await looked(server, tab)
    page = await person.attach(tab.target_id)
    await person.evaluate(page, _NOTE)
    before = await got(server, tab)

    await looked(server, tab)
    await probed(server, tab)

    assert await person.evaluate(page, "[...noted, document.activeElement === document.body]") == [True]
    assert await got(server, tab) == before


_NOTE: Final = """(() => {
  globalThis.noted = [];
  const options = { subtree: true, childList: true, characterData: true, attributes: true };
  new MutationObserver((records) => noted.push(...records.map(({ type }) => type))).observe(document, options);
  for (const kind of "focusin focusout pointerdown click keydown input scroll selectionchange copy".split(" ")) {
    addEventListener(kind, () => noted.push(kind), true);
  }
})()"""


async def test_open_turn(server: Server, site: Site) -> None:
    """Looks beside a turn from its first step on disturb nothing: one press, and the whole answer (O-132, SUB-12)."""
    one = await talk(server, PROVIDER)
    prompt = unique()
    phases = (show(0.05), grow("half", 0.2), show(60), grow("half whole", 0.1), show(0, stop=0, done=True))
    site.answer(prompt, answer(*phases))
    async with one.watch() as watch:
        turn = await one.ask(prompt)
        tab = Tab(name=(await watch.until(lambda event: event.session.tab)).session.tab)
    seen: list[tuple[str, str, str, bool, list[str]]] = []
    async with asyncio.timeout(2 * LIMIT):
        while not site.received(prompt) or seen[-1] != WRITING:
            seen.append(told(await looked(server, tab)))
    for _ in range(200):  # to the end of the answer, wherever it is
        site.go_on(prompt)
    end = await one.end(turn)
    assert {(ready, tuple(codes)) for *_, ready, codes in seen} == {(False, ("turn-open",))}
    assert (Turn.State.Name(end.state), end.answer_markdown) == ("STATE_SUCCEEDED", "half whole")
    assert len(site.received(prompt)) == 1
    assert told(await looked(server, tab)) == ("SIGNED_IN", "USABLE", "NONE", True, [])


WRITING: Final = ("SIGNED_IN", "BUSY", "NONE", False, ["turn-open"])


async def test_blocked_turn(server: Server, site: Site, person: Person) -> None:
    """A look at what blocks a turn leaves it blocked; it goes on once a person has acted (SUB-12, FIN-08)."""
    provider = "hostile-barred-sign-in"
    one = await talk(server, provider)
    prompt = unique()
    async with one.watch() as watch:
        turn = await one.ask(prompt)
        await watch.until(lambda event: event.turn.name == turn.name and event.turn.state == Turn.STATE_BLOCKED)
        tab = await one.tab()
        assert told(await looked(server, tab)) == ("REQUIRED", "BLOCKED", "SIGN_IN", False, ["turn-open"])
        assert (await server.ai.GetTurn(GetTurnRequest(name=turn.name), timeout=LIMIT)).turn.state == Turn.STATE_BLOCKED
        await person.evaluate(await person.attach(tab.target_id), "engine.unbar()")
        assert (await one.end(turn)).state == Turn.STATE_SUCCEEDED
    assert len(site.received(prompt)) == 1


async def test_refused(server: Server, site: Site, person: Person) -> None:
    """A page that is nobody's, blocked by a dialog, gone, closed or unknown is refused with its reason."""
    tab = await opened(server)
    nowhere = await refusal(looked(server, tab))
    assert (nowhere.reason, dict(nowhere.metadata)) == ("PROVIDER_NOT_SHOWN", {"provider": "", "tab": tab.name})
    assert await reason(probed(server, tab)) == "PROVIDER_NOT_SHOWN"
    assert await reason(probed(server, tab, "unknown")) == "PROVIDER_NOT_FOUND"

    await server.tabs.NavigateTab(NavigateTabRequest(name=tab.name, uri=site.at("plain")), timeout=LIMIT)
    page = await person.attach(tab.target_id)
    await person.evaluate(page, "setTimeout(() => alert('?'))")
    while not (await got(server, tab)).HasField("dialog"):  # noqa: ASYNC110 - within the limit of the test
        await asyncio.sleep(0.02)
    assert await reason(looked(server, tab)) == "DIALOG_OPEN"

    await closed(server, tab)
    assert await reason(looked(server, tab)) == "TAB_CLOSED"
    assert await reason(looked(server, Tab(name=f"{BROWSER}/tabs/0123456789"))) == "TAB_NOT_FOUND"


async def test_stuck(server: Server, site: Site, person: Person) -> None:
    """A page that hangs is TAB_UNRESPONSIVE in time, and its tab's health tells of it; a crashed one is TAB_GONE."""
    tab = await opened(server, site.at("plain"))
    page = await person.attach(tab.target_id)
    await person.evaluate(page, "setTimeout(() => { for (;;); })")
    assert await reason(looked(server, tab)) == "TAB_UNRESPONSIVE"
    await person.send("Page.crash", await person.attach((other := await opened(server, site.at("plain"))).target_id))
    while (await got(server, other)).state == Tab.STATE_READY:  # noqa: ASYNC110 - within the limit of the test
        await asyncio.sleep(0.02)
    assert await reason(looked(server, other)) == "TAB_GONE"


THROWS: Final = """
  const getters = [
    [HTMLElement, "innerText"], [Node, "textContent"], [Document, "readyState"], [Element, "querySelectorAll"],
    [Element, "getClientRects"], [globalThis, "getComputedStyle"],
  ];
  for (const [owner, name] of getters) {
    Object.defineProperty(owner.prototype ?? owner, name, { get() { throw new Error(name); } });
  }
"""
MANY: Final = """
  for (let count = 0; count < 20000; count += 1) {
    document.body.append(Object.assign(document.createElement("p"), { textContent: "Sign in to go on" }));
  }
"""


CLOBBERS: Final = """
  for (const name of ["querySelectorAll", "readyState", "body", "title"]) {
    document.body.append(Object.assign(document.createElement("img"), { name }));
  }
"""


@pytest.mark.parametrize(
    "script", [THROWS, pytest.param(CLOBBERS), pytest.param(MANY)], ids=["throws", "clobbers", "many"]
)
async def test_hostile(script: str, server: Server, site: Site, person: Person) -> None:
    """What a page does to its own objects reaches no look, nor do 20,000 elements that talk of signing in (FIN-16)."""
    tab = await opened(server, site.at("plain"))
    await looked(server, tab)
    await person.evaluate(await person.attach(tab.target_id), f"void (() => {{ {script} }})()")
    assert told(await looked(server, tab)) == ("SIGNED_IN", "USABLE", "NONE", True, [])
    assert {finding.problem for finding in (await probed(server, tab)).findings} == {""}


async def test_probe(server: Server, site: Site) -> None:
    """A probe tells what each selector finds and what would be taken, and no text of the page."""
    conversation = site.begin([("Prompt", "Answer")])
    tab = await opened(server, site.at("words", conversation))
    await looked(server, tab)
    response = await probed(server, tab)
    found = {finding.field: finding for finding in response.findings}
    counts = {name: (one.match_count, one.visible_count, one.taken_count, one.element) for name, one in found.items()}
    copy = 'button[data-testid="copy-turn-action-button"]'
    assert counts == {
        "page.ready": (1, 1, 1, "html"),
        "page.composer": (1, 1, 1, "textarea#prompt"),
        "page.send": (1, 1, 1, 'button[data-testid="send-button"][type="button"]'),
        "page.stop": (0, 0, 0, ""),
        "page.user_turn": (1, 1, 1, "article"),
        "page.assistant_turn": (1, 1, 1, "article"),
        "page.prompt_text": (1, 1, 1, "div"),
        "page.answer_text": (1, 1, 1, "div"),
        "page.done_mark": (1, 1, 1, f'{copy}[type="button"]'),
        "page.answer_files": (0, 0, 0, ""),
        "page.failure": (0, 0, 0, ""),
        "page.sign_in": (0, 0, 0, ""),
        "page.challenge": (0, 0, 0, ""),
        "page.consent": (0, 0, 0, ""),
        "page.limit": (1, 1, 0, 'div[role="dialog"]'),
        "page.signed_in": (1, 1, 1, "a"),
        "page.signed_out": (1, 1, 1, "a"),
        "page.shown_model": (2, 2, 0, "a"),  # a link to somewhere else names no model
    }
    assert found["page.limit"] == SelectorFinding(
        field="page.limit",
        selector='[role="dialog"]',
        text="reached your limit",
        match_count=1,
        visible_count=1,
        element='div[role="dialog"]',
    )
    assert (response.generation, response.descriptor_version) == (1, "1")


async def command(server: Server, *words: str) -> tuple[int | None, str]:
    """Exit code and output of the command `tabmux`."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tabmux.cli", *words,
        env={"PATH": os.environ["PATH"], "TABMUX_STATE_DIR": str(server.state_directory)},
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    async with asyncio.timeout(2 * LIMIT):
        out, _ = await process.communicate()
    return process.returncode, out.decode()


async def test_login(server: Server) -> None:
    """`ai login` opens the start page in front, as the caller's, sees the sign-in, and leaves the tab open."""
    code, out = await command(server, "ai", "login", PROVIDER)
    (tab,) = await server.list_tabs()
    assert (code, out) == (0, f"signed in to {PROVIDER}, in the tab {tab.name.rpartition('/')[2]}\n")
    assert (tab.owner, tab.front, tab.state) == ("local", True, Tab.STATE_READY)
    code, out = await command(server, "ai", "status", "--tab", tab.name)
    assert (code, json.loads(out)["signIn"]) == (0, "SIGN_IN_SIGNED_IN")
