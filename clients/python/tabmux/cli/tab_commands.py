"""Commands about tabs."""

import argparse
import sys
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

from tabmux.cli.events import print_changes, state_name
from tabmux.cli.exits import Exit
from tabmux.cli.failures import exit_of, tell
from tabmux.cli.live import follow
from tabmux.cli.output import Output
from tabmux.cli.text import harmless_json
from tabmux.client import Client
from tabmux.errors import TabmuxError
from tabmux.mirror import Mirror
from tabmux.names import id_of
from tabmux.v1.tab_pb2 import Tab
from tabmux.v1.tab_service_pb2 import CreateTabResponse, Navigation

_HEAD = ("ID", "STATE", "OWNER", "GROUP", "MARKS", "TITLE", "URI")

_NAVIGATION_NOTES: Mapping[int, str] = MappingProxyType(
    {
        Navigation.OUTCOME_REACHED: "",
        Navigation.OUTCOME_LOADING: "The page is still loading.",
        Navigation.OUTCOME_UNCONFIRMED: "The browser took the address, but no page was seen yet.",
        Navigation.OUTCOME_SAME_DOCUMENT: "",
        Navigation.OUTCOME_SUPERSEDED: "Another navigation took over.",
        Navigation.OUTCOME_NO_DOCUMENT: "The address gave no page, such as a download.",
    },
)


async def new(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Open a tab and print it."""
    tab = await client.open(
        arguments.uri,
        group=arguments.group,
        labels=dict(arguments.label),
        pinned=arguments.pin,
        activate=arguments.activate,
        until=arguments.until,
    )
    if output.as_json:
        output.message(CreateTabResponse(tab=tab.resource, navigation=tab.navigation))
    else:
        output.table(_HEAD, [_row(tab.resource)])
        if tab.navigation is not None and (told := _navigation_note(tab.navigation)):
            output.note(told)
    return Exit.OK


async def list_(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Print the tabs there are."""
    tabs = client.tabs(groups=arguments.group, closed=arguments.all, foreign=arguments.foreign)
    if output.as_json:
        async for tab in tabs:
            output.message(tab)
    elif rows := [_row(tab) async for tab in tabs]:
        output.table(_HEAD, rows)
    else:
        output.note("No tabs.")
    return Exit.OK


async def close(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Close tabs, each on its own: one that is refused does not keep the others open."""
    worst = Exit.OK
    for given in arguments.tabs:
        try:
            resource = await (await client.tab(given)).close(force=arguments.force)
        except TabmuxError as error:
            tell(error, output)
            worst = max(worst, exit_of(error))
        else:
            if output.as_json:
                output.message(resource)
            else:
                output.line(f"closed {resource.name}")
    return worst


async def switch(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Bring a tab to the front."""
    resource = await (await client.tab(arguments.tab)).activate()
    if output.as_json:
        output.message(resource)
    elif resource.front:
        output.line(f"in front: {resource.name}")
    else:
        output.line(f"brought forward, but not seen in front: {resource.name}")
    return Exit.OK


async def evaluate(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Run a script, and print its value as JSON; nothing for `undefined`."""
    script = sys.stdin.read() if arguments.script == "-" else arguments.script
    tab = await client.tab(arguments.tab)
    response = await tab.evaluate_json(script, await_promise=arguments.await_promise)
    if output.as_json:
        output.message(response)
    elif response.result_json:
        output.line(harmless_json(response.result_json))
    return Exit.OK


async def watch(client: Client, arguments: argparse.Namespace, output: Output) -> Exit:
    """Show the tabs as they change, on a terminal; else, and behind a revision, print each change."""
    again = "tabmux tab watch"
    if output.terminal and not output.as_json and arguments.since is None:
        await follow(client, "tabs", _HEAD, _rows, again=again, output=output)
    else:
        await print_changes(client, "tabs", arguments.since, again, output)
    return Exit.OK


def _rows(mirror: Mirror) -> list[tuple[str, ...]]:
    return [
        _row(tab) for tab in sorted(mirror.tabs.values(), key=lambda tab: (tab.create_time.ToNanoseconds(), tab.name))
    ]


def _row(tab: Tab) -> tuple[str, ...]:
    if tab.origin == Tab.ORIGIN_FOREIGN:
        return f"target {tab.target_id}", "FOREIGN", "", "", "", "", ""
    marks = (("front", tab.front), ("pinned", tab.pinned), ("pooled", tab.pooled), ("leased", bool(tab.lease)))
    return (
        id_of(tab.name),
        state_name(Tab.State.items(), tab.state),
        tab.owner,
        tab.group,
        ",".join(word for word, holds in marks if holds),
        tab.title,
        tab.uri,
    )


def _navigation_note(navigation: Navigation) -> str:
    """What has to be said of a navigation; empty if all went as asked."""
    if navigation.outcome == Navigation.OUTCOME_REACHED and navigation.http_status >= HTTPStatus.BAD_REQUEST:
        return f"The page was loaded, with HTTP status {navigation.http_status}."
    return _NAVIGATION_NOTES.get(navigation.outcome, f"The navigation ended as {navigation.outcome}.")
