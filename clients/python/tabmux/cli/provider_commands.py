"""Commands about providers and their descriptors."""

import argparse
import asyncio
import importlib.util
import shutil
import sys
from collections.abc import Sequence
from types import MappingProxyType

from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.output import Output
from tabmux.cli.text import harmless_line
from tabmux.client import Client
from tabmux.v1.provider_pb2 import Provider, ProviderCapability

_HEAD = ("ID", "VERSION", "NAME", "START", "CAN", "MODELS")
_CAPABILITY = "PROVIDER_CAPABILITY_"
_LINT_EXITS = MappingProxyType({0: Exit.OK, 2: Exit.USAGE})


async def list_(client: Client, _arguments: argparse.Namespace, output: Output) -> Exit:
    """Print the providers there are, and what is wrong with their files."""
    providers = [provider async for provider in client.providers()]
    if output.as_json or not output.terminal:
        for provider in providers:
            output.message(provider)
        return Exit.OK
    if providers:
        output.table(_HEAD, [_row(provider) for provider in providers])
    else:
        output.note("No providers.")
    for provider in providers:
        for warning in provider.warnings:
            for line in warning.message.split("\n"):
                output.note(harmless_line(f"warning: {warning.code}: {line}"))
    return Exit.OK


async def lint(arguments: argparse.Namespace, output: Output) -> Exit:
    """Say what is wrong with descriptor files, as the program of the server that is installed here reads them."""
    command = [*_server_program(), "lint", *(["--json"] if output.as_json else []), "--", *arguments.files]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL)
    try:
        return _LINT_EXITS.get(await process.wait(), Exit.REFUSED)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _server_program() -> Sequence[str]:
    """Command of the server: from this Python, or else from PATH."""
    if importlib.util.find_spec("tabmuxd") is not None:
        return sys.executable, "-m", "tabmuxd"
    if (program := shutil.which("tabmuxd")) is not None:
        return (program,)
    raise RefusedError(
        "descriptors are read by the program of the server, tabmuxd, which is not installed here; no file was read",
        "install tabmuxd beside this command, or lint on the machine of the server",
    )


def _row(provider: Provider) -> tuple[str, ...]:
    can = " ".join(_capability(each) for each in provider.capabilities)
    models = " ".join(provider.models)
    return provider.id, provider.descriptor_version, provider.display_name, provider.start_uri, can, models


def _capability(value: ProviderCapability.ValueType) -> str:
    if value not in ProviderCapability.values():
        return str(value)  # of a newer server
    return ProviderCapability.Name(value).removeprefix(_CAPABILITY).lower().replace("_", "-")
