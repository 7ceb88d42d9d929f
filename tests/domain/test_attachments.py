"""Files of a prompt: what may be sent, and how far a page shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tabmuxd.resources.errors import Refused
from tabmuxd.resources.session import Artifact
from tabmuxd.webai.attachments import first_index, is_shown_as, may_send, missing, standing
from tabmuxd.webai.providers.marks import Mark
from tabmuxd.webai.samples import Sample, SeenFile

from tests.domain.values import NOW, playground, sample, told

REFUSED = "PROVIDER_ATTACHMENT_REFUSED"
_CHIP = (Mark(".chip"),)


def file(name: str = "a.txt", *, size: int = 3, media_type: str = "text/plain") -> Artifact:
    """A file that is kept."""
    return Artifact(f"artifacts/{name}", name, media_type, size, "cc", NOW)


def shows(*files: SeenFile | str, **fields: bool) -> Sample:
    """A look at a composer that shows these."""
    seen = tuple(SeenFile((one,)) if isinstance(one, str) else one for one in files)
    return replace(sample(), files=seen, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.txt", "a.txt"),
        ("a.txt", "Remove file a.txt"),
        ("a.txt", "a.txt 12 KB"),
        ("a.txt", "Remove a.txt."),
        ("A.TXT", "a.txt"),
        ("e\u0301t\u00e9.pdf", "\u00e9t\u00e9.pdf"),
        ("two  spaces.txt", "two spaces.txt"),
        ("report.pdf", "report PDF"),
        ("report.pdf", "report"),
        ("report.pdf", "report (1).pdf"),
        ("a.txt", "a (12).txt"),
        ("minutes of the meeting.pdf", "minutes of th\u2026.pdf"),
        ("minutes of the meeting.pdf", "minutes of th...ng.pdf"),
        ("minutes.pdf", "minute\u2026"),
        ("-.-", "-.-"),
    ],
)
def test_shown(name: str, said: str) -> None:
    """A file is shown by its name, as a whole, numbered, cut, or without its ending."""
    assert is_shown_as(SeenFile(("Attachment", said)), name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.txt", ""),
        ("a.txt", "aa.txt"),
        ("a.txt", "a.txt.exe"),
        ("a.txt", "b-a.txt"),
        ("a.txt", "a"),
        ("report.pdf", "report.pdf.html"),
        ("report.pdf", "report.doc"),
        ("report.pdf", "reports"),
        ("report.pdf", "my_report"),
        ("minutes of the meeting.pdf", "minutes of an\u2026.pdf"),
        ("minutes of the meeting.pdf", "minutes of th\u2026.doc"),
        ("minutes of the meeting.pdf", "min\u2026.pdf"),
        ("minutes.pdf", "\u2026"),
        ("a.txt", "Add files and more"),
    ],
)
def test_not_shown(name: str, said: str) -> None:
    """What only resembles a file's name does not show it."""
    assert not is_shown_as(SeenFile((said,)), name)


TWO = (file("a.txt"), file("b.txt"))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (shows("b.txt", "a.txt"), "ready"),
        (shows(), "not-shown"),
        (shows("a.txt"), "not-shown"),
        (shows("a.txt", "a.txt"), "others"),
        (shows("a.txt", "c.txt"), "others"),
        (shows("a.txt", "b.txt", "c.txt"), "others"),
        (shows("a.txt", "b.txt", "a.txt"), "others"),
        (shows("a.txt", SeenFile(("b.txt",), busy=True)), "unfinished"),
        (shows("a.txt", "b.txt", files_busy=True), "unfinished"),
        (shows("a.txt", SeenFile(("b.txt",), failed=True)), "failed"),
        (shows("a.txt", "b.txt", files_failed=True), "failed"),
        (shows(SeenFile(("", "x"), failed=True)), "failed"),
    ],
)
def test_standing(seen: Sample, expected: str) -> None:
    """Files are ready if each is shown once, by something of its own, done, and with nothing else (SUB-19)."""
    assert standing(seen, TWO) == expected


def test_none() -> None:
    """A prompt without files is ready where the composer shows none, and nowhere else."""
    looks = (shows(), shows(files_busy=True, files_failed=True), shows("a.txt"), shows(SeenFile((), failed=True)))
    assert [standing(seen, ()) for seen in looks] == ["ready", "ready", "others", "others"]


def test_cut_names() -> None:
    """Of names that are cut alike each needs something of its own; a whole one is told first."""
    files = (file("minutes of the first.pdf"), file("minutes of the second.pdf"))
    cut = "minutes of the\u2026.pdf"
    assert missing(shows(cut, cut), files) is None
    assert missing(shows(cut), files) == files[1]
    assert missing(shows(cut, "minutes of the first.pdf"), files) is None
    assert missing(shows("minutes of the first.pdf", cut), files[::-1]) is None


def test_which_to_take_out() -> None:
    """What is taken out is shown as one of the files, wherever it stands."""
    assert [first_index(shows(*names), TWO) for names in ((), ("x.txt",), ("x.txt", "b.txt", "a.txt"))] == [
        None,
        None,
        1,
    ]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ((), None),
        (TWO, None),
        ((*TWO, file("c.txt")), f"{REFUSED}:too-many"),
        ((file(size=11),), f"{REFUSED}:too-large"),
        ((file("a.png", media_type="image/png"),), None),
        ((file("a.PDF", media_type="application/pdf"),), None),
        ((file("a.zip", media_type="application/zip"),), f"{REFUSED}:type"),
        ((file("txt", media_type="application/zip"),), f"{REFUSED}:type"),
        ((file("a.txt"), file("A.TXT")), f"{REFUSED}:same-name"),
    ],
)
def test_may_send(files: tuple[Artifact, ...], expected: str | None) -> None:
    """The descriptor's limits are kept before a page is touched (SEC-07)."""
    takes = replace(playground(), marks=replace(playground().marks, file_input=_CHIP, file_chip=_CHIP))
    takes = replace(takes, max_file_count=2, max_file_bytes=10, file_types=("text/plain", "image/*", ".pdf"))
    assert told(may_send(takes, files)) == expected


def test_takes_none() -> None:
    """A provider whose descriptor tells nothing of files takes none."""
    none = replace(playground(), marks=replace(playground().marks, file_input=(), file_opener=(), file_chip=()))
    refused = may_send(none, TWO)
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.metadata["capability"]) == ("PROVIDER_UNSUPPORTED", "ATTACHMENTS")
