"""`tabmuxd` that is killed at one moment: `python crashing_server.py WHAT:WHEN serve …`.

WHEN is `before` or `after`. WHAT is the name of a commit in `COMMITS`, `type`, when a prompt is put into the page, the
`press` of the send button, or `created`, the target of a tab, or `launch`, the record of the browser's process, or a
step of choosing a model, such as `open` and `pick`. The first of a kind counts. `WHAT:WHEN` may be `never`, or `@FILE`:
the moment that the file holds at the time, and none while there is no file.

Before `serve`, `--commit-wait SECONDS` shortens how long a prompt that was submitted is looked for; `--slow-close
SECONDS` delays the end of each target, and `--slow-prepare SECONDS` the moment when the page of a new tab is made to
tell; `--lose FILE` ends the connection to the browser right after the first command with the word of the file in its
method or parameters was carried out, and its answer is lost; the file is gone then.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import functools
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from tabmux.v1.event_pb2 import Event, EventKind
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmuxd.__main__ import main
from tabmuxd.cdp import launcher, profile
from tabmuxd.cdp.connection import Connection
from tabmuxd.cdp.errors import ConnectionLost
from tabmuxd.cdp.targets import Targets
from tabmuxd.store.database import Store
from tabmuxd.store.transaction import Batch, Transaction
from tabmuxd.tabs.page import Page
from tabmuxd.webai.chat_page import ChatPage
from tabmuxd.webai.choice_rules import Act
from tabmuxd.webai.choosing import Choosing
from tabmuxd.webai.providers import descriptor

P = ParamSpec("P")
T = TypeVar("T")

_ENDED_STATES: Final = (Turn.STATE_SUCCEEDED, Turn.STATE_FAILED, Turn.STATE_CANCELLED)

COMMITS: Final[Mapping[str, Callable[[Event], bool]]] = {
    "session": lambda event: event.HasField("session") and event.kind == EventKind.EVENT_KIND_CREATED,
    "pending": lambda event: event.turn.state == Turn.STATE_PENDING,
    "opening": lambda event: event.tab.state == Tab.STATE_OPENING and not event.tab.target_id,
    "target": lambda event: event.tab.state == Tab.STATE_OPENING and bool(event.tab.target_id),
    "ready": lambda event: event.tab.state == Tab.STATE_READY,
    "recovering": lambda event: event.tab.state == Tab.STATE_RECOVERING,
    "back": lambda event: event.tab.state == Tab.STATE_READY and event.tab.generation > 1,
    "handed": lambda event: event.tab.state == Tab.STATE_READY and "handed" in event.tab.labels,
    "submitting": lambda event: event.turn.state == Turn.STATE_SUBMITTING,
    "running": lambda event: event.turn.state == Turn.STATE_RUNNING,
    "retired": lambda event: event.session.state == Session.STATE_RETIRED,
    "end": lambda event: event.turn.state in _ENDED_STATES,
}
"""What makes a commit the one that is meant, by the events in it."""


def crashing(
    moment: str | Path = "never",
    *,
    commit_wait: float = 0,
    slow_close: float = 0,
    slow_prepare: float = 0,
    lose: Path | None = None,
) -> tuple[str, ...]:
    """Command of a server that is killed at this moment, or at that in a file; 0 leaves a time as it is."""
    options = {
        "--commit-wait": commit_wait,
        "--slow-close": slow_close,
        "--slow-prepare": slow_prepare,
        "--lose": lose or "",
    }
    given = [word for name, value in options.items() if value for word in (name, str(value))]
    return (sys.executable, __file__, f"@{moment}" if isinstance(moment, Path) else moment, *given)


def die() -> None:
    """End this process as a loss of power would, for all it can do about it."""
    os.kill(os.getpid(), signal.SIGKILL)


def put_in_place(owner: object, name: str, what: object) -> None:
    """Have `what` called in place of what the class or module `owner` has under this name."""
    setattr(owner, name, what)


def die_at_commits(moment: Callable[[], str]) -> None:
    """Be killed right before or right after the first commit with an event that is meant at the time."""
    finish, commit = Transaction.finish, Store._commit
    batches: list[Batch] = []  # of the transaction that the one writing thread is about to commit

    def finishing(transaction: Transaction) -> Batch:
        batches[:] = [finish(transaction)]
        return batches[0]

    def committing(store: Store) -> None:
        what, _, when = moment().partition(":")
        events = (Event.FromString(entry.body) for batch in batches for entry in batch.entries)
        now = what in COMMITS and any(COMMITS[what](event) for event in events)
        if now and when == "before":
            die()
        commit(store)
        if now:
            die()

    put_in_place(Transaction, "finish", finishing)
    put_in_place(Store, "_commit", committing)


def die_at(moment: Callable[[], str], what: str, call: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """The same call, killed right before it begins or right after it has come back, if that is the moment."""

    @functools.wraps(call)
    async def dying(*args: P.args, **kwargs: P.kwargs) -> T:
        if moment() == f"{what}:before":
            die()
        result = await call(*args, **kwargs)
        if moment() == f"{what}:after":
            die()
        return result

    return dying


def die_at_once(moment: Callable[[], str], what: str, call: Callable[P, T]) -> Callable[P, T]:
    """As `die_at`, for a plain function."""

    @functools.wraps(call)
    def dying(*args: P.args, **kwargs: P.kwargs) -> T:
        if moment() == f"{what}:before":
            die()
        result = call(*args, **kwargs)
        if moment() == f"{what}:after":
            die()
        return result

    return dying


def die_at_acts(moment: Callable[[], str]) -> None:
    """Be killed right after a step of choosing a model."""
    act = Choosing._act

    async def acting(choosing: Choosing, chat: ChatPage, step: Act) -> bool:
        done = await act(choosing, chat, step)
        if moment() == f"{step}:after":
            die()
        return done

    put_in_place(Choosing, "_act", acting)


def shorten_commit_wait(seconds: float) -> None:
    """Look for a submitted prompt for `seconds` only, whatever the descriptor says."""
    load = descriptor.load

    @functools.wraps(load)
    def loading(name: str, variables: Mapping[str, str]) -> descriptor.Descriptor:
        loaded = load(name, variables)
        return dataclasses.replace(loaded, windows=dataclasses.replace(loaded.windows, commit_wait=seconds))

    put_in_place(descriptor, "load", loading)


def slow_down_close(seconds: float) -> None:
    """Wait for `seconds` before a target is ended."""
    close = Targets.close

    async def closing(targets: Targets, target_id: str, *, timeout: float) -> None:
        await asyncio.sleep(seconds)
        await close(targets, target_id, timeout=timeout)

    put_in_place(Targets, "close", closing)


def slow_down_prepare(seconds: float) -> None:
    """Wait for `seconds` before the page of a new tab is made to tell of itself."""
    prepare = Page.prepare_first

    async def preparing(page: Page) -> None:
        await asyncio.sleep(seconds)
        await prepare(page)

    put_in_place(Page, "prepare_first", preparing)


def lose_answer(file: Path) -> None:
    """End the connection once the first command with the word of this file was carried out."""
    call = Connection.call

    def is_meant(command: str) -> bool:
        if not file.exists() or file.read_text() not in command:
            return False
        file.unlink()
        return True

    async def calling(
        connection: Connection,
        method: str,
        params: Mapping[str, object] | None = None,
        *,
        session_id: str = "",
        timeout: float,
    ) -> dict[str, Any]:
        result = await call(connection, method, params, session_id=session_id, timeout=timeout)
        if is_meant(f"{method} {params}"):
            await connection.close()
            raise ConnectionLost(method, handed_over=True)
        return result

    put_in_place(Connection, "call", calling)


def arm(told: str) -> None:
    """Be killed at this moment, or at that in the file."""
    assert told.startswith("@") or told == "never" or told.endswith((":before", ":after")), told
    file = Path(told.removeprefix("@"))

    def moment() -> str:
        if not told.startswith("@"):
            return told
        return file.read_text() if file.exists() else "never"

    put_in_place(ChatPage, "type", die_at(moment, "type", ChatPage.type))
    put_in_place(ChatPage, "press", die_at(moment, "press", ChatPage.press))
    put_in_place(Targets, "create", die_at(moment, "created", Targets.create))
    put_in_place(launcher, "write_record", die_at_once(moment, "launch", profile.write_record))
    die_at_commits(moment)
    die_at_acts(moment)


def run(arguments: Sequence[str]) -> None:
    """Run the command with the moment armed."""
    options = argparse.ArgumentParser()
    options.add_argument("moment")
    options.add_argument("--commit-wait", type=float)
    options.add_argument("--slow-close", type=float)
    options.add_argument("--slow-prepare", type=float)
    options.add_argument("--lose", type=Path)
    at = arguments.index("serve")
    given = options.parse_args(arguments[:at])
    arm(given.moment)
    if given.commit_wait:
        shorten_commit_wait(given.commit_wait)
    if given.slow_close:
        slow_down_close(given.slow_close)
    if given.slow_prepare:
        slow_down_prepare(given.slow_prepare)
    if given.lose:
        lose_answer(given.lose)
    main(arguments[at:])


if __name__ == "__main__":
    run(sys.argv[1:])
