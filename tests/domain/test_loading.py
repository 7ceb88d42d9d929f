"""Which descriptors a server has, from the package and from its operator's directory, and what becomes of a change."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tabmuxd.resources.provider import ProviderCapability
from tabmuxd.resources.session import Warning  # noqa: A004 - the contract's word
from tabmuxd.webai.providers.describing import capabilities, described
from tabmuxd.webai.providers.descriptor import DescriptorError, parse
from tabmuxd.webai.providers.loading import Providers, load_providers, read_descriptor

_PLAYGROUND = {"playground-editor", "playground-shadow", "playground-textarea"}


def _text(provider: str = "mine", version: str = "1", name: str = "Mine") -> str:
    text = resources.files("tabmuxd.webai.providers").joinpath("playground-editor.toml").read_text("utf-8")
    return (
        text.replace("{port}", "1")
        .replace('id = "playground-editor"', f'id = "{provider}"')
        .replace('version = "1"', f'version = "{version}"')
        .replace('"Playground (rich editor)"', f'"{name}"')
    )


def test_shipped(tmp_path: Path) -> None:
    """The playground's pages are known where a port for them is; a directory that is not there holds nothing."""
    with_port, without = load_providers(tmp_path / "none", 7), load_providers(tmp_path / "none", 0)
    assert set(with_port) - set(without) == _PLAYGROUND
    assert [name for name in without if name.startswith("playground")] == []


def test_directory(tmp_path: Path) -> None:
    """What the operator describes stands beside the shipped ones, or in place of the one of its id, as a whole."""
    (tmp_path / "a.toml").write_text(_text())
    (tmp_path / "b.toml").write_text(_text("playground-shadow"))
    (tmp_path / "notes.txt").write_text("not a descriptor")
    (tmp_path / ".#c.toml").write_text("what an editor leaves")
    (tmp_path / "d.toml").mkdir()
    found = load_providers(tmp_path, 7)
    assert set(found) - set(load_providers(tmp_path / "none", 0)) == {"mine", *_PLAYGROUND}
    assert found["playground-shadow"] == read_descriptor(tmp_path / "b.toml")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"a.toml": b"schema = 1\nid = 1"}, r"a\.toml:2: id: must be"),
        ({"a.toml": b"\xff"}, r"a\.toml:1: cannot be read"),
        ({"a.toml": b" " * 5_000_000}, r"a\.toml:1: is longer than"),
        ({"a.toml": _text().encode(), "b.toml": _text().encode()}, r"b\.toml:1: id: describes 'mine', as .*a\.toml"),
    ],
    ids=["not a descriptor", "not text", "long", "twice"],
)
def test_refused(tmp_path: Path, files: dict[str, bytes], told: str) -> None:
    """At the start a file that cannot be used, and two of one id, are refused by name: none is left out silently."""
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    with pytest.raises(DescriptorError, match=told):
        load_providers(tmp_path, 7)


def _settled(providers: Providers) -> set[str]:
    """What a change on disk changes: it is taken up when it was seen twice."""
    assert providers.reload() == set()
    return set(providers.reload())


def test_reload(tmp_path: Path) -> None:
    """A file that changes, comes or goes is taken up, when it was the same twice; others stay as they are."""
    shipped = {"mine": parse(_text(name="Shipped"), "s"), "other": parse(_text("other"), "s")}
    providers = Providers(shipped, tmp_path)
    assert (providers["mine"].display_name, _settled(providers)) == ("Shipped", set())

    path = tmp_path / "a.toml"
    path.write_text(_text(version="2"))
    assert (_settled(providers), providers["mine"].version) == ({"mine"}, "2")

    path.write_text(_text(version="3"))
    assert providers.reload() == set()
    path.write_text(_text(version="4", name="Longer"))
    assert (_settled(providers), providers["mine"].version) == ({"mine"}, "4")

    (tmp_path / "b.toml").write_text(_text("new"))
    assert (_settled(providers), sorted(providers)) == ({"new"}, ["mine", "new", "other"])

    os.utime(path)
    assert _settled(providers) == set()

    path.unlink()
    assert (_settled(providers), providers["mine"].display_name) == ({"mine"}, "Shipped")
    (tmp_path / "b.toml").rename(tmp_path / "c.toml")
    assert (_settled(providers), sorted(providers)) == (set(), ["mine", "new", "other"])


def test_directory_comes_later(tmp_path: Path) -> None:
    """The directory may be made while the server runs."""
    providers = Providers({}, tmp_path / "later")
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "a.toml").write_text(_text())
    assert (_settled(providers), sorted(providers)) == ({"mine"}, ["mine"])


def test_broken(tmp_path: Path) -> None:
    """A broken file leaves what it held before in use, is told once with all its errors, and is taken up when right."""
    path = tmp_path / "a.toml"
    path.write_text(_text())
    providers = Providers({}, tmp_path)
    before = dict(providers)
    path.write_text(_text(version="2").replace("composer =", "compose =").replace("http:", "file:"))
    with capture_logs() as told:
        assert (_settled(providers), dict(providers)) == (set(), before)
        (tmp_path / "b.toml").write_text("id = 1")
        assert _settled(providers) == set()
    problems = [
        f"{path}:7: start_uri: must be an http or https address at one of 'hosts', without user and password",
        (
            f"{path}:14: page.composer: is missing, and must be a list of marks: each is a CSS selector,"
            ' {selector = "…", text = "…", name = "…"} or {role = "…", name = "…"}'
        ),
        f"{path}:17: page.compose: is unknown; did you mean 'composer'?",
    ]
    missing = f"{tmp_path / 'b.toml'}:1: schema: is missing; write schema = 1 at the top"
    assert [(entry["provider"], entry["problems"]) for entry in told] == [
        ("mine", problems),
        ("b", [f"{missing} (docs/providers.md tells what it is)"]),
    ]
    assert providers.fault("mine") == "\n".join(problems)
    assert described(providers["mine"], providers.fault("mine")).warnings == (
        Warning("descriptor-broken", "\n".join(problems)),
    )

    path.write_text(_text(version="2"))
    assert (_settled(providers), providers["mine"].version, providers.fault("mine")) == ({"mine"}, "2", "")


def test_twice_later(tmp_path: Path) -> None:
    """A second file of one id does not take the place of the first; when the first goes, it does."""
    (tmp_path / "a.toml").write_text(_text())
    providers = Providers({}, tmp_path)
    (tmp_path / "b.toml").write_text(_text(version="2"))
    assert (_settled(providers), providers["mine"].version) == (set(), "1")
    assert providers.fault("mine").startswith(f"{tmp_path / 'b.toml'}:1: id: describes 'mine', as ")
    (tmp_path / "a.toml").unlink()
    assert (_settled(providers), providers["mine"].version, providers.fault("mine")) == ({"mine"}, "2", "")


def test_versions(tmp_path: Path) -> None:
    """Earlier versions are kept; one that was repaired without another number is the repaired one; none is invented."""
    path = tmp_path / "a.toml"
    path.write_text(_text(name="One"))
    providers = Providers({}, tmp_path)

    def named(version: str) -> str:
        found = providers.of_version("mine", version)
        return found.display_name if found else ""

    path.write_text(_text(name="Repaired"))
    _settled(providers)
    assert named("1") == "Repaired"
    path.write_text(_text(version="2", name="Two"))
    _settled(providers)
    assert [named(version) for version in ("1", "2", "3")] == ["Repaired", "Two", "Two"]
    path.unlink()
    _settled(providers)
    assert [named(version) for version in ("1", "2", "3")] == ["Repaired", "Two", ""]
    path.write_text(_text(version="1", name="Again"))
    _settled(providers)
    assert [named(version) for version in ("1", "2", "3")] == ["Again", "Two", "Again"]


def test_many_versions(tmp_path: Path) -> None:
    """Of versions that are not in use any more the last sixteen are kept, so that no edit adds up."""
    path = tmp_path / "a.toml"
    path.write_text(_text(version="0", name="Version 0"))
    providers = Providers({}, tmp_path)
    for number in range(1, 20):
        path.write_text(_text(version=str(number), name=f"Version {number}"))
        _settled(providers)
    found = [providers.of_version("mine", str(number)) for number in range(20)]
    assert [one.version for one in found if one] == ["19"] * 3 + [str(number) for number in range(3, 20)]


def test_capabilities() -> None:
    """What is told of a provider is what its descriptor says, and nothing that is not built."""
    plain, gemini = parse(_text(), "a"), parse('preambles = ["safety"]\n' + _text(), "a")
    every = (
        ProviderCapability.CONTINUATION,
        ProviderCapability.MODEL_CHOICE,
        ProviderCapability.CANCELLATION,
        ProviderCapability.PARTIAL_ANSWERS,
    )
    assert [capabilities(plain), capabilities(gemini)] == [every, (*every, ProviderCapability.SAFETY_PREAMBLE)]
