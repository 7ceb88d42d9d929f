"""Commands about the server."""

import argparse

from tabmux.cli.exits import Exit
from tabmux.cli.output import Output
from tabmux.client import Client
from tabmux.versions import client_version


async def info(client: Client, _arguments: argparse.Namespace, output: Output) -> Exit:
    """Print what the server says of itself and the caller."""
    told = client.info
    if output.as_json:
        output.message(told)
        return Exit.OK
    rows = [
        ("address", str(client.place)),
        ("version", told.version),
        ("client", client_version()),
        ("you are", told.principal),
        ("you may", " ".join(told.scopes)),
        ("history", told.progress.history_id),
        ("revision", str(told.progress.revision)),
        ("switched off", " ".join(told.disabled_methods) or "nothing"),
    ]
    output.table(("WHAT", "VALUE"), rows)
    return Exit.OK
