"""Commands about files that the service keeps for a while."""

import argparse
import os
import tempfile
from contextlib import ExitStack, aclosing, suppress
from pathlib import Path

from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.output import Output
from tabmux.cli.text import harmless_line
from tabmux.client import Client
from tabmux.v1.session_pb2 import Artifact


async def upload(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Upload files, and print the name of each, by which it is sent or read."""
    for file in arguments.files:
        artifact = await upload_file(client, file)
        if output.as_json:
            output.message(artifact)
        else:
            output.text(f"{artifact.name}\n")
    return Exit.OK


async def get(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Write an artifact to a file, which appears when it is whole."""
    target = Path(arguments.output)
    try:
        size_bytes = await _write(client, arguments.artifact, target)
    except OSError as error:
        raise RefusedError(f"the file cannot be written: {error}", "name another file") from error
    output.note(harmless_line(f"{target}: {size_bytes} bytes"))
    return Exit.OK


async def upload_file(client: Client, file: str) -> Artifact:
    """Upload one file. Raises `RefusedError` where it cannot be read."""
    try:
        return await client.upload(Path(file))
    except OSError as error:
        raise RefusedError(f"the file cannot be read: {error}; nothing was sent", "name another file") from error


async def _write(client: Client, name: str, target: Path) -> int:
    descriptor, part = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    with ExitStack() as clearing:
        clearing.callback(_remove, part)
        size_bytes = 0
        with os.fdopen(descriptor, "wb") as opened:
            async with aclosing(client.artifact(name)) as pieces:
                async for piece in pieces:
                    size_bytes += opened.write(piece)
        _rename(part, target)
        clearing.pop_all()
    return size_bytes


def _rename(part: str, target: Path) -> None:
    Path(part).replace(target)


def _remove(part: str) -> None:
    with suppress(OSError):
        Path(part).unlink()
