"""Prompts into hostile pages: exactly the text goes in, once, or nothing does, and the reason is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_service_pb2 import GetTabRequest
from tabmux.v1.web_ai_service_pb2 import (
    CreateSessionRequest,
    RecoverSessionRequest,
    RecoverSessionResponse,
    StreamAnswerRequest,
)

from tests.e2e.person import Person
from tests.e2e.refusals import reason
from tests.e2e.serving import LIMIT, Server
from tests.e2e.test_conversations import Talk, talk
from tests.hostile.descriptors import Role, TomlValue, describe
from tests.hostile.script import answer, grow, plain, show
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]

Fields = Mapping[str, TomlValue]

QUICK: Final[Fields] = {"composer_wait": 1.0, "commit_wait": 1.0}
PATIENT: Final[Fields] = {"composer_wait": 15.0, "commit_wait": 10.0}
LOOSE: Final[Fields] = {"composer": ["#prompt", "textarea", '[contenteditable="true"]']}
ANY_BUTTON: Final[Fields] = {"send": ['[data-testid="send-button"]', "#controls button"], "not_send": [".voice"]}


def by_role(selector: str, role: str, *names: str) -> list[str | Role]:
    """A selector, and what to seek where it finds nothing."""
    return [selector, {"role": role, "name": list(names)}]


ROLES: Final[Fields] = {
    "composer": by_role("#prompt", "textbox", "Message", "메시지 입력"),
    "send": by_role('[data-testid="send-button"]', "button", "Send", "보내기"),
    "stop": by_role('[data-testid="stop-button"]', "button", "Stop*", "중지"),
}
"""What is found by role and name where no selector finds anything."""
BARRIERS: Final[Fields] = {
    "sign_in": ["#bar.sign-in"],
    "challenge": [{"selector": "#bar", "text": "JUST A MOMENT"}],
    "consent": ["#bar.consent"],
    "limit": [{"selector": '[role="dialog"]', "text": "reached your limit"}],
}
DRAFT: Final = "Dear diary"
SUCCEEDED: Final = "SUCCEEDED"


@dataclass(frozen=True)
class Case:
    """A page, and how a prompt fares there: SUCCEEDED, or the reason with its cause, and `page_touched`."""

    variant: str
    end: str = SUCCEEDED
    touched: str = ""
    page: Fields = field(default_factory=dict[str, TomlValue])
    windows: Fields = field(default_factory=lambda: PATIENT)
    draft: str = "refuse"

    @property
    def provider(self) -> str:
        """Id of its descriptor."""
        return f"enter-{self.variant.replace(',', '-')}-{self.draft}"


def refused(variant: str, end: str, touched: str = "no", *, page: Fields | None = None, draft: str = "refuse") -> Case:
    """A page in which the prompt is not sent, as far as is known."""
    return Case(variant, end, touched, page or {}, QUICK, draft)


UNUSABLE: Final = "PROVIDER_COMPOSER_UNUSABLE"
CASES: Final = (
    Case("plain"),
    Case("editable"),
    Case("late-composer"),
    Case("replaced"),
    Case("decoys", page=LOOSE),
    Case("late-ready"),
    Case("forgets"),
    Case("doubles"),
    Case("draft", draft="clear"),
    Case("draft-back", draft="clear"),
    Case("other-send"),
    Case("late-send"),
    Case("microphone", page=ANY_BUTTON),
    Case("slow-take"),
    Case("roles", page=ROLES),
    Case("late-turn"),
    Case("keyless"),
    Case("shell", windows={**PATIENT, "composer_wait": 4.0}),
    refused("shell,no-composer", f"{UNUSABLE}:absent"),
    refused("no-composer", f"{UNUSABLE}:absent"),
    refused("decoys,no-composer", f"{UNUSABLE}:absent", page=LOOSE),
    refused("covered", f"{UNUSABLE}:blocked"),
    refused("draft", f"{UNUSABLE}:occupied"),
    refused("draft-back", f"{UNUSABLE}:occupied"),
    refused("truncates", f"{UNUSABLE}:occupied"),
    refused("vanishes", f"{UNUSABLE}:absent"),
    refused("moves-away", "PROVIDER_CONVERSATION_CHANGED"),
    refused("two-sends", "PROVIDER_PAGE_CHANGED"),
    refused("roles,two-roles", "PROVIDER_PAGE_CHANGED", page=ROLES),
    refused("never-send", "PROVIDER_PAGE_CHANGED"),
    refused("no-send", "PROVIDER_PAGE_CHANGED"),
    refused("only-microphone", "PROVIDER_PAGE_CHANGED", page=ANY_BUTTON),
    refused("deaf", "SUBMIT_UNCONFIRMED", "unknown"),
    refused("swallows", "SUBMIT_UNCONFIRMED", "unknown"),
    refused("sends-lines", "SUBMIT_UNCONFIRMED", "unknown"),
    refused("sends-silently", "SUBMIT_UNCONFIRMED", "unknown"),
)
MORE: Final = ("late-composer", "doubles", "other-send", "slow-take", "never-send", "no-send", "only-microphone")
"""Cases that prove little more than others do."""
BARRED: Final = (
    *(f"barred,{kind}" for kind in ("sign-in", "challenge", "consent", "limit", "bars-typed")),
    "barred",
    "words",
)
OTHER: Final = (Case("late-turns"), Case("draft-later"), Case("signed-out"), Case("covered", draft="clear"))


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a case."""

    def write(directory: Path) -> None:
        for case in (*CASES, *OTHER):
            describe(
                directory,
                site,
                case.variant,
                provider=case.provider,
                page=case.page,
                windows=case.windows,
                tables={"policy": {"draft": case.draft}},
                top={"hosts": ["127.0.0.1"], "sign_in_hosts": ["localhost"]},
            )
        top = {"limit_reset": [r"resets in (?P<hours>\d+) hours?"]}
        for variant in BARRED:
            anywhere: Fields = {"sign_in": ["a.sign-in"], "challenge": [".challenge"]} if variant == "words" else {}
            page = {**BARRIERS, **anywhere}
            describe(directory, site, variant, page=page, windows=PATIENT, top=top)

    return write


def unique(text: str = "") -> str:
    """A prompt of several lines that occurs nowhere else."""
    return f"Prompt {uuid4().hex}\n\n{text}second  line 😀 שלום"


def told(turn: Turn) -> tuple[str, str]:
    """How a turn ended, and whether its page was touched."""
    cause = turn.error.metadata.get("cause", "")
    name = Turn.State.Name(turn.state).removeprefix("STATE_")
    reason = turn.error.reason + (f":{cause}" if cause else "")
    return reason or name, turn.error.metadata.get("page_touched", "")


async def page_of(one: Talk, person: Person) -> str:
    """The person attaches to the page of a session."""
    return await person.attach((await one.tab()).target_id)


async def attached_target(one: Talk) -> str:
    """Target id of the session's tab once it has one."""
    name = (await one.session()).tab
    return (await one.server.tabs.GetTab(GetTabRequest(name=name), timeout=LIMIT)).tab.target_id


def states(events: list[Turn]) -> list[str]:
    """States that a watch has shown of one turn, in order."""
    return [Turn.State.Name(turn.state).removeprefix("STATE_") for turn in events]


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.provider, marks=[pytest.mark.long] if case.variant in MORE else []) for case in CASES],
)
async def test_case(case: Case, server: Server, site: Site, person: Person) -> None:
    """Exactly the prompt is sent, once, or it is refused; each page by its row (O-132, SUB-04 to SUB-11, SUB-14)."""
    one = await talk(server, case.provider)
    prompt = unique("x" * 2000 if case.variant == "truncates" else "")
    turn = await one.answer(prompt)

    sent = [] if case.end != SUCCEEDED else [prompt]
    mark = prompt.split("\n")[0]
    sent = {"sends-lines": [mark], "sends-silently": [prompt]}.get(case.variant, sent)
    assert told(turn) == (case.end, case.touched)
    assert [one.prompt for one in site.received() if one.variant == case.variant and mark in one.prompt] == sent
    if case.end == SUCCEEDED:
        assert turn.answer_markdown == f"Answer to: {prompt}"
        return
    page = await page_of(one, person)
    boxes = "[...document.querySelectorAll('textarea, [contenteditable]')].map((box) => box.value ?? box.innerText)"
    left = [text for text in await person.evaluate(page, boxes) if text]
    drafts = {"draft": [DRAFT], "draft-back": [f"{DRAFT} {prompt}"], "sends-lines": [prompt.rpartition("\n")[2]]}
    assert left == drafts.get(case.variant, [])
    if case.variant == "shell,no-composer":
        assert await person.evaluate(page, "sessionStorage.loads") == "2"
    assert not turn.HasField("submit_time")


@pytest.mark.long
async def test_decoys_again(server: Server, site: Site) -> None:
    """An edit box in an older turn is not the composer: the second prompt goes where the first one went (SUB-10)."""
    one = await talk(server, "enter-decoys-refuse")
    prompts = [unique(), unique()]
    turns = [await one.answer(prompt) for prompt in prompts]

    assert [told(turn) for turn in turns] == [(SUCCEEDED, "")] * 2
    assert [len(site.received(prompt)) for prompt in prompts] == [1, 1]


@pytest.mark.long
async def test_own_leftover(server: Server, site: Site, person: Person) -> None:
    """What an earlier turn of the session left in the composer is removed, and not sent along (SUB-08)."""
    one = await talk(server, "enter-deaf-refuse")
    first = await one.answer(left := unique())
    page = await page_of(one, person)
    await person.evaluate(page, "document.querySelector('#prompt').focus()")
    await person.call("Input.insertText", page, text=left)
    second = await one.answer(prompt := unique())

    assert [told(first), told(second)] == [("SUBMIT_UNCONFIRMED", "unknown"), (SUCCEEDED, "")]
    assert [len(site.received(text)) for text in (left, prompt)] == [0, 1]


@pytest.mark.long
async def test_draft_later(server: Server, site: Site) -> None:
    """A draft that a page puts back a second after it was loaded is never sent along (SUB-08)."""
    one = await talk(server, "enter-draft-later-refuse")
    prompt = unique()
    turn = await one.answer(prompt)

    assert told(turn) in [(SUCCEEDED, ""), (f"{UNUSABLE}:occupied", "no")]
    sent = [found.prompt for found in site.received() if found.variant == "draft-later"]
    assert sent == ([prompt] if turn.state == Turn.STATE_SUCCEEDED else [])


async def test_uncovered(server: Server, site: Site, person: Person) -> None:
    """A composer that somebody uncovers in time takes the prompt (SUB-09)."""
    one = await talk(server, "enter-covered-clear")
    turn = await one.ask(prompt := unique())
    await server.tabs_when(lambda tabs: any(tab.title == "Hostile" for tab in tabs))
    page = await page_of(one, person)
    uncovering = """new Promise((done) => {
      const look = () => {
        const cover = document.querySelector("#cover");
        if (cover) setTimeout(() => done(cover.remove()), 500);
        else setTimeout(look, 50);
      };
      look();
    })"""
    await person.call("Runtime.evaluate", page, expression=uncovering, awaitPromise=True)

    assert told(await one.end(turn)) == (SUCCEEDED, "")
    assert len(site.received(prompt)) == 1


async def test_late_turns(server: Server, site: Site) -> None:
    """The text of an older turn that is mounted late is not the own one, though it is the same (SUB-16, FIN-14)."""
    prompt = unique()
    conversation = site.begin([("Hello", "Hi"), (prompt, "Old answer"), ("More", "Of it"), ("Still", "More")])
    request = CreateSessionRequest(
        provider="enter-late-turns-refuse", conversation_uri=site.at("late-turns", conversation)
    )
    one = Talk(server, (await server.ai.CreateSession(request, timeout=LIMIT)).session.name)
    turn = await one.answer(prompt)

    assert (told(turn), turn.answer_markdown) == ((SUCCEEDED, ""), f"Answer to: {prompt}")
    assert [found.conversation for found in site.received(prompt)] == [conversation]


async def test_same_prompt_without_keys(server: Server, site: Site) -> None:
    """Where turns have no keys, the same prompt again is a turn of its own (SUB-16, FIN-14)."""
    one = await talk(server, "enter-keyless-refuse")
    site.answer(prompt := unique(), plain("first"))
    first = await one.answer(prompt)
    site.answer(prompt, plain("second"))
    second = await one.answer(prompt)

    assert [told(first), told(second)] == [(SUCCEEDED, "")] * 2
    assert (first.answer_markdown, second.answer_markdown) == ("first", "second")


async def test_page_lost_after_the_press(server: Server, site: Site, person: Person) -> None:
    """A page that goes away after the press, before it showed the prompt: nothing is sent again (SUB-03, O-132)."""
    one = await talk(server, "enter-plain-refuse")
    site.answer(prompt := unique(), answer(show(30, user=False, stop=0)))
    turn = await one.ask(prompt)
    await _until(lambda: len(site.received(prompt)) == 1)
    await one.when(turn, Turn.STATE_SUBMITTING)
    await person.close(await attached_target(one))
    turn = await one.end(turn)

    assert (turn.state, turn.error.metadata["page_touched"]) == (Turn.STATE_FAILED, "unknown")
    assert turn.error.metadata["retry"] == "after-verify"
    assert len(site.received(prompt)) == 1


# A person is needed


async def _until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(2 * LIMIT):
        while not reached():  # noqa: ASYNC110 - what a page did is told by nobody
            await asyncio.sleep(0.02)


async def _through(one: Talk, prompt: str, blocked: Callable[[Turn], Awaitable[None]]) -> list[Turn]:
    """All that a watch shows of the turn of a prompt, at whose BLOCKED somebody acts."""
    async with one.watch() as watch:
        turn = await one.ask(prompt)
        shown = await watch.until(lambda event: event.turn.name == turn.name and event.turn.state == Turn.STATE_BLOCKED)
        await blocked(shown.turn)
        end = await one.end(turn)
        await watch.until(lambda event: event.turn.name == turn.name and event.turn.revision >= end.revision)
        return [event.turn for event in watch.events if event.turn.name == turn.name]


_UNBAR: Final = """(() => {
  const look = () => {
    const bar = document.querySelector("#bar");
    bar ? bar.remove() : setTimeout(look, 50);
  };
  look();
})()"""
REASONS: Final = {
    "sign-in": "PROVIDER_SIGN_IN_REQUIRED",
    "challenge": "PROVIDER_CHALLENGE_SHOWN",
    "consent": "PROVIDER_CONSENT_REQUIRED",
}


@pytest.mark.parametrize("kind", REASONS)
async def test_blocked_before(kind: str, server: Server, site: Site, person: Person) -> None:
    """What a person has to see to is told in one change; nothing is typed until it is gone (SUB-12, FIN-08, SES-10)."""
    one = await talk(server, f"hostile-barred-{kind}")
    prompt = unique()
    typed: list[str] = []

    async def act(_turn: Turn) -> None:
        page = await page_of(one, person)
        await asyncio.sleep(0.7)  # for several looks, which all see the same
        typed.append(await person.evaluate(page, "document.querySelector('textarea').value"))
        await person.evaluate(page, "engine.unbar()")

    seen = await _through(one, prompt, act)

    assert states(seen) == ["PENDING", "BLOCKED", "PENDING", "SUBMITTING", "RUNNING", "SUCCEEDED"]
    blocked = seen[1]
    assert (blocked.error.reason, dict(blocked.error.metadata)) == (
        REASONS[kind],
        {"provider": f"hostile-barred-{kind}", "tab": (await one.session()).tab},
    )
    assert (typed, len(site.received(prompt))) == ([""], 1)
    assert not any(turn.HasField("error") for turn in (*seen[:1], *seen[2:]))


@pytest.mark.long
async def test_sent_while_blocked(server: Server, site: Site, person: Person) -> None:
    """Who signs in and presses Enter sends what was typed, and the service does not send it again (O-132, SUB-12)."""
    one = await talk(server, "hostile-barred-bars-typed")
    prompt = site.answer(
        unique(), answer(show(6, user=False, stop=0), grow("An answer.", 0.3), show(0, stop=0, done=True))
    )
    turn = await one.ask(prompt)
    await one.when(turn, Turn.STATE_BLOCKED)
    await person.evaluate(await page_of(one, person), "engine.unbar(); void engine.press()")
    await one.end(turn)

    assert len(site.received(prompt)) == 1


async def test_blocked_in_answer(server: Server, site: Site, person: Person) -> None:
    """In mid-answer too, and the answer is whole in the end; streams show it (FIN-08, SES-10, SUB-12)."""
    one = await talk(server, "hostile-barred")
    site.answer(
        prompt := unique(),
        answer(
            show(0.05),
            grow("half", 0.3),
            show(1, do="engine.bar('challenge')"),
            grow("half whole", 0.3),
            show(0, stop=0, done=True),
        ),
    )
    streamed: list[Turn] = []

    async def stream(turn: Turn) -> None:
        call = server.ai.StreamAnswer(StreamAnswerRequest(name=turn.name), timeout=2 * LIMIT)
        async for shown in (reply.turn async for reply in call if reply.HasField("turn")):
            streamed.append(shown)  # noqa: PERF401 - seen while it goes on

    async def act(turn: Turn) -> None:
        streams.append(asyncio.ensure_future(stream(turn)))
        await _until(lambda: bool(streamed))
        await person.evaluate(await page_of(one, person), "engine.unbar()")

    streams: list[asyncio.Future[None]] = []
    seen = await _through(one, prompt, act)
    await asyncio.gather(*streams)

    assert states(seen) == ["PENDING", "SUBMITTING", "RUNNING", "BLOCKED", "RUNNING", "SUCCEEDED"]
    assert states(streamed) == ["BLOCKED", "RUNNING", "SUCCEEDED"]
    assert (seen[3].error.reason, seen[-1].answer_markdown) == ("PROVIDER_CHALLENGE_SHOWN", "")
    assert ((await one.end(seen[-1])).answer_markdown, len(site.received(prompt))) == ("half whole", 1)


async def test_limit(server: Server, site: Site) -> None:
    """A limit before the press ends the turn, with the time at which it ends if that is shown (SUB-12, SUB-21)."""
    one = await talk(server, "hostile-barred-limit")
    prompt = unique()
    turn = await one.answer(prompt)

    assert told(turn) == ("PROVIDER_LIMITED", "no")
    reset = datetime.fromisoformat(turn.error.metadata["reset_time"])
    left = reset - datetime.now(UTC)
    assert 6600 < left.total_seconds() <= 7200
    assert (turn.error.metadata["retry"], turn.error.retry_delay.seconds // 3600) == ("safe", 2)
    assert not site.received(prompt)


async def test_words(server: Server, site: Site) -> None:
    """Words of a way in that stand in title, sidebar or an older turn stop nothing (FIN-16)."""
    one = await talk(server, "hostile-words")
    prompts = [unique(), unique()]

    assert [told(await one.answer(prompt)) for prompt in prompts] == [(SUCCEEDED, "")] * 2
    assert [len(site.received(prompt)) for prompt in prompts] == [1, 1]


async def test_cancel_while_blocked(server: Server, site: Site, person: Person) -> None:
    """A turn that is blocked can be cancelled, and the next prompt is sent once nothing blocks it (SUB-12, O-138)."""
    one = await talk(server, "hostile-barred-consent")

    async def act(turn: Turn) -> None:
        await one.cancel(turn)

    seen = await _through(one, prompt := unique(), act)
    await person.evaluate(await page_of(one, person), "engine.unbar()")

    assert states(seen) == ["PENDING", "BLOCKED", "CANCELLED"]
    assert told(await one.answer(unique())) == (SUCCEEDED, "")
    assert not site.received(prompt)


@pytest.mark.long
async def test_closed_while_blocked(server: Server, site: Site, person: Person) -> None:
    """A turn that is blocked before the press, and whose tab a person closes, goes on in another (SUB-12, SUB-14)."""
    one = await talk(server, "hostile-barred-challenge")
    before: list[str] = []

    async def act(_turn: Turn) -> None:
        before.append((await one.session()).tab)
        await person.close(await attached_target(one))
        await server.tabs_when(lambda tabs: any(tab.session and tab.name not in before for tab in tabs))
        await person.evaluate(await page_of(one, person), _UNBAR)

    seen = await _through(one, prompt := unique(), act)

    assert set(states(seen)) == {"PENDING", "BLOCKED", "SUBMITTING", "RUNNING", "SUCCEEDED"}
    assert (len(site.received(prompt)), (await one.session()).tab in before) == (1, False)


async def test_sign_in_host(server: Server, site: Site, person: Person) -> None:
    """A page that sends to another host to sign in blocks the turn, before and in mid-answer (SUB-12, FIN-08, O-135).

    In the end the session is at its own conversation again, not at the page that the provider shows first.
    """
    one = await talk(server, "enter-signed-out-refuse")
    away = f"location.href = 'http://localhost:{site.port}/v/no-composer/'"
    site.answer(
        second := unique(),
        answer(show(0.05), grow("half", 0.2), show(0.2, do=away), grow("half whole", 0.2), show(0, stop=0, done=True)),
    )

    async def act(_turn: Turn) -> None:
        page = await page_of(one, person)
        await person.evaluate(page, f"location.href = '{site.at('signed-out')}?signed-in'")

    seen = await _through(one, first := unique(), act)
    again = await _through(one, second, act)

    assert states(seen) == ["PENDING", "BLOCKED", "PENDING", "SUBMITTING", "RUNNING", "SUCCEEDED"]
    assert states(again) == ["PENDING", "SUBMITTING", "RUNNING", "BLOCKED", "RUNNING", "SUCCEEDED"]
    assert {turn.error.reason for turn in (seen[1], again[3])} == {"PROVIDER_SIGN_IN_REQUIRED"}
    assert [len(site.received(prompt)) for prompt in (first, second)] == [1, 1]
    assert (await one.end(again[-1])).answer_markdown == "half whole"


async def test_recovered_behind_a_bar(server: Server, site: Site, person: Person) -> None:
    """RecoverSession tells what a person has to see to, and leaves the page to them (O-140, SUB-12)."""
    one = await talk(server, "hostile-barred-sign-in")
    request = RecoverSessionRequest(name=one.name)
    received = site.received()
    reasons = [await reason(server.ai.RecoverSession(request, timeout=3 * LIMIT)) for _ in range(2)]
    tab = (await one.session()).tab
    await person.evaluate(await page_of(one, person), "engine.unbar()")
    back = await server.ai.RecoverSession(request, timeout=3 * LIMIT)

    assert reasons == ["PROVIDER_SIGN_IN_REQUIRED"] * 2
    assert (back.strategy, back.session.tab, back.previous_tab) == (RecoverSessionResponse.STRATEGY_NONE, tab, tab)
    assert site.received() == received


async def test_restart_while_blocked(server: Server, site: Site, person: Person) -> None:
    """A server that is killed while a turn is blocked takes it up where it was (O-143, SES-07, SUB-12)."""
    one = await talk(server, "hostile-barred-sign-in")
    turn = await one.ask(prompt := unique())
    await one.when(turn, Turn.STATE_BLOCKED)
    await server.restart()
    await person.evaluate(await page_of(one, person), "engine.unbar()")

    assert told(await one.end(turn)) == (SUCCEEDED, "")
    assert len(site.received(prompt)) == 1
