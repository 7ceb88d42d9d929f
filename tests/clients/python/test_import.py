"""Importing the package costs nothing until something of it is used."""

import subprocess
import sys


def loaded_by(statement: str) -> set[str]:
    """Modules of ours, of gRPC and of protobuf that a fresh interpreter has after `statement`."""
    script = (
        f"import sys\n{statement}\nprint(*(n for n in sys.modules if n.split('.')[0] in ('tabmux', 'grpc', 'google')))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing() -> None:
    """`import tabmux` loads no other module of the package, no gRPC and no protobuf."""
    assert loaded_by("import tabmux") == {"tabmux"}


def test_errors_come_without_grpc() -> None:
    """Reading `tabmux.errors` loads the error classes and not gRPC."""
    loaded = loaded_by("import tabmux; tabmux.errors.TabmuxError")
    assert ("tabmux.errors" in loaded, "grpc" in loaded) == (True, False)


def test_connect_is_found_by_its_name() -> None:
    """`tabmux.connect` is the function of `tabmux.client`, and other names are refused as usual."""
    loaded_by(
        "import tabmux; from tabmux.client import connect; assert tabmux.connect is connect;"
        " assert not hasattr(tabmux, 'nothing')",
    )
