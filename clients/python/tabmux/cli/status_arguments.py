"""What can be written to look at providers, and to sign in."""

import argparse
from collections.abc import Callable

Leaf = Callable[[str, str], argparse.ArgumentParser]

_TAB = "id, name, or a beginning of the id that is unique"


def add_status(leaf: Leaf, duration: Callable[[str], object]) -> None:
    """`ai status` and `ai login`."""
    status = leaf("ai status", "show what a tab shows of its provider, and change nothing; piped, as JSON")
    where = status.add_mutually_exclusive_group(required=True)
    where.add_argument("session", nargs="?", metavar="SESSION", help="the tab of this session: id or name")
    where.add_argument("--tab", metavar="TAB", help=_TAB)
    login = leaf("ai login", "open a provider's start page in front, and wait until somebody has signed in there")
    login.add_argument("provider", metavar="PROVIDER", help="such as chatgpt, gemini or grok")
    login.add_argument("--wait", type=duration, metavar="TIME", default="10m", help="how long (default: 10m)")


def add_probe(leaf: Leaf) -> None:
    """`ai providers probe`."""
    probe = leaf("ai providers probe", "show what each selector of a descriptor finds in a tab; piped, as JSON")
    probe.add_argument("provider", metavar="PROVIDER", help="such as chatgpt, gemini or grok")
    probe.add_argument("--tab", metavar="TAB", required=True, help=_TAB)
