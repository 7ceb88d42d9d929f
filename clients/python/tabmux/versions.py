"""The version of this package, and whether a server's fits it."""

import re
from importlib.metadata import PackageNotFoundError, version

_VERSION = re.compile(r"(\d+)\.(\d+)")


class CompatibilityWarning(UserWarning):
    """Client and server are of versions that were not made for each other."""


def client_version() -> str:
    """Version of this package, such as `1.4.0`; `0` where it runs without being installed."""
    try:
        return version("tabmux")
    except PackageNotFoundError:
        return "0"


def versions_fit(client: str, server: str) -> bool:
    """Whether both have the same major version, and before 1.0 also the same minor one; true if one is not known."""
    ours, theirs = _VERSION.match(client), _VERSION.match(server)
    if ours is None or theirs is None:
        return True
    major, minor = ours.groups()
    return theirs.groups() == (major, minor) if major == "0" else theirs.group(1) == major
