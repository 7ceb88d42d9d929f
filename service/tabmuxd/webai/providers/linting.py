"""Descriptors looked at without a server: all that is wrong with them, by file and line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tabmuxd.webai.providers.descriptor import Descriptor, DescriptorError
from tabmuxd.webai.providers.fields import Problem, plain
from tabmuxd.webai.providers.loading import read_descriptor


@dataclass(frozen=True, slots=True)
class Linted:
    """One file: what it describes, None where it cannot be used, and then why."""

    path: str
    descriptor: Descriptor | None = None
    problems: tuple[Problem, ...] = ()

    def lines(self) -> Sequence[str]:
        """For people: one line for a good file, else one for each problem."""
        if self.descriptor is not None:
            return (plain(f"{self.path}: good: {self.descriptor.id}, version {self.descriptor.version}"),)
        return tuple(f"{plain(self.path)}:{problem}" for problem in self.problems)

    def entry(self) -> dict[str, object]:
        """For programs, as JSON."""
        return {
            "file": self.path,
            "provider": self.descriptor.id if self.descriptor else "",
            "version": self.descriptor.version if self.descriptor else "",
            "problems": [
                {"line": problem.line, "field": problem.field, "message": problem.message} for problem in self.problems
            ],
        }


def lint(paths: Sequence[str]) -> Sequence[Linted]:
    """Each file as a server would read it."""
    return [_linted(path) for path in paths]


def _linted(path: str) -> Linted:
    try:
        return Linted(path, read_descriptor(Path(path)))
    except DescriptorError as error:
        return Linted(path, problems=error.problems)
