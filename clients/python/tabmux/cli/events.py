"""Prints changes as they happen."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from datetime import UTC

from tabmux.cli.arguments import Since
from tabmux.cli.output import Output
from tabmux.cli.text import harmless_line
from tabmux.client import Client
from tabmux.v1.browser_pb2 import Browser
from tabmux.v1.event_pb2 import ChangeCause, Event, EventKind, WatchProgress
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.tab_pb2 import Tab
from tabmux.watch import WatchScope


async def print_changes(client: Client, scope: WatchScope, since: Since | None, again: str, output: Output) -> None:
    """Print events of `scope` until interrupted, as JSON unless a person reads them.

    `again` is the command that goes on, for a hint at that moment.
    """
    place = _place(client, since)
    try:
        async with aclosing(client.watch(scope=scope, since=place)) as replies:
            async for reply in replies:
                place = reply.progress
                for event in reply.events:
                    if output.as_json or not output.terminal:
                        output.message(event)
                    else:
                        output.line(line_of(event))
    except asyncio.CancelledError:
        if place is not None:
            output.note(f"To go on from here: {again} --since {place.history_id}:{place.revision}")
        raise


def line_of(event: Event) -> str:
    """An event on one line: revision, time, kind, what, how it stands, and why."""
    time = event.record_time.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    kind = EventKind.Name(event.kind).removeprefix("EVENT_KIND_") if event.kind in EventKind.values() else "NEW KIND"
    parts = [str(event.revision), time, kind, *_told(event)]
    if event.cause and event.cause in ChangeCause.values():
        parts.append(f"({ChangeCause.Name(event.cause).removeprefix('CHANGE_CAUSE_').lower()})")
    return harmless_line("  ".join(part for part in parts if part))


def state_name(names: Sequence[tuple[str, int]], state: int) -> str:
    """Name of a state without its prefix; its number if this client does not know it."""
    return next((name.removeprefix("STATE_") for name, number in names if number == state), str(state))


def _told(event: Event) -> tuple[str, ...]:
    match event.WhichOneof("resource"):
        case "tab":
            tab = event.tab
            return tab.name, state_name(Tab.State.items(), tab.state), tab.title, tab.uri
        case "browser":
            return event.browser.name, state_name(Browser.State.items(), event.browser.state)
        case "lease":
            return event.lease.name, "ended" if event.lease.HasField("end_time") else "held", event.lease.tab
        case "session":
            session = event.session
            return session.name, state_name(Session.State.items(), session.state), session.provider, session.title
        case "turn":
            turn = event.turn
            return turn.name, state_name(Turn.State.items(), turn.state), "stalled" * turn.stalled, turn.error.reason
        case None:
            return ("something this client does not know",)


def _place(client: Client, since: Since | None) -> WatchProgress | None:
    if since is None:
        return None
    history = since.history or client.info.progress.history_id
    return WatchProgress(history_id=history, revision=since.revision)
