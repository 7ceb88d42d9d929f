"""Commands about sessions as a whole."""

import argparse
from collections.abc import Sequence
from datetime import UTC
from pathlib import Path

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from tabmux.cli.events import state_name
from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError, exit_of, tell
from tabmux.cli.output import Output
from tabmux.cli.text import harmless_line
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.names import id_of
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.web_ai_service_pb2 import SkippedRecord

_HEAD = ("ID", "STATE", "PROVIDER", "OWNER", "LAST ACTIVE", "TAB", "TITLE")
_TURN_HEAD = ("TURN", "STATE", "BEGUN", "BYTES", "REASON")
_TOLD_LINES = 20


async def list_(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print the sessions there are."""
    listed = client.sessions(providers=arguments.provider, labels=dict(arguments.label), retired=arguments.all)
    sessions = [session async for session in listed]
    return _print(sessions, _HEAD, [_row(session) for session in sessions], "No sessions.", output)


async def show(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print one session."""
    session = await client.session(arguments.session).get()
    if _plain(output):
        output.message(session)
        return Exit.OK
    rows = [
        ("name", session.name),
        ("state", state_name(Session.State.items(), session.state)),
        ("provider", session.provider),
        ("owner", session.owner),
        ("conversation", session.conversation_uri),
        ("title", session.title),
        ("tab", session.tab),
        ("open turn", session.open_turn),
        ("last turn", session.last_turn),
        ("labels", " ".join(f"{key}={value}" for key, value in sorted(session.labels.items()))),
        ("created", _time(session.create_time)),
        ("last active", _time(session.last_active_time)),
        ("expires", _time(session.expire_time) if session.HasField("expire_time") else ""),
        ("retired", _time(session.retire_time) if session.HasField("retire_time") else ""),
    ]
    output.table(("WHAT", "VALUE"), [row for row in rows if row[1]])
    return Exit.OK


async def turns(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print the turns of a session."""
    listed = [turn async for turn in client.session(arguments.session).turns()]
    return _print(listed, _TURN_HEAD, [_turn_row(turn) for turn in listed], "No turns.", output)


async def label(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Set labels or `ttl`, and print the session."""
    session = await client.session(arguments.session).update(labels=dict(arguments.labels), ttl=arguments.ttl)
    return _print([session], _HEAD, [_row(session)], "", output)


async def retire(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Retire sessions, each on its own: one that is refused does not keep the others."""
    worst = Exit.OK
    for given in arguments.sessions:
        try:
            session = await client.session(given).retire(arguments.tab)
        except TabmuxError as error:
            tell(error, output)
            worst = max(worst, exit_of(error))
        else:
            _tell_retired(session, "retired", output)
    return worst


async def prune(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Retire sessions that were not used for long."""
    count = 0
    async for session in client.prune_sessions(arguments.older_than, dry_run=arguments.dry_run):
        count += 1
        _tell_retired(session, "would retire" if arguments.dry_run else "retired", output)
    if not count:
        output.note("No session of yours was unused for so long.")
    return Exit.OK


async def import_(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Import conversations, and tell what became of the records; 0 if all that was left is still live."""
    file = Path(arguments.file) if arguments.file is not None else None
    try:
        report = await client.import_sessions(
            arguments.source, file, browser=arguments.browser, ttl=arguments.ttl, dry_run=arguments.dry_run
        )
    except OSError as error:
        raise RefusedError(f"the file cannot be read: {error}; nothing was imported", "name another file") from error
    if output.as_json:
        output.message(report)
    else:
        done = "would be imported" if arguments.dry_run else "imported"
        output.line(
            f"{report.imported_count} {done}, {report.unchanged_count} unchanged, {report.skipped_count} skipped"
        )
        for skipped in report.skipped[:_TOLD_LINES]:
            output.note(harmless_line(f"skipped: record {skipped.index} {skipped.import_id} {_cause(skipped)}"))
        if report.skipped_count > _TOLD_LINES:
            output.note(f"and {report.skipped_count - _TOLD_LINES} more; --json tells of all")
    live = sum(skipped.cause == SkippedRecord.CAUSE_STILL_LIVE for skipped in report.skipped)
    return Exit.OK if live == report.skipped_count else Exit.REFUSED


def _print(
    messages: Sequence[Message], head: Sequence[str], rows: Sequence[Sequence[str]], none: str, output: Output
) -> Exit:
    if _plain(output):
        for message in messages:
            output.message(message)
    elif rows:
        output.table(head, rows)
    else:
        output.note(none)
    return Exit.OK


def _plain(output: Output) -> bool:
    """Whether a program reads it."""
    return output.as_json or not output.terminal


def _tell_retired(session: Session, what: str, output: Output) -> None:
    if output.as_json:
        output.message(session)
    else:
        output.line(f"{what} {session.name}")


def _row(session: Session) -> tuple[str, ...]:
    return (
        id_of(session.name),
        state_name(Session.State.items(), session.state),
        session.provider,
        session.owner,
        _time(session.last_active_time),
        id_of(session.tab),
        session.title,
    )


def _turn_row(turn: Turn) -> tuple[str, ...]:
    return (
        turn.name,
        state_name(Turn.State.items(), turn.state) + " stalled" * turn.stalled,
        _time(turn.create_time),
        str(turn.answer_size_bytes),
        turn.error.reason,
    )


def _time(time: Timestamp) -> str:
    return time.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _cause(skipped: SkippedRecord) -> str:
    known = skipped.cause in SkippedRecord.Cause.values()
    name = SkippedRecord.Cause.Name(skipped.cause) if known else str(skipped.cause)
    return name.removeprefix("CAUSE_").lower().replace("_", "-")
