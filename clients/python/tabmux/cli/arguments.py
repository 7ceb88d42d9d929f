"""The command line: what can be written, and the values it stands for."""

import argparse
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from tabmux.cli.artifact_arguments import add_artifacts, add_files
from tabmux.cli.exits import MEANINGS
from tabmux.cli.prompt_arguments import add_prompt, settle_key, settle_prompt
from tabmux.cli.provider_arguments import add_providers
from tabmux.cli.status_arguments import add_probe, add_status
from tabmux.names import checked_request_id, checked_session_id

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")
_UNIT_SECONDS: Mapping[str, float] = {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600, "d": 86_400}
_SINCE = re.compile(r"(?:([^:\s]+):)?(\d+)")
_MOST_REVISION = 2**63 - 1

_ENVIRONMENT = """\
environment:
  TABMUX_ADDRESS, TABMUX_AS, TABMUX_TOKEN, TABMUX_STATE_DIR   stand for what is not given
  TABMUX_GEMINI_SAFE=1   begins conversations with gemini with the safety preamble

exit codes:
"""


@dataclass(frozen=True, slots=True)
class Since:
    """A place in a history; `history` is empty for the one the server has."""

    history: str
    revision: int


def parse(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> argparse.Namespace:
    """Values of a command line (`sys.argv` if absent); `command` is the words of the command.

    A prompt, or one of its parts, may be read from standard input. Ends the process with code 2 and a message if it
    cannot be understood.
    """
    parser = _parser()
    parsed = parser.parse_args(arguments)
    if parsed.command in {"ai query", "ai send"}:
        settle_key(parsed, parser.error)
    if parsed.command in {"ai query", "ai send", "ai render"}:
        settle_prompt(parsed, environment, parser.error)
    if parsed.command == "ai watch" and parsed.turn is not None and parsed.since is not None:
        parser.error("argument --since: a turn is followed from its beginning")
    return parsed


def duration(text: str) -> timedelta:
    """`90s`, `10m`, `1h`, `30d`, `500ms`; a number without a unit is seconds."""
    match = _DURATION.fullmatch(text)
    if match is None or float(match[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time such as 90s, 10m or 1h")
    try:
        return timedelta(seconds=float(match[1]) * _UNIT_SECONDS[match[2]])
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is too long") from None


def label(text: str) -> tuple[str, str]:
    """`KEY=VALUE`."""
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def since(text: str) -> Since:
    """`REVISION`, or `HISTORY:REVISION`."""
    match = _SINCE.fullmatch(text)
    if match is None or int(match[2]) > _MOST_REVISION:
        raise argparse.ArgumentTypeError(f"{text!r} is not REVISION or HISTORY:REVISION")
    return Since(match[1] or "", int(match[2]))


def _checked(check: Callable[[str], str]) -> Callable[[str], str]:
    def convert(text: str) -> str:
        try:
            return check(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return convert


def _parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code.value:<4} {meaning}" for code, meaning in MEANINGS.items())
    parser = argparse.ArgumentParser(
        prog="tabmux",
        description="Share one Chrome between programs: tabs, AI conversations and what happens to them.",
        epilog=_ENVIRONMENT + codes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_globals(parser, suppressed=False)
    groups = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_tab_commands(groups.add_parser("tab", help="open, list, close and watch tabs", allow_abbrev=False))
    _add_ai_commands(groups.add_parser("ai", help="ask web AI providers and follow answers", allow_abbrev=False))
    server = groups.add_parser("server", help="look at the server", allow_abbrev=False)
    commands = server.add_subparsers(metavar="COMMAND", required=True)
    _leaf(commands.add_parser, "server info", "what the server says of itself and you")
    return parser


def _add_tab_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    new = _leaf(commands.add_parser, "tab new", "open a tab, in the background")
    new.add_argument("uri", nargs="?", default="", metavar="URI", help="address to open (default: a blank page)")
    new.add_argument("--group", default="", help="group to put it in")
    new.add_argument("--label", type=label, action="append", default=[], metavar="KEY=VALUE", help="can be repeated")
    new.add_argument("--pin", action="store_true", help="keep it from being closed without --force")
    new.add_argument("--activate", action="store_true", help="bring it to the front")
    new.add_argument("--until", choices=("loaded", "dom", "committed"), default="loaded", help="when to answer")
    listing = _leaf(commands.add_parser, "tab list", "list tabs, oldest first")
    listing.add_argument("--all", action="store_true", help="closed ones too")
    listing.add_argument("--group", action="append", default=[], help="of this group; can be repeated")
    listing.add_argument("--foreign", action="store_true", help="also those that are not the service's, by target id")
    close = _leaf(commands.add_parser, "tab close", "close tabs")
    close.add_argument("tabs", nargs="+", metavar="TAB", help="id, name, or a beginning of the id that is unique")
    close.add_argument("--force", action="store_true", help="also if pinned or serving an open turn")
    switch = _leaf(commands.add_parser, "tab switch", "bring a tab to the front")
    switch.add_argument("tab", metavar="TAB", help="id, name, or a beginning of the id that is unique")
    run = _leaf(commands.add_parser, "tab eval", "run a script in a tab's page once, and print its value as JSON")
    run.add_argument("tab", metavar="TAB", help="id, name, or a beginning of the id that is unique")
    run.add_argument("script", metavar="SCRIPT", help="JavaScript; - reads it from standard input")
    run.add_argument("--await", dest="await_promise", action="store_true", help="wait for the promise that it gives")
    watch = _leaf(commands.add_parser, "tab watch", "show tabs as they change; piped, each change as JSON")
    _add_since(watch)


def _add_ai_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    # Its own --timeout is that of the answer; the one of all calls stands before the command.
    _add_sending(
        _leaf(commands.add_parser, "ai query", "send a prompt and print the answer as it grows", timeout=False)
    )
    _add_sending(_leaf(commands.add_parser, "ai send", "send a prompt and print the name of its turn", timeout=False))
    add_prompt(_leaf(commands.add_parser, "ai render", "print the text that a prompt becomes; nothing is sent"))
    recover = _leaf(commands.add_parser, "ai recover", "bring a session back to its conversation")
    recover.add_argument("session", metavar="SESSION", help="id or name")
    watch = _leaf(
        commands.add_parser,
        "ai watch",
        "print the answer of a turn, or show sessions as they change; piped, each change as JSON",
    )
    watch.add_argument("turn", nargs="?", metavar="TURN", help="name of a turn, or a session for its last turn")
    _add_since(watch)
    add_status(lambda command, help_: _leaf(commands.add_parser, command, help_), duration)
    providers = commands.add_parser("providers", help="list providers, and check descriptors", allow_abbrev=False)
    provider_commands = providers.add_subparsers(metavar="COMMAND", required=True)
    add_providers(lambda command, help_: _leaf(provider_commands.add_parser, command, help_))
    add_probe(lambda command, help_: _leaf(provider_commands.add_parser, command, help_))
    artifacts = commands.add_parser("artifacts", help="upload files, and get those of answers", allow_abbrev=False)
    artifact_commands = artifacts.add_subparsers(metavar="COMMAND", required=True)
    add_artifacts(lambda command, help_: _leaf(artifact_commands.add_parser, command, help_))
    sessions = commands.add_parser("sessions", help="list, label, retire and import conversations", allow_abbrev=False)
    _add_session_commands(sessions)


def _add_sending(query: argparse.ArgumentParser) -> None:
    """What is sent, to whom, and in which session and tab."""
    add_prompt(query)
    add_files(query)
    query.add_argument(
        "--session",
        type=_checked(lambda text: checked_session_id(text.removeprefix("sessions/"))),
        metavar="ID",
        help="conversation to go on with, or to begin under that id",
    )
    query.add_argument(
        "--key",
        type=_checked(checked_request_id),
        help="name of your own for this prompt: the same key finds the same turn, and nothing is sent twice",
    )
    query.add_argument(
        "--model",
        default="",
        metavar="ID",
        help="model or mode to choose, as `tabmux ai providers list` tells them (default: what the page has)",
    )
    query.add_argument(
        "--timeout",
        dest="answer_timeout",
        type=duration,
        metavar="TIME",
        help="how long the service waits for the answer, such as 10m (default: the provider's)",
    )
    query.add_argument("--new", action="store_true", help="refuse to go on with a conversation that exists")
    place = query.add_argument_group("where a conversation begins", "a new tab, unless").add_mutually_exclusive_group()
    place.add_argument("--pooled", dest="place", action="store_const", const="pooled", help="one from the pool")
    place.add_argument(
        "--reuse-tab",
        dest="place",
        action="store_const",
        const="front",
        help="the one in front, with the conversation it shows",
    )
    place.add_argument("--tab", metavar="TAB", help="this one: id, name, or a beginning of the id that is unique")
    query.set_defaults(place="new")


def _add_session_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = _leaf(commands.add_parser, "ai sessions list", "list sessions, oldest first; piped, as JSON")
    listing.add_argument("--all", action="store_true", help="retired ones too")
    listing.add_argument("--provider", action="append", default=[], help="of this provider; can be repeated")
    listing.add_argument(
        "--label", type=label, action="append", default=[], metavar="KEY=VALUE", help="with this label"
    )
    show = _leaf(commands.add_parser, "ai sessions show", "show a session")
    show.add_argument("session", metavar="SESSION", help="id or name")
    turns = _leaf(commands.add_parser, "ai sessions turns", "list the turns of a session; piped, as JSON")
    turns.add_argument("session", metavar="SESSION", help="id or name")
    labels = _leaf(commands.add_parser, "ai sessions label", "set labels, or how long a session may go without a turn")
    labels.add_argument("session", metavar="SESSION", help="id or name")
    labels.add_argument("labels", nargs="*", type=label, metavar="KEY=VALUE", help="an empty value removes the label")
    labels.add_argument("--ttl", type=duration, metavar="TIME", help="such as 30d")
    retire = _leaf(commands.add_parser, "ai sessions retire", "end sessions for good, their open turns first")
    retire.add_argument("sessions", nargs="+", metavar="SESSION", help="id or name")
    retire.add_argument("--tab", choices=("pool", "close", "keep"), help="what becomes of the tab")
    imported = _leaf(commands.add_parser, "ai sessions import", "import the conversations of another tool")
    imported.add_argument("file", nargs="?", metavar="FILE", help="default: where the tool keeps it")
    imported.add_argument("--from", "--source", dest="source", choices=("agbrowse", "cli-jaw"), required=True)
    imported.add_argument("--browser", default="", help="browser for their tabs; needed if there are several")
    imported.add_argument("--ttl", type=duration, metavar="TIME", help="how long they may go unused (default: 30d)")
    imported.add_argument("--dry-run", action="store_true", help="only say what would be done")
    prune = _leaf(commands.add_parser, "ai sessions prune", "end your sessions that were not used for long")
    prune.add_argument("--older-than", type=duration, metavar="TIME", required=True, help="such as 14d")
    prune.add_argument("--dry-run", action="store_true", help="only say which")


def _add_since(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", type=since, metavar="REVISION", help="print each change behind this one")


def _leaf(
    add_parser: Callable[..., argparse.ArgumentParser],
    command: str,
    help_: str,
    *,
    timeout: bool = True,
) -> argparse.ArgumentParser:
    parser = add_parser(command.rpartition(" ")[2], help=help_, description=help_, allow_abbrev=False)
    parser.set_defaults(command=command)
    _add_globals(parser, suppressed=True, timeout=timeout)
    return parser


def _add_globals(parser: argparse.ArgumentParser, *, suppressed: bool, timeout: bool = True) -> None:
    """Options that every command takes, before it or behind it; behind it they must not undo what stood before."""
    absent = argparse.SUPPRESS if suppressed else None
    parser.add_argument("--address", default=absent, help="unix:///PATH or HOST:PORT")
    parser.add_argument("--as", dest="as_", default=absent, metavar="NAME", help="name of the program, on the socket")
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS if suppressed else False,
        help="one JSON object a line",
    )
    if timeout:
        parser.add_argument(
            "--timeout", type=duration, default=absent, metavar="TIME", help="longest time for one call"
        )
