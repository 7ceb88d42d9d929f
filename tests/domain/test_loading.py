"""Which descriptors a server loads, from the package and from its operator's directory."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from tabmuxd.webai.providers.descriptor import DescriptorError
from tabmuxd.webai.providers.loading import load_providers

_SHIPPED = ["playground-editor", "playground-shadow", "playground-textarea"]


def _text(provider: str = "mine") -> str:
    text = resources.files("tabmuxd.webai.providers").joinpath("playground-editor.toml").read_text("utf-8")
    return text.replace("{port}", "1").replace('id = "playground-editor"', f'id = "{provider}"')


def test_shipped(tmp_path: Path) -> None:
    """The playground's pages are known where a port for them is; a directory that is not there holds nothing."""
    assert sorted(load_providers(tmp_path / "none", 7)) == _SHIPPED
    assert load_providers(tmp_path / "none", 0) == {}


def test_directory(tmp_path: Path) -> None:
    """What the operator describes stands beside the shipped ones, or in place of the one of its id."""
    (tmp_path / "a.toml").write_text(_text())
    (tmp_path / "b.toml").write_text(_text("playground-shadow"))
    (tmp_path / "notes.txt").write_text("not a descriptor")
    found = load_providers(tmp_path, 7)
    assert sorted(found) == ["mine", *_SHIPPED]
    assert found["playground-shadow"].start_uri == "http://editor.localhost:1/"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a.toml": b"id = 1"}, "a.toml"),
        ({"a.toml": b"\xff"}, "cannot be read"),
        ({"a.toml": _text().encode(), "b.toml": _text().encode()}, "describes 'mine', as"),
    ],
    ids=["not a descriptor", "not text", "twice"],
)
def test_refused(tmp_path: Path, files: dict[str, bytes], told: str) -> None:
    """A file that cannot be used, and two of one id, are refused by name: nothing is left out silently."""
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    with pytest.raises(DescriptorError, match=told):
        load_providers(tmp_path, 7)
