"""Files into chat pages: each is seen there by its name before the prompt is sent, or nothing is."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest
from tabmux.v1.session_pb2 import Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.web_ai_service_pb2 import ArtifactInfo, ReadArtifactRequest, UploadArtifactRequest

from tests.e2e.person import Person
from tests.e2e.refusals import reason, refusal
from tests.e2e.serving import LIMIT, Server
from tests.e2e.test_conversations import Talk, talk
from tests.e2e.test_entering import page_of, told
from tests.hostile.descriptors import TomlValue, describe
from tests.hostile.script import plain
from tests.hostile.site import Site

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.chromium,
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closed_afterwards"),
]

Fields = Mapping[str, TomlValue]

REFUSED: Final = "PROVIDER_ATTACHMENT_REFUSED"
OCCUPIED: Final = "PROVIDER_COMPOSER_UNUSABLE:occupied"
SUCCEEDED: Final = "SUCCEEDED"
MARKS: Final[Fields] = {
    "file_input": ["form input.file"],
    "file_chip": [".chip"],
    "file_busy": ['[role="progressbar"]'],
    "file_error": [".failed"],
    "file_remove": ["button.remove"],
}
CHOOSER: Final[Fields] = {
    **{name: marks for name, marks in MARKS.items() if name != "file_input"},
    "file_opener": ['button[aria-label="Add files and more"]'],
    "file_entry": [{"selector": '[role="menuitem"]', "text": "Upload files"}],
}
PATIENT: Final[Fields] = {"composer_wait": 15.0, "file_wait": 20.0}
QUICK: Final[Fields] = {"composer_wait": 15.0, "file_wait": 2.0}
NAMES: Final = ("notes.txt", "Übersicht der Sitzung vom 3. März.pdf")


@dataclass(frozen=True)
class Case:
    """A page, how a prompt with two files fares there, and what the composer shows of files afterwards."""

    words: str
    end: str = SUCCEEDED
    left: tuple[str, ...] = ()
    page: Fields = field(default_factory=lambda: MARKS)
    windows: Fields = field(default_factory=lambda: PATIENT)
    draft: str = "refuse"

    @property
    def variant(self) -> str:
        """Of the page."""
        return ",".join(["files", *(f"files-{word}" for word in self.words.split())])

    @property
    def provider(self) -> str:
        """Id of its descriptor."""
        return f"files-{'-'.join(['plain', *self.words.split()])}-{self.draft}"


def refused(words: str, end: str, *left: str, page: Fields = MARKS, windows: Fields = QUICK) -> Case:
    """A page in which the prompt is not sent."""
    return Case(words, end, left, page, windows)


PLAIN: Final = Case("")
STUCK: Final = Case("stuck", f"{REFUSED}:unfinished", windows=QUICK)
CASES: Final = (
    PLAIN,
    Case("chooser", page=CHOOSER),
    Case("single"),
    Case("slow"),
    Case("late"),
    Case("renamed"),
    Case("cut"),
    Case("leftover", draft="clear"),
    refused("none", f"{REFUSED}:not-shown"),
    STUCK,
    refused("error", f"{REFUSED}:failed"),
    refused("vanish", f"{REFUSED}:dropped"),
    refused("drop", f"{REFUSED}:dropped", windows={**QUICK, "composer_wait": 4.0}),
    refused("joins", f"{REFUSED}:dropped", "extra.txt", windows={**QUICK, "composer_wait": 4.0}),
    refused("leftover", OCCUPIED, "old.pdf"),
    refused("chooser dead", f"{REFUSED}:no-input", page=CHOOSER),
    refused("error stays", f"{REFUSED}:failed", "notes.txt"),
)
LONG: Final = frozenset(case.words for case in CASES) - {"", "chooser", "error", "drop"}


@pytest.fixture(scope="module")
def describe_providers(site: Site) -> Callable[[Path], None]:
    """One provider a case, and one that takes no files."""

    def write(directory: Path) -> None:
        for case in CASES:
            describe(
                directory,
                site,
                case.variant,
                provider=case.provider,
                page=case.page,
                windows=case.windows,
                tables={
                    "policy": {"draft": case.draft},
                    "limits": {"cool_down": 0, "files": 3, "file_bytes": 1000, "file_types": [".txt", "application/*"]},
                },
            )
        describe(directory, site, "plain")

    return write


async def upload(server: Server, name: str, content: bytes, media_type: str = "text/plain") -> str:
    """Name of a file that is kept."""
    info = ArtifactInfo(
        display_name=name,
        media_type=media_type,
        size_bytes=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
    )

    async def requests() -> AsyncIterator[UploadArtifactRequest]:
        yield UploadArtifactRequest(info=info)
        yield UploadArtifactRequest(chunk=content)

    return (await server.ai.UploadArtifact(requests(), timeout=LIMIT)).artifact.name


async def both(server: Server) -> list[str]:
    """Two files of names that are hard to tell, and of content that is found nowhere else."""
    return [await upload(server, name, _content(name), "application/octet-stream") for name in NAMES]


def _content(name: str) -> bytes:
    return f"What is in {name}".encode()


def sent(site: Site, prompt: str) -> list[tuple[tuple[str, str], ...]]:
    """The files that came with this prompt, each time that it came."""
    return [one.files for one in site.received(prompt)]


async def chips(one: Talk, person: Person) -> list[str]:
    """Names of the files that the composer of a session's page shows."""
    page = await page_of(one, person)
    found = await person.evaluate(page, "[...document.querySelectorAll('.chip .name')].map((name) => name.innerText)")
    assert isinstance(found, list)
    return found


BOTH: Final = tuple((name, hashlib.sha256(_content(name)).hexdigest()) for name in NAMES)


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.provider, marks=[pytest.mark.long] if case.words in LONG else []) for case in CASES],
)
async def test_case(case: Case, server: Server, site: Site, person: Person) -> None:
    """Both files go with the prompt, or it is not sent and they are taken out again; each page by its row (SUB-19)."""
    one = await talk(server, case.provider)
    prompt = f"Prompt {uuid4().hex}"
    turn = await one.end(await one.ask(prompt, attachments=await both(server)))

    succeeded = case.end == SUCCEEDED
    assert told(turn) == (case.end, "" if succeeded else "no")
    assert sent(site, prompt) == ([BOTH] if succeeded else [])
    if succeeded:
        assert turn.answer_markdown == f"Answer to: {prompt}"
    # Where the first file stays, the second may have followed before it failed.
    assert (await chips(one, person))[: len(case.left) or None] == list(case.left)
    boxes = "document.querySelector('textarea').value"
    assert await person.evaluate(await page_of(one, person), boxes) == ""


async def test_next_prompt(server: Server, site: Site) -> None:
    """A file that stays in the composer goes with no later prompt: it is refused, with files and without (SUB-19)."""
    one = await talk(server, next(case for case in CASES if case.words == "error stays").provider)
    await one.end(await one.ask("first", attachments=await both(server)))
    prompts = [f"Prompt {uuid4().hex}" for _ in range(2)]
    turns = [
        await one.end(await one.ask(prompts[0])),
        await one.end(await one.ask(prompts[1], attachments=await both(server))),
    ]
    assert [told(turn) for turn in turns] == [(OCCUPIED, "no")] * 2
    assert [sent(site, prompt) for prompt in prompts] == [[], []]


async def test_follow_up(server: Server, site: Site) -> None:
    """Prompts with files, without, and with files again follow each other, each with its own."""
    one = await talk(server, PLAIN.provider)
    prompts = [f"Prompt {uuid4().hex}" for _ in range(3)]
    for prompt, files in zip(prompts, (True, False, True), strict=True):
        turn = await one.end(await one.ask(prompt, attachments=await both(server) if files else ()))
        assert told(turn) == (SUCCEEDED, "")
    assert [sent(site, prompt) for prompt in prompts] == [[BOTH], [()], [BOTH]]


async def test_refused_at_once(server: Server) -> None:
    """What the descriptor does not allow, and what is not there, is refused by the call; no turn is made (SEC-07)."""
    one, other = await talk(server, PLAIN.provider), await talk(server, "hostile-plain")
    good = await both(server)
    wrong = {
        "too-many": [*good, *[await upload(server, f"{number}.txt", b"x") for number in range(2)]],
        "too-large": [await upload(server, "large.txt", b"x" * 1001)],
        "type": [await upload(server, "a.png", b"x", "image/png")],
        "same-name": [await upload(server, "a.txt", b"x"), await upload(server, "A.TXT", b"y")],
    }
    found: list[tuple[str, str]] = []
    for attachments in wrong.values():
        error = await refusal(one.ask("never", attachments=attachments))
        found.append((error.reason, error.metadata["cause"]))
    assert found == [(REFUSED, cause) for cause in wrong]
    for session, names, why in (
        (other, good, "PROVIDER_UNSUPPORTED"),
        (one, ["artifacts/0000000000"], "ARTIFACT_NOT_FOUND"),
        (one, ["artifacts/x"], "INVALID_FIELD"),
        (one, [good[0], good[0]], "INVALID_FIELD"),
    ):
        assert await reason(session.ask("never", attachments=names)) == why
    assert (await one.session()).last_turn == ""


async def test_same_request(server: Server, site: Site) -> None:
    """The same files, uploaded anew or not, are the same request; others are not, and nothing is sent again (O-132)."""
    one = await talk(server, PLAIN.provider)
    prompt, key = f"Prompt {uuid4().hex}", uuid4().hex
    files = await both(server)
    turn = await one.ask(prompt, request_id=key, attachments=files)
    again = [
        await one.ask(prompt, request_id=key, attachments=files),
        await one.ask(prompt, request_id=key, attachments=await both(server)),
    ]
    for others in ([], files[:1], files[::-1], [await upload(server, NAMES[0], b"other"), files[1]]):
        assert await reason(one.ask(prompt, request_id=key, attachments=others)) == "REQUEST_ID_REUSED"
    assert [each.name for each in again] == [turn.name, turn.name]
    await one.end(turn)
    assert sent(site, prompt) == [BOTH]


async def test_gone_from_disk(server: Server) -> None:
    """A file that somebody deleted from the disk is ARTIFACT_NOT_FOUND; the page is not touched."""
    one = await talk(server, PLAIN.provider)
    name = await upload(server, "gone.txt", b"gone")
    (server.state_directory / name / "gone.txt").unlink()
    prompt = f"Prompt {uuid4().hex}"
    turn = await one.end(await one.ask(prompt, attachments=[name]))
    assert told(turn) == ("ARTIFACT_NOT_FOUND", "no")


async def test_other_content(server: Server, site: Site) -> None:
    """A browser that finds another file there than the server's own is told by `not-local`."""
    one = await talk(server, PLAIN.provider)
    name = await upload(server, "changed.txt", b"before")
    (server.state_directory / name / "changed.txt").write_bytes(b"afterwards")
    prompt = f"Prompt {uuid4().hex}"
    turn = await one.end(await one.ask(prompt, attachments=[name]))
    assert told(turn) == (f"{REFUSED}:not-local", "no")
    assert sent(site, prompt) == []


async def test_cancelled(server: Server, site: Site, person: Person) -> None:
    """A turn that is cancelled while its file is on its way sends nothing, and leaves no file in the composer."""
    one = await talk(server, STUCK.provider)
    prompt = f"Prompt {uuid4().hex}"
    async with one.watch_all() as watch:
        turn = await one.ask(prompt, attachments=await both(server))
        await watch.until(lambda event: event.tab.state == Tab.STATE_READY)
    await until_chips(one, person)
    cancelled = await one.cancel(turn, timeout=3 * LIMIT)
    assert (cancelled.state, sent(site, prompt), await chips(one, person)) == (Turn.STATE_CANCELLED, [], [])


async def until_chips(one: Talk, person: Person) -> None:
    """Return once the composer shows a file."""
    page = await page_of(one, person)
    shown = """new Promise((resolve) => {
      const look = () => document.querySelector('.chip') ? resolve(true) : setTimeout(look, 20);
      look();
    })"""
    assert await person.evaluate(page, shown, promised=True)


@pytest.mark.long
async def test_long_answer(server: Server, site: Site) -> None:
    """Of an answer that is longer than 1 MiB the whole is a file of the turn, which everybody reads who reads that."""
    one = await talk(server, PLAIN.provider)
    text = "\n\n".join(f"Paragraph {number}: {'word ' * 50}end" for number in range(4500))
    prompt = site.answer(f"Prompt {uuid4().hex}", plain(text))
    turn = await one.end(await one.ask(prompt))

    assert [warning.code for warning in turn.warnings if warning.code == "answer-cut"] == ["answer-cut"]
    (artifact,) = turn.artifacts
    assert (artifact.display_name, artifact.media_type, artifact.size_bytes) == (
        "answer.md",
        "text/markdown",
        turn.answer_size_bytes,
    )
    stranger = [("authorization", "Local stranger")]
    call = server.ai.ReadArtifact(ReadArtifactRequest(name=artifact.name), metadata=stranger, timeout=LIMIT)
    content = b"".join([reply.chunk async for reply in call])
    assert (len(content), hashlib.sha256(content).hexdigest()) == (artifact.size_bytes, artifact.sha256)
    assert content.decode().startswith(turn.answer_markdown)
    assert content.decode().split() == text.split()
