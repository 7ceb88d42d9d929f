"""Local pages that stand for ChatGPT, Gemini and Grok, each a host of its own on loopback at the site's own paths.

The descriptor of such a page is the shipped one; nothing in it is changed but its id, its hosts and where it starts.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from tabmuxd.webai.providers import descriptor

from tests.hostile.site import Site

EDITORS: Final = {"chatgpt": "prosemirror", "gemini": "quill", "grok": "prosemirror"}
TRAITS: Final = {
    "plain": "",
    "hydrates": "hydrates",
    "veil": "veil",
    "twins": "twins",
    "decoys": "site-decoys",
    "ko": "ko",
    "zh": "zh",
    "blocks": "blocks",
    "late-address": "late-address",
    "short-list": "short-list",
    "late-turns": "late-turns",
    "hover": "hover",
    "no-copy": "no-copy",
    "wall": "wall",
    "all": "ko,hydrates,twins,site-decoys,blocks,short-list",
}
"""What is special of a page, and the variants that it is made of."""


def variants(name: str, traits: str) -> str:
    """Variants of a site's page with these traits; words of another language come first."""
    first, *others = traits.split(",")
    words = [first] if first in ("ko", "zh") else []
    rest = [one for one in [first, *others] if one and one not in words]
    return ",".join([EDITORS[name], *words, name, *rest])


def stand_for(directory: Path, site: Site, name: str, trait: str, traits: str) -> str:
    """Serve such a page, and write its descriptor for a server that is not started yet; its id."""
    identity = f"{name}-{trait}"
    host = f"{identity}.localhost"
    site.hosts[host] = variants(name, traits)
    text = resources.files("tabmuxd.webai.providers").joinpath(f"{name}.toml").read_text("utf-8")
    start = urlsplit(descriptor.load(name).start_uri).path
    changed = {"id": f'"{identity}"', "hosts": f'["{host}"]', "start_uri": f'"http://{host}:{site.port}{start}"'}
    for field, value in changed.items():
        text = re.sub(rf"^{field} = .*$", f"{field} = {value}", text, flags=re.MULTILINE)
    (directory / "providers").mkdir(exist_ok=True)
    (directory / "providers" / f"{identity}.toml").write_text(text, "utf-8")
    return identity
