"""The HTTP edge, as a program sees it."""

import asyncio
import contextlib
import io
import json
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout, WSMsgType, WSServerHandshakeError
from tabmuxd.playground import Kind, Playground, answer_to, serve
from tabmuxd.playground.journal import JournalError

FAST = "{{seconds=0 think=0}}"
SILENT = "{{silent=1}}"


class Caller:
    """Calls one playground over its literal address, with the Host header that a browser would send."""

    def __init__(self, session: ClientSession, port: int) -> None:
        self.session = session
        self.port = port

    def host(self, kind: str) -> dict[str, str]:
        return {"Host": f"{kind}.localhost:{self.port}" if "." not in kind else kind}

    def uri(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    async def get(self, path: str, kind: str = "textarea") -> tuple[int, str, dict[str, str]]:
        async with self.session.get(self.uri(path), headers=self.host(kind), allow_redirects=False) as answer:
            return answer.status, await answer.text(), dict(answer.headers)

    async def post(
        self, path: str, body: object, kind: str = "textarea", content_type: str = "application/json"
    ) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = self.host(kind) | {"Content-Type": content_type}
        async with self.session.post(self.uri(path), data=io.BytesIO(data), headers=headers) as answer:
            return answer.status, await answer.json()

    async def submit(self, key: str, prompt: str, conversation: str = "new", kind: str = "textarea") -> dict[str, Any]:
        status, turn = await self.post(
            f"/api/conversations/{conversation}/turns", {"key": key, "prompt": prompt}, kind=kind
        )
        assert (status, turn["prompt"]) == (201, prompt)
        return turn

    async def listed(self, host: str = "127.0.0.1") -> list[dict[str, Any]]:
        _, text, _ = await self.get("/api/conversations", host)
        return json.loads(text)

    async def watch(self, turn: str, kind: str = "textarea") -> tuple[str, list[dict[str, Any]]]:
        """Text and states until the end."""
        text = ""
        seen: list[dict[str, Any]] = []
        async with self.session.ws_connect(self.uri(f"/api/turns/{turn}/watch"), headers=self.host(kind)) as socket:
            async for message in socket:
                assert message.type is WSMsgType.TEXT
                told = json.loads(message.data)
                text += told["more"]
                seen.append(told["answer"])
        return text, seen


@contextlib.asynccontextmanager
async def playing(store: Path | None = None) -> AsyncGenerator[Caller, None]:
    """A playground and its caller."""
    async with (
        Playground(store=store) as playground,
        ClientSession(timeout=ClientTimeout(total=20)) as session,
    ):
        yield Caller(session, playground.port)


async def test_start_addresses() -> None:
    """Each kind has a host of its own on one port, and an unknown kind is an error."""
    async with Playground() as playground:
        uris = [playground.start_uri(kind) for kind in ("textarea", "editor", "shadow")]
        assert uris == [f"http://{kind}.localhost:{playground.port}/" for kind in Kind]
        with pytest.raises(ValueError, match="other"):
            playground.start_uri("other")


async def test_pages_by_host() -> None:
    """The Host header decides the page; each has its box, all decoys and a strict policy."""
    async with playing() as caller:
        pages = [await caller.get("/", kind) for kind in Kind]
    found = [
        (
            status,
            re.findall(r'data-kind="(\w+)"', text),
            text.count('<textarea id="prompt"'),
            text.count('<div id="prompt" class="box" contenteditable="true" role="textbox"'),
            text.count('<chat-app><template shadowrootmode="open">'),
            text.count('class="twin" name="prompt-textarea"'),
            text.count("<!--"),
            headers["Content-Security-Policy"].partition(";")[0],
            headers["Cache-Control"],
        )
        for status, text, headers in pages
    ]
    policy = ("default-src 'none'", "no-store")
    assert found == [
        (200, ["textarea"], 1, 0, 0, 1, 0, *policy),
        (200, ["editor"], 0, 1, 0, 1, 0, *policy),
        (200, ["shadow"], 1, 0, 1, 1, 0, *policy),
    ]


async def test_not_found() -> None:
    """Unknown hosts, addresses and files are 404 in JSON; an unknown conversation's page leads to a new one."""
    async with playing() as caller:
        answers = [
            await caller.get("/", "localhost.example"),
            await caller.get("/", "127.0.0.1"),
            await caller.get("/api/conversations", "other.localhost"),
            await caller.get("/nothing"),
            await caller.get("/static/../server.py"),
            await caller.get("/static/server.py"),
            await caller.get("/api/conversations/0123456789ab"),
        ]
        page = await caller.get("/c/0123456789ab")
    assert [(status, json.loads(text)["error"]["code"]) for status, text, _ in answers] == [(404, "not_found")] * 7
    assert (page[0], page[2]["Location"]) == (302, "/")


async def test_answer_is_streamed() -> None:
    """FIN-20: a watch tells the whole answer in growing pieces, and one opened after the end tells it at once."""
    prompt = "Tell me\nsomething 🙂 {{seconds=0.4 think=0}}"
    async with playing() as caller:
        turn = await caller.submit("k1", prompt, kind="editor")
        text, seen = await caller.watch(turn["id"], "editor")
        late_text, late_seen = await caller.watch(turn["id"], "editor")
    counts = [answer["characters"] for answer in seen]
    assert (text, counts, len(counts) > 2, seen[-1]["state"]) == (answer_to(prompt), sorted(counts), True, "done")
    assert (late_text, late_seen) == (text, [seen[-1]])


async def test_exact_counts() -> None:
    """SUB-16: the list holds each submitted prompt once, equal texts twice, a repeated key not."""
    async with playing() as caller:
        first = await caller.submit("k1", f"same {FAST}")
        await caller.submit("k1", f"same {FAST}")
        await caller.submit("k2", f"same {FAST}", first["conversation"])
        await caller.submit("k3", f"same {FAST}", kind="shadow")
        everything, of_one_kind = await caller.listed(), await caller.listed("shadow")
    assert [
        (conversation["kind"], [(turn["prompt"], turn["answer"]["state"]) for turn in conversation["turns"]])
        for conversation in everything
    ] == [
        ("textarea", [(f"same {FAST}", "done"), (f"same {FAST}", "done")]),
        ("shadow", [(f"same {FAST}", "done")]),
    ]
    assert of_one_kind == everything[1:]


async def test_stop() -> None:
    """FIN-05: Stop ends the answer and its watch; the next prompt is taken then, and not before."""
    async with playing() as caller:
        turn = await caller.submit("k1", SILENT)
        refused = await caller.post(f"/api/conversations/{turn['conversation']}/turns", {"key": "k2", "prompt": "next"})
        watch = asyncio.create_task(caller.watch(turn["id"]))
        status, stopped = await caller.post(f"/api/turns/{turn['id']}/stop", {})
        again = await caller.post(f"/api/turns/{turn['id']}/stop", {})
        _, seen = await watch
        await caller.submit("k2", FAST, turn["conversation"])
    assert (refused[0], refused[1]["error"]["code"]) == (409, "turn_in_progress")
    assert (status, stopped["answer"]["state"], again, seen[-1]) == (200, "stopped", (200, stopped), stopped["answer"])


async def test_restart(tmp_path: Path) -> None:
    """SUB-03: conversations outlive the playground that has a store, and a running answer goes on."""
    store = tmp_path / "conversations"
    async with playing(store) as caller:
        done = await caller.submit("k1", f"one {FAST}")
        running = await caller.submit("k2", f"two {SILENT}", kind="editor")
        before = await caller.listed()
        with pytest.raises(JournalError):
            await Playground(store=store).__aenter__()
    async with playing(store) as caller:
        after = await caller.listed()
        repeated = await caller.submit("k1", f"one {FAST}")
        _, text, _ = await caller.get(f"/api/conversations/{done['conversation']}")
        stopped = await caller.post(f"/api/turns/{running['id']}/stop", {}, kind="editor")
    assert (after, repeated["id"], stopped[1]["answer"]["state"]) == (before, done["id"], "stopped")
    assert json.loads(text)["turns"][0]["text"] == answer_to(f"one {FAST}")


async def test_malformed() -> None:
    """SEC-08: each malformed request is told by a code, and nothing is kept."""
    path = "/api/conversations/new/turns"
    good = {"key": "k", "prompt": "p"}
    async with playing() as caller:
        answers = [
            await caller.post(path, b"{"),
            await caller.post(path, b"\xff"),
            await caller.post(path, b"[" * 100_000),
            await caller.post(path, []),
            await caller.post(path, {"key": 1, "prompt": "p"}),
            await caller.post(path, {"key": "k"}),
            await caller.post(path, good, content_type="text/plain"),
            await caller.post(path, {"key": "k", "prompt": " "}),
            await caller.post(path, b'{"key": "k", "prompt": "\\ud800"}'),
            await caller.post(path, {"key": "k", "prompt": "x" * (2 * 1024 * 1024 + 1)}),
            await caller.post(path, b" " * (13 * 1024 * 1024)),
            await caller.post("/api/conversations/0123456789ab/turns", good),
            await caller.post("/api/turns/0123456789ab/stop", {}),
            await caller.post("/api/conversations", {}),
        ]
        kept = await caller.listed()
    assert [(status, body["error"]["code"]) for status, body in answers] == [
        *[(400, "malformed")] * 7,
        (400, "prompt_empty"),
        (400, "malformed"),
        (413, "prompt_too_large"),
        (413, "prompt_too_large"),
        (404, "not_found"),
        (404, "not_found"),
        (405, "method_not_allowed"),
    ]
    assert kept == []


async def test_largest_prompt() -> None:
    """SUB-07: a prompt of exactly 2 MiB is stored whole."""
    prompt = "é" * (1024 * 1024)
    async with playing() as caller:
        await caller.submit("k1", prompt)
        assert [turn["prompt"] == prompt for turn in (await caller.listed())[0]["turns"]] == [True]


async def test_foreign_pages() -> None:
    """A page of another origin, and a page of another kind, cannot watch a turn."""
    async with playing() as caller:
        turn = await caller.submit("k1", SILENT)
        uri = caller.uri(f"/api/turns/{turn['id']}/watch")
        statuses = []
        for headers in (caller.host("textarea") | {"Origin": "http://example.org"}, caller.host("editor")):
            with pytest.raises(WSServerHandshakeError) as refused:
                await caller.session.ws_connect(uri, headers=headers)
            statuses.append(refused.value.status)
    assert statuses == [404, 404]


async def test_titles() -> None:
    """The sidebar's titles are the first words of the latest conversations of the kind, newest first."""
    async with playing() as caller:
        await caller.submit("k0", "of another kind", kind="editor")
        turns = [await caller.submit(f"k{number}", f"number\n{number}") for number in range(1, 15)]
        _, text, _ = await caller.get("/api/titles")
    assert json.loads(text) == [
        {"id": turns[number - 1]["conversation"], "title": f"number {number}"} for number in range(14, 2, -1)
    ]


async def test_end_with_watches_open() -> None:
    """The playground ends at once although an answer is watched that never ends."""
    async with ClientSession() as session:
        async with Playground() as playground:
            caller = Caller(session, playground.port)
            turn = await caller.submit("k1", SILENT)
            socket = await session.ws_connect(
                caller.uri(f"/api/turns/{turn['id']}/watch"), headers=caller.host("textarea")
            )
            await socket.receive()
        assert (await socket.receive()).type in (WSMsgType.CLOSE, WSMsgType.CLOSED)
        await socket.close()


async def test_serve(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """`serve` prints one line with the three addresses once it listens, and ends when cancelled."""
    task = asyncio.create_task(serve(0, tmp_path / "store"))
    line = ""
    async with asyncio.timeout(10):
        while not line:
            await asyncio.sleep(0)
            line = capsys.readouterr().out
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert re.fullmatch(
        r"playground: http://textarea\.localhost:(\d+)/ http://editor\.localhost:\1/ http://shadow\.localhost:\1/\n",
        line,
    )
