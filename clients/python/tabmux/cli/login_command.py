"""The command that lets a person sign in: it opens the page and waits; it types nothing and reads no sign-in page."""

import argparse
import asyncio
from collections.abc import Collection

from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.output import Output
from tabmux.cli.text import harmless_line
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.names import id_of
from tabmux.v1.provider_pb2 import Provider, ProviderStatus

_INTERVAL = 1.0
# Whoever signs in goes through pages of others, which may be slow and open dialogs.
_PASSING = frozenset({"PROVIDER_NOT_SHOWN", "TAB_UNRESPONSIVE", "DIALOG_OPEN", "BROWSER_UNREACHABLE"})
_NOTES = {
    "signed-in-suspected": "The page seems to be signed in, by a mark that nobody has confirmed; still waiting.",
    "sign-in-unclear": "The page shows marks of being signed in and of being signed out; still waiting.",
}
_PAGES = {
    ProviderStatus.INTERSTITIAL_CHALLENGE: "The page asks for proof of a person; still waiting.",
    ProviderStatus.INTERSTITIAL_CONSENT: "The page asks for consent; still waiting.",
}


class CannotTellError(Exception):
    """The descriptor has no mark for a sign-in: nothing can be waited for."""


async def login(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Open the start page of a provider in front, and wait until the page shows that somebody is signed in."""
    provider, alike = await _provider(client, arguments.provider)
    tab = await client.open(provider.start_uri, activate=True, until="committed")
    id_ = id_of(tab.name)
    name = harmless_line(provider.display_name or provider.id)
    output.note(f"{name} is open in the tab {id_}, in front. Sign in there; Ctrl-C ends the waiting alone.")
    try:
        async with asyncio.timeout(arguments.wait.total_seconds()):
            status = await _signed_in(client, tab.name, alike, output)
    except TimeoutError:
        output.note(f"Nobody was seen to sign in to {name} in time. The tab stays open: tabmux ai status --tab {id_}")
        return Exit.REFUSED
    except CannotTellError:
        output.note(f"The descriptor of {name} has no mark of a sign-in. The tab stays open: see for yourself.")
        return Exit.REFUSED
    except asyncio.CancelledError:
        output.note(f"\nThe tab stays open. To see how it stands: tabmux ai status --tab {id_}")
        raise
    if output.as_json:
        output.message(status)
    else:
        output.line(f"signed in to {name}, in the tab {id_}")
    return Exit.OK


async def _provider(client: Client, wanted: str) -> tuple[Provider, Collection[str]]:
    """The provider of this id, and the ids of all with pages at its hosts: the service may name another of them."""
    providers = [provider async for provider in client.providers()]
    for provider in providers:
        if provider.id == wanted:
            hosts = set(provider.hosts)
            return provider, {one.id for one in providers if hosts & set(one.hosts)}
    known = ", ".join(provider.id for provider in providers) or "none"
    raise RefusedError(f"no provider {wanted} is known to the server", f"name one of these: {known}")


async def _signed_in(client: Client, tab: str, providers: Collection[str], output: Output) -> ProviderStatus:
    """The status once somebody is signed in; says what is seen meanwhile, each thing once in a row."""
    told = ""
    while True:
        note = ""
        try:
            status = await client.provider_status(tab)
        except TabmuxError as error:
            if error.reason not in _PASSING:
                raise
        else:
            if status.provider in providers:
                if status.sign_in == ProviderStatus.SIGN_IN_SIGNED_IN:
                    return status
                note = _note(status)
        if note and note != told:
            told = note
            output.note(note)
        await asyncio.sleep(_INTERVAL)


def _note(status: ProviderStatus) -> str:
    """What a person should know of a page that is not signed in; raises `CannotTellError`."""
    codes = {warning.code for warning in status.warnings}
    if "sign-in-unmarked" in codes:
        raise CannotTellError
    found = [note for code, note in _NOTES.items() if code in codes]
    return _PAGES.get(status.interstitial) or (found[0] if found else "")
