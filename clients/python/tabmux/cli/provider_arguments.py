"""What can be written about providers and their descriptors."""

import argparse
from collections.abc import Callable

Leaf = Callable[[str, str], argparse.ArgumentParser]


def add_providers(leaf: Leaf) -> None:
    """`ai providers list` and `ai providers lint`."""
    leaf("ai providers list", "list the providers that the server knows; piped, as JSON")
    lint = leaf("ai providers lint", "say what is wrong with descriptor files, line by line; needs no server")
    lint.add_argument("files", nargs="+", metavar="FILE", help="descriptor, such as chat.toml")
