"""Which providers a server knows: the shipped descriptors, and those that its operator has put beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import Descriptor, DescriptorError
from tabmuxd.webai.providers.fields import Problem

_PLAYGROUND: Final = ("playground-textarea", "playground-editor", "playground-shadow")


def load_providers(directory: Path, playground_port: int) -> dict[str, Descriptor]:
    """Descriptors by id: the playground's, where a port for it is known, and each `*.toml` of `directory`.

    One of the directory takes the place of a shipped one of its id; a directory that is not there holds none. Raises
    DescriptorError for a file that cannot be used, and for two files of one id.
    """
    found: dict[str, Descriptor] = {}
    if playground_port:
        variables = {"port": str(playground_port)}
        found = {name: descriptor.load(name, variables) for name in _PLAYGROUND}
    sources: dict[str, Path] = {}
    for path in sorted(directory.glob("*.toml")):
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DescriptorError(str(path), (Problem(1, "", f"cannot be read: {error}"),)) from error
        one = descriptor.parse(text, str(path))
        if other := sources.get(one.id):
            problem = Problem(1, "id", f"describes {one.id!r}, as {other} does; leave one of them out")
            raise DescriptorError(str(path), (problem,), one.id)
        sources[one.id] = path
        found[one.id] = one
    return found
