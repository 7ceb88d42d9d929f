"""Commands about conversations with web AI providers."""

import argparse
import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from types import MappingProxyType

from tabmux.ai import Answer
from tabmux.cli.artifact_commands import upload_file
from tabmux.cli.events import print_changes, state_name
from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.growing import GrowingText
from tabmux.cli.live import follow
from tabmux.cli.output import Output
from tabmux.cli.text import harmless, harmless_line
from tabmux.client import Client
from tabmux.mirror import Mirror
from tabmux.names import id_of
from tabmux.statuses import turn_failed
from tabmux.v1.prompt_pb2 import PromptParts
from tabmux.v1.session_pb2 import Session, Turn
from tabmux.v1.warning_pb2 import Warning  # noqa: A004 - the contract's word
from tabmux.v1.web_ai_service_pb2 import RecoverSessionResponse

_HEAD = ("ID", "PROVIDER", "OWNER", "TURN", "TAB", "TITLE")
_RETURNS: Mapping[int, str] = MappingProxyType(
    {
        RecoverSessionResponse.STRATEGY_NONE: "it was where it belongs",
        RecoverSessionResponse.STRATEGY_NAVIGATED: "its tab was taken back to the conversation",
        RecoverSessionResponse.STRATEGY_TAB_RECOVERED: "its tab was recovered",
        RecoverSessionResponse.STRATEGY_NEW_TAB: "another tab was opened for it",
    }
)


async def query(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Send a prompt, and print its answer as it grows; without a terminal once, at the end."""
    return await _follow(await _ask(client, arguments, output), output)


async def send(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Send a prompt, and print the name of its turn, which goes on by itself."""
    answer = await _ask(client, arguments, output)
    if output.as_json:
        output.message(await answer.get())
    else:
        output.text(f"{answer.name}\n")
    return Exit.OK


async def render(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print the text that a prompt becomes, as the first of a conversation; nothing is sent."""
    rendered = await client.render(arguments.provider, _said(arguments), preamble=arguments.preamble)
    if output.as_json:
        output.message(rendered)
        return Exit.OK
    if output.terminal:
        output.line(harmless(rendered.text))
    else:
        output.text(rendered.text)  # nothing added: it has the size and the hash that the service tells
    _tell_warnings(rendered.warnings, output)
    return Exit.OK


async def recover(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Bring a session back to its conversation, and print how that was done."""
    recovered = await client.session(arguments.session).recover()
    if output.as_json:
        output.message(recovered)
    else:
        output.text(f"{_RETURNS[recovered.strategy]}\n")
    return Exit.OK


def _said(arguments: argparse.Namespace) -> str | PromptParts:
    return arguments.prompt if isinstance(arguments.prompt, str) else PromptParts(**arguments.prompt)


async def _ask(client: Client, arguments: argparse.Namespace, output: Output) -> Answer:
    """The answer to come of a prompt that is sent."""
    files = [(await upload_file(client, file)).name for file in arguments.files]
    tab = arguments.place
    if arguments.tab is not None:
        tab = (await client.tab(arguments.tab)).name
    session = await client.start_session(arguments.provider, arguments.session or arguments.key, tab=tab)
    if arguments.new and not session.created:
        raise RefusedError(
            f"the session {id_of(session.name)} exists; the prompt was not sent",
            "leave out --new to go on with it, or give another --session",
        )
    try:
        return await session.ask(
            _said(arguments),
            files=files,
            key=arguments.key,
            preamble=arguments.preamble,
            model=arguments.model,
            answer_timeout=arguments.answer_timeout,
        )
    except asyncio.CancelledError:
        output.note(f"\nIt is not known whether the prompt was sent. To see: tabmux ai watch {id_of(session.name)}")
        raise


async def watch(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print the answer of a turn; without one show sessions as they change, or print each change."""
    again = "tabmux ai watch"
    if arguments.turn is None:
        if output.terminal and not output.as_json and arguments.since is None:
            await follow(client, "sessions", _HEAD, _rows, again=again, output=output)
        else:
            await print_changes(client, "sessions", arguments.since, again, output)
        return Exit.OK
    return await _follow(client.answer(await _turn_name(client, arguments.turn)), output)


def _rows(mirror: Mirror) -> list[tuple[str, ...]]:
    sessions = sorted(mirror.sessions.values(), key=lambda session: (session.create_time.ToNanoseconds(), session.name))
    return [_row(session, mirror.turns.get(session.open_turn)) for session in sessions]


def _row(session: Session, turn: Turn | None) -> tuple[str, ...]:
    waits = "" if turn is None else state_name(Turn.State.items(), turn.state) + " stalled" * turn.stalled
    return id_of(session.name), session.provider, session.owner, waits, id_of(session.tab), session.title


async def _turn_name(client: Client, given: str) -> str:
    """Name of a turn, from its name, or from a session: its open turn, or else its last one."""
    if "/turns/" in given:
        return given
    session = await client.session(given).get()
    if name := session.open_turn or session.last_turn:
        return name
    raise RefusedError(f"the session {id_of(session.name)} has no turn yet", "send a prompt with `tabmux ai query`")


async def _follow(answer: Answer, output: Output) -> Exit:
    """Print an answer to its end. Raises `TurnFailed` if the turn did not succeed."""
    growing = GrowingText() if output.terminal and not output.as_json else None
    ended: Turn | None = None
    try:
        async with aclosing(aiter(answer)) as parts:
            async for part in parts:
                if growing is not None:
                    output.text(growing.update(part.text))
                if part.turn is not None:
                    ended = part.turn
                    _tell_wait(part.turn, output)
    except asyncio.CancelledError:
        output.note(f"\nThe turn goes on. To pick it up again: tabmux ai watch {answer.name}")
        raise
    if ended is None:
        raise AssertionError("the last part has the turn")
    _print_end(ended, growing, output)
    if ended.state != Turn.STATE_SUCCEEDED:
        raise turn_failed(ended)
    return Exit.OK


def _print_end(turn: Turn, growing: GrowingText | None, output: Output) -> None:
    text = turn.answer_markdown
    if growing is not None:
        output.text(growing.end())
    elif output.as_json:
        output.message(turn)
    elif text:
        output.text(text if text.endswith("\n") else f"{text}\n")
    _tell_warnings(turn.warnings, output)


def _tell_warnings(warnings: Iterable[Warning], output: Output) -> None:
    for warning in warnings:
        output.note(harmless_line(f"warning: {warning.code}: {warning.message}"))


def _tell_wait(turn: Turn, output: Output) -> None:
    """Say what a turn waits for, where a person can do something about it."""
    if turn.state == Turn.STATE_BLOCKED:
        failure = turn.error
        output.note(harmless_line(f"waiting for a person: {failure.reason}: {failure.message}"))
    elif turn.stalled and turn.state == Turn.STATE_RUNNING:
        output.note("the answer has paused for longer than usual; still waiting")
