"""A conversation whose address comes after its first answer is the session's, unless a person went there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.web_ai_service_pb2 import RecoverSessionRequest, RecoverSessionResponse

from tests.e2e.person import Person
from tests.e2e.serving import LIMIT, Server
from tests.e2e.test_conversations import Talk, talk
from tests.e2e.test_entering import SUCCEEDED, page_of, told
from tests.hostile.descriptors import describe
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]

CHANGED: Final = ("PROVIDER_CONVERSATION_CHANGED", "no")


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider."""

    def write(directory: Path) -> None:
        describe(directory, site, "address-told")

    return write


async def _answered(server: Server, site: Site) -> tuple[Talk, str]:
    """A session whose first prompt is answered, and the address that its conversation is going to have."""
    one, prompt = await talk(server, "hostile-address-told"), f"Prompt {uuid4().hex}"
    assert told(await one.answer(prompt)) == (SUCCEEDED, "")
    assert not (await one.session()).conversation_uri
    (received,) = site.received(prompt)
    return one, site.at("address-told", received.conversation)


async def _goes_on(one: Talk, site: Site, uri: str) -> None:
    """The next prompt goes to that conversation, whose address the session has."""
    prompt = f"Second {uuid4().hex}"
    assert told(await one.answer(prompt)) == (SUCCEEDED, "")
    assert (await one.session()).conversation_uri == uri
    assert [uri.endswith(got.conversation) for got in site.received(prompt)] == [True]


async def test_after_the_answer(server: Server, site: Site, person: Person) -> None:
    """An address that comes after the answer is told when it comes, and the session goes on there (FIN-17)."""
    one, uri = await _answered(server, site)

    async with one.watch() as watch:
        await person.evaluate(await page_of(one, person), "giveAddress()")
        await watch.until(lambda event: event.session.conversation_uri == uri)

    await _goes_on(one, site, uri)


@pytest.mark.long
async def test_after_a_restart(server: Server, site: Site, person: Person) -> None:
    """So it is at the next prompt, and with RecoverSession, of a server that began since (FIN-17, O-143)."""
    (prompted, first), (recovered, second) = await _answered(server, site), await _answered(server, site)
    await server.restart()
    for one in (prompted, recovered):
        await person.evaluate(await page_of(one, person), "giveAddress()")

    back = await server.ai.RecoverSession(RecoverSessionRequest(name=recovered.name), timeout=3 * LIMIT)

    assert (back.strategy, back.session.conversation_uri) == (RecoverSessionResponse.STRATEGY_NONE, second)
    await _goes_on(prompted, site, first)


@pytest.mark.long
@pytest.mark.parametrize("doing", ["mouse", "back", "twice", "another-document", "other-text"])
async def test_by_a_person(doing: str, server: Server, site: Site, person: Person) -> None:
    """Where a person may have led the page there, it is not the session's, and nothing is typed (O-135, FIN-17)."""
    one, uri = await _answered(server, site)
    page = await page_of(one, person)
    match doing:
        case "mouse":
            for kind in ("mousePressed", "mouseReleased"):
                await person.call("Input.dispatchMouseEvent", page, type=kind, x=9, y=9, button="left", clickCount=1)
            await person.evaluate(page, "giveAddress()")
        case "back":
            other = site.at("address-told", site.begin([(f"Other {uuid4().hex}", "For somebody else")]))
            gone = f"""new Promise((done) => {{
              addEventListener("popstate", () => done(true), {{once: true}});
              history.replaceState(null, "", "{other}");
              history.pushState(null, "", "{site.at("address-told")}");
              history.back();
            }})"""
            await person.call("Runtime.evaluate", page, expression=gone, awaitPromise=True)
        case "twice":
            other = site.at("address-told", site.begin([(f"Other {uuid4().hex}", "For somebody else")]))
            await person.evaluate(page, f"giveAddress(), history.pushState(null, '', '{other}'), 0")
        case "another-document":
            # Not `giveAddress` and then a reload: the service may see the address between the two, and is right then.
            await person.evaluate(page, f"location.assign('{uri}'), 0")
        case _:
            text = "document.querySelector('.prompt').textContent = 'Another prompt'"
            await person.evaluate(page, f"{text}; giveAddress()")

    turn = await one.answer(prompt := f"Second {uuid4().hex}")

    assert told(turn) == CHANGED
    assert (site.received(prompt), (await one.session()).conversation_uri) == ([], "")
