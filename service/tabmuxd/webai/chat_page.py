"""Acting in one chat page: looking, typing and pressing, through the tab's own DevTools session."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, cast

from tabmuxd.cdp.errors import CdpError, ProtocolError
from tabmuxd.tabs.page import Page
from tabmuxd.webai.page_script import marks_of, page_script
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.providers.marks import PageMarks
from tabmuxd.webai.samples import Sample, sample_of
from tabmuxd.webai.submission import pieces

_BINDING: Final = "tabmuxChanged"
_SCRIPTS: Final = resources.files("tabmuxd.webai.providers")
_ANSWER: Final = _SCRIPTS.joinpath("answer.js").read_text("utf-8")
_CLIPBOARD: Final = _SCRIPTS.joinpath("clipboard.js").read_text("utf-8")
_PIECE_TIMEOUT: Final = 15.0
_LOOK_TIMEOUT: Final = 5.0
_LEAST_INTERVAL: Final = 0.1
_COPY_WAIT: Final = 1.5
_NOBODY_SINCE: Final = 10.0
_SCRIPT: Final = page_script("page")
# An input that stands in no document: only the service's own world has it.
_PROBE: Final = "Object.assign(document.createElement('input'), {type: 'file'})"
_READ_PROBE: Final = """async function (count) {
  const file = this.files[0];
  try {
    return [file.size, [...new Uint8Array(await file.slice(0, count).arrayBuffer())]];
  } catch {
    return null;
  }
}"""


@lru_cache(maxsize=64)
def _told(marks: PageMarks) -> tuple[str, str]:
    """By what the page script is known that reads by these marks, and the marks as it gets them."""
    told = marks_of(marks)
    identity = hashlib.sha256(f"{_SCRIPT}\n{json.dumps(told)}".encode()).hexdigest()[:16]
    return identity, json.dumps({**told, "identity": identity})


class PageNotAnswering(Exception):
    """The page script gave nothing that can be read; look again later."""


class ChatPage:
    """The page script in one page. After each new document it is put in anew, once."""

    def __init__(self, page: Page, descriptor: Descriptor) -> None:
        """Listen for "changed"; `close` stops it."""
        self.page = page
        self._descriptor = descriptor
        self._identity, self._marks = _told(descriptor.marks)
        self._changed = asyncio.Event()
        self._last_look = 0.0
        self._stop: list[Callable[[], None]] = [
            page.session.on("Runtime.bindingCalled", self._binding_called),
            page.on_change(self._changed.set),
        ]

    def close(self) -> None:
        """Listen no more; the page is left as it is."""
        for stop in self._stop:
            stop()
        self._stop.clear()

    async def look(
        self, known: tuple[str, ...] | None, *, at_once: bool = False, focus: bool = False, ready_within: float = 0.0
    ) -> Sample:
        """What the page shows now; turns whose key is in `known` without their text, and with None all of them.

        At most 10 times a second unless `at_once`, for a single look. `focus`: a composer that takes a prompt gets the
        focus in the same step. `ready_within`: the page waits for so many seconds until what the composer holds can be
        sent, and shows itself at that moment.

        Raises CdpError, or PageNotAnswering where the document changed under the look.
        """
        loop = asyncio.get_running_loop()
        if not at_once:
            await asyncio.sleep(max(0.0, self._last_look + _LEAST_INTERVAL - loop.time()))
        self._changed.clear()
        self._last_look = loop.time()
        if ready_within:
            expression = f"tabmux.sampleReady({json.dumps(known)}, {ready_within * 1000})"
        else:
            expression = f"tabmux.sample({json.dumps(known)}, {json.dumps(focus)})"
        value = await self._run(expression, promised=ready_within > 0)
        if not isinstance(value, dict):
            raise PageNotAnswering
        try:
            return sample_of(cast("dict[str, object]", value))
        except ValueError as error:
            raise PageNotAnswering from error

    async def changed(self, within: float) -> None:
        """Wait until the page said that something changed, or `within` seconds are over."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return

    async def clear(self, reading: int) -> bool:
        """Empty the composer, as a person would: select all, delete; only if it holds what it held in that look."""
        selected = bool(await self._run(f"tabmux.selectAll({reading})"))
        if selected:
            await self.press_key("Backspace", 8, ("deleteBackward",))
        return selected

    async def press_key(self, key: str, code: int, commands: tuple[str, ...] = ()) -> None:
        """Press a key where the focus is; `code` is its number on Windows. Raises CdpError."""
        for kind in ("rawKeyDown", "keyUp"):
            told = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}
            await self.page.call("Input.dispatchKeyEvent", {**told, "commands": list(commands)} if commands else told)

    async def choosing(self, call: str) -> object:
        """What a function of `choosing.js` gives, called so; raises CdpError, PageNotAnswering."""
        return await self._run(f"tabmux.choosing.{call}", gesture=True)

    async def focus(self, path: str) -> str:
        """Give the composer the focus, its caret at the end, if the page is at this path; "focused", or why not."""
        return str(await self._run(f"tabmux.focus({json.dumps(path)})"))

    async def type(self, text: str, path: str) -> None:
        """Put `text` where the focus is, in pieces, over this page's own session; raises CdpError.

        Each piece goes to the end of the composer: some editors leave the caret elsewhere. Where that is not possible
        any more, or the page is not at this path, the rest is not typed.
        """
        first, *others = pieces(text)
        await self._insert(first)
        for piece in others:
            if await self.focus(path) != "focused":
                return
            await self._insert(piece)

    async def paste(self, text: str) -> bool:
        """Give a rich editor that has the focus the whole text to paste; whether it took it."""
        return bool(await self._run(f"tabmux.paste({json.dumps(text)})"))

    async def _insert(self, text: str) -> None:
        await self.page.call("Input.insertText", {"text": text}, timeout=_PIECE_TIMEOUT)

    async def press(self, reading: int, wanted: str = "null") -> str:
        """Look once more and press send, in one step of the page; "pressed", or why nothing was pressed.

        All has to be as in the look `reading`, and what is `wanted` to be chosen, in JSON, has to be shown as chosen:
        else it is "model". Raises CdpError: then the press may have happened.
        """
        return str(await self._run(f"tabmux.press({reading}, {wanted})", gesture=True))

    async def open_files(self, *, entry_only: bool) -> str:
        """Press what opens the choice of files; "opener", "entry", or "" where there is none that can be pressed."""
        return str(await self._run(f"tabmux.openFiles({json.dumps(entry_only)})", gesture=True))

    @asynccontextmanager
    async def file_chooser(self) -> AsyncGenerator[asyncio.Future[int]]:
        """While inside, the page's choice of files opens for nobody: the future tells for which input, as a node.

        Raises CdpError.
        """
        chosen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def opened(params: dict[str, Any]) -> None:
            if params.get("frameId") == self.page.frame_id and "backendNodeId" in params and not chosen.done():
                chosen.set_result(int(params["backendNodeId"]))

        stop = self.page.session.on("Page.fileChooserOpened", opened)
        try:
            await self.page.call("Page.setInterceptFileChooserDialog", {"enabled": True}, timeout=_LOOK_TIMEOUT)
            yield chosen
        finally:
            stop()
            with suppress(CdpError):
                await self.page.call("Page.setInterceptFileChooserDialog", {"enabled": False}, timeout=_LOOK_TIMEOUT)

    async def remove_file(self, index: int, count: int) -> bool:
        """Press what takes out the file shown at this place, if so many are shown; False if there is none."""
        return bool(await self._run(f"tabmux.removeFile({index}, {count})", gesture=True))

    async def file_input(self, name: str, media_type: str) -> str | None:
        """Handle of the input that takes a file of this name and type; None where there is none."""
        world = await self.page.own_world(timeout=_LOOK_TIMEOUT)
        found = f"tabmux.fileInput({json.dumps(name)}, {json.dumps(media_type)})"
        return await self._handle(f'globalThis.tabmux?.identity === "{self._identity}" ? {found} : null', world)

    async def set_file(self, path: Path, **element: object) -> None:
        """Give a file input, by `objectId` or `backendNodeId`, this file of the browser's machine; raises CdpError."""
        await self.page.call("DOM.setFileInputFiles", {"files": [str(path)], **element}, timeout=_PIECE_TIMEOUT)

    async def reads(self, path: Path, size_bytes: int, beginning: bytes) -> bool:
        """Whether the browser finds this very file there: by its size and how it begins. The page sees nothing of it.

        Raises CdpError, PageNotAnswering.
        """
        world = await self.page.own_world(timeout=_LOOK_TIMEOUT)
        probe = await self._handle(_PROBE, world)
        if probe is None:
            raise PageNotAnswering
        await self.set_file(path, objectId=probe)
        params = {
            "objectId": probe,
            "functionDeclaration": _READ_PROBE,
            "arguments": [{"value": len(beginning)}],
            "awaitPromise": True,
            "returnByValue": True,
        }
        reply = await self.page.call("Runtime.callFunctionOn", params, timeout=_LOOK_TIMEOUT)
        await self.page.call("Runtime.releaseObject", {"objectId": probe}, timeout=_LOOK_TIMEOUT)
        return bool(reply.get("result", {}).get("value") == [size_bytes, list(beginning)])

    async def _handle(self, expression: str, world: int) -> str | None:
        """Handle of the object that an expression gives; None where it gives none."""
        params = {"expression": expression, "contextId": world}
        try:
            reply = await self.page.call("Runtime.evaluate", params, timeout=_LOOK_TIMEOUT)
        except ProtocolError as error:
            self.page.forget_world()
            raise PageNotAnswering from error
        handle = cast("dict[str, Any]", reply.get("result", {})).get("objectId")
        return handle if isinstance(handle, str) and "exceptionDetails" not in reply else None

    async def press_stop(self) -> bool:
        """Press the one Stop control that is shown; False if there is none, or more than one."""
        return bool(await self._run("tabmux.pressStop()", gesture=True))

    async def answer_words(self, keys: tuple[str, ...]) -> str:
        """The text that these turns show, without formulas. Raises as `answer_html`."""
        return str(await self._run(f"{self._answer(keys)}.words()")).encode("utf-8", "replace").decode()

    async def answer_html(self, keys: tuple[str, ...]) -> list[str]:
        """What these turns show, in pieces of HTML that stand on their own, without what is no content.

        Raises CdpError, or PageNotAnswering where the document changed meanwhile.
        """
        found = await self._run(f"{self._answer(keys)}.html()")
        if not isinstance(found, list):
            raise PageNotAnswering
        # A page can hold halves of characters (lone surrogates), which UTF-8 cannot.
        return [str(piece).encode("utf-8", "replace").decode() for piece in cast("list[object]", found)]

    async def copied_answer(self, keys: tuple[str, ...]) -> str | None:
        """What the page itself copies of these turns; None where it copies nothing, or somebody is at work in it.

        Its copy control is pressed, and what it writes is caught on the way: the clipboard stays as it is. Raises as
        `answer_html`.
        """
        answer = self._answer(keys)
        offered = f"tabmux.idle({_NOBODY_SINCE * 1000}) && {answer}.copies()"
        if not self._descriptor.marks.copy or not await self._run(offered):
            return None
        catching = await self._catch_copy()
        await self._run(f"{answer}.copy()", gesture=True)
        reply = await self.page.call(
            "Runtime.awaitPromise", {"promiseObjectId": catching, "returnByValue": True}, timeout=_LOOK_TIMEOUT
        )
        text = cast("dict[str, Any]", reply.get("result", {})).get("value")
        return text.encode("utf-8", "replace").decode() if isinstance(text, str) else None

    async def _catch_copy(self) -> str:
        """Be ready for what the page writes to the clipboard; gives the handle of the promise of it.

        It is caught in the page's own world: no other one sees what its scripts call.
        """
        expression = f"({_CLIPBOARD})({_COPY_WAIT * 1000})"
        reply = await self.page.call("Runtime.evaluate", {"expression": expression}, timeout=_LOOK_TIMEOUT)
        handle = cast("dict[str, Any]", reply.get("result", {})).get("objectId")
        if not isinstance(handle, str) or "exceptionDetails" in reply:
            raise PageNotAnswering
        return handle

    def _answer(self, keys: tuple[str, ...]) -> str:
        turns, copy = f"tabmux.answer({json.dumps(keys)})", json.dumps(self._descriptor.marks.copy)
        return f"({_ANSWER})({turns}, {copy})"

    async def _run(self, expression: str, *, gesture: bool = False, promised: bool = False) -> object:
        """Value of an expression in the world of the page script, which is put in where it is not there yet.

        `promised`: what it promises is waited for.
        """
        world = await self.page.own_world(timeout=_LOOK_TIMEOUT)
        value, missing = await self._evaluate(expression, world, gesture=gesture, promised=promised)
        if missing:
            await self.page.call(
                "Runtime.addBinding", {"name": _BINDING, "executionContextId": world}, timeout=_LOOK_TIMEOUT
            )
            await self._evaluate(f"({_SCRIPT})({self._marks})", world, guarded=False)
            value, missing = await self._evaluate(expression, world, gesture=gesture, promised=promised)
        if missing:
            raise PageNotAnswering
        return value

    async def _evaluate(
        self, expression: str, world: int, *, gesture: bool = False, promised: bool = False, guarded: bool = True
    ) -> tuple[object, bool]:
        """Value, and whether the page script was missing, or was one of other marks: then nothing was done."""
        if guarded:
            value = f"(async () => ({{value: await {expression}}}))()" if promised else f"{{value: {expression}}}"
            expression = f'globalThis.tabmux?.identity === "{self._identity}" ? {value} : null'
        params = {
            "expression": expression,
            "contextId": world,
            "returnByValue": True,
            "awaitPromise": promised,
            "userGesture": gesture,
        }
        try:
            reply = await self.page.call("Runtime.evaluate", params, timeout=_LOOK_TIMEOUT)
        except ProtocolError as error:
            # The document was replaced, and its world with it: nothing is known of the expression.
            self.page.forget_world()
            raise PageNotAnswering from error
        if "exceptionDetails" in reply:
            raise PageNotAnswering
        result = cast("dict[str, Any]", reply.get("result", {})).get("value")
        if not guarded:
            return None, False
        if not isinstance(result, dict):
            return None, True
        return cast("dict[str, object]", result).get("value"), False

    def _binding_called(self, params: dict[str, Any]) -> None:
        if params.get("name") == _BINDING:
            self._changed.set()
