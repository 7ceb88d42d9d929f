"""One address for many programs that share Chrome.

`async with tabmux.connect(as_="night-report") as client:` gives a `tabmux.client.Client`; `tabmux.errors` has what it
raises. Importing this package loads neither gRPC nor the generated code: both come with the first of these names.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tabmux import errors
    from tabmux.client import connect

__all__ = ["connect", "errors"]


def __getattr__(name: str) -> object:
    """Load `connect` or `errors` when first asked for."""
    from importlib import import_module  # noqa: PLC0415 - nothing is loaded together with the package

    if name == "connect":
        return import_module("tabmux.client").connect
    if name == "errors":
        return import_module("tabmux.errors")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
