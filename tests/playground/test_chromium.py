"""The pages in a real browser, driven as the service drives them: text by insertText, buttons by the mouse."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import websocket
from tabmuxd.playground import Kind, answer_to

pytestmark = [pytest.mark.chromium, pytest.mark.long]

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup",
    "--remote-debugging-port=0",
    "--window-size=1280,900",
)
KINDS = [kind.value for kind in Kind]
SECONDS = 15
TEXT = "First line\n\n  third, with  spaces \tand 🙂 <b>&amp;</b>\nשלום /last\n"

# Within a page: everything is looked up in the shadow root where there is one.
PRELUDE = """
const root = document.querySelector("chat-app")?.shadowRoot ?? document;
const find = (selector) => root.querySelector(selector);
const send = () => find('form[data-testid="composer"] button[data-testid="send-button"]');
const stop = () => find('form[data-testid="composer"] button[data-testid="stop-button"]');
const prompts = () => [...root.querySelectorAll('[data-turn="user"] .prompt')].map((node) => node.textContent);
const answers = () => [...root.querySelectorAll('[data-turn="assistant"] .markdown')];
const marks = () => root.querySelectorAll(
  '[data-turn="assistant"] button[data-testid="copy-turn-action-button"]').length;
const ids = () => [...root.querySelectorAll("[data-turn]")].map((node) => node.dataset.turnId);
const alerts = () => [...root.querySelectorAll('[role="alert"]')].map((node) => node.textContent);
const box = () => find("#prompt");
const typed = () => box().value ?? box().textContent;
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A playground in a process of its own."""

    process: subprocess.Popen[str]
    port: int

    def uri(self, kind: str) -> str:
        return f"http://{kind}.localhost:{self.port}/"

    def prompts(self, kind: str) -> list[str]:
        """Every prompt of a kind that has been submitted."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/conversations", headers={"Host": f"{kind}.localhost"}
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
            return [turn["prompt"] for conversation in json.load(answer) for turn in conversation["turns"]]


class Page:
    """One tab, over its own DevTools socket."""

    def __init__(self, address: str) -> None:
        self.socket = websocket.create_connection(address, timeout=SECONDS, suppress_origin=True)
        self.last_id = 0

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        self.last_id += 1
        self.socket.send(json.dumps({"id": self.last_id, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv())
            if message.get("id") == self.last_id:
                assert "error" not in message, message["error"]
                return message["result"]

    def evaluate(self, expression: str) -> Any:  # noqa: ANN401 - whatever the page returns
        reply = self.call(
            "Runtime.evaluate",
            expression=f"(async () => {{ {PRELUDE}\nreturn {expression}; }})()",
            returnByValue=True,
            awaitPromise=True,
        )
        assert "exceptionDetails" not in reply, reply
        return reply["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait for a condition, looked at by animation frames."""
        met = self.evaluate(
            f"""await new Promise((resolve) => {{
              const limit = performance.now() + {SECONDS * 1000};
              const look = () => ({condition}) ? resolve(true)
                : performance.now() > limit ? resolve(false) : requestAnimationFrame(look);
              look();
            }})"""
        )
        assert met, condition

    def open(self, uri: str) -> None:
        self.call("Page.enable")
        self.call("Page.navigate", url=uri)
        while json.loads(self.socket.recv()).get("method") != "Page.loadEventFired":
            pass
        self.until('document.documentElement.dataset.ready === "1"')

    def click(self, element: str) -> None:
        x, y = self.evaluate(
            f"(() => {{ const b = ({element}).getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        self.click("box()")
        self.call("Input.insertText", text=text)
        self.until("send() && !send().disabled")

    def submit(self, text: str) -> None:
        self.write(text)
        self.click("send()")

    def enter(self, modifiers: int = 0) -> None:
        key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": modifiers}
        self.call("Input.dispatchKeyEvent", type="keyDown", text="\r", **key)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Generator[None, None, None]:
    """End a process at the end of the block."""
    try:
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)


def start_server(port: int, store: Path) -> Server:
    """Start a playground and wait until it listens."""
    code = (
        "import asyncio, sys, pathlib; from tabmuxd.playground import serve;"
        "asyncio.run(serve(int(sys.argv[1]), pathlib.Path(sys.argv[2])))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(port), str(store)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    with process.stdout as output:
        line = output.readline()
    return Server(process, int(line.split(":")[-1].strip("/\n")))


@pytest.fixture(scope="module")
def chromium() -> Iterator[str]:
    """Address of a browser's HTTP interface."""
    profile = tempfile.mkdtemp(prefix="tm")
    with subprocess.Popen(
        ["/usr/bin/chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        with ended(process):
            address = next(line.split("/")[2] for line in process.stderr if line.startswith("DevTools listening on"))
            yield f"http://{address}"
    shutil.rmtree(profile, ignore_errors=True)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A playground with a store."""
    started = start_server(0, tmp_path / "store")
    with ended(started.process):
        yield started


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    """A tab in front."""
    request = urllib.request.Request(f"{chromium}/json/new?about:blank", method="PUT")  # noqa: S310 - loopback
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310 - as above
        target = json.load(answer)
    opened = Page(target["webSocketDebuggerUrl"])
    yield opened
    opened.socket.close()
    with urllib.request.urlopen(f"{chromium}/json/close/{target['id']}", timeout=SECONDS):  # noqa: S310 - as above
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_conversation(kind: str, server: Server, page: Page) -> None:
    """SUB-06, SUB-07, FIN-17: text goes in exactly, the answer streams to its mark, and a reload shows both."""
    page.open(server.uri(kind))
    before = page.evaluate("[send().disabled, stop(), prompts(), location.pathname]")
    page.submit(TEXT + "{{seconds=1.5}}")
    page.until("stop() && answers()[0]?.textContent.length > 40")
    during = page.evaluate("[send(), marks(), typed()]")
    page.until("marks() === 1")
    done = page.evaluate("[send().disabled, stop(), prompts(), answers()[0].querySelectorAll('li').length, alerts()]")
    shown, address, turn_ids = page.evaluate("[answers()[0].innerText, location.pathname, ids()]")
    assert before == [True, None, [], "/"]
    assert during == [None, 0, ""]
    assert done == [True, None, [TEXT + "{{seconds=1.5}}"], 3, []]
    markdown = answer_to(TEXT + "{{seconds=1.5}}")
    assert "".join(shown.split()) == "".join(markdown.replace("**", "").replace("`", "").replace("\n- ", "").split())
    assert server.prompts(kind) == [TEXT + "{{seconds=1.5}}"]

    page.open(server.uri(kind)[:-1] + address)
    page.until("marks() === 1")
    assert page.evaluate("[answers()[0].innerText, location.pathname, ids()]") == [shown, address, turn_ids]
    page.submit("next {{seconds=0.2}}")
    page.until("marks() === 2")
    assert page.evaluate("[prompts().length, location.pathname, new Set(ids()).size]") == [2, address, 4]


@pytest.mark.parametrize("kind", KINDS)
def test_stop(kind: str, server: Server, page: Page) -> None:
    """FIN-05: Stop ends the answer, and what was written stays."""
    page.open(server.uri(kind))
    page.submit("stop me {{pause=600}}")
    page.until("answers()[0]?.textContent.length > 200")
    page.click("stop()")
    page.until("!stop() && marks() === 1")
    shown = page.evaluate("answers()[0].innerText")
    assert shown.startswith("You wrote “stop me”.")
    assert len(shown) < len(answer_to("stop me {{pause=600}}"))


@pytest.mark.parametrize("kind", KINDS)
def test_running_answer_survives(kind: str, server: Server, page: Page, tmp_path: Path) -> None:
    """SUB-03, FIN-18: an answer goes on after a reload, and after the playground is started again."""
    page.open(server.uri(kind))
    page.submit("go on {{pause=3}}")
    page.until("stop() && answers().length === 1 && location.pathname !== '/'")
    page.open(page.evaluate("location.href"))
    page.until("stop() && answers().length === 1")
    with ended(server.process):
        pass
    with ended(start_server(server.port, tmp_path / "store").process):
        page.until("marks() === 1")
        assert server.prompts(kind) == ["go on {{pause=3}}"]
    assert page.evaluate("[prompts(), answers()[0].lastElementChild.textContent.slice(-1)]") == [
        ["go on {{pause=3}}"],
        "✔",
    ]


def test_enter(server: Server, page: Page) -> None:
    """SUB-06: in the editor Enter sends and Shift+Enter makes a line; in the textarea Enter makes a line."""
    page.open(server.uri("editor"))
    page.write("one")
    page.enter(modifiers=8)
    page.call("Input.insertText", text="two")
    page.enter()
    page.until("prompts().length === 1")
    page.open(server.uri("textarea"))
    page.write("one")
    page.enter()
    assert page.evaluate("[typed(), prompts()]") == ["one\n", []]
    assert (server.prompts("editor"), server.prompts("textarea")) == (["one\ntwo"], [])


@pytest.mark.parametrize("kind", KINDS)
def test_presses(kind: str, server: Server, page: Page) -> None:
    """SUB-04, SUB-05: a page that ignores the press keeps the text and sends nothing; a deaf one hears the second."""
    page.open(server.uri(kind))
    page.submit("no {{press=ignore}}")
    page.click("send()")
    page.until("typed() === 'no {{press=ignore}}' && !send().disabled")
    page.open(server.uri(kind))
    page.submit("yes {{press=deaf}}")
    page.until("typed() === 'yes {{press=deaf}}' && !send().disabled")
    before = server.prompts(kind)
    page.click("send()")
    page.until("prompts().length === 1")
    assert (before, server.prompts(kind)) == ([], ["yes {{press=deaf}}"])


def test_before_hydration(server: Server, page: Page) -> None:
    """SUB-09: the composer stands in the page at once, and what is put in before the page listens is lost."""
    page.call("Page.enable")
    early = """
      new MutationObserver((changes, observer) => {
        const box = document.querySelector("#prompt");
        if (!box) return;
        observer.disconnect();
        box.value = "early";
      }).observe(document, { childList: true, subtree: true });
    """
    page.call("Page.addScriptToEvaluateOnNewDocument", source=early)
    page.open(server.uri("textarea"))
    assert page.evaluate("[typed(), send().disabled]") == ["", True]


def test_decoys(server: Server, page: Page) -> None:
    """SUB-10, FIN-16: a hidden twin, a search box, and "Stop" and "Thinking" in a title stand beside the real ones."""
    page.open(server.uri("textarea"))
    assert page.evaluate(
        """[
          getComputedStyle(find('textarea[name="prompt-textarea"]')).display,
          find('.sidebar input').getAttribute("role"),
          find('.sidebar li').textContent,
        ]"""
    ) == ["none", "textbox", "Thinking about Stop signs"]


@pytest.mark.parametrize(
    ("directives", "condition"),
    [
        ("fail=banner seconds=0", "alerts().length === 1 && answers().length === 0 && !stop()"),
        ("fail=late seconds=0", "alerts().length === 1 && answers().length === 1 && marks() === 0 && !stop()"),
        ("fail=cut seconds=0", "answers()[0]?.textContent.length > 200 && marks() === 0 && !stop()"),
        ("done=never seconds=0", "answers()[0]?.textContent.endsWith('✔') && marks() === 0 && !stop()"),
        ("silent=1", "prompts().length === 1 && answers().length === 0 && stop()"),
        ("stop_gap=600 seconds=0", "answers()[0]?.textContent.length > 200 && marks() === 0 && !stop()"),
        ("commit=600", "location.pathname === '/' && typed() === '' && prompts().length === 0 && stop()"),
        ("placeholder=1", "answers()[0]?.textContent === 'Thinking' && stop()"),
        ("code=1 seconds=0", "find('pre button') && find('pre code').textContent.startsWith('for') && marks() === 1"),
    ],
)
def test_directives(directives: str, condition: str, server: Server, page: Page) -> None:
    """FIN-02, FIN-07, FIN-10, FIN-11, SUB-05: each directive shows on the page as it says."""
    page.open(server.uri("textarea"))
    page.submit(f"please {{{{{directives}}}}}")
    page.until(condition)
    assert server.prompts("textarea") == [f"please {{{{{directives}}}}}"]


def test_copy(server: Server, page: Page) -> None:
    """FIN-21: the answer's copy button writes its exact Markdown."""
    page.open(server.uri("editor"))
    page.submit("copy {{seconds=0}}")
    page.until("marks() === 1")
    page.evaluate("void (navigator.clipboard.writeText = async (text) => { window.copied = text; })")
    page.click("find('[data-testid=copy-turn-action-button]')")
    page.until("window.copied !== undefined")
    assert page.evaluate("window.copied") == answer_to("copy {{seconds=0}}")


def test_long_answer(server: Server, page: Page) -> None:
    """FIN-23: 60,000 characters arrive whole."""
    prompt = "long {{characters=60000 seconds=1}}"
    page.open(server.uri("shadow"))
    page.submit(prompt)
    page.until("marks() === 1")
    assert page.evaluate("[...answers()[0].children].map((child) => child.textContent)") == answer_to(prompt).split(
        "\n\n"
    )


def test_server_away(server: Server, page: Page) -> None:
    """A prompt that could not be handed over stays in the box, with an error shown, and nothing else."""
    page.open(server.uri("textarea"))
    with ended(server.process):
        pass
    page.submit("nobody there")
    page.until("alerts().length === 1 && !stop()")
    assert page.evaluate("[typed(), prompts()]") == ["nobody there", []]
