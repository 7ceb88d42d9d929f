"""Scripts of clients in a page: each is handed over once or not at all, and its answer says which."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from tabmuxd.cdp.errors import CdpError, ProtocolError, UnansweredCall
from tabmuxd.page.values import NotSerializable, TooLarge, object_json, primitive_json
from tabmuxd.resources.errors import Reason, Refused, cut, refuse
from tabmuxd.resources.orders import ScriptOrder, ScriptResult
from tabmuxd.resources.outcomes import with_outcome
from tabmuxd.resources.principal import Principal
from tabmuxd.tabs import faults, rules
from tabmuxd.tabs.document import Document
from tabmuxd.tabs.driving import Driving, Step
from tabmuxd.tabs.page import Page
from tabmuxd.tasks import Tasks

MAX_RESULT_BYTES: Final = 1024 * 1024
# Chrome ends a loop by itself when its time is over; its word for that takes a moment.
_GRACE: Final = 0.15
_PULSE_TIMEOUT: Final = 0.25
_END_TIMEOUT: Final = 1.0
# What ended the document is told by events that come right behind the reply.
_CAUSE_TIMEOUT: Final = 0.25
_READ_TIMEOUT: Final = 5.0
_RELEASE_TIMEOUT: Final = 5.0
_SERIALIZE: Final = files("tabmuxd.page").joinpath("serialize.js").read_text("utf-8")


class Scripts:
    """`EvaluateScript`, over the tabs of this server."""

    def __init__(self, driving: Driving, tasks: Tasks) -> None:
        """`tasks` forget values in the page that were read, when nobody waits any more."""
        self._driving = driving
        self._tasks = tasks

    def __repr__(self) -> str:
        """Over what it works."""
        return f"<Scripts {self._driving}>"

    async def evaluate(self, caller: Principal, order: ScriptOrder) -> ScriptResult:
        """Run a script in the page, as the page's own, and give its value.

        Raises SCRIPT_FAILED, RESULT_NOT_SERIALIZABLE and RESULT_TOO_LARGE if it ran, OUTCOME_UNKNOWN if it was handed
        over and its result was lost; whatever else is raised, it was not handed over.
        """
        seconds = order.result_timeout.total_seconds()
        held = self._driving.step(
            caller,
            order.name,
            lease=order.lease,
            expected_generation=order.expected_generation,
            seconds=seconds,
        )
        async with held as step:
            page, reply = await self._hand_over(step, order, seconds)
            run = _Run(page, self._tasks)
            result_json = await run.result(reply)
            return ScriptResult(await self._driving.record(step, page), result_json)

    async def _hand_over(self, step: Step, order: ScriptOrder, seconds: float) -> tuple[Page, dict[str, Any]]:
        """The reply of the page to the script; one that did not get it before it went away may come back in time."""
        before: Page | None = None
        while True:
            page = await self._driving.page(step, again=before is not None)
            try:
                return page, await _evaluate(page, order.script, await_promise=order.await_promise, seconds=seconds)
            except UnansweredCall as error:
                refused = faults.of_step(error, page.tab, page.browser)
                if error.handed_over or page is before or step.left <= 0:
                    raise refused from error
                before = page
            except CdpError as error:
                raise faults.of_step(error, page.tab, page.browser) from error


class _Run:
    """A script that has run in a page, and what is read of its value: nothing of this can run it again."""

    def __init__(self, page: Page, tasks: Tasks) -> None:
        self._page = page
        self._tasks = tasks

    async def result(self, reply: Mapping[str, Any]) -> str:
        result: Mapping[str, Any] = reply.get("result", {})
        thrown: Mapping[str, Any] | None = reply.get("exceptionDetails")
        try:
            if thrown is not None:
                raise _failed(self._page.tab, thrown)
            text = primitive_json(result, limit=MAX_RESULT_BYTES)
            return await self._read(str(result["objectId"])) if text is None else text
        except NotSerializable as error:
            raise _not_serializable(self._page.tab, error.kind, error.path) from error
        except TooLarge as error:
            raise _too_large(self._page.tab, error.size_bytes) from error
        finally:
            held = [result, (thrown or {}).get("exception", {})]
            if objects := {str(each["objectId"]) for each in held if "objectId" in each}:
                self._tasks.spawn(self._release(objects), f"forget values in {self._page.tab}")

    async def _read(self, object_id: str) -> str:
        """JSON of an object in the page."""
        page = self._page
        params = {
            "objectId": object_id,
            "functionDeclaration": _SERIALIZE,
            "arguments": [{"value": MAX_RESULT_BYTES}],
            "returnByValue": True,
        }
        document = page.documents.current
        try:
            reply = await _settled(page, "Runtime.callFunctionOn", params, seconds=_READ_TIMEOUT)
        except ProtocolError as error:
            raise faults.lost_result(page.tab, await _lost_document(page, document)) from error
        except CdpError as error:
            raise await _lost(page, error) from error
        if "exceptionDetails" in reply:
            raise NotSerializable("accessor", "$")
        return object_json(reply["result"]["value"], limit=MAX_RESULT_BYTES)

    async def _release(self, object_ids: set[str]) -> None:
        try:
            for object_id in object_ids:
                await self._page.call("Runtime.releaseObject", {"objectId": object_id}, timeout=_RELEASE_TIMEOUT)
        except CdpError:
            return  # they are gone with their document, or go with it


async def _evaluate(page: Page, script: str, *, await_promise: bool, seconds: float) -> dict[str, Any]:
    """The reply to a script; raises CdpError where it was not handed over, OUTCOME_UNKNOWN where its reply was lost."""
    if page.dialog is not None:
        raise with_outcome(rules.dialog_open(page.tab, page.dialog.kind), "no")
    loop = asyncio.get_running_loop()
    params = {"expression": script, "awaitPromise": await_promise, "timeout": round(seconds * 1000)}
    document = page.documents.current
    begin = loop.time()
    try:
        return await _settled(page, "Runtime.evaluate", params, seconds=seconds + _GRACE)
    except ProtocolError as error:
        # What a script throws comes as a result, so that the words of an error are never looked at.
        ended = loop.time() - begin >= seconds
        raise faults.lost_result(page.tab, "timeout" if ended else await _lost_document(page, document)) from error
    except UnansweredCall as error:
        if not error.handed_over:
            raise
        raise await _lost(page, error) from error


async def _settled(page: Page, method: str, params: Mapping[str, object], *, seconds: float) -> dict[str, Any]:
    """The reply to a command, given up as soon as a dialog holds the page up: OUTCOME_UNKNOWN then; raises CdpError."""
    loop = asyncio.get_running_loop()
    sent = asyncio.ensure_future(page.call(method, params, timeout=seconds))
    try:
        await page.until(sent.done, loop.time() + seconds + _END_TIMEOUT, also=sent, stop_at_dialog=True)
        if not sent.done() and page.dialog is not None:
            raise faults.lost_result(page.tab, "dialog")
        return await sent
    finally:
        sent.cancel()


async def _end_loop(page: Page) -> None:
    """End what runs in the page without an end, if it answers nothing: a loop in a promise outlives Chrome's limit."""
    try:
        await page.call("Runtime.evaluate", {"expression": "0"}, timeout=_PULSE_TIMEOUT)
    except CdpError:
        try:
            await page.call("Runtime.terminateExecution", timeout=_PULSE_TIMEOUT)
        except CdpError:
            return


async def _lost_document(page: Page, document: Document | None) -> str:
    """Why the page refused to go on with what it had begun, in the words of OUTCOME_UNKNOWN."""
    await page.until(lambda: page.documents.current is not document, asyncio.get_running_loop().time() + _CAUSE_TIMEOUT)
    return page.end_cause or "navigated"


async def _lost(page: Page, error: CdpError) -> Refused:
    """OUTCOME_UNKNOWN for a command that was handed over and never answered."""
    refused = faults.of_step(error, page.tab, page.browser)
    cause = page.end_cause or str(refused.metadata.get("cause", "connection_lost"))
    if cause == "timeout":
        await _end_loop(page)
    return faults.lost_result(page.tab, cause)


def _failed(tab: str, thrown: Mapping[str, Any]) -> Refused:
    exception: Mapping[str, Any] = thrown.get("exception", {})
    words = exception.get("description", exception.get("value", exception.get("unserializableValue")))
    rejected = str(thrown.get("text", "")).startswith("Uncaught (in promise)")
    refused = refuse(
        Reason.SCRIPT_FAILED,
        "The script ran, and "
        + ("its promise was rejected" if rejected else "threw an exception")
        + "; what it did up to there is done. Correct the script.",
        tab=tab,
        exception=cut(str(thrown.get("text", "")) if words is None else str(words)),
        cause="rejected" if rejected else "threw",
    )
    return with_outcome(refused, "yes")


def _not_serializable(tab: str, kind: str, path: str) -> Refused:
    refused = refuse(
        Reason.RESULT_NOT_SERIALIZABLE,
        f"The script ran; its value has no exact JSON form ({kind} at {cut(path, 200)}). Read it in a narrower form.",
        tab=tab,
        type=kind,
        path=cut(path),
    )
    return with_outcome(refused, "yes")


def _too_large(tab: str, size_bytes: int) -> Refused:
    refused = refuse(
        Reason.RESULT_TOO_LARGE,
        f"The script ran; its value is larger than {MAX_RESULT_BYTES} bytes. Ask for less.",
        tab=tab,
        size_bytes=size_bytes,
        limit_bytes=MAX_RESULT_BYTES,
    )
    return with_outcome(refused, "yes")
