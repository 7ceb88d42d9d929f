"""The files of a prompt: may they be sent, which of them does a page show, and are they ready? No I/O."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final, Literal

from tabmuxd.artifacts.naming import ending_of, stem_of
from tabmuxd.resources.errors import Reason, Refused, refuse
from tabmuxd.resources.session import Artifact
from tabmuxd.webai.providers.descriptor import Descriptor
from tabmuxd.webai.samples import Sample, SeenFile

Cause = Literal[
    "too-many",
    "too-large",
    "type",
    "same-name",
    "not-local",
    "no-input",
    "not-shown",
    "unfinished",
    "failed",
    "dropped",
]
Standing = Literal["ready", "unfinished", "failed", "not-shown", "others"]

_LEAST_STEM: Final = 3
_LEAST_BEGINNING: Final = 6
_ELLIPSIS: Final = re.compile(r"\s*(?:\u2026|\.\.\.)\s*")
# Before a name, and behind it, what makes it a part of a longer one; a dot at the end of a sentence does not.
_WORD_END: Final = re.compile(r"[\w.-]\Z")
_WORD_ON: Final = re.compile(r"[\w-]|\.\w")
_SAID: Final[dict[Cause, str]] = {
    "too-many": "it takes fewer files with one prompt",
    "too-large": "it takes no file of that size",
    "type": "it takes no file of that type",
    "same-name": "two files of one name cannot be told apart on its page",
    "not-local": "its browser does not read the files of this machine",
    "no-input": "its page has no place for it",
    "not-shown": "its page did not show it",
    "unfinished": "its page did not finish taking it",
    "failed": "its page did not take it",
    "dropped": "its page showed it, and then did not",
}


def may_send(descriptor: Descriptor, files: Sequence[Artifact]) -> Refused | None:
    """Whether the provider takes these files, by what its descriptor says."""
    if files and not descriptor.marks.takes_files:
        return refuse(
            Reason.PROVIDER_UNSUPPORTED,
            f"{descriptor.id} takes no files; nothing was sent. Do without, or use another provider.",
            provider=descriptor.id,
            capability="ATTACHMENTS",
        )
    if len(files) > descriptor.max_file_count:
        return refused(descriptor, files[descriptor.max_file_count], "too-many")
    names: set[str] = set()
    for file in files:
        if file.size_bytes > descriptor.max_file_bytes:
            return refused(descriptor, file, "too-large")
        if not _is_type(descriptor.file_types, file):
            return refused(descriptor, file, "type")
        if (name := _plain(file.display_name)) in names:
            return refused(descriptor, file, "same-name")
        names.add(name)
    return None


def refused(descriptor: Descriptor, file: Artifact, cause: Cause) -> Refused:
    """PROVIDER_ATTACHMENT_REFUSED."""
    return refuse(
        Reason.PROVIDER_ATTACHMENT_REFUSED,
        f"{descriptor.id} did not take {file.name}: {_SAID[cause]}; nothing was submitted.",
        provider=descriptor.id,
        artifact=file.name,
        cause=cause,
    )


def standing(sample: Sample, files: Sequence[Artifact]) -> Standing:
    """How these files stand in the composer: all there by their names, each once, and nothing else.

    "others": there is more than these, or something else in their place.
    """
    if not files:
        return "others" if sample.files else "ready"
    if sample.files_failed or any(shown.failed for shown in sample.files):
        return "failed"
    if missing(sample, files) is not None:
        return "not-shown" if len(sample.files) < len(files) else "others"
    if len(sample.files) > len(files):
        return "others"
    return "unfinished" if sample.files_busy or any(shown.busy for shown in sample.files) else "ready"


def missing(sample: Sample, files: Sequence[Artifact]) -> Artifact | None:
    """The first of these files that the composer does not show, each of them by something else."""
    left = list(sample.files)
    # Those that are shown by their whole names first: what is cut may stand for several.
    for is_shown in (_is_whole, is_shown_as):
        unseen: list[Artifact] = []
        for file in files:
            found = next((shown for shown in left if is_shown(shown, file.display_name)), None)
            if found is None:
                unseen.append(file)
            else:
                left.remove(found)
        files = unseen
    return files[0] if files else None


def first_index(sample: Sample, files: Sequence[Artifact]) -> int | None:
    """Place of the first file that is shown and may be one of these."""
    return next(
        (
            place
            for place, shown in enumerate(sample.files)
            if any(is_shown_as(shown, file.display_name) for file in files)
        ),
        None,
    )


def is_shown_as(shown: SeenFile, name: str) -> bool:
    """Whether something that the composer shows names this file: whole, cut in the middle, or by its stem."""
    stem, ending = _plain(stem_of(name)), ending_of(name)
    for said in map(_plain, shown.names):
        if _stands_in(said, _plain(name)) or _is_numbered(said, stem, ending):
            return True
        if len(stem) >= _LEAST_STEM and _stands_in(said, stem):
            return True
        if any(_is_cut(word, _plain(name)) for word in (said, *said.split(" "))):
            return True
    return False


def _is_whole(shown: SeenFile, name: str) -> bool:
    return any(_stands_in(_plain(said), _plain(name)) for said in shown.names)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def _stands_in(said: str, name: str) -> bool:
    """Whether a name stands in what is said, not as a part of a longer one."""
    at = said.find(name)
    while at >= 0:
        before, after = said[at - 1 : at] if at else "", said[at + len(name) :]
        if not (_WORD_END.search(before) or _WORD_ON.match(after)):
            return True
        at = said.find(name, at + 1)
    return False


def _is_numbered(said: str, stem: str, ending: str) -> bool:
    """As a page names one that it has already: `name (1).txt`."""
    return re.search(rf"(?:^|\s){re.escape(stem)} ?\(\d{{1,3}}\){re.escape(ending)}(?:\s|$)", said) is not None


def _is_cut(said: str, name: str) -> bool:
    """Whether this is the name with an ellipsis in it."""
    parts = _ELLIPSIS.split(said)
    if len(parts) != 2:  # noqa: PLR2004 - what stands before it, and behind it
        return False
    beginning, end = parts
    return (
        len(beginning) >= _LEAST_BEGINNING
        and len(said) <= len(name) + 1
        and name.startswith(beginning)
        and name.endswith(end)
    )


def _is_type(types: Sequence[str], file: Artifact) -> bool:
    if not types:
        return True
    ending, kind = ending_of(file.display_name), file.media_type
    return any(
        ending == each if each.startswith(".") else kind.startswith(each[:-1]) if each.endswith("/*") else kind == each
        for each in types
    )
