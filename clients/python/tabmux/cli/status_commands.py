"""Commands that look at what a tab shows of its provider; nothing is done in the page."""

import argparse
from collections.abc import Sequence
from datetime import UTC

from tabmux.cli.exits import Exit
from tabmux.cli.failures import RefusedError
from tabmux.cli.output import Output
from tabmux.client import Client
from tabmux.names import id_of
from tabmux.v1.provider_pb2 import ProviderStatus, SelectorFinding

_PROBE_HEAD = ("FIELD", "FOUND", "VISIBLE", "TAKEN", "SELECTOR", "ELEMENT")


async def status(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print what a tab, or that of a session, shows of its provider."""
    shown = await client.provider_status(await _tab(client, arguments))
    if output.as_json or not output.terminal:
        output.message(shown)
    else:
        output.table(("WHAT", "VALUE"), rows_of(shown))
    return Exit.OK


async def probe(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print what each selector of a provider's descriptor finds in a tab."""
    tab = await client.tab(arguments.tab)
    probed = await client.probe_provider(arguments.provider, tab.name)
    if output.as_json or not output.terminal:
        for finding in probed.findings:
            output.message(finding)
    else:
        output.table(_PROBE_HEAD, [_finding_row(finding) for finding in probed.findings])
    return Exit.OK


def rows_of(shown: ProviderStatus) -> Sequence[tuple[str, str]]:
    """What a status says, for people; what is not known is left out."""
    rows = [
        ("provider", shown.provider),
        ("tab", id_of(shown.tab)),
        ("ready", "yes" if shown.ready else "no"),
        ("sign-in", _word(ProviderStatus.SignIn.items(), "SIGN_IN_", shown.sign_in)),
        ("composer", _word(ProviderStatus.Composer.items(), "COMPOSER_", shown.composer)),
        ("page", _word(ProviderStatus.Interstitial.items(), "INTERSTITIAL_", shown.interstitial)),
        ("limit", shown.limit.evidence if shown.HasField("limit") else ""),
        ("until", _until(shown)),
        ("model", shown.shown_model),
        ("conversation", shown.conversation_uri),
        ("descriptor", shown.descriptor_version),
        *(("warning", f"{warning.code}: {warning.message}") for warning in shown.warnings),
    ]
    return [row for row in rows if row[1]]


async def _tab(client: Client, arguments: argparse.Namespace) -> str:
    """Name of the tab that is meant."""
    if arguments.tab is not None:
        return (await client.tab(arguments.tab)).name
    session = await client.session(arguments.session).get()
    if session.tab:
        return session.tab
    raise RefusedError(
        f"the session {id_of(session.name)} has no tab now",
        "send a prompt, or bring it back with `tabmux ai recover SESSION`",
    )


def _word(names: Sequence[tuple[str, int]], prefix: str, number: int) -> str:
    """Words for a value; its number if this client does not know it, and nothing where the page does not tell."""
    if not number:
        return ""
    name = next((name for name, value in names if value == number), str(number))
    return name.removeprefix(prefix).lower().replace("_", " ")


def _until(shown: ProviderStatus) -> str:
    if not shown.limit.HasField("reset_time"):
        return ""
    return shown.limit.reset_time.ToDatetime(UTC).astimezone().strftime("%Y-%m-%d %H:%M")


def _finding_row(finding: SelectorFinding) -> tuple[str, ...]:
    return (
        finding.field,
        str(finding.match_count),
        str(finding.visible_count),
        str(finding.taken_count),
        _sought(finding),
        f"refused: {finding.problem}" if finding.problem else finding.element,
    )


def _sought(finding: SelectorFinding) -> str:
    """The selector, and what else an element has to be."""
    text = f" with {finding.text!r}" if finding.text else ""
    name = f" named {finding.name!r}" if finding.name else ""
    return finding.selector + text + name
