"""Runs one command: connects, does it, and tells how it ended."""

import argparse
import os
import warnings
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from datetime import timedelta
from types import MappingProxyType

from tabmux.cli import (
    ai_commands,
    artifact_commands,
    login_command,
    provider_commands,
    server_commands,
    session_commands,
    status_commands,
    tab_commands,
)
from tabmux.cli.exits import Exit
from tabmux.cli.failures import UnreachableError, exit_of, tell
from tabmux.cli.output import Output
from tabmux.client import Client, connect
from tabmux.errors import TabmuxError
from tabmux.places import find_authorization, find_place
from tabmux.versions import CompatibilityWarning, client_version, versions_fit

Command = Callable[[Client, argparse.Namespace, Output], Awaitable[Exit]]

COMMANDS: Mapping[str, Command] = MappingProxyType(
    {
        "tab new": tab_commands.new,
        "tab list": tab_commands.list_,
        "tab close": tab_commands.close,
        "tab switch": tab_commands.switch,
        "tab eval": tab_commands.evaluate,
        "tab watch": tab_commands.watch,
        "ai query": ai_commands.query,
        "ai send": ai_commands.send,
        "ai render": ai_commands.render,
        "ai providers list": provider_commands.list_,
        "ai status": status_commands.status,
        "ai login": login_command.login,
        "ai providers probe": status_commands.probe,
        "ai recover": ai_commands.recover,
        "ai watch": ai_commands.watch,
        "ai artifacts upload": artifact_commands.upload,
        "ai artifacts get": artifact_commands.get,
        "ai sessions list": session_commands.list_,
        "ai sessions show": session_commands.show,
        "ai sessions turns": session_commands.turns,
        "ai sessions label": session_commands.label,
        "ai sessions retire": session_commands.retire,
        "ai sessions import": session_commands.import_,
        "ai sessions prune": session_commands.prune,
        "server info": server_commands.info,
    },
)

LocalCommand = Callable[[argparse.Namespace, Output], Awaitable[Exit]]

LOCAL_COMMANDS: Mapping[str, LocalCommand] = MappingProxyType({"ai providers lint": provider_commands.lint})
"""Those that need no server."""

_PATIENCE = timedelta(seconds=2)


async def run(arguments: argparse.Namespace) -> Exit:
    """Run the command that `arguments` name; errors are printed, and told by the exit code."""
    output = Output(as_json=arguments.json)
    try:
        if (local := LOCAL_COMMANDS.get(arguments.command)) is not None:
            return await local(arguments, output)
        async with AsyncExitStack() as stack:
            client = await _connected(stack, arguments)
            if not versions_fit(client_version(), client.info.version):
                output.note(
                    f"tabmux: this is {client_version()} and the server {client.info.version}: they may not fit"
                )
            return await COMMANDS[arguments.command](client, arguments, output)
    except TabmuxError as error:
        tell(error, output)
        return exit_of(error)


async def _connected(stack: AsyncExitStack, arguments: argparse.Namespace) -> Client:
    """Client for these arguments; raises `UnreachableError` if no server answers."""
    as_ = arguments.as_ or os.environ.get("TABMUX_AS") or None
    place = find_place(arguments.address, os.environ)
    find_authorization(place, None, as_, os.environ)  # what cannot be used is said before the server is looked for
    if place.socket is not None and not place.socket.exists():
        raise UnreachableError(f"no server listens at {place}: there is no such socket")
    patience = min(arguments.timeout or _PATIENCE, _PATIENCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CompatibilityWarning)  # told in our own words
        try:
            return await stack.enter_async_context(
                connect(arguments.address, as_=as_, timeout=arguments.timeout, patience=patience),
            )
        except TabmuxError as error:
            if error.code not in {"UNAVAILABLE", "DEADLINE_EXCEEDED"} or error.reason:
                raise
            raise UnreachableError(f"no server answers at {place}: {error.message}", code=error.code) from error
