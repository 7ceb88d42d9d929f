"""Which providers a server knows: the shipped descriptors, and the files of its operator, also when those change."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Final, TypeAlias

import structlog

from tabmuxd.webai.providers import descriptor
from tabmuxd.webai.providers.descriptor import Descriptor, DescriptorError
from tabmuxd.webai.providers.fields import Problem

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_PACKAGE: Final = "tabmuxd.webai.providers"
_PLAYGROUND: Final = "playground-"
_MOST_BYTES: Final = 4 * 1024 * 1024
_KEPT_COUNT: Final = 16

_Stamp: TypeAlias = tuple[int, int, int]
"""Time of the last change in nanoseconds, size and inode: another one says that a file may have changed."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it was read last; `content` is what it held when it was last right, `fault` why it is not now."""

    stamp: _Stamp
    content: Descriptor | None = None
    fault: DescriptorError | None = None


class Providers(Mapping[str, Descriptor]):
    """The descriptors in use, by id, and earlier versions of them, which sessions keep.

    A file takes the place of a shipped descriptor of its id as a whole. All runs on the loop: files are few and small.
    """

    def __init__(self, shipped: Mapping[str, Descriptor], directory: Path | None = None) -> None:
        """`directory` need not be there. Raises DescriptorError for a file that cannot be used, or two of one id."""
        self._shipped = shipped
        self._directory = directory
        self._seen = self._stamps() or {}
        self._files = {path: _read(path, stamp, None) for path, stamp in self._seen.items()}
        self._earlier: dict[tuple[str, str], Descriptor] = {}
        self._faults: dict[str, str] = {}
        self._told: set[str] = set()
        self._present, faults = self._assembled()
        for fault in faults:
            raise fault

    def __repr__(self) -> str:
        """How many are in use, kept, and kept from use by what is wrong with them."""
        return f"<Providers {len(self._present)} earlier={len(self._earlier)} broken={len(self._faults)}>"

    def __getitem__(self, provider: str) -> Descriptor:
        """The descriptor in use for new sessions."""
        return self._present[provider]

    def __iter__(self) -> Iterator[str]:
        """The ids, in no order."""
        return iter(self._present)

    def __len__(self) -> int:
        """How many are in use."""
        return len(self._present)

    def fault(self, provider: str) -> str:
        """Why what its file holds now is not in use; empty where it is."""
        return self._faults.get(provider, "")

    def of_version(self, provider: str, version: str) -> Descriptor | None:
        """That version of a provider's descriptor, or the one in use where this server has not read that version.

        A version that a file changed without another number is the one that the file holds now.
        """
        present = self._present.get(provider)
        if present is not None and present.version == version:
            return present
        return self._earlier.get((provider, version), present)

    def reload(self) -> AbstractSet[str]:
        """Read the files that have changed since, and not in between the last two looks; gives the ids that did.

        One that is broken leaves what it held before in use.
        """
        stamps = self._stamps()
        if stamps is None:
            return frozenset()
        before, self._seen = self._seen, stamps
        settled = {path for path, stamp in stamps.items() if before.get(path) == stamp}
        changed = {path for path in settled if path not in self._files or self._files[path].stamp != stamps[path]}
        gone = {path for path in self._files if path not in stamps and path not in before}
        if not changed and not gone:
            return frozenset()
        for path in changed:
            self._files[path] = _read(path, stamps[path], self._files.get(path))
        for path in gone:
            del self._files[path]
        return self._take(*self._assembled())

    def _take(self, found: Mapping[str, Descriptor], faults: list[DescriptorError]) -> AbstractSet[str]:
        """Put other descriptors in use, and tell what is new."""
        self._faults = {fault.provider: str(fault) for fault in faults}
        told, self._told = self._told, {str(fault) for fault in faults}
        for fault in faults:
            if str(fault) not in told:
                _log.warning("descriptor not usable", provider=fault.provider, problems=str(fault).split("\n"))
        other = frozenset(
            provider for provider in {*found, *self._present} if found.get(provider) != self._present.get(provider)
        )
        for provider in sorted(other):
            now, before = found.get(provider), self._present.get(provider)
            if before is not None and (now is None or now.version != before.version):
                self._keep(before)
            if now is not None:
                self._earlier.pop((provider, now.version), None)
            _log.info("descriptor changed", provider=provider, version=now.version if now else "")
        self._present = dict(found)
        return other

    def _keep(self, earlier: Descriptor) -> None:
        self._earlier[earlier.id, earlier.version] = earlier
        kept = [key for key in self._earlier if key[0] == earlier.id]
        for key in kept[:-_KEPT_COUNT]:
            del self._earlier[key]

    def _assembled(self) -> tuple[dict[str, Descriptor], list[DescriptorError]]:
        """What the files hold, over what is shipped, and what is wrong with them."""
        found = dict(self._shipped)
        sources: dict[str, Path] = {}
        faults: list[DescriptorError] = []
        for path, file in sorted(self._files.items()):
            if file.fault is not None:
                # One that cannot be read at all is told of the provider that its name says.
                provider = file.content.id if file.content else file.fault.provider or path.stem
                faults.append(DescriptorError(file.fault.source, file.fault.problems, provider))
            if file.content is None:
                continue
            one = file.content
            if other := sources.get(one.id):
                problem = Problem(1, "id", f"describes {one.id!r}, as {other} does; leave one of them out")
                faults.append(DescriptorError(str(path), (problem,), one.id))
                continue
            sources[one.id] = path
            found[one.id] = one
        return found, faults

    def _stamps(self) -> dict[Path, _Stamp] | None:
        """The files that there are; None where that cannot be told now."""
        found: dict[Path, _Stamp] = {}
        if self._directory is None:
            return found
        try:
            for path in self._directory.iterdir():
                if path.suffix == ".toml" and not path.name.startswith("."):
                    told = path.stat()
                    if stat.S_ISREG(told.st_mode):
                        found[path] = (told.st_mtime_ns, told.st_size, told.st_ino)
        except FileNotFoundError:
            return found if not self._directory.exists() else None
        except OSError:
            return None
        return found


def load_providers(directory: Path, playground_port: int) -> Providers:
    """Those that are shipped, the playground's where a port for it is known, and each `*.toml` of `directory`."""
    variables = {"port": str(playground_port)}
    files = (entry.name for entry in resources.files(_PACKAGE).iterdir() if entry.name.endswith(".toml"))
    names = [name.removesuffix(".toml") for name in files if playground_port or not name.startswith(_PLAYGROUND)]
    return Providers({name: descriptor.load(name, variables) for name in names}, directory)


def read_descriptor(path: Path) -> Descriptor:
    """What a file describes; DescriptorError with all that is wrong with it."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise DescriptorError(str(path), (Problem(1, "", f"is longer than {_MOST_BYTES} bytes"),))
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DescriptorError(str(path), (Problem(1, "", f"cannot be read: {error}"),)) from error
    return descriptor.parse(text, str(path))


def _read(path: Path, stamp: _Stamp, before: _File | None) -> _File:
    file = before or _File(stamp)
    try:
        return _File(stamp, read_descriptor(path))
    except DescriptorError as error:
        return replace(file, stamp=stamp, fault=error)
